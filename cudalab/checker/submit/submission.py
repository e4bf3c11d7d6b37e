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
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Protocol

from cudalab.backends import facts
from cudalab.checker.sandbox.box import Box
from cudalab.checker.sandbox.reading import read_record
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.sandbox.sandbox import Sandbox
from cudalab.checker.sandbox.users import User
from cudalab.checker.submit.reports import NO_DEVICE, OUT, TOOLCHAIN, Built
from cudalab.checker.submit.sources import CompileFailure
from cudalab.checker.verdicts import ANY_DEVICE, Why
from cudalab.errors import CudalabError, NoDeviceError, UsageError
from cudalab.labs.evidence import Launches
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.program.files import is_kernel_file
from cudalab.system.cache import cache_dir

COMPILE_LIMITS = Limits(seconds=120, cpu_seconds=240, memory_bytes=4 << 30, disk_bytes=512 << 20)
MAX_SOURCE_BYTES = 4 << 20
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
        if self.folder is None and first.endswith(".cu") and Path(first).is_file():
            text = Path(first).read_text(encoding="utf-8", errors="replace")
            raise UsageError(
                f"{first} is source code, not a program that can be started",
                hint=f"--{'kernel' if is_kernel_file(text) else 'program'} {first}",
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
        made = self.sandbox.box(
            readable=self.readable,
            hidden=(*self.hidden, *self._not_its_own()),
            gpu=self.device == ANY_DEVICE or facts(self.device).driver,
            extra_env=self._environment(),
        )
        with made as box, trial.opened() as stdin:
            if self.folder is not None:
                shutil.copytree(self.folder, box.path, symlinks=True, dirs_exist_ok=True)
            outcome, answer = self.sandbox.capture(self._placed(), box, trial.limits, stdin=stdin)
        return replace(failure(outcome), answers=[answer])

    def _not_its_own(self) -> list[Path]:
        """The folders of cudalab, whose variants no command may use; unless it lies in them."""
        folders = self.sandbox.imports.own()
        return [
            folder
            for folder in folders
            if not any(path.is_relative_to(folder) for path in self.readable)
        ]

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


class slow_pipe:  # noqa: N801 - used like a function
    """A pipe that delivers a file's bytes a few at a time."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()

    def __enter__(self) -> int:
        self._read, write = os.pipe()
        self._thread = threading.Thread(target=self._feed, args=(write,), daemon=True)
        self._thread.start()
        return self._read

    def __exit__(self, *_: object) -> None:
        os.close(self._read)  # a writer that still waits gets an error
        self._thread.join()

    def _feed(self, fd: int) -> None:
        with suppress(OSError):
            step = max(PIPE_BYTES, len(self._data) // 500)
            for start in range(0, len(self._data), step):
                os.write(fd, self._data[start : start + step])
        os.close(fd)


@dataclass(kw_only=True)
class Compiled:
    """A submission that is compiled once, in a folder that all its runs share and only read."""

    sandbox: Sandbox
    device: str
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)
    _folder: Path | None = field(default=None, init=False, repr=False)
    _group: int | None = field(default=None, init=False, repr=False)  # that may read it; or all may
    built_as: Built = field(default_factory=Built, init=False, repr=False)

    @property
    def built(self) -> Path:
        assert self._folder is not None, "compile first"
        return self._folder

    def begin(self) -> Box:
        """A box to compile in, which stays until `close`."""
        if self.sandbox.own_users and not self.sandbox.bwrap:  # runs see each other's folders
            group = User.claim()
            self._stack.callback(group.release)
            self._group = group.uid
        box = self._stack.enter_context(self._box())
        self._folder = box.path
        return box

    def _box(self, *, own_code: bool = True, **options: Any) -> AbstractContextManager[Box]:
        groups = (self._group,) if self._group is not None else ()
        if own_code:
            options["groups"] = (*groups, *self.sandbox.readers)
        else:
            options |= {"groups": groups, "hidden": tuple(self.sandbox.imports.own())}
        return self.sandbox.box(gpu=facts(self.device).driver, **options)

    def finish(self) -> str:
        """Protect what was compiled, and summarise."""
        protect(self.built, self._group)
        return "compiled by nvcc" if facts(self.device).nvcc else "compiled for the CPU device"

    def box(self, **options: Any) -> AbstractContextManager[Box]:
        """A box for one run; without `own_code` it has none of cudalab's, which has the answers."""
        return self._box(readable=(self.built,), **options)

    def close(self) -> None:
        """Remove the folder."""
        self._stack.close()


def raise_reported(path: Path, folder: Path) -> Built:
    """What compiling in a folder has reported in a file, unless it is a failure.

    UnreadableError if there is no report. It is believed: nothing of the submission has run yet.
    """
    built = read_record(Built, path)
    if built.foreign:
        raise CompileFailure(
            Why.FOREIGN,
            "\n".join(built.foreign[:3]),
            "nvcc compiles no such thing for a GPU, or it hides accesses from the sanitizer",
        )
    message, hint = built.message.replace(f"{folder}/", ""), built.hint
    if built.error == NO_DEVICE:
        raise NoDeviceError(message, hint or None)
    if built.error:
        why = Why.GRADER if built.error == TOOLCHAIN else Why.COMPILE
        raise CompileFailure(why, message, hint)
    return built


def unfinished(outcome: Outcome, hint: str) -> CompileFailure:
    """The failure of compiling that ended without a result and without a message."""
    broken = failure(outcome)
    if outcome.status == PYTHON_RAISED:  # in cudalab: nothing of the submission has run yet
        return CompileFailure(Why.GRADER, f"cudalab itself failed: {last_line(outcome)}")
    return CompileFailure(
        broken.why if outcome.reason else Why.COMPILE,
        f"compiling did not finish: {broken.says or 'nothing was compiled'}",
        hint,
    )


def protect(folder: Path, group: int | None = None) -> None:
    """Make the compiled and inspected files read-only for the runs, and for those of a `group`."""
    for_folder, for_file = (0o755, 0o644) if group is None else (0o750, 0o640)
    for path, folders, files in os.walk(folder):
        if OUT in folders and Path(path) == folder:
            folders.remove(OUT)
        for name in (*folders, *files):
            one = Path(path, name)
            if os.getuid() == 0:
                os.lchown(one, 0, group or 0)
            if not one.is_symlink():
                one.chmod(for_folder if one.is_dir() else for_file)
    if os.getuid() == 0:
        os.lchown(folder, 0, group or 0)
    folder.chmod(for_folder)


def copy_runtime(cache: Path, *, check: bool) -> None:
    """Copy cudalab's compiled schedulers, so that no box has to compile them again."""
    from cudalab.backends.cpu import compiler  # noqa: PLC0415 - not for a GPU

    copy_made(compiler.runtime_files(check=check), "cpu", cache)


def copy_made(files: Sequence[Path], kind: str, cache: Path) -> None:
    """Copy files of the user's cache, whose folder there is `kind`, to another cache."""
    for path in files:
        target = cache / "cudalab" / kind / path.relative_to(cache_dir(kind))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            continue
        try:
            shutil.copyfile(path, target)
        except OSError:
            target.unlink(missing_ok=True)
            if path.suffix != ".gch":  # large, and only saves time
                raise


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
