"""The kinds of submission, and how each runs inside the sandbox.

Each compiles once, then makes an `Attempt` at each input: the bytes on stdout, and how the run
ended. Whether the bytes are right is for judge.py to decide; nothing here knows the right answer.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import IO, Protocol

from cudalab.backends import facts
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.sandbox.sandbox import Sandbox
from cudalab.checker.verdicts import ANY_DEVICE, Why
from cudalab.errors import CudalabError, UsageError
from cudalab.labs.evidence import Launches
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.program.files import is_program

PIPE_BYTES = 7  # delivered at a time by a slow pipe
OURS = Sandbox("none", "cudalab's own code needs no sandbox")
PYTHON_RAISED = 1  # Python's exit status after an uncaught exception
REACHED_OUT = "it tried to start a program or to reach another process, which no kernel can"
CRASHES = {
    signal.SIGSEGV: "segmentation fault: access to memory that is not its own",
    signal.SIGBUS: "bus error: access to memory that does not exist",
    signal.SIGFPE: "integer division by zero",
    signal.SIGILL: "illegal instruction",
    signal.SIGABRT: "aborted",
    signal.SIGTRAP: "a trap",
    signal.SIGPIPE: "broken pipe",
    signal.SIGKILL: "killed",
}
LIMITS_BROKEN = {
    "time": Why.TIME,
    "cpu": Why.CPU,
    "memory": Why.MEMORY,
    "output": Why.OUTPUT,
    "processes": Why.PROCESSES,
    "disk": Why.DISK,
    "lost": Why.LOST,
    "cancelled": Why.LOST,
}


@dataclass(frozen=True)
class Trial:
    """One input, and how to run on it."""

    case: Case
    path: Path
    limits: Limits
    _: KW_ONLY
    pipe: bool = False  # a program gets a few bytes at a time; the host side reads for a kernel
    once: bool = False  # a kernel runs once instead of several times
    second: Path | None = None  # for a kernel, another input

    def opened(self) -> AbstractContextManager[int | IO[bytes]]:
        """The input as the stdin of a program."""
        return slow_pipe(self.path) if self.pipe else private_copy(self.path)


@dataclass
class Attempt:
    """One run of a submission on one input."""

    outcome: Outcome
    _: KW_ONLY
    answers: list[bytes] = field(default_factory=list)  # of several runs, without repeats
    why: Why = Why.NOTHING  # the reason for failing, regardless of the bytes
    says: str = ""
    hint: str = ""
    notes: list[str] = field(default_factory=list)
    launches: Launches = field(default_factory=Launches)
    runs: int = 1
    second_answer: bytes | None = None  # to a second input, in the same process
    other_types: list[str] = field(default_factory=list)  # of parameters than those of the launch


class Submission(Protocol):
    """The interface through which judge.py compiles and runs a submission."""

    kind: str
    name: str
    words: Sequence[str]  # its part of a command line: files, or the whole command
    variant: Variant | None  # a kernel's header
    device: str
    files: Sequence[Path]  # handed in, as far as they are known

    def compile(self, cases: Sequence[Case]) -> str:
        """Compile, and return a summary. CompileFailure if it does not compile."""
        ...

    def attempt(self, trial: Trial) -> Attempt:
        """Run on an input; a kernel then runs on the second one in the same process."""
        ...

    def close(self) -> None:
        """Remove the files that compiling left."""
        ...


@dataclass
class Command:
    """Any program that reads stdin and writes stdout."""

    words: Sequence[str]
    sandbox: Sandbox
    _: KW_ONLY
    name: str = ""
    kind: str = "command"
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    device: str = ANY_DEVICE
    folder: Path | None = None  # copied into each box; the program starts in it
    variant: Variant | None = None
    extra_env: dict[str, str] = field(default_factory=dict)
    files: Sequence[Path] = ()

    def compile(self, cases: Sequence[Case]) -> str:
        """Check that the program exists; there is nothing to compile."""
        del cases
        first = self.words[0]
        if self.folder is None and first.endswith(".cu"):
            if not Path(first).is_file():
                raise UsageError(
                    f"{first} does not exist", hint="`cudalab new LAB` writes a kernel"
                )
            text = Path(first).read_text(encoding="utf-8", errors="replace")
            raise UsageError(
                f"{first} is source code, not a program that can be started",
                hint=f"name it with --{'program' if is_program(text) else 'kernel'} {first}",
            )
        if self.folder is None and shutil.which(first) is None:
            raise UsageError(
                f"no such program: {first}",
                hint=f"compile it first; a program here is named ./{first}"
                if "/" not in first and Path(first).exists()
                else "a command and its arguments follow --",
            )
        for path in map(Path, self.words if self.folder is None else ()):
            if path.exists() and not self.sandbox.can_read(path):
                raise CudalabError(
                    f"the user that the submission runs as cannot read {path.absolute()}",
                    hint="chmod a+rX the file and the folders above it, or --sandbox none",
                )
        return "nothing to compile"

    def attempt(self, trial: Trial) -> Attempt:
        """Run with the input on stdin."""
        ours = [  # no command may use its variants, unless it lies in these folders
            folder
            for folder in self.sandbox.imports.own()
            if not any(path.is_relative_to(folder) for path in self.readable)
        ]
        made = self.sandbox.box(
            readable=self.readable,
            hidden=(*self.hidden, *ours),
            gpu=self.device == ANY_DEVICE or facts(self.device).driver,
            extra_env=self._environment(),
        )
        with made as box, trial.opened() as stdin:
            if self.folder is not None:
                shutil.copytree(self.folder, box.path, symlinks=True, dirs_exist_ok=True)
            outcome, answer = self.sandbox.capture(self._placed(), box, trial.limits, stdin=stdin)
        return replace(failure(outcome), answers=[answer])

    def _environment(self) -> dict[str, str]:
        """Let a script that the judge's own Python runs import what the judge can."""
        packages = self.sandbox.imports.packages
        program = shutil.which(self.words[0])
        if not packages or not program or Path(program).resolve() != Path(sys.executable).resolve():
            return self.extra_env
        return {"PYTHONPATH": ":".join(map(str, packages)), **self.extra_env}

    def _placed(self) -> list[str]:
        """The command with paths that hold inside the box."""
        first, *rest = self.words
        if first == sys.executable:  # the judge's own Python
            first = self.sandbox.imports.python
        if self.folder is not None:
            return [first, *rest]
        return [absolute(word) for word in (first, *rest)]

    def close(self) -> None:
        """Do nothing: no file was made."""


