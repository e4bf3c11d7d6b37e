"""The stage `sanitize`: races, lost barriers and accesses out of bounds.

The worker of the sandbox does the work of `cudalab sanitize`, in a child as for each test.
"""

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.submit import alike
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import REACHED_OUT, Trial, failure
from cudalab.checker.verdicts import Stage, Status, Why
from cudalab.errors import ExitCode
from cudalab.labs.inputs import Case
from cudalab.microscope.findings import Findings, grouped

# Longer than `cudalab sanitize` takes to end a kernel and to see whether it ends at full speed.
LIMITS = Limits(seconds=180, cpu_seconds=480, memory_bytes=4 << 30, disk_bytes=512 << 20)
MAX_FINDINGS = 3
MAX_PLACES = 2  # of one finding
MAX_STORED = 100  # findings
WRONG_ANSWER = "wrong_answer"  # a kind of finding
NOT_COMPARED = "not judged: whether its kernels do the same where the sanitizer does not look"
NOBODYS = ("cancelled",)  # reasons of a run's end
KILLED_BY_FILTER = (-signal.SIGSYS, 128 + signal.SIGSYS)  # `cudalab sanitize` says it by its status


def stage(
    submission: Kernel,
    case: Case,
    look: str,
    path: Path | None = None,
    *,
    seed: int = 0,
    failed: bool = False,
) -> Stage:
    """Sanitize the kernel on an input, or on the sizes that `cudalab sanitize` chooses.

    `look` is the command that does the same by hand; `failed` says that a test has failed, for
    which this looks for the cause.
    """
    outcome, report = submission.sanitized(case, LIMITS, path, seed=seed)
    if report is not None:
        report = _named(report, submission.known_names())
        stage = _wrong(report, look, failed=failed) or _stage_of(report, look)
        if failed or stage.status is not Status.PASSED:
            return stage
        unlike = alike.differences(submission, case, path, seed, report.tallies, LIMITS)
        says = "its threads do not do there what they do in the tests"
        return _unseen(says, "", *unlike) if unlike else stage
    if outcome.status in KILLED_BY_FILTER:
        return Stage("sanitize", Status.FAILED, says=REACHED_OUT, why=Why.FOREIGN, cost=1.0)
    return _ended_early(outcome, look)


def program_stage(
    submission: Program,
    trial: Trial,
    look: str,
    is_right: Callable[[bytes], bool],
    *,
    failed: bool = False,
) -> Stage:
    """Run an instrumented whole program.

    `look` is the command that does the same by hand; empty if it must stay hidden. `failed` says
    that a test has failed, for which this looks for the cause.
    """
    outcome, report, answer = submission.sanitized(trial.path, LIMITS)
    if report is None:
        return _ended_early(outcome, look)
    if not report.launches:
        _, elsewhere = submission.without_kernels(replace(trial, limits=LIMITS))
        if elsewhere:
            says = "no kernel is launched under the sanitizer, but otherwise there are some"
            return _unseen(says, look)
        says = "no kernel was launched: there is nothing to observe"
        return Stage("sanitize", Status.SKIPPED, says=says)
    stage = _stage_of(_named(report, submission.known_names()), look)
    if stage.status is Status.PASSED and not failed and not is_right(answer):
        return _unseen("right in the tests, wrong under the sanitizer", look)
    if stage.status is Status.PASSED:
        stage.details = [f"observed: {'; '.join(report.inputs)}", *stage.details, *report.ignored]
        stage.details.append(NOT_COMPARED)
    return stage


def tells(places: Sequence[str]) -> Stage:
    """The stage of a submission whose code differs where the sanitizer looks."""
    details = [f"{place}: other code, or hidden from the sanitizer" for place in places]
    return _unseen("the sanitizer would see other code than the tests run", "", *details)


