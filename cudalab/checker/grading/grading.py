"""`cudalab grade`: judges a class with the store, the tasks and the summary."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cudalab import __version__
from cudalab.checker import cases
from cudalab.checker.grading import batch, store, summary, unpack
from cudalab.checker.options import JudgingOptions, Rules, fresh_seed
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.errors import CudalabError, ExitCode, NoDeviceError, UsageError, nearest
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.output import live, terminal
from cudalab.output.notes import note
from cudalab.output.prose import counted
from cudalab.system import records
from cudalab.system.machine import usable_cores

MAX_NAME_BYTES = 200  # of a report's file; file systems allow 255


@dataclass(frozen=True, kw_only=True)
class GradeOptions:
    """The options of `grade` alone."""

    kind: str
    command: str
    file: str
    jobs: int | None
    scheduler: str | None
    again: tuple[str, ...] = ()  # names
    json_path: Path | None = None  # for the class's document


def grade(
    lab: Lab,
    submissions: Path,
    out: Path,
    options: GradeOptions,
    judging: JudgingOptions,
    lab_options: dict[str, Any],
) -> int:
    """Judge the waiting submissions, then write the summary. 0 if all have been judged."""
    entries = {entry.name: entry for entry in unpack.entries(submissions)}
    if not entries:
        raise UsageError(f"{submissions} contains no submissions")
    for name in options.again:
        if name not in entries:
            raise UsageError(f"--again {name}: no such submission", hint=nearest(name, [*entries]))
    if out.resolve().is_relative_to(submissions.resolve()):
        raise UsageError(
            f"--out {out} lies in {submissions}: the next call would take it for a submission",
            hint="name a folder beside the submissions",
        )
    sandbox = sandboxes.choose(judging.sandbox)  # reports now if it does not work here
    if sandbox.kind == "none" and judging.sandbox != "none":
        raise NoDeviceError(
            "no sandbox works here, and a class holds programs of people whom nobody knows: "
            + sandbox.words,
            hint="install bubblewrap; or --sandbox none, if all of them may do what you may",
        )
    with store.Store(out) as results, _goes_on():
        task = _task(lab, options, judging, lab_options, results)
        changed = results.add(entries.values(), options.again)
        with live.BenchProgress() as progress:
            progress.begin(
                f"grading {lab.name}: {counted(len(entries), 'submission')}, sandbox {sandbox.kind}"
            )

            def show_progress(name: str, done: int, total: int) -> None:
                progress.update(done / total, f"{done} of {total} {name}")

            if options.scheduler:
                from cudalab.checker.grading import cluster  # noqa: PLC0415 - an extra

                cluster.run(results, entries, task, options.scheduler, show_progress)
            else:
                batch.run(results, entries, task, options.jobs or usable_cores(), show_progress)
        # The points of a class: the same for all, though some kernels have fewer tests than others.
        plan = cases.planned(judging, lab, None, lab_options)
        speed = 0.0 if judging.no_time else plan.speed.points
        full = sum(test.points for test in plan.tests) + speed
        return _sum_up(results, task, out, sandbox, changed, full, options.json_path)


@contextmanager
def _goes_on() -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        note("what has been judged is stored: the same call goes on with the rest")
        raise


def _task(
    lab: Lab,
    options: GradeOptions,
    judging: JudgingOptions,
    lab_options: dict[str, Any],
    results: store.Store,
) -> batch.Task:
    """The task, without a name. All submissions have the first call's seed, so the same inputs."""
    judging.limits()  # reports a malformed size now, not once per submission
    text = None
    if judging.tests:  # reports the instructor's mistakes now, not once per submission
        cases.load(judging.tests, lab, lab_options)
        text = judging.tests.read_text(encoding="utf-8")
    if judging.reference:
        registry.find(lab, judging.reference)
    settings = results.settle(
        {
            "version": __version__,
            "lab": lab.name,
            "given": lab_options,
            "kind": options.kind,
            "command": options.command,
            "file": options.file,
            "tests": hashlib.sha256(text.encode()).hexdigest() if text else None,
            "quick": judging.quick,
            "strict": judging.strict,
            "device": judging.device,
            "rules": asdict(judging.rules(Rules())),
            "seed": fresh_seed() if judging.seed is None else judging.seed,
        }
    )
    if judging.seed is not None and settings["seed"] != judging.seed:
        raise UsageError(
            f"these results were begun with --seed {settings['seed']}", hint="use another --out"
        )
    return batch.Task(
        lab=lab.name,
        name="",
        kind=options.kind,
        command=options.command,
        file=options.file,
        options=lab_options,
        judging=replace(
            judging,
            seed=settings["seed"],
            tests=judging.tests.absolute() if judging.tests else None,
        ),
        tests_text=text,
    )