def absolute(word: str) -> str:
    """A word of a command line, made absolute if it is the path of an existing file."""
    path = Path(word)
    looks_like_path = "/" in word or (path.suffix and not word.startswith("-"))
    return str(path.absolute()) if looks_like_path and path.exists() else word


@contextmanager
def private_copy(path: Path) -> Iterator[IO[bytes]]:
    """A copy of a file for one run, which may open it again and change it; it has no name."""
    with tempfile.NamedTemporaryFile(prefix="cudalab-input-") as named:
        shutil.copyfile(path, named.name)
        copy = open(named.name, "rb")  # noqa: PTH123, SIM115 - closed below, without its name
    with copy:
        os.fchmod(copy.fileno(), 0o444)  # the run's user may open /dev/stdin
        yield copy


@contextmanager
def slow_pipe(path: Path) -> Iterator[int]:
    """A pipe that delivers a file's bytes a few at a time."""
    data, (read, write) = path.read_bytes(), os.pipe()

    def feed() -> None:
        with suppress(OSError):
            step = max(PIPE_BYTES, len(data) // 500)
            for start in range(0, len(data), step):
                os.write(write, data[start : start + step])
        os.close(write)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield read
    finally:
        os.close(read)  # a writer that still waits gets an error
        thread.join()


def failure(outcome: Outcome) -> Attempt:
    """The attempt of a run, with the reason if it failed."""
    last = last_line(outcome)
    if outcome.reason:
        says = _LIMIT_MESSAGES[outcome.reason].format(outcome, mib=outcome.peak_bytes / 2**20)
        return Attempt(outcome, why=LIMITS_BROKEN[outcome.reason], says=says)
    if outcome.status is not None and outcome.status < 0:
        try:
            number = signal.Signals(-outcome.status)
            says = f"{number.name} {CRASHES.get(number, '')}".strip()
        except ValueError:
            says = f"signal {-outcome.status}"
        return Attempt(outcome, why=Why.CRASH, says=says)
    if outcome.status:
        says = f"exit status {outcome.status}" + (f": {last}" if last else "")
        return Attempt(outcome, why=Why.EXIT, says=says)
    return Attempt(outcome)


def last_line(outcome: Outcome) -> str:
    """The last line of a run's messages."""
    return (outcome.stderr.strip().splitlines() or [""])[-1]


_LIMIT_MESSAGES = {
    "time": "stopped after {0.seconds:.1f} s",
    "cpu": "stopped after {0.cpu_s:.1f} s of processor time",
    "memory": "stopped at {mib:,.0f} MiB of memory",
    "processes": "stopped at {0.processes:,} processes",
    "output": "stopped: stdout or a file grew beyond its limit",
    "disk": "stopped: its files grew beyond their limit",
    "lost": "the process that watches it was killed",
    "cancelled": "stopped by the grader",
}