def _ended_early(outcome: Outcome, look: str) -> Stage:
    """The stage of a run that has left no report.

    A limit, a signal, a status of its own, and an instrumented build that does not compile are the
    submission's doing, for the same text has passed the tests. The rest is nobody's.
    """
    lines = outcome.stderr.strip().splitlines()
    errors = [line for line in lines if line.startswith("Error")] or lines[-1:]
    says = failure(outcome).says if outcome.reason else " ".join(errors[:1])
    ours = outcome.status in (ExitCode.ERROR, ExitCode.NO_DEVICE) or outcome.reason in NOBODYS
    if ours and (not outcome.reason or outcome.reason in NOBODYS):
        return Stage("sanitize", Status.SKIPPED, says=f"could not be run: {says}")
    if outcome.status == ExitCode.COMPILE_ERROR:
        errors = [line for line in lines if ": error: " in line] or errors
        return _unseen("its instrumented build does not compile", look, *errors[:3])
    return _unseen("it ended before the sanitizer could report", look, *filter(None, [says]))


def _unseen(says: str, look: str, *details: str) -> Stage:
    """A stage that failed because nobody could look for races."""
    lines = [*details, "races cannot be ruled out, so it costs what a race costs"]
    lines += [f"see: {look}"] if look else []
    return Stage("sanitize", Status.FAILED, says=says, details=lines, why=Why.SANITIZER)


def _named(report: Findings, names: Mapping[str, str]) -> Findings:
    """The findings with the names of files that the submission's author knows."""

    def known(text: str) -> str:
        for inside, outside in names.items():
            text = text.replace(inside, outside)
        return text

    rows = [
        replace(
            row,
            file=known(row.file),
            other_file=row.other_file and known(row.other_file),
            what=known(row.what),
            detail=known(row.detail),
        )
        for row in report.findings
    ]
    return replace(report, findings=rows, ignored=list(map(known, report.ignored)))


def _wrong(report: Findings, look: str, *, failed: bool) -> Stage | None:
    """The stage if the answer is wrong here alone, and nothing else that is found says why."""
    wrong = [one for one in report.findings if one.kind == WRONG_ANSWER]
    notes = [one for one in report.findings if one.note]
    if failed or not wrong or len(wrong) + len(notes) < len(report.findings):
        return None
    details = [f"{one.title}: {one.what}" for one in wrong[:MAX_FINDINGS]]
    details += [f"note: {one.title}: {one.what}" for one in notes[:MAX_FINDINGS]]
    return Stage(
        "sanitize",
        Status.FAILED,
        says="right in the tests, wrong on an input of the sanitizer",
        details=[*details, f"see: {look}"],
        why=Why.WRONG,
        cost=1.0,
        findings=report.findings[:MAX_STORED],
    )


def _stage_of(report: Findings, look: str) -> Stage:
    wrong = [one for one in report.findings if one.kind == WRONG_ANSWER]
    findings = [one for one in report.findings if one not in wrong]  # there is a cause
    errors = [one for one in findings if not one.note]
    groups = grouped(errors)
    if not errors and (report.clean or wrong or report.ignored):
        says = "no race, no lost barrier, nothing out of bounds"
        notes = [f"note: {one.title}: {one.what}" for one in findings]
        return Stage(
            "sanitize", Status.PASSED, says=says, details=notes, findings=findings[:MAX_STORED]
        )
    details = []
    for group in groups[:MAX_FINDINGS]:
        places = list(dict.fromkeys(one.what for one in group))
        details += [f"{group[0].title}: {what}" for what in places[:MAX_PLACES]]
        if len(places) > MAX_PLACES:
            details.append(f"  and {len(places) - MAX_PLACES} more like these")
        details.append(f"  {group[0].cure}")
    if len(groups) > MAX_FINDINGS:
        details.append(f"and {len(groups) - MAX_FINDINGS} more")
    details += [f"see: {look}"] if look else []
    says = f"{len(groups)} finding" + ("s" if len(groups) != 1 else "")
    stage = Stage("sanitize", Status.FAILED, says=says, details=details, why=Why.SANITIZER)
    stage.findings = errors[:MAX_STORED]
    return stage
