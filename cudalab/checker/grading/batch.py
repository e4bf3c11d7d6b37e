"""Judges the submissions of a class: each one once, in any order, independently of the others."""

import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudalab import labs
from cudalab.checker import cases, judge
from cudalab.checker.correct import skipped
from cudalab.checker.grading import detect, similar, unpack
from cudalab.checker.grading.store import Store
from cudalab.checker.grading.task import Task
from cudalab.checker.grading.unpack import Entry
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.checker.sandbox.running import end_all
from cudalab.checker.submit.skeleton import original, skeleton
from cudalab.checker.verdicts import Report, Status
from cudalab.errors import CudalabError, HeaderError, UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source

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
            submission = detect.submission_in(lab, task, source_folder, sandbox)
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
    return judging.plan(lab, variant, task.options)


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


def run(store: Store, entries: dict[str, Entry], task: Task, jobs: int, progress: Progress) -> None:
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
