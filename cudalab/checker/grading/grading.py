"""`cudalab grade`: the store, the tasks and the summary, put together."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cudalab import __version__
from cudalab.checker import cases, outputs
from cudalab.checker.grading import batch, store, summary, unpack
from cudalab.checker.sandbox import sandbox
from cudalab.errors import ExitCode, UsageError
from cudalab.labs import registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cudalab.checker.grading.store import Store
    from cudalab.checker.options import JudgingOptions
    from cudalab.labs.base import Lab


@dataclass(frozen=True, kw_only=True)
class GradeOptions:
    """The options of `grade` alone."""

    kind: str
    command: str
    file: str
    jobs: int | None
    scheduler: str | None


def grade(
    lab: Lab,
    submissions: Path,
    out: Path,
    options: GradeOptions,
    judging: JudgingOptions,
    given: dict[str, Any],
) -> int:
    """Judge what is waiting, then write the summary. 0 when all have been judged."""
    from cudalab.output import terminal  # noqa: PLC0415 - rich takes its time
    from cudalab.system.machine import usable_cores  # noqa: PLC0415 - loads NumPy

    entries = {entry.name: entry for entry in unpack.entries(submissions)}
    if not entries:
        raise UsageError(f"{submissions}: no submissions in there")
    if out.resolve().is_relative_to(submissions.resolve()):
        raise UsageError(
            f"--out {out} lies in {submissions}: the next call would take it for a submission",
            hint="name a folder beside the submissions",
        )
    walls = sandbox.choose(judging.sandbox)  # one that does not work is an error now, not later
    with store.Store(out) as kept:
        task = _task(lab, options, judging, given, kept)
        changed = kept.add(entries.values())
        with terminal.BenchProgress() as progress:
            progress.begin(f"grading {lab.name}: {len(entries)} submissions, sandbox {walls.kind}")

            def tell(name: str, done: int, total: int) -> None:
                progress.update(done / total, f"{done} of {total} {name}")

            if options.scheduler:
                from cudalab.checker.grading import cluster  # noqa: PLC0415 - an extra

                cluster.run(kept, entries, task, options.scheduler, tell)
            else:
                batch.run(kept, entries, task, options.jobs or usable_cores(), tell)
        return _sum_up(lab, kept, out, walls, changed)


def _task(
    lab: Lab, options: GradeOptions, judging: JudgingOptions, given: dict[str, Any], kept: Store
) -> batch.Task:
    """What is the same for all. The seed is that of the first call, so all have the same inputs."""
    judging.limits()  # a size that is none is an error now, and not in every submission
    text = None
    if judging.tests:  # the instructor's mistakes are found now, and not in every submission
        cases.load(judging.tests, lab, given)
        text = judging.tests.read_text(encoding="utf-8")
    if judging.reference:
        registry.find(lab, judging.reference)
    speed = None
    if judging.reference or judging.speed_points is not None:
        speed = cases.Speed(judging.speed_points or 0.0, reference=judging.reference)
    settings = kept.settle(
        {
            "version": __version__,
            "lab": lab.name,
            "given": given,
            "kind": options.kind,
            "command": options.command,
            "file": options.file,
            "tests": hashlib.sha256(text.encode()).hexdigest() if text else None,
            "quick": judging.quick,
            "strict": judging.strict,
            "device": judging.device,
            "seed": cases.fresh_seed() if judging.seed is None else judging.seed,
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
        given=given,
        judging=replace(
            judging,
            seed=settings["seed"],
            tests=judging.tests.absolute() if judging.tests else None,
        ),
        speed=speed,
        tests_text=text,
    )


def _sum_up(
    lab: Lab, kept: Store, out: Path, walls: sandbox.Sandbox, changed: Sequence[str]
) -> int:
    from cudalab.output import terminal  # noqa: PLC0415 - as above

    rows = list(kept.rows())
    found = summary.reports(rows)
    given, untouched = batch.given_prints(lab.name), batch.skeleton_prints(lab.name)
    pairs = summary.similar_pairs(rows, found, given, untouched)
    outputs.save(out / "results.csv", summary.table(rows, found, pairs))
    outputs.save(out / "summary.html", summary.page(f"{lab.name}: results", rows, found, pairs))
    folder = out / "reports"
    folder.mkdir(exist_ok=True)
    for name, report in found.items():
        safe = re.sub(r"[^\w.-]", "_", name)
        outputs.save(folder / f"{safe}.json", json.dumps(report.json(), indent=1) + "\n")
    left = [row for row in rows if row.state not in (store.DONE, store.WITHDRAWN)]
    withdrawn = [row.name for row in rows if row.state == store.WITHDRAWN]
    here = len(rows) - len(withdrawn)
    passed = sum(report.passed for report in found.values())
    said = [
        f"{len(found)} of {here} judged, {passed} passed; {len(pairs)} pairs (nearly) identical",
        f"{out / 'summary.html'}, {out / 'results.csv'}",
        f"sandbox {walls.kind}: {walls.words}",
    ]
    if changed:
        said.append(f"judged again, for they have changed: {', '.join(changed)}")
    if withdrawn:
        said.append(f"withdrawn before they were judged: {', '.join(withdrawn)}")
    said += [f"not judged: {row.name}: {row.problem}" for row in left[:10]]
    terminal.lines(said)
    return ExitCode.ERROR if left else ExitCode.OK
