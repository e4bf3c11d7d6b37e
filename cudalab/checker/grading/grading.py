"""`cudalab grade`: the store, the tasks and the summary, put together."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
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
class Wanted:
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
    wanted: Wanted,
    asked: JudgingOptions,
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
    walls = sandbox.choose(asked.sandbox)  # one that does not work is an error now, not later
    with store.Store(out) as kept:
        task = _task(lab, wanted, asked, given, kept)
        changed = kept.add(entries.values())
        with terminal.BenchProgress() as progress:
            progress.begin(f"grading {lab.name}: {len(entries)} submissions, sandbox {walls.kind}")

            def tell(name: str, done: int, total: int) -> None:
                progress.update(done / total, f"{done} of {total} {name}")

            if wanted.scheduler:
                from cudalab.checker.grading import cluster  # noqa: PLC0415 - an extra

                cluster.run(kept, entries, task, wanted.scheduler, tell)
            else:
                batch.run(kept, entries, task, wanted.jobs or usable_cores(), tell)
        return _sum_up(lab, kept, out, walls, changed)


def _task(
    lab: Lab, wanted: Wanted, asked: JudgingOptions, given: dict[str, Any], kept: Store
) -> batch.Task:
    """What is the same for all. The seed is that of the first call, so all have the same inputs."""
    text = None
    if asked.tests:  # the instructor's mistakes are found now, and not in every submission
        cases.load(asked.tests, lab, given)
        text = asked.tests.read_text(encoding="utf-8")
    if asked.reference:
        registry.find(lab, asked.reference)
    speed = None
    if asked.reference or asked.speed_points is not None:
        speed = cases.Speed(asked.speed_points or 0.0, reference=asked.reference)
    settings = kept.settle(
        {
            "version": __version__,
            "lab": lab.name,
            "given": given,
            "kind": wanted.kind,
            "command": wanted.command,
            "file": wanted.file,
            "tests": hashlib.sha256(text.encode()).hexdigest() if text else None,
            "quick": asked.quick,
            "strict": asked.strict,
            "device": asked.device,
            "seed": cases.fresh_seed() if asked.seed is None else asked.seed,
        }
    )
    if asked.seed is not None and settings["seed"] != asked.seed:
        raise UsageError(
            f"these results were begun with --seed {settings['seed']}", hint="use another --out"
        )
    return batch.Task(
        lab=lab.name,
        name="",
        kind=wanted.kind,
        command=wanted.command,
        file=wanted.file,
        given=given,
        device=asked.device,
        threads=asked.threads,
        sandbox=asked.sandbox,
        seed=settings["seed"],
        quick=asked.quick,
        strict=asked.strict,
        tests=str(asked.tests.absolute()) if asked.tests else None,
        speed=speed,
        limits=asked.limits(),
        sanitize=not asked.no_sanitize,
        timing=not asked.no_time,
        time_limit_s=asked.time_limit,
        payload=None,
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
