"""The kinds of submission, and how one run of each is made inside the sandbox.

Each compiles once, then makes an `Attempt` at each input: bytes on stdout, and how the run ended.
Whether the bytes are right is for judge.py; nothing in here knows what is expected.
"""

from __future__ import annotations

import json
import os
import re
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
from cudalab.checker.sandbox.sandbox import Box, Limits, Outcome, read_regular
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
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from cudalab.checker.sandbox.sandbox import Running, Sandbox
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Array, Case

COMPILE_LIMITS = Limits(seconds=120, cpu_seconds=240, memory_bytes=4 << 30, disk_bytes=512 << 20)
MOST_SOURCE = 4 << 20
RUNS = 3  # of each kernel on each input: the same bytes each time?
PIPE_BYTES = 7  # that a slow pipe delivers at a time
TOOLCHAIN = "ToolchainError"  # as a worker names it
PYTHON_RAISED = 1  # Python's exit status after an exception that nobody caught
WRECKED = "the process that ran the kernels was wrecked: they wrote outside of their memory"
_TRACEBACK = re.compile(r"^Traceback .*\n(?:[ \t].*\n)*.*\n?", re.MULTILINE)  # the worker's own
HEADERS = (".cuh", ".h", ".hpp", ".inl")
CRASHES = {
    signal.SIGSEGV: "segmentation fault: memory that is not its own",
    signal.SIGBUS: "bus error: memory that is not there",
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
    """The submission does not compile, or is not what may be compiled."""

    def __init__(self, why: Why, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.why, self.message, self.hint = why, message, hint


@dataclass
class Attempt:
    """One run of a submission on one input."""

    outcome: Outcome
    _: KW_ONLY
    answers: list[bytes] = field(default_factory=list)  # the different ones of several runs
    why: Why = Why.NOTHING  # what is wrong whatever the bytes are
    says: str = ""
    hint: str = ""
    notes: list[str] = field(default_factory=list)
    launches: Launches = field(default_factory=Launches)
    runs: int = 1
    twin: bytes | None = None  # the answer to a second input, in the same process


class Submission(Protocol):
    """What judge.py asks of a submission."""

    kind: str
    name: str
    words: Sequence[str]  # what a command line has for it: files, or the whole command
    variant: Variant | None  # of a kernel: its header
    device: str
    files: Sequence[Path]  # that were handed in, as far as they are known

    def compile(self, cases: Sequence[Case]) -> str:
        """Compile; what there is to say. CompileFailure."""
        ...

    def attempt(
        self,
        case: Case,
        path: Path,
        limits: Limits,
        *,
        pipe: bool = False,
        twin: Path | None = None,
    ) -> Attempt:
        """Run on the input in `path`; a kernel then on another one in the same process, too."""
        ...

    def close(self) -> None:
        """Remove what compiling has left."""
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
        """There is nothing to compile; the program must exist."""
        del cases
        first = self.words[0]
        if self.folder is None and first.endswith(".cu") and Path(first).is_file():
            text = Path(first).read_text(encoding="utf-8", errors="replace")
            raise UsageError(
                f"{first} is source code, no program that can be started",
                hint=f"--{'kernel' if is_kernel_file(text) else 'program'} {first}",
            )
        if self.folder is None and shutil.which(first) is None:
            raise UsageError(
                f"no such program: {first}",
                hint=f"compile it first; a program here is named ./{first}"
                if "/" not in first and Path(first).exists()
                else "what follows -- is a command and its arguments",
            )
        for path in map(Path, self.words if self.folder is None else ()):
            if path.exists() and not self.sandbox.can_read(path):
                raise CudalabError(
                    f"the user that the submission runs as cannot read {path.absolute()}",
                    hint="chmod a+rX the file and the folders above it, or --sandbox none",
                )
        return "nothing to compile"

    def attempt(
        self,
        case: Case,
        path: Path,
        limits: Limits,
        *,
        pipe: bool = False,
        twin: Path | None = None,
    ) -> Attempt:
        """Run with the input on stdin."""
        del case, twin
        with ExitStack() as stack:
            box = stack.enter_context(
                self.sandbox.box(
                    readable=self.readable,
                    hidden=self.hidden,
                    gpu=self.device == ANY_DEVICE or not emulated(self.device),
                    extra_env=self._environment(),
                )
            )
            if self.folder is not None:
                shutil.copytree(self.folder, box.path, symlinks=True, dirs_exist_ok=True)
            source_file = stack.enter_context(path.open("rb"))
            stdin: Any = stack.enter_context(slow_pipe(path)) if pipe else source_file
            outcome, answer = self.sandbox.capture(self._placed(box), box, limits, stdin=stdin)
        return replace(failure(outcome), answers=[answer])

    def _environment(self) -> dict[str, str]:
        """A script that the judge's own Python runs can import what the judge can."""
        packages = self.sandbox.imports.packages
        program = shutil.which(self.words[0])
        if not packages or not program or Path(program).resolve() != Path(sys.executable).resolve():
            return self.extra_env
        return {"PYTHONPATH": ":".join(map(str, packages)), **self.extra_env}

    def _placed(self, box: Box) -> list[str]:
        """The command; what it names relative to here is named from the box."""
        first, *rest = self.words
        if first == sys.executable:  # the judge's own Python
            first = self.sandbox.imports.python
        if self.folder is not None:
            return [first, *rest]
        del box
        return [absolute(word) for word in (first, *rest)]

    def close(self) -> None:
        """Nothing was made."""


def absolute(word: str) -> str:
    """A word of a command line; a path to something that exists becomes absolute."""
    path = Path(word)
    looks = "/" in word or (path.suffix and not word.startswith("-"))
    return str(path.absolute()) if looks and path.exists() else word


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
        os.close(self._read)  # a writer that still waits is told so
        self._thread.join()

    def _feed(self, fd: int) -> None:
        with suppress(OSError):
            step = max(PIPE_BYTES, len(self._data) // 500)
            for start in range(0, len(self._data), step):
                os.write(fd, self._data[start : start + step])
        os.close(fd)


@dataclass(kw_only=True)
class Kernel:
    """A kernel file, run through the lab's own host side."""

    lab: Lab
    path: Path
    sandbox: Sandbox
    device: str
    label: str
    trusted: bool = False  # one of cudalab's own
    threads: int | None = None
    runs: int = RUNS
    kind: str = "kernel"
    kernels_dir: Path | None = None

    def __post_init__(self) -> None:
        """Read the header: it is text, and nothing of it is run."""
        self.name = self.label
        self.words: Sequence[str] = (self.label,)
        self.files: Sequence[Path] = (self.path,)
        if not self.trusted and self.path.stat().st_size > MOST_SOURCE:
            raise HeaderError(f"{self.label}: more than {MOST_SOURCE >> 20} MiB are no kernel file")
        if is_program(self.path.read_text(encoding="utf-8", errors="replace")):
            raise HeaderError(
                f"{self.label}: a whole program, no kernel file: it has a main function and no "
                "header",
                hint=f"cudalab check {self.lab.name} --program {self.label}",
            )
        try:
            header = registry.read_header(self.path, self.lab, self.label)
        except RecursionError:
            raise HeaderError(f"{self.label}: the header is nested too deeply") from None
        self.variant: Variant | None = header
        self._stack = ExitStack()
        self._made: Path | None = None  # the folder with source and cache, for all runs

    def compile(self, cases: Sequence[Case]) -> str:
        """Compile inside the sandbox; then look at what the libraries ask for."""
        for case in cases:
            try:
                registry.check_applies(self._variant, self.lab, case)
            except UsageError as error:  # of ours: whoever asked; of a student's: the header
                if self.trusted:
                    raise
                raise CompileFailure(Why.COMPILE, error.message, error.hint or "") from None
        box = self._stack.enter_context(self.sandbox.box(gpu=not emulated(self.device)))
        self._fill(box)
        self._made = box.path
        spec = self._spec(box.path, "compile", cases=_distinct(cases))
        outcome = self._work(box, spec, COMPILE_LIMITS)
        report = said_in(box.path, "compiled.json")
        if report is None:
            self._compile_failed(box.path, outcome)
        assert report is not None
        if emulated(self.device) and not self.trusted:
            for library in report.get("libraries", []):
                _look_into(Path(library), box.path)
        protect(box.path)
        return "compiled for the CPU device" if emulated(self.device) else "compiled by nvcc"

    def attempt(
        self,
        case: Case,
        path: Path,
        limits: Limits,
        *,
        pipe: bool = False,
        twin: Path | None = None,
    ) -> Attempt:
        """Run a few times on the input, and once on its twin, in a process of its own."""
        del pipe  # the host side reads stdin, and that is cudalab's
        assert self._made is not None, "compile first"
        with self.box() as box:
            given = [shutil.copyfile(path, box.path / "input-0.bin")]
            if twin is not None:
                given.append(shutil.copyfile(twin, box.path / "input-1.bin"))
            spec = self._spec(
                self._made,
                "cases",
                cases=[case] * len(given),
                inputs=[str(one) for one in given],
                runs=[self.runs, 1],
            )
            outcome = self._work(box, spec, limits)
            report = said_in(box.path, "report-0.json") or said_in(box.path, "failed.json")
            attempt = self._attempt_of(box.path, outcome, report, limits)
            if attempt.why is not Why.GRADER:
                attempt.outcome = replace(outcome, stderr=_TRACEBACK.sub("", outcome.stderr))
            if twin is not None and not attempt.why:
                with suppress(CudalabError):
                    attempt.twin = read_regular(box.path / "answer-1-0.bin", limits.output_bytes)
                attempt.twin = attempt.twin or b""
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
        """A worker that computes when it is told to."""
        assert self._made is not None, "compile first"
        spec = self._spec(
            self._made, "time", cases=[case] * len(inputs), inputs=[str(p) for p in inputs]
        )
        (box.path / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        return self.sandbox.start(
            self._command(), box, limits, stdin=stdin, stdout=stdout, stderr=stderr
        )

    def box(self) -> AbstractContextManager[Box]:
        """A box for one run: it can read what was compiled."""
        assert self._made is not None, "compile first"
        return self.sandbox.box(
            readable=(self._made,), gpu=not emulated(self.device), extra_env=self._environment()
        )

    def work(
        self, mode: str, limits: Limits, result: str, **rest: Any
    ) -> tuple[dict[str, Any] | None, str]:
        """Run the worker in another mode, with a cache of its own; `result`, or how it ended."""
        assert self._made is not None, "compile first"
        with self.box() as box:
            if not self.trusted:
                shutil.copytree(self._made / "cache", box.path / "cache")
                box.extra_env["XDG_CACHE_HOME"] = str(box.path / "cache")
                del box.extra_env[READ_ONLY]
            outcome = self._work(box, self._spec(self._made, mode, **rest), limits)
            return said_in(box.path, result), failure(outcome).says

    def run_on_source(
        self, command: Sequence[str], limits: Limits, result: str, source: Path | None = None
    ) -> tuple[bytes | None, str]:
        """Run a command of cudalab's on the file, on the input `source` if there is one.

        The bytes of `result`, or why there are none.
        """
        with self.box() as box:
            data = (
                ["--data", shutil.copyfile(source, box.path / "input.bin").name] if source else []
            )
            if not self.trusted:
                cache = box.path / "cache"
                box.extra_env["XDG_CACHE_HOME"] = str(cache)
                del box.extra_env[READ_ONLY]
                copy_runtimes(cache)
            words = [*command, *data, "--kernel", str(self._source)]
            outcome, _ = self.sandbox.capture(words, box, limits)
            with suppress(CudalabError):
                return read_regular(box.path / result, 1 << 24), ""
        lines = outcome.stderr.strip().splitlines()
        errors = [line for line in lines if line.startswith("Error")] or lines[-1:]
        return None, failure(outcome).says if outcome.reason else " ".join(errors[:1])

    @property
    def _source(self) -> Path:
        """The file where runs can read it."""
        assert self._made is not None, "compile first"
        return self.path if self.trusted else self._made / "source" / self.path.name

    def close(self) -> None:
        """Remove the folder."""
        self._stack.close()

    @property
    def _variant(self) -> Variant:
        assert self.variant is not None
        return self.variant

    def _fill(self, box: Box) -> None:
        """Copy the file and what may lie beside it; give it the runtime that the grader built."""
        if not self.trusted:
            copy_sources([self.path], box.path / "source")
        if emulated(self.device) and not self.trusted:
            from cudalab.backends.cpu import compiler  # noqa: PLC0415 - not for a GPU

            runtime = compiler.runtime_library()
            cached = box.path / "cache" / "cudalab" / "cpu"
            cached.mkdir(parents=True)
            shutil.copyfile(runtime, cached / runtime.name)
        box.extra_env.update(self._environment(box.path, read_only=False))

    def _environment(self, made: Path | None = None, *, read_only: bool = True) -> dict[str, str]:
        """Our own variants share the user's cache; a submission has one that its runs only read."""
        found = {"PYTHONPATH": self.sandbox.imports.path()}
        if self.trusted:
            return found | {"XDG_CACHE_HOME": str(cache_dir(self.device).parent.parent)}
        folder = made or self._made
        assert folder is not None, "compile first"
        return (
            found
            | {"XDG_CACHE_HOME": str(folder / "cache")}
            | ({READ_ONLY: "1"} if read_only else {})
        )

    def _spec(self, made: Path, mode: str, **rest: Any) -> dict[str, Any]:
        path = self.path if self.trusted else made / "source" / self.path.name
        return {
            "mode": mode,
            "lab": self.lab.name,
            "kernel": str(path),
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
        failed = said_in(folder, "failed.json")
        if failed is not None and failed.get("error") == "NoDeviceError":
            raise NoDeviceError(str(failed.get("message")), str(failed.get("hint") or "") or None)
        if failed is not None:
            message, hint = str(failed.get("message")), str(failed.get("hint") or "")
            raise CompileFailure(blame(failed), message.replace(str(folder) + "/", ""), hint)
        for library in (folder / "cache" / "cudalab" / "cpu").glob("*.so"):
            if not library.name.startswith("runtime-"):  # loading it has ended the process
                _look_into(library, folder)
        broken = worker_failure(outcome)
        graders = broken.why is Why.GRADER or broken.why in LIMITS_BROKEN.values()
        raise CompileFailure(
            broken.why if graders else Why.COMPILE,
            f"compiling did not come to an end: {broken.says or 'nothing was compiled'}",
            "the compiler was ended: is there an endless template, or a huge array?",
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
        """A run that came to its end: its answers, and what its guards saw."""
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
            made.why, made.says = Why.INPUT_CHANGED, f"the input {names} is not what it was"
        return made


def said_in(folder: Path, name: str) -> dict[str, Any] | None:
    """What a worker left in a file; None where it left nothing that can be read."""
    with suppress(CudalabError, ValueError):
        value = json.loads(read_regular(folder / name, 1 << 22))
        return value if isinstance(value, dict) else None
    return None


def _bits(path: Path, limits: Limits) -> Array | None:
    """What a worker has packed into bytes, if it has."""
    with suppress(CudalabError):
        packed = np.frombuffer(read_regular(path, limits.output_bytes), np.uint8)
        return np.unpackbits(packed).astype(bool)
    return None


def blame(failed: Mapping[str, Any]) -> Why:
    """Whose fault it is that nothing was compiled."""
    return Why.GRADER if failed.get("error") == TOOLCHAIN else Why.COMPILE


def protect(folder: Path) -> None:
    """What was compiled and looked at stays as it is: the runs only read it."""
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
    """Copy what was handed in, and the headers that lie beside it, into a new folder."""
    folder.mkdir()
    for path in files:
        shutil.copyfile(path, folder / path.name)
        for near in sorted(path.parent.iterdir()):
            if near.suffix in HEADERS and near.is_file() and not near.is_symlink():
                shutil.copyfile(near, folder / near.name)


def copy_runtimes(cache: Path, *, programs: bool = False) -> None:
    """What cudalab has compiled of its own, so that no box must compile it again."""
    from cudalab.backends.cpu import compiler  # noqa: PLC0415 - not for a GPU

    folder = cache / "cudalab" / "cpu"
    folder.mkdir(parents=True)
    for path in (compiler.runtime_library(), compiler.check_runtime_library()):
        shutil.copyfile(path, folder / path.name)
    if programs:
        from cudalab.program import build, observe  # noqa: PLC0415 - as above

        for made in (build.runtime_objects(), observe.host_library()):
            shutil.copytree(made, cache / "cudalab" / "programs" / made.name)


def _distinct(cases: Sequence[Case]) -> list[Case]:
    found: list[Case] = []
    for case in cases:
        if case not in found:
            found.append(case)
    return found


def _look_into(library: Path, box: Path) -> None:
    """CompileFailure for a library that holds more than kernels."""
    inside = library.resolve().is_relative_to(box.resolve())
    try:
        found = elf.demands(read_regular(library, 64 << 20)) if inside else None
    except (CudalabError, ValueError):
        found = None
    if found is None:
        raise CompileFailure(Why.FOREIGN, "what was compiled is no library that can be inspected")
    foreign = host_code.foreign(found)
    if foreign:
        raise CompileFailure(
            Why.FOREIGN,
            f"it uses what no kernel can call on a GPU: {', '.join(foreign[:5])}",
            "a kernel file holds __global__ and __device__ functions and constants, nothing else",
        )
    if max(found.constructors, found.destructors) > host_code.COMPILERS_OWN:
        raise CompileFailure(
            Why.FOREIGN,
            "it has code that runs when the file is loaded or the process ends: a constructor or "
            "destructor",
            "a global variable needs a constant as its initial value, on a GPU as well",
        )


def failure(outcome: Outcome) -> Attempt:
    """What is wrong with how a run ended; `why` is empty if nothing is."""
    last = _last_line(outcome)
    if outcome.reason:
        says = _LIMIT_WORDS[outcome.reason].format(outcome, mib=outcome.peak_bytes / 2**20)
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
    """How a worker ended that left no report; an exception of its own Python is the grader's."""
    broken = failure(outcome)
    if outcome.status != PYTHON_RAISED:
        return broken
    return replace(broken, why=Why.GRADER, says=f"cudalab itself failed: {_last_line(outcome)}")


def _last_line(outcome: Outcome) -> str:
    return (outcome.stderr.strip().splitlines() or [""])[-1]


_LIMIT_WORDS = {
    "time": "ended after {0.seconds:.1f} s",
    "cpu": "ended after {0.cpu_s:.1f} s of processor time",
    "memory": "ended at {mib:,.0f} MiB of memory",
    "processes": "ended at {0.processes:,} processes",
    "output": "ended: stdout, or a file, grew beyond its limit",
    "disk": "ended: its files grew beyond their limit",
    "lost": "the process that watches it was ended",
    "cancelled": "ended by the grader",
}
