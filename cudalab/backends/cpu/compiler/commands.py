"""Running the compilers: side by side, and again where their first work is not to be trusted.

A precompiled header may be damaged: then the text will do. And from version 12 on g++ makes some
loads wrong where it vectorizes a loop: their address counts with a truth value, and for the index
of `table[a[i] > 1 && b[i] < 2]` it takes the mask of the comparisons, in which true is -1. No
option leaves out such loads alone, so g++ also writes down its loops before it vectorizes them, and
where one has such an address, the file is compiled again with its loops as they are written.
"""

import os
import re
import selectors
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from cudalab.backends.cpu.compiler.toolchain import environment, find_compiler
from cudalab.errors import NoDeviceError
from cudalab.system.cache import cache_dir
from cudalab.system.machine import usable_cores

Command = Sequence[str]

_FAULTY = re.compile(r"\) (1[2-9]|[2-9]\d)\.\d+\.\d+$")  # g++'s versions from 12 on; not clang's
_LOOPS = "-fdump-tree-ifcvt="  # the pass before the vectorizer
_NOT_VECTORIZED = "-fno-tree-loop-vectorize"

_NAME = r"[\w.]+"
_FUNCTION = re.compile(r"^;; Function ", re.MULTILINE)
_DECLARED = re.compile(rf"^  ([^;=()]+?)({_NAME});$", re.MULTILINE)  # type and name
_SET = re.compile(rf"^  ({_NAME}) = (.+);", re.MULTILINE)
_CONVERSION = re.compile(rf"\([\w ]+\) ({_NAME})")
_COUNTING = re.compile(rf"({_NAME}) (?:[-+*]|<<) ({_NAME})")
_INDEX = re.compile(r"\[([^\]]*)\]")


def compile_all(commands: Sequence[Command]) -> str:
    """Run compilers in parallel; the messages of those that fail.

    Each command names what it makes behind `-o`. The compilers may read precompiled headers in the
    folders that they search.
    """
    failed = _trusted(commands)
    if reads_damage(failed):
        failed = _without_headers(commands)
    if "internal compiler error" in failed:  # g++ 12.2 for ARM, at a maximum of doubles
        failed = run_all([[*each, _NOT_VECTORIZED] for each in commands])
    return failed


def reads_damage(messages: str) -> bool:
    """Whether a damaged precompiled header may be what the compiler complains of or crashes on.

    One that a limit has ended says so in other words.
    """
    signs = ("PCH", "Segmentation fault", "internal compiler error")
    return any(sign in messages for sign in signs)


def _without_headers(commands: Sequence[Command]) -> str:
    """Compile without precompiled headers that may be damaged: the text will do.

    If the compiler still complains as before, they are not at fault, and stay.
    """
    pairs = (pair for command in commands for pair in pairwise(command))
    searched = {Path(word) for before, word in pairs if before == "-I"}
    own = (folder for folder in searched if folder.is_relative_to(cache_dir("cpu").parent))
    moved: list[tuple[Path, Path]] = []
    for header in (header for folder in own for header in folder.glob("*.gch")):
        aside = header.with_name(f"aside-{os.urandom(8).hex()}")
        with suppress(OSError):  # another process has moved it
            moved.append((header, header.replace(aside)))
    is_damaged = False
    try:
        failed = _trusted(commands)
        is_damaged = not reads_damage(failed)
    finally:
        for header, aside in moved:
            aside.unlink() if is_damaged else aside.replace(header)
    return failed


# Loads that g++ makes wrong ----------------------------------------------------------------------


def _trusted(commands: Sequence[Command]) -> str:
    """Run compilers, and those again whose vectorized loads would be wrong, unless one fails."""
    if not _FAULTY.search(find_compiler().version()):
        return run_all(commands)
    written = [Path(f"{command[command.index('-o') + 1]}.loops") for command in commands]
    failed = run_all([[*one, f"{_LOOPS}{to}"] for one, to in zip(commands, written, strict=True)])
    wrong = [
        [*command, _NOT_VECTORIZED]
        for command, loops in zip(commands, written, strict=True)
        if not failed and loops.exists() and counts_with_truth(loops.read_text(errors="replace"))
    ]
    return failed or run_all(wrong)


def counts_with_truth(loops: str) -> bool:
    """Whether an address of these functions, in g++'s own text, counts with a truth value."""
    return any(map(_of_function, _FUNCTION.split(loops)))


def _of_function(text: str) -> bool:
    types: dict[str, str] = {name: kind.strip() for kind, name in _DECLARED.findall(text)}

    def kind(name: str) -> str:
        return types.get(name, types.get(name.rpartition("_")[0], ""))  # or one of its versions

    counts = set[str]()  # names whose values count with a truth value
    sets, known = _SET.findall(text.replace("(D)", "")), -1
    while known != len(counts):
        known = len(counts)
        for name, value in sets:
            converted = _CONVERSION.fullmatch(value)
            counted = _COUNTING.fullmatch(value)
            if converted and (converted[1] in counts or kind(converted[1]) == "bool"):
                counts.add(name)
            elif counted and counts.intersection(counted.groups()):
                if kind(name).endswith("*"):
                    return True
                counts.add(name)
            elif any(counts.intersection(re.findall(_NAME, at)) for at in _INDEX.findall(value)):
                return True
    return False


# Many at once ------------------------------------------------------------------------------------


class Compilers:
    """Compilers that run in parallel while the caller continues.

    At most one runs per processor, since each takes hundreds of MB.
    """

    def __init__(self, commands: Iterable[Command]) -> None:
        """Start as many as there are processors; the next ones as others finish."""
        self._waiting = deque(commands)
        self._total = len(self._waiting)
        self._started: list[tuple[subprocess.Popen[bytes], list[bytes]]] = []  # and what they say
        self._running = selectors.DefaultSelector()  # by the pipes through which they say it
        self._start()

    def finish(self, say: Callable[[int, int], None] = lambda _done, _total: None) -> str:
        """Wait for all compilers; return the messages of those that failed.

        `say` is told how many have finished, of how many.
        """
        while self._running.get_map():
            for key, _ in self._running.select():
                process, said = key.data
                if text := os.read(key.fd, 1 << 16):
                    said.append(text)
                    continue
                self._running.unregister(key.fd)
                os.close(key.fd)
                process.wait()
                self._start()
                say(len(self._started) - len(self._running.get_map()), self._total)
        return "".join(
            b"".join(said).decode(errors="replace") or f"{process.args!r} failed without a message"
            for process, said in self._started
            if process.returncode
        )

    def _start(self) -> None:
        while self._waiting and len(self._running.get_map()) < usable_cores():
            command = self._waiting.popleft()
            heard, spoken = os.pipe()
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=spoken,
                    stderr=subprocess.STDOUT,
                    env=environment(),
                )
            except OSError as error:
                os.close(heard)
                raise NoDeviceError(f"{command[0]} cannot be started: {error.strerror}") from None
            finally:
                os.close(spoken)
            self._started.append((process, []))
            self._running.register(heard, selectors.EVENT_READ, self._started[-1])


def run_all(commands: Iterable[Sequence[str]]) -> str:
    """Run the commands in parallel and return the messages of those that failed."""
    return Compilers(commands).finish()
