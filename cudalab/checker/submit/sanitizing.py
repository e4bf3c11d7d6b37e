"""The stage `sanitize`: races, lost barriers and accesses out of bounds.

`cudalab sanitize` does the work, as a program inside the sandbox: the kernel runs in its process.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.checker.sandbox.sandbox import Limits
from cudalab.checker.verdicts import Stage, Status, Why
from cudalab.errors import ExitCode, InputError
from cudalab.microscope.findings import from_json, grouped

if TYPE_CHECKING:
    from cudalab.checker.submit.kernel import Kernel
    from cudalab.checker.submit.program import Program
    from cudalab.labs.inputs import Case
    from cudalab.microscope.findings import Findings

LIMITS = Limits(seconds=120, cpu_seconds=480, memory_bytes=4 << 30, disk_bytes=512 << 20)
MAX_FINDINGS = 3
MAX_PLACES = 2  # of one finding
MAX_LINES = 30
WRONG_ANSWER = "wrong_answer"  # a kind of finding
_FINDING = re.compile(r"\s*\d+\. (?!note)")  # only findings are numbered, not advice
_OBSERVED, _NOT_OBSERVED = re.compile(r"observed: [1-9]"), "observed: 0 launches"
_COUNT = re.compile(r": (\d+ found)$")


def stage(
    submission: Kernel, case: Case, look: str, path: Path | None = None, seed: int = 0
) -> Stage:
    """Sanitize the kernel on an input, or on the sizes that `cudalab sanitize` chooses.

    `look` is the command that does the same by hand.
    """
    lab = submission.lab
    command = [submission.sandbox.imports.python, "-m", "cudalab", "sanitize", lab.name]
    command += [*lab.words(case), "--json", "report.json"]
    if path is None:
        command += ["--seed", str(seed)]
    data, says = submission.run_on_source(command, LIMITS, "report.json", path)
    if data is not None:
        with suppress(ValueError, InputError):
            return _stage_of(_named(from_json(data), submission), look)
    return Stage("sanitize", Status.SKIPPED, says=f"could not be run: {says}")


def program_stage(submission: Program, path: Path, look: str) -> Stage:
    """Run an instrumented whole program, which reports on stderr.

    `look` is the command that does the same by hand; empty if it must stay hidden.
    """
    outcome = submission.sanitized(path, LIMITS)
    lines = [line for line in outcome.stderr.splitlines() if line.strip()]
    if not outcome.reason and any(_NOT_OBSERVED in line for line in lines):
        return Stage(
            "sanitize", Status.SKIPPED, says="no kernel was launched: there is nothing to observe"
        )
    observed = any(_OBSERVED.search(line) for line in lines)
    if outcome.reason or outcome.status not in (ExitCode.OK, ExitCode.WRONG_ANSWER) or not observed:
        why = lines[-1] if lines else f"exit status {outcome.status}"
        return Stage("sanitize", Status.SKIPPED, says=f"could not be run: {why}")
    if not any(_FINDING.match(line) for line in lines):  # only advice
        says = "no race, no lost barrier, nothing out of bounds"
        return Stage("sanitize", Status.PASSED, says=says, details=lines[1:MAX_LINES])
    details = lines[:MAX_LINES] + ([f"see: {look}"] if look else [])
    says = next((match[1] for match in map(_COUNT.search, lines) if match), "")
    return Stage("sanitize", Status.FAILED, says=says, details=details, why=Why.SANITIZER)


def _named(report: Findings, submission: Kernel) -> Findings:
    """The findings with the names of files that the submission's author knows."""
    inside, known = f"{submission.source.parent}/", str(Path(submission.label).parent)
    known = "" if known == "." else f"{known}/"
    rows = [
        replace(
            row,
            file=row.file.replace(inside, known),
            other_file=row.other_file and row.other_file.replace(inside, known),
            what=row.what.replace(inside, known),
            detail=row.detail.replace(inside, known),
        )
        for row in report.findings
    ]
    return replace(report, findings=rows)


def _stage_of(report: Findings, look: str) -> Stage:
    wrong = [one for one in report.findings if one.kind == WRONG_ANSWER]
    findings = [one for one in report.findings if one not in wrong]  # the tests report those
    errors = [one for one in findings if not one.note]
    groups = grouped(errors)
    if not errors and (report.clean or wrong):
        says = "no race, no lost barrier, nothing out of bounds"
        notes = [f"note: {one.title}: {one.what}" for one in findings]
        return Stage("sanitize", Status.PASSED, says=says, details=notes, findings=findings)
    details = []
    for group in groups[:MAX_FINDINGS]:
        places = list(dict.fromkeys(one.what for one in group))
        details += [f"{group[0].title}: {what}" for what in places[:MAX_PLACES]]
        if len(places) > MAX_PLACES:
            details.append(f"  and {len(places) - MAX_PLACES} more like these")
        details.append(f"  {group[0].cure}")
    if len(groups) > MAX_FINDINGS:
        details.append(f"and {len(groups) - MAX_FINDINGS} more")
    details.append(f"see: {look}")
    says = f"{len(groups)} finding" + ("s" if len(groups) != 1 else "")
    return Stage(
        "sanitize", Status.FAILED, says=says, details=details, why=Why.SANITIZER, findings=errors
    )
