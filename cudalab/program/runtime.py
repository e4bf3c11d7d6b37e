"""The runtime of whole programs: objects and a precompiled header, made once for each compiler.

A program normally uses the plain ones. An observed program has its own, and the runtime API as a
separate library.
"""

import os
import selectors
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import get_native_id

from cudalab.backends.cpu import compiler, parts
from cudalab.backends.cpu.flags import (
    CUDA_RUNTIME,
    FITTING,
    PART,
    PROGRAM,
    for_programs,
    for_runtime,
    with_users,
)
from cudalab.backends.cpu.key import cached
from cudalab.backends.cpu.toolchain import environment, find_compiler
from cudalab.errors import NoDeviceError
from cudalab.output.progress import stage
from cudalab.system.cache import explain_full_disk
from cudalab.system.machine import usable_cores

PRECOMPILED = "cudalab_program.h"  # the header that g++ reads once
HOST_LIBRARY = "libhost.so"
# Added to the flags of kernel files: programs use exceptions, main must be visible, nvcc takes
# arrays of variable length in functions of the host, and the C library, which the interpreter has
# loaded before the program, must not be what assert() in a kernel calls. No other library puts
# functions in the place of the program's, so that each of them can be inlined.
OBSERVED_PROGRAM = (
    *("-fexceptions", "-frtti", "-fvisibility=default", "-pthread", "-UNDEBUG", "-Wno-vla"),
    "-fno-semantic-interposition",
    *("-D__assert_fail=cudalab_assert_fail", FITTING),
)
_OBSERVED = ("-fPIC", "-fno-omit-frame-pointer")


def libraries(sources: Iterable[Path]) -> Sequence[Path]:
    """The libraries, of the cache `zig`, that a program may need: compiled once, with zig only."""
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sources)
    return find_compiler().libraries(text)


class Runtime:
    """Files of the runtime, which compilers make in parallel while the caller continues."""

    def __init__(self, folder: Path, parts_of_it: Sequence[str], *more: str) -> None:
        """Start the compilers for the objects that are missing, with `more` flags."""
        folder.mkdir(exist_ok=True)
        self.folder, self.parts = folder, parts_of_it
        self._compilers, self._made = Compilers(), list[Path]()
        for part in parts_of_it:
            flags = [*with_users(parts.flags(part)), *more, *for_runtime()]
            self.make(folder / f"{part}.o", [*flags, "-c", str(parts.source(part))])

    def make(self, made: Path, options: Sequence[str]) -> None:
        """Start the compiler with these options unless the file is there."""
        if not made.exists():
            command = [*find_compiler().compile, *options, "-o", str(_building(made))]
            self._compilers.add(command)
            self._made.append(made)

    def precompile(self, flags: Sequence[str]) -> None:
        """Start to read the header of programs with these flags."""
        if "clang" not in find_compiler().version():  # which would need an option in each call
            header = str(CUDA_RUNTIME.with_name(PRECOMPILED))
            self.make(self.folder / f"{PRECOMPILED}.gch", [*flags, "-x", "c++-header", header])

    def finish(self, say: Callable[[int, int], None] = lambda _done, _total: None) -> list[str]:
        """Wait for the compilers and return the object files; see Compilers.finish for `say`."""
        if failed := self._compilers.finish(say):
            raise compiler.runtime_failure(failed)
        for made in self._made:
            _building(made).replace(made)
        return [str(self.folder / f"{part}.o") for part in self.parts]


def _building(made: Path) -> Path:
    """Where this thread builds a file before moving it into place."""
    return made.with_suffix(f".{os.getpid()}-{get_native_id()}")


def plain(used: Sequence[str] = ()) -> Runtime:
    """Start to build the runtime: the common parts and those `used`."""
    place = cached("programs", "runtime", *with_users(PART), find_compiler().identity)
    made = Runtime(place, (parts.FIRST, *used, *parts.ALWAYS, "launch", *parts.OF_PROGRAM))
    made.precompile([*with_users(PROGRAM), *for_programs()])
    return made


def files(*, check: bool) -> list[Path]:
    """The parts of the runtime that each program has, made if missing: what another cache needs.

    Not all that is in the folder: other processes may be making more there.
    """
    objects = [Path(one) for one in (observed() if check else plain().finish())]
    header = objects[0].with_name(f"{PRECOMPILED}.gch")
    return [*objects, header] if header.is_file() else objects


@explain_full_disk()
def observed(used: Sequence[str] = ()) -> list[str]:
    """The objects for an observed program, followed by the library with the runtime API."""
    checked = compiler.check_runtime_library()  # depends on the processor's features, too
    place = cached("programs", "observed", *with_users(PART), checked.name)
    own = Runtime(place, (*used, *parts.OF_OBSERVED, *parts.OF_PROGRAM), *_OBSERVED)
    own.precompile(compiler.check_flags((*OBSERVED_PROGRAM, *for_programs())))
    with stage("compiling the runtime, once") as known:
        objects = own.finish(lambda done, total: known.reach(done, total, "parts"))
    library = place / HOST_LIBRARY
    if not library.exists():
        apart = cached("programs", "library", *with_users(PART), checked.name)
        shared = Runtime(apart, (*parts.ALWAYS, *parts.OF_CHECK), *_OBSERVED).finish()
        done = find_compiler().link(_building(library), (*shared, str(checked)), shared=True)
        if done.returncode:
            raise compiler.runtime_failure(done.stderr)
        _building(library).replace(library)
    return [*objects, str(library)]


class Compilers:
    """Compilers that run in parallel while the caller continues.

    At most one runs per processor, since each takes hundreds of MB.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._waiting: deque[Sequence[str]] = deque()
        self._started: list[tuple[subprocess.Popen[bytes], list[bytes]]] = []  # and what they say
        self._running = selectors.DefaultSelector()  # by the pipes through which they say it

    def add(self, command: Sequence[str]) -> None:
        """Start a compiler, now or as soon as another one has finished."""
        self._waiting.append(command)
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
                total = len(self._started) + len(self._waiting)
                say(total - len(self._waiting) - len(self._running.get_map()), total)
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
    compilers = Compilers()
    for command in commands:
        compilers.add(command)
    return compilers.finish()