def _sum_up(
    results: store.Store,
    task: batch.Task,
    out: Path,
    sandbox: sandboxes.Sandbox,
    changed: Sequence[str],
    full: float,
    json_path: Path | None,
) -> int:
    """Write the class's files, and say in a few lines what is in them."""
    public, untouched = batch.public_prints(task.lab), batch.skeleton_prints(task.lab)
    judged = summary.results(list(results.rows()), full, public, untouched)
    _write(out, task.lab, judged)
    if json_path:
        save(json_path, records.text(_document(judged, task, sandbox, changed)))
    if str(json_path) != "-":
        terminal.lines(_lines(judged, out, sandbox, changed))
    return ExitCode.ERROR if any(map(_is_waiting, judged.rows)) else ExitCode.OK


def _is_waiting(row: store.Row) -> bool:
    """Whether a submission should have been judged, and was not."""
    return row.state not in (store.DONE, store.REMOVED)


def _write(out: Path, lab: str, judged: summary.Results) -> None:
    """Write the table, the pages and each verdict."""
    save(out / "results.csv", summary.table(judged))
    save(out / "summary.html", summary.page(f"{lab}: results", judged))
    ranking = summary.ranking(f"{lab}: by speed", judged.reports)
    if ranking:
        save(out / "ranking.html", ranking)
    folder = _folder(out / "reports")
    for name, report in judged.reports.items():
        save(folder / f"{_file_name(name)}.json", records.text(report.json()))


def _document(
    judged: summary.Results, task: batch.Task, sandbox: sandboxes.Sandbox, changed: Sequence[str]
) -> summary.Class:
    assert task.judging.seed is not None
    return summary.Class(
        lab=task.lab,
        seed=task.judging.seed,
        sandbox=sandbox.kind,
        judged=len(judged.reports),
        passed=judged.passed,
        judged_again=list(changed),
        submissions=summary.submissions(judged),
    )


def _lines(
    judged: summary.Results, out: Path, sandbox: sandboxes.Sandbox, changed: Sequence[str]
) -> list[str]:
    removed = [row.name for row in judged.rows if row.state == store.REMOVED]
    there = len(judged.rows) - len(removed)
    counts = f"{len(judged.reports)} of {there} judged, {judged.passed} passed"
    lines = [
        f"{counts}; {counted(len(judged.pairs), 'pair')} (nearly) identical",
        f"{out / 'summary.html'}, {out / 'results.csv'}",
        f"sandbox {sandbox.kind}: {sandbox.words}",
    ]
    if changed:
        lines.append(f"judged again because they have changed: {', '.join(changed)}")
    if removed:
        lines.append(f"removed before they were judged: {', '.join(removed)}")
    unjudged = list(filter(_is_waiting, judged.rows))
    return lines + [f"not judged: {row.name}: {row.problem}" for row in unjudged[:10]]


def _folder(path: Path) -> Path:
    """A folder, made if need be."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise CudalabError(f"{path}: cannot be made: {error.strerror}") from None
    return path


def _file_name(name: str) -> str:
    """A submission's name as the name of a file, which no other submission has."""
    safe = re.sub(r"[^\w.-]", "_", name)
    if safe == name and len(safe.encode()) <= MAX_NAME_BYTES:
        return safe
    mark = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{safe[: MAX_NAME_BYTES // 8]}-{mark}"
