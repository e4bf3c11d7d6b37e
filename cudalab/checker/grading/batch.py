"""Judges the submissions of a class: each one once, in any order, independently of the others.

A submission is a folder that holds a kernel file, a whole program or what a command runs.
"""

import shlex
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudalab import labs
from cudalab.backends import choose_device, device_for
from cudalab.checker import cases, judge
from cudalab.checker.correct import skipped
from cudalab.checker.grading import similar, unpack
from cudalab.checker.grading.store import Store
from cudalab.checker.options import JudgingOptions
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.checker.sandbox.running import end_all
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.skeleton import original, skeleton
from cudalab.checker.submit.submission import Command, Submission
from cudalab.checker.verdicts import ANY_DEVICE, Report, Status
from cudalab.errors import CudalabError, HeaderError, UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.language import source


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything needed to judge one submission, here or on another machine."""

    lab: str
    name: str
    kind: str  # auto, kernel, program or command
    command: str  # for kind command: run in the submission's folder
    file: str  # within the submission; empty: to be detected
    options: Case
    judging: JudgingOptions  # including the seed that all submissions share
    payload: tuple[str, bytes] | None = None  # file name and bytes, for another machine
    tests_text: str | None = None  # the instructor's file, for another machine


HEADER = "// /// cudalab"
MAIN = "main.py"  # which of several scripts is run


def submission_in(lab: Lab, task: Task, folder: Path, sandbox: sandboxes.Sandbox) -> Submission:
    """The submission in a folder. BadSubmissionError if there is none."""
    file = "/".join(map(unpack.usable, task.file.split("/")))
    kind, files = task.kind, [folder / file] if file else sorted(folder.glob("*.cu"))
    if file and not files[0].is_file():
        raise unpack.BadSubmissionError(f"there is no file {task.file}")
    if kind == "auto" and task.command:
        kind = "command"
    if kind == "auto":
        if all(path.suffix == ".py" for path in files):
            kind = "command"
        else:
            kind = "kernel" if any(map(_has_header, files)) else "program"
    if kind == "command":
        return Command(
            shlex.split(task.command) or _python(folder, file),
            sandbox,
            name=task.name,
            folder=folder,
            files=tuple(unpack.sources(folder)),
            device=ANY_DEVICE if task.judging.device == "auto" else task.judging.device,
        )
    if not files:
        raise unpack.BadSubmissionError("there is no .cu file", "--command runs other programs")
    device = task.judging.device
    if device == "auto" and kind == "kernel":
        device = choose_device()
    if kind == "kernel":
        kernels = [path for path in files if _has_header(path)] or files
        if len(kernels) > 1:
            names = ", ".join(path.name for path in kernels)
            raise unpack.BadSubmissionError(
                f"several kernel files: {names}", "--file names the one to judge"
            )
        return Kernel(
            lab=lab,
            path=kernels[0],
            sandbox=sandbox,
            device=device,
            label=kernels[0].name,
            threads=task.judging.threads,
        )
    return Program(files=files, sandbox=sandbox, name=task.name, device=device_for(device))


def _has_header(path: Path) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return any(line.rstrip() == HEADER for line in file)


def _python(folder: Path, file: str) -> list[str]:
    scripts = [folder / file] if file else sorted(folder.glob("*.py"))
    scripts = [path for path in scripts if path.name == MAIN] or scripts
    if len(scripts) != 1:
        raise unpack.BadSubmissionError(
            f"there is no .cu file, and neither one .py file nor a {MAIN}",
            "--command says what to run",
        )
    return [sys.executable, f"./{scripts[0].relative_to(folder)}"]  # not an option, as -c.py were


Progress = Callable[[str, int, int], None]


@dataclass
class Turns:
    """Lets checks run together, but timing alone."""

    _changed: threading.Condition = field(default_factory=threading.Condition)
    _together: int = 0
    _alone: bool = False
    _waiting: int = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run together with others, but not while a check runs alone or waits to do so."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and not self._waiting)
            self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run alone."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._alone and not self._together)
            self._waiting -= 1
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


def judge_one(
    task: Task, path: Path, turns: Turns | None = None, *, jobs: int = 1
) -> tuple[Report, frozenset[int]]:
    """Judge one submission. A submission that cannot be judged gets a report as well."""
    lab = labs.get(task.lab)
    sandbox = sandboxes.choose(task.judging.sandbox)
    with tempfile.TemporaryDirectory(prefix="cudalab-grade-") as name:
        folder = Path(name)
        try:
            source_folder = unpack.place(unpack.Entry(task.name, path), folder)
            prints = fingerprints(source_folder)
            kernel_files = [*source_folder.glob("*.cu")]
            submission = submission_in(lab, task, source_folder, sandbox)
            plan = _plan(lab, task, submission.variant, folder)
        except (unpack.BadSubmissionError, HeaderError) as error:
            return refuse(task, error)
        if plan.rules.language is None and task.kind != "command" and not task.command:
            plan = replace(plan, rules=replace(plan.rules, language="cuda"))
        settings = task.judging.settings(jobs=jobs)
        if turns is not None:
            settings = replace(settings, together=turns.together, alone=turns.alone)
        try:
            report = judge.check(lab, submission, plan, sandbox, settings)
        except UsageError as error:  # such as a header with a case that the lab lacks
            return refuse(task, error)[0], prints
    report.submission = task.name
    beside = sorted({path.name for path in kernel_files} - set(report.files))
    if beside and report.kind != "command":
        report.notes.append(
            f"judged: {', '.join(report.files)}; not looked at: {', '.join(beside)}"
        )
    return report, prints


def refuse(task: Task, error: CudalabError) -> tuple[Report, frozenset[int]]:
    """The result of a submission that contains nothing to judge: no points, of as many as others.

    Of as many as a kernel file like that of `cudalab new`, unless the class hands in programs.
    """
    sandbox, lab = sandboxes.choose(task.judging.sandbox), labs.get(task.lab)
    settings = task.judging.settings()
    report = judge.refused(
        task.lab, task.name, task.kind, task.judging.device, sandbox, settings.seed, error
    )
    variant: Variant | None = original(lab)
    case = lab.complete(cases.case_for(lab, task.options, variant))
    if task.kind not in ("auto", "kernel") or task.command or not original(lab).computes(case):
        variant = None
    with tempfile.TemporaryDirectory(prefix="cudalab-grade-") as folder:
        plan = _plan(lab, task, variant, Path(folder))
    report.tests = skipped(plan)
    report.speed_offered = plan.speed.points if settings.timing else 0.0
    return report, frozenset()


def _plan(lab: Lab, task: Task, variant: Variant | None, folder: Path) -> cases.Plan:
    judging = task.judging
    if task.tests_text is not None and judging.tests and not judging.tests.is_file():
        path = folder / "tests.toml"  # this is another machine
        path.write_text(task.tests_text, encoding="utf-8")
        judging = replace(judging, tests=path)
    if variant is not None:
        case = lab.complete(cases.case_for(lab, task.options, variant))
        registry.check_applies(variant, lab, case)
    return cases.planned(judging, lab, variant, task.options)


def fingerprints(folder: Path) -> frozenset[int]:
    """The fingerprints of all source files in a folder."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in unpack.sources(folder)]
    return similar.fingerprints("\n".join(texts))


