"""A kernel file as a submission: compiled once, then launched by the lab's own host side.

One worker in one sandbox compiles it and makes all attempts: each in a child of its own, which is
forked before any code of the submission is loaded and confined to what it may do (confine.py).
Where nothing confines a kernel, each attempt has a sandbox of its own instead.
"""

import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cudalab import runner
from cudalab.backends import facts
from cudalab.checker.explain.diagnose import mismatches, reordered
from cudalab.checker.sandbox.box import Box
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.sandbox.sandbox import check_disk
from cudalab.checker.submit import foreign, program, reports, submission, views
from cudalab.checker.submit.session import Session, copy_input
from cudalab.checker.verdicts import Why
from cudalab.errors import HeaderError, UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.evidence import Launches
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.language import source
from cudalab.microscope.findings import Findings
from cudalab.system.cache import READ_ONLY, cache_dir

MAX_SOURCE_BYTES = 4 << 20
RUNS = 3  # times each kernel runs on each input, to compare the bytes
# No task of a worker has larger ones. Inputs that keep a GPU busy have 256 MiB, and are files.
TIMING_LIMITS = Limits(
    seconds=300, cpu_seconds=1200, memory_bytes=8 << 30, output_bytes=1 << 30, disk_bytes=4 << 30
)
GPU_FILE = "gpu.toml"
MAX_FINDINGS_BYTES = 1 << 24
_TRACEBACK = re.compile(r"^Traceback .*\n(?:[ \t].*\n)*.*\n?", re.MULTILINE)  # the worker's own
WRECKED = "the kernels wrote outside their memory and wrecked the process that ran them"


