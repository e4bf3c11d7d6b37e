"""The kinds of submission, and how each runs inside the sandbox.

Each compiles once, then makes an `Attempt` at each input: the bytes on stdout, and how the run
ended. Whether the bytes are right is for judge.py to decide; nothing here knows the right answer.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np

from cudalab.backends import emulated
from cudalab.checker.sandbox.sandbox import Box, Limits, Outcome, Sandbox, read_regular
from cudalab.checker.submit import host_code
from cudalab.checker.submit.guard import LAUNCHING
from cudalab.checker.verdicts import ANY_DEVICE, Why
from cudalab.errors import CudalabError, HeaderError, NoDeviceError, UsageError
from cudalab.labs import registry
from cudalab.labs.evidence import Launches
from cudalab.language import source
from cudalab.program.files import is_kernel_file, is_program
from cudalab.system import elf
from cudalab.system.cache import READ_ONLY, cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from cudalab.checker.sandbox.sandbox import Running
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Array, Case

COMPILE_LIMITS = Limits(seconds=120, cpu_seconds=240, memory_bytes=4 << 30, disk_bytes=512 << 20)
MAX_SOURCE_BYTES = 4 << 20
RUNS = 3  # times each kernel runs on each input, to compare the bytes
PIPE_BYTES = 7  # delivered at a time by a slow pipe
TOOLCHAIN, NO_DEVICE = "ToolchainError", "NoDeviceError"  # the names in a worker's report
OURS = Sandbox("none", "cudalab's own code needs no sandbox")
PYTHON_RAISED = 1  # Python's exit status after an uncaught exception
WRECKED = "the kernels wrote outside their memory and wrecked the process that ran them"
_TRACEBACK = re.compile(r"^Traceback .*\n(?:[ \t].*\n)*.*\n?", re.MULTILINE)  # the worker's own
HEADERS = (".cuh", ".h", ".hpp", ".inl")
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


class CompileFailure(Exception):  # noqa: N818 - a verdict
    """The submission does not compile, or holds code that is not allowed."""

    def __init__(self, why: Why, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.why, self.message, self.hint = why, message, hint


@dataclass(frozen=True)
class Trial:
    """One input, and how to run on it."""

    case: Case
    path: Path
    limits: Limits
    _: KW_ONLY
    pipe: bool = False  # a program gets a few bytes at a time; the host side reads for a kernel
    second: Path | None = None  # for a kernel, another input

    def opened(self) -> AbstractContextManager[int | IO[bytes]]:
        """The input as the stdin of a program."""
        return slow_pipe(self.path) if self.pipe else self.path.open("rb")


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
            hidden=self.hidden,
            gpu=self.device == ANY_DEVICE or not emulated(self.device),
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

    @property
    def built(self) -> Path:
        """The folder."""
        assert self._folder is not None, "compile first"
        return self._folder

    def begin(self) -> Box:
        """A box to compile in, which stays until `close`."""
        box = self._stack.enter_context(self.sandbox.box(gpu=not emulated(self.device)))
        self._folder = box.path
        return box

    def finish(self) -> str:
        """Protect what was compiled, and summarise."""
        protect(self.built)
        return "compiled for the CPU device" if emulated(self.device) else "compiled by nvcc"

    def box(self, **options: Any) -> AbstractContextManager[Box]:
        """A box for one run."""
        return self.sandbox.box(readable=(self.built,), gpu=not emulated(self.device), **options)

    def close(self) -> None:
        """Remove the folder."""
        self._stack.close()


@dataclass(kw_only=True)
class Kernel(Compiled):
    """A kernel file, launched by the lab's own host side."""

    lab: Lab
    path: Path
    label: str
    trusted: bool = False  # whether it is one of cudalab's own
    threads: int | None = None
    runs: int = RUNS
    kind: str = "kernel"
    kernels_dir: Path | None = None

    def __post_init__(self) -> None:
        """Read the header, which is only text."""
        self.name = self.label
        self.words: Sequence[str] = (self.label,)
        self.files: Sequence[Path] = (self.path,)
        if not self.trusted and self.path.stat().st_size > MAX_SOURCE_BYTES:
            raise HeaderError(
                f"{self.label}: a kernel file has {MAX_SOURCE_BYTES >> 20} MiB at most"
            )
        if is_program(self.path.read_text(encoding="utf-8", errors="replace")):
            raise HeaderError(
                f"{self.label}: a whole program, not a kernel file: it has a main function and no "
                "header",
                hint=shlex.join(["cudalab", "check", self.lab.name, "--program", self.label]),
            )
        try:
            header = registry.read_header(self.path, self.lab, self.label)
        except RecursionError:
            raise HeaderError(f"{self.label}: the header is nested too deeply") from None
        self.variant: Variant | None = header

    def compile(self, cases: Sequence[Case]) -> str:
        """Compile inside the sandbox; then inspect what the libraries import."""
        for case in cases:
            try:
                registry.check_applies(self._variant, self.lab, case)
            except UsageError as error:  # the caller's mistake, or that of a student's header
                if self.trusted:
                    raise
                raise CompileFailure(Why.COMPILE, error.message, error.hint or "") from None
        box = self.begin()
        self._fill(box)
        spec = self._spec("compile", cases=_without_repeats(cases))
        outcome = self._work(box, spec, COMPILE_LIMITS)
        report = read_json(box.path, "compiled.json")
        if report is None:
            self._compile_failed(box.path, outcome)
        assert report is not None
        if emulated(self.device) and not self.trusted:
            for library in report.get("libraries", []):
                _inspect(Path(library), box.path)
        return self.finish()

    def attempt(self, trial: Trial) -> Attempt:
        """Run a few times on the input and once on the second one, in a process of its own."""
        with self.box() as box:
            inputs = [shutil.copyfile(trial.path, box.path / "input-0.bin")]
            if trial.second is not None:
                inputs.append(shutil.copyfile(trial.second, box.path / "input-1.bin"))
            spec = self._spec(
                "cases",
                cases=[trial.case] * len(inputs),
                inputs=[str(one) for one in inputs],
                runs=[self.runs, 1],
            )
            outcome = self._work(box, spec, trial.limits)
            report = read_json(box.path, "report-0.json") or read_json(box.path, "failed.json")
            attempt = self._attempt_of(box.path, outcome, report, trial.limits)
            if attempt.why is not Why.GRADER:
                attempt.outcome = replace(outcome, stderr=_TRACEBACK.sub("", outcome.stderr))
            if trial.second is not None and not attempt.why:
                with suppress(CudalabError):
                    attempt.second_answer = read_regular(
                        box.path / "answer-1-0.bin", trial.limits.output_bytes
                    )
                attempt.second_answer = attempt.second_answer or b""
            return attempt

    def start_timing(
        self,
        case: Case,
        inputs: Sequence[Path],
        box: Box,
        limits: Limits,
        *,
        stdin: int,
        stdout: int,
        stderr: IO[bytes],
    ) -> Running:
        """Start a worker that computes on command."""
        spec = self._spec("time", cases=[case] * len(inputs), inputs=[str(p) for p in inputs])
        (box.path / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        return self.sandbox.start(
            self._command(), box, limits, stdin=stdin, stdout=stdout, stderr=stderr
        )

    def box(self, **options: Any) -> AbstractContextManager[Box]:
        """A box for one run, which finds cudalab and the compiled kernels."""
        return super().box(extra_env=self._environment(), **options)

    def work(
        self, mode: str, limits: Limits, result: str, **rest: Any
    ) -> tuple[dict[str, Any] | None, str]:
        """Run the worker in another mode, with its own cache: the JSON of `result`, or why not."""
        with self.box() as box:
            if not self.trusted:
                shutil.copytree(self.built / "cache", _own_cache(box))
            outcome = self._work(box, self._spec(mode, **rest), limits)
            return read_json(box.path, result), failure(outcome).says

    def run_on_source(
        self, command: Sequence[str], limits: Limits, result: str, source: Path | None = None
    ) -> tuple[bytes | None, str]:
        """Run a cudalab command on the kernel file, with the input `source` if there is one.

        Return the bytes of `result`, or the reason why there are none.
        """
        with self.box() as box:
            data = (
                ["--data", shutil.copyfile(source, box.path / "input.bin").name] if source else []
            )
            if not self.trusted:
                copy_runtime(_own_cache(box), check=True)
            words = [*command, *data, "--kernel", str(self.source)]
            outcome, _ = self.sandbox.capture(words, box, limits)
            with suppress(CudalabError):
                return read_regular(box.path / result, 1 << 24), ""
        lines = outcome.stderr.strip().splitlines()
        errors = [line for line in lines if line.startswith("Error")] or lines[-1:]
        return None, failure(outcome).says if outcome.reason else " ".join(errors[:1])

    @property
    def source(self) -> Path:
        """The kernel file, at a place where runs can read it."""
        return self.path if self.trusted else self.built / "source" / self.path.name

    @property
    def _variant(self) -> Variant:
        assert self.variant is not None
        return self.variant

    def _fill(self, box: Box) -> None:
        """Copy the file, the headers beside it and the runtime that the grader has built."""
        if not self.trusted:
            copy_sources([self.path], box.path / "source")
        if emulated(self.device) and not self.trusted:
            copy_runtime(box.path / "cache", check=False)
        box.extra_env.update(self._environment())
        box.extra_env.pop(READ_ONLY, None)

    def _environment(self) -> dict[str, str]:
        """Our own variants use the user's cache; a submission has one that its runs only read."""
        base = {"PYTHONPATH": self.sandbox.imports.path()}
        if self.trusted:
            return base | {"XDG_CACHE_HOME": str(cache_dir(self.device).parent.parent)}
        return base | {"XDG_CACHE_HOME": str(self.built / "cache"), READ_ONLY: "1"}

    def _spec(self, mode: str, **rest: Any) -> dict[str, Any]:
        return {
            "mode": mode,
            "lab": self.lab.name,
            "kernel": str(self.source),
            "label": self.label,
            "device": self.device,
            "threads": self.threads,
            "kernels_dir": str(self.sandbox.imports.seen(source.kernels_dir())),
            **rest,
        }

    def _command(self) -> list[str]:
        return [self.sandbox.imports.python, "-m", "cudalab.checker.submit.worker", "spec.json"]

    def _work(self, box: Box, spec: dict[str, Any], limits: Limits) -> Outcome:
        (box.path / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        return self.sandbox.capture(self._command(), box, limits)[0]

    def _compile_failed(self, folder: Path, outcome: Outcome) -> None:
        raise_reported(folder)
        for library in (folder / "cache" / "cudalab" / "cpu").glob("*.so"):
            if not library.name.startswith("runtime-"):  # loading it ended the process
                _inspect(library, folder)
        raise unfinished(
            outcome, "the compiler was stopped: is there an endless template, or a huge array?"
        )

    def _attempt_of(
        self, folder: Path, outcome: Outcome, report: dict[str, Any] | None, limits: Limits
    ) -> Attempt:
        broken = failure(outcome) if report is not None else worker_failure(outcome)
        if broken.why is Why.GRADER and emulated(self.device) and (folder / LAUNCHING).exists():
            return replace(broken, why=Why.CRASH, says=WRECKED)
        if broken.why and (report is None or "error" not in report):
            return broken
        if report is None:
            return replace(broken, why=Why.EXIT, says="the run ended without a report")
        if "error" in report:
            kind = str(report["error"])
            why = {"KernelError": Why.CRASH, TOOLCHAIN: Why.GRADER}.get(kind, Why.EXIT)
            return replace(
                broken, why=why, says=str(report.get("message")), hint=str(report.get("hint") or "")
            )
        return self._finished(folder, outcome, report, limits)

    def _finished(
        self, folder: Path, outcome: Outcome, report: dict[str, Any], limits: Limits
    ) -> Attempt:
        """The attempt of a run that finished: its answers, and what its guard zones showed."""
        made = Attempt(outcome)
        try:
            launched = tuple((str(k), tuple(g), tuple(b)) for k, g, b in report["launches"])
            unwritten = _bits(folder / "unwritten-0.bin", limits)
            header = self._variant
            made.launches = Launches(header.dispatch, header.defines, launched, unwritten)
            made.notes = [str(note) for note in report["notes"]]
            made.runs = int(report["runs"])
            made.answers = [
                read_regular(folder / f"answer-0-{k}.bin", limits.output_bytes)
                for k in range(min(int(report["answers"]), self.runs))
            ]
        except (CudalabError, KeyError, ValueError, TypeError) as error:
            return replace(made, why=Why.WRONG, says=f"there is no answer: {error}")
        if not made.answers:
            return replace(made, why=Why.WRONG, says="there is no answer")
        if report.get("overruns"):
            made.why, made.says = Why.OVERRUN, "; ".join(map(str, report["overruns"][:3]))
        elif report.get("changed_inputs"):
            names = ", ".join(map(str, report["changed_inputs"]))
            made.why, made.says = Why.INPUT_CHANGED, f"the input {names} was changed"
        return made


def own_kernel(lab: Lab, variant: Variant, device: str, threads: int | None = None) -> Kernel:
    """One of cudalab's own variants."""
    own = Kernel(
        lab=lab,
        path=variant.path,
        sandbox=OURS,
        device=device,
        label=variant.label,
        trusted=True,
        threads=threads,
        kind="variant",
    )
    own.name, own.words = variant.name, (variant.name,)
    return own


def read_json(folder: Path, name: str) -> dict[str, Any] | None:
    """The object in a JSON file that a worker wrote; None if there is none."""
    with suppress(CudalabError, ValueError):
        value = json.loads(read_regular(folder / name, 1 << 22))
        return value if isinstance(value, dict) else None
    return None


def _bits(path: Path, limits: Limits) -> Array | None:
    """Bits that a worker has packed into a file; None if there is none."""
    with suppress(CudalabError):
        packed = np.frombuffer(read_regular(path, limits.output_bytes), np.uint8)
        return np.unpackbits(packed).astype(bool)
    return None


def raise_reported(folder: Path) -> None:
    """Raise the failure that a process which compiled in the folder has reported, if any."""
    failed = read_json(folder, "failed.json")
    if failed is None:
        return
    message, hint = str(failed.get("message")), str(failed.get("hint") or "")
    if failed.get("error") == NO_DEVICE:
        raise NoDeviceError(message, hint or None)
    why = Why.GRADER if failed.get("error") == TOOLCHAIN else Why.COMPILE
    raise CompileFailure(why, message.replace(f"{folder}/", ""), hint)


def unfinished(outcome: Outcome, hint: str) -> CompileFailure:
    """The failure of compiling that ended without a result and without a message."""
    broken = worker_failure(outcome)
    known = outcome.reason or broken.why is Why.GRADER
    return CompileFailure(
        broken.why if known else Why.COMPILE,
        f"compiling did not finish: {broken.says or 'nothing was compiled'}",
        hint,
    )


def protect(folder: Path) -> None:
    """Make the compiled and inspected files read-only for the runs."""
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            one = Path(path, name)
            if os.getuid() == 0:
                os.lchown(one, 0, 0)
            if not one.is_symlink():
                one.chmod(0o755 if one.is_dir() else 0o644)
    if os.getuid() == 0:
        os.lchown(folder, 0, 0)
    folder.chmod(0o755)


def copy_sources(files: Iterable[Path], folder: Path) -> None:
    """Copy the files that were handed in, and the headers beside them, into a new folder."""
    folder.mkdir()
    for path in files:
        shutil.copyfile(path, folder / path.name)
        for header in sorted(path.parent.iterdir()):
            if header.suffix in HEADERS and header.is_file() and not header.is_symlink():
                shutil.copyfile(header, folder / header.name)


def copy_runtime(cache: Path, *, check: bool) -> None:
    """Copy cudalab's compiled schedulers, so that no box has to compile them again."""
    from cudalab.backends.cpu import compiler  # noqa: PLC0415 - not for a GPU

    for path in compiler.runtime_files(check=check):
        target = cache / "cudalab" / "cpu" / path.relative_to(cache_dir("cpu"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _own_cache(box: Box) -> Path:
    """Give a run a cache of its own, in its box, instead of one that it only reads."""
    del box.extra_env[READ_ONLY]
    box.extra_env["XDG_CACHE_HOME"] = str(box.path / "cache")
    return box.path / "cache"


def _without_repeats(cases: Sequence[Case]) -> list[Case]:
    result: list[Case] = []
    for case in cases:
        if case not in result:
            result.append(case)
    return result


def _inspect(library: Path, box: Path) -> None:
    """Raise CompileFailure if a library holds more than kernels."""
    inside = library.resolve().is_relative_to(box.resolve())
    try:
        demands = elf.demands(read_regular(library, 64 << 20)) if inside else None
    except (CudalabError, ValueError):
        demands = None
    if demands is None:
        raise CompileFailure(Why.FOREIGN, "the compiled library cannot be inspected")
    foreign = host_code.foreign(demands)
    if foreign:
        raise CompileFailure(
            Why.FOREIGN,
            f"it uses functions that no kernel can call on a GPU: {', '.join(foreign[:5])}",
            "a kernel file holds __global__ and __device__ functions and constants, nothing else",
        )
    if max(demands.constructors, demands.destructors) > host_code.COMPILERS_OWN:
        raise CompileFailure(
            Why.FOREIGN,
            "it has code that runs when the file is loaded or the process ends: a constructor or "
            "destructor",
            "a global variable needs a constant as its initial value, on a GPU as well",
        )


def failure(outcome: Outcome) -> Attempt:
    """The attempt of a run, with the reason if it failed."""
    last = _last_line(outcome)
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


def worker_failure(outcome: Outcome) -> Attempt:
    """The attempt of a worker without a report; a Python exception is the grader's fault."""
    broken = failure(outcome)
    if outcome.status != PYTHON_RAISED:
        return broken
    return replace(broken, why=Why.GRADER, says=f"cudalab itself failed: {_last_line(outcome)}")


def _last_line(outcome: Outcome) -> str:
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