def skeleton_prints(lab: str) -> frozenset[int]:
    """The fingerprints of the file that `cudalab new` writes."""
    return similar.fingerprints(skeleton(labs.get(lab), "my.cu"))


def public_prints(lab: str) -> list[frozenset[int]]:
    """Fingerprints of public code: the variants, and the file that `cudalab new` writes."""
    texts = [path.read_text(encoding="utf-8") for path in source.kernels_dir().rglob("*.cu*")]
    return [*map(similar.fingerprints, texts), skeleton_prints(lab)]


def run(
    store: Store, entries: dict[str, unpack.Entry], task: Task, jobs: int, progress: Progress
) -> None:
    """Judge all waiting submissions, `jobs` at a time; store each result at once."""
    waiting = store.waiting()
    total, done = len(entries), len(entries) - len(waiting)
    turns = Turns() if not task.judging.no_time and jobs > 1 else None
    progress("", done, total)
    with ThreadPoolExecutor(jobs) as pool:
        running: dict[Future[tuple[Report, frozenset[int]]], str] = {}
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    name = waiting.pop(0)
                    store.begin(name)
                    one = replace(task, name=name)
                    running[pool.submit(judge_one, one, entries[name].path, turns)] = name
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    name = running.pop(future)
                    take(store, name, future.result)
                    done += 1
                    progress(name, done, total)
        except BaseException:
            end_all(running)
            raise


def take(store: Store, name: str, result: Callable[[], tuple[Report, frozenset[int]]]) -> None:
    """Store a result. A failure is stored for its submission and does not stop the others."""
    try:
        report, prints = result()
    except Exception as error:  # noqa: BLE001 - the batch continues, and the next call tries again
        words = "".join(traceback.format_exception_only(error)).strip()
        store.fail(name, error.message if isinstance(error, CudalabError) else words)
        return
    broken = [stage for stage in report.stages if stage.status is Status.BROKEN]
    if broken:
        store.fail(name, "\n".join([broken[0].says, *broken[0].details]))
    else:
        store.finish(name, report, prints)