@dataclass(kw_only=True)
class Kernel(program.Compiled):
    """A kernel file, launched by the lab's own host side."""

    lab: Lab
    path: Path
    label: str
    trusted: bool = False  # whether it is one of cudalab's own
    threads: int | None = None
    runs: int = RUNS
    kind: str = "kernel"
    kernels_dir: Path | None = None
    _session: Session | None = field(default=None, init=False, repr=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the header, which is only text."""
        self.name = self.label
        self.words: Sequence[str] = (self.label,)
        self.files: Sequence[Path] = (self.path,)
        if not self.trusted and self.path.stat().st_size > MAX_SOURCE_BYTES:
            raise HeaderError(
                f"{self.label}: a kernel file has {MAX_SOURCE_BYTES >> 20} MiB at most"
            )
        try:
            header = registry.read_header(self.path, self.lab, self.label)
        except RecursionError:
            raise HeaderError(f"{self.label}: the header is nested too deeply") from None
        self.variant: Variant | None = header

    def compile(self, cases: Sequence[Case]) -> str:
        """Compile inside the sandbox; then inspect the libraries."""
        for case in cases:
            try:
                registry.check_applies(self._variant, self.lab, case)
            except UsageError as error:  # the caller's mistake, or that of a student's header
                if self.trusted:
                    raise
                raise foreign.CompileFailure(Why.COMPILE, error.message, error.hint or "") from None
        box = self.begin()
        if not self.trusted:
            views.copy_sources([self.path], box.path / "source")
            if facts(self.device).on_host:
                program.copy_runtime(box.path / "cache", check=False)
        session = self._session = self._start(box)
        observed = facts(self.device).on_host and not self.trusted
        builds = views.of_kernels() if observed else None
        different = [case for i, case in enumerate(cases) if case not in cases[:i]]
        spec = self._spec("compile", cases=different, builds=builds)
        outcome, _ = session.work(spec, program.COMPILE_LIMITS)
        try:
            self.built_as = program.raise_reported(box.path / reports.OUT / reports.BUILT, box.path)
        except reports.UnreadableError:
            raise program.unfinished(
                outcome, "the compiler was stopped: is there an endless template, or a huge array?"
            ) from None
        if facts(self.device).on_host and not self.trusted:
            libraries = sorted((box.path / "cache" / "cudalab" / "cpu").glob("*.so"))
            own = [path for path in libraries if path.name.startswith("runtime-")]
            for library in libraries:
                if library not in own:
                    foreign.inspect(library, own[0])
        return self.finish()

    def attempt(self, trial: submission.Trial) -> submission.Attempt:
        """Run a few times on the input and once on the second one, in a process of its own."""
        with self._turn, self._worker() as session:
            paths = [path for path in (trial.path, trial.second) if path is not None]
            runs = [1 if trial.once else self.runs, 1][: len(paths)]
            with session.inputs(paths) as inputs:
                spec = self._spec("cases", cases=[trial.case], inputs=inputs, runs=runs)
                outcome, reply = self._run_cases(session, spec, trial.limits)
            attempt = self._attempt_of(session.out, outcome, reply, trial)
            session.empty()
            if attempt.why is not Why.GRADER:
                attempt.outcome = replace(outcome, stderr=_TRACEBACK.sub("", outcome.stderr))
            return attempt

    def _run_cases(
        self, session: Session, spec: dict[str, Any], limits: Limits
    ) -> tuple[Outcome, reports.Reply | None]:
        """Run on inputs, once more with fibers if launches need them."""
        ended = session.work(spec, limits)
        with suppress(reports.UnreadableError):
            report = reports.read_record(reports.CaseReport, session.out / reports.report_name(0))
            if report.error == reports.NOT_BUILT:
                session.empty()
                self._add_fibers(session, spec["cases"][0])
                return session.work(spec, limits)
        return ended

    def counted(
        self, case: Case, paths: Sequence[Path], limits: Limits
    ) -> tuple[Outcome, list[reports.CaseReport]]:
        """Run once on each input, one thread after another, as the tests do: what they did there.

        There are no reports if the process has ended early.
        """
        with self._turn, self._worker() as session, session.inputs(paths) as inputs:
            spec = self._spec("cases", cases=[case], inputs=inputs, runs=[1] * len(paths))
            outcome, _ = self._run_cases(session, {**spec, "threads": 1}, limits)
            done: list[reports.CaseReport] = []
            files = [session.out / reports.report_name(number) for number in range(len(paths))]
            with suppress(reports.UnreadableError):
                done += [reports.read_record(reports.CaseReport, file) for file in files]
            session.empty()
            return outcome, done

    def _add_fibers(self, session: Session, case: Case) -> None:
        """Compile the kernels for launches that do not fit their loops, as rows of threads do not.

        Whether there are such launches is known when the plan makes one. What is compiled goes to
        the cache as all that was compiled before: inspected, and protected from the runs.
        """
        spec = self._spec("compile", cases=[case], builds=None, fibers=True, adds=True)
        session.work({**spec, "read_only": not self.trusted}, program.COMPILE_LIMITS)
        if self.trusted:
            return
        cache = self.built / "cache" / "cudalab" / "cpu"
        runtime = next(cache.glob("runtime-*.so"))
        for made in session.out.glob("*.so"):
            with suppress(reports.UnreadableError, foreign.CompileFailure):
                foreign.inspect(made, runtime)
                (cache / made.name).write_bytes(
                    reports.read_regular(made, foreign.MAX_LIBRARY_BYTES)
                )
        session.empty()
        program.protect(cache, self._group)

    @contextmanager
    def timing(self, case: Case) -> Iterator[Session]:
        """A worker that computes on command."""
        with self._turn, self._worker() as session:
            session.begin(self._spec("time", cases=[case]), TIMING_LIMITS)
            yield session

    def box(self, **options: Any) -> AbstractContextManager[Box]:
        """A box for one run, which finds cudalab and the compiled kernels."""
        return super().box(extra_env=self._environment(), **options)

    def sanitized(
        self, case: Case, limits: Limits, source: Path | None = None, *, seed: int = 0
    ) -> tuple[Outcome, Findings | None]:
        """Sanitize it on small inputs, or on the input `source` (looking.py).

        Its findings, unless there is no report.
        """
        if not self.trusted:
            program.copy_runtime(self.built / "cache", check=True)
            program.protect(self.built / "cache", self._group)
        with self._turn, self._worker() as session:
            copy = session.box.path / "input.bin"
            data = "" if source is None else copy_input(source, copy).name
            spec = self._spec("sanitize", cases=[case], input=data, seed=seed, adds=True)
            outcome, _ = session.work(spec, limits)
            findings = None
            with suppress(reports.UnreadableError):
                text = reports.read_regular(session.out / reports.FINDINGS, MAX_FINDINGS_BYTES)
                findings = reports.parse_record(Findings, text, reports.FINDINGS)
            copy.unlink(missing_ok=True)
            session.empty()
            return outcome, findings

    def predicted(self, options: Sequence[str], gpu: str, limits: Limits) -> bytes:
        """The JSON that `cudalab predict` writes of it, for the GPU of a file with that text."""
        with self.box() as box:
            (box.path / GPU_FILE).write_text(gpu, encoding="utf-8")
            words = [self.sandbox.imports.python, "-P", "-m", "cudalab", "predict", self.lab.name]
            words += [*options, "--kernel", str(self.source), "--gpu", GPU_FILE, "--json", "-"]
            if not self.trusted:
                # The run gets a cache of its own, in its box, instead of one that it only reads.
                del box.extra_env[READ_ONLY]
                box.extra_env["XDG_CACHE_HOME"] = str(box.path / "cache")
                program.copy_runtime(box.path / "cache", check=True)
            return self.sandbox.capture(words, box, limits)[1]

    def known_names(self) -> dict[str, str]:
        """The folder of the file in the box, and the one that its author knows."""
        folder = str(Path(self.label).parent)
        return {f"{self.source.parent}/": "" if folder == "." else f"{folder}/"}

    @property
    def source(self) -> Path:
        """The kernel file, at a place where runs can read it."""
        return self.path if self.trusted else self.built / "source" / self.path.name

    @property
    def _variant(self) -> Variant:
        assert self.variant is not None
        return self.variant

    def close(self) -> None:
        """End the worker, and remove the folder."""
        if self._session is not None:
            self._session.close()
            self._session = None
        super().close()

    def _environment(self) -> dict[str, str]:
        """Our own variants use the user's cache; a submission has one that its runs only read."""
        base = {"PYTHONPATH": self.sandbox.imports.path(), "OPENBLAS_NUM_THREADS": "1"}
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
            "read_only": mode != "compile" and not self.trusted,
            "confine": facts(self.device).on_host
            and self._session is not None
            and self._session.confines,
            **rest,
        }

    def _start(self, box: Box) -> Session:
        """Start a worker in a box."""
        box.extra_env.update(self._environment())
        box.extra_env.pop(READ_ONLY, None)  # each task says whether it may write there
        command = [self.sandbox.imports.python, "-P", "-m", "cudalab.checker.submit.worker"]
        if facts(self.device).on_host and not self.trusted:
            command.append(self.lab.name)
        return Session(self.sandbox, box, command, TIMING_LIMITS)

    @contextmanager
    def _worker(self) -> Iterator[Session]:
        """The worker that compiled; another one if it has ended, or if it may not do this, too."""
        one = self._session
        if one is not None and not one.ended and (one.confines or not facts(self.device).on_host):
            yield one
            return
        with self.box() as box:
            session = self._start(box)
            try:
                yield session
            finally:
                session.close()

    def _attempt_of(  # noqa: PLR0911 - one way to end after the other
        self, folder: Path, outcome: Outcome, reply: reports.Reply | None, trial: submission.Trial
    ) -> submission.Attempt:
        broken = submission.failure(outcome)
        on_host = facts(self.device).on_host
        ours = reply is not None and not (reply.loaded and on_host)  # none of its code has run
        if outcome.status == submission.PYTHON_RAISED and reply is not None:
            if ours:
                says = f"cudalab itself failed: {submission.last_line(outcome)}"
                return replace(broken, why=Why.GRADER, says=says)
            check_disk(folder)
            return replace(broken, why=Why.CRASH, says=WRECKED)
        if outcome.status == -signal.SIGSYS and not outcome.reason and not ours:
            return replace(broken, why=Why.FOREIGN, says=submission.REACHED_OUT)
        if outcome.reason or (outcome.status or 0) < 0:
            with suppress(reports.UnreadableError):
                report = reports.read_record(reports.CaseReport, folder / reports.report_name(0))
                broken.other_types = self._other_types(report, trial)
            return broken
        try:
            report = reports.read_record(reports.CaseReport, folder / reports.report_name(0))
        except reports.UnreadableError:
            says = broken.says or "the run ended without a report"
            return replace(broken, why=broken.why or Why.EXIT, says=says)
        if report.error:
            failed = {
                reports.KERNEL: Why.CRASH,
                reports.TOOLCHAIN: Why.GRADER if ours else Why.EXIT,
                **dict.fromkeys(reports.CONTRACT, Why.CONTRACT),
            }
            why = failed.get(report.error, Why.EXIT)
            return replace(broken, why=why, says=report.message, hint=report.hint)
        if broken.why:
            return broken
        return self._finished(folder, outcome, report, trial)

    def _finished(
        self, folder: Path, outcome: Outcome, report: reports.CaseReport, trial: submission.Trial
    ) -> submission.Attempt:
        """The attempt of a run that finished: its answers, and what its guard zones showed."""
        max_bytes = trial.limits.output_bytes
        made = submission.Attempt(
            outcome, notes=report.notes, runs=max(1, min(report.runs, self.runs))
        )
        names = [reports.answer_name(0, k) for k in range(max(0, min(report.answers, self.runs)))]
        try:
            made.answers = [reports.read_regular(folder / name, max_bytes) for name in names]
        except reports.UnreadableError as error:
            return replace(made, why=Why.WRONG, says=f"there is no answer: {error}")
        if not made.answers:
            return replace(made, why=Why.WRONG, says="there is no answer")
        launched = tuple(
            (one.kernel, _three(one.grid), _three(one.block)) for one in report.launches
        )
        header = self._variant
        unwritten = None
        with suppress(reports.UnreadableError):
            packed = reports.read_regular(folder / reports.unwritten_name(0), max_bytes)
            bits = np.unpackbits(np.frombuffer(packed, np.uint8)).astype(bool)
            unwritten = bits if len(bits) else None
        made.launches = Launches(header.dispatch, header.defines, launched, unwritten)
        made.other_types = self._other_types(report, trial)
        if report.overruns:
            made.why, made.says = Why.OVERRUN, "; ".join(report.overruns[:3])
        elif report.changed_inputs:
            changed = ", ".join(report.changed_inputs)
            made.why, made.says = Why.INPUT_CHANGED, f"the input {changed} was changed"
        elif trial.second is not None:
            made.second_answer = b""
            with suppress(reports.UnreadableError):
                made.second_answer = reports.read_regular(
                    folder / reports.answer_name(1, 0), max_bytes
                )
        return made

    @property
    def asks_who_runs(self) -> bool:
        """Whether it asks which lanes run together, where each is told of itself alone."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        return facts(self.device).on_host and "__activemask" in text

    def _other_types(self, report: reports.CaseReport, trial: submission.Trial) -> list[str]:
        """Messages about parameters of other types, or in another order, than the arguments."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        macros = {**self.lab.kernel_defines(trial.case), **self._variant.defines}
        contract = runner.contract(self.lab, self._variant)
        return [
            *mismatches(text, macros, report.arguments),
            *reordered(text, contract, report.arguments),
        ]


def own_kernel(lab: Lab, variant: Variant, device: str, threads: int | None = None) -> Kernel:
    """One of cudalab's own variants."""
    own = Kernel(
        lab=lab,
        path=variant.path,
        sandbox=submission.OURS,
        device=device,
        label=variant.label,
        trusted=True,
        threads=threads,
        kind="variant",
    )
    own.name, own.words = variant.name, (variant.name,)
    return own


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Three sizes of a launch, if they are such: they are only shown."""
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z
