"""The stages `kernel` and `sanitize`: whether an answer is right for the right reasons."""

import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cudalab.checker.cases import Test
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import REACHED_OUT, Trial, failure
from cudalab.checker.verdicts import Stage, Status, Why
from cudalab.errors import ExitCode
from cudalab.labs.inputs import Case
from cudalab.microscope.findings import Findings, grouped
from cudalab.output.prose import counted

# Whether a program's own kernels compute its answer -----------------------------------------------

# The program runs once more with every launch left out by the runtime. If its answer is right then,
# it was computed elsewhere, whatever the source looks like. A program may ask a kernel whether it
# ran, so it also runs with its kernels, but with other data for them than it has put there.

# A trial, and whether an answer to it is right.
Judged = tuple[Trial, Callable[[bytes], bool]]

MAX_TESTS = 3
MAX_ARGUMENT_BYTES = 4096  # an input of so few may reach a kernel as its arguments


def telling(tests: Sequence[Test], usual: str) -> list[int]:
    """The numbers of a few tests whose answers nobody gives by chance.

    Those with the `usual` distribution come first, for an answer may equal a sorted input; then the
    largest that are soon run.
    """
    sizes = {number: test.elements for number, test in enumerate(tests)}
    numbers = [number for number in sizes if sizes[number] > 1 and not tests[number].refuse]

    def rank(number: int) -> tuple[bool, bool, int]:
        test = tests[number]
        return test.dist != usual, not test.is_small, -sizes[number]

    return sorted(numbers, key=rank)[:MAX_TESTS]


def kernel_stage(submission: Program, trials: Sequence[Judged]) -> Stage:
    """Run the program without its kernels, then with other data, until an answer is wrong."""
    computed = Stage("kernel", Status.PASSED, says="its kernels compute the answer")
    launches = 0
    for trial, is_right in trials:
        attempt, launches = submission.without_kernels(trial)
        if attempt.why or not is_right(attempt.answers[0]):
            break
    else:
        if not launches:
            return _computed_elsewhere(
                "no kernel is launched (calls of libraries do not count as launches)"
            )
        some = counted(launches, "launch", "launches")
        return _computed_elsewhere(f"without its {some} every answer is right, too")
    large = [one for one in trials if one[0].path.stat().st_size > MAX_ARGUMENT_BYTES]
    if not large or not submission.gets_other_data:
        return computed
    for trial, is_right in large:
        attempt = submission.with_other_data(trial)
        if attempt.why or not is_right(attempt.answers[0]):
            return computed
    return _computed_elsewhere("its kernels had other data, and every answer is right even so")


def _computed_elsewhere(how: str) -> Stage:
    details = [how, "copy the input to the device, compute there, and copy the answer back"]
    says = "the host computes it"
    return Stage("kernel", Status.FAILED, says=says, details=details, why=Why.NO_KERNEL, cost=1.0)


# Races, lost barriers and accesses out of bounds --------------------------------------------------

# The worker of the sandbox does the work of `cudalab sanitize`, in a child as for each test.

# Longer than `cudalab sanitize` takes to end a kernel and to see whether it ends at full speed.
LIMITS = Limits(seconds=180, cpu_seconds=480, memory_bytes=4 << 30, disk_bytes=512 << 20)
MAX_FINDINGS = 3
MAX_PLACES = 2  # of one finding
MAX_STORED = 100  # findings
WRONG_ANSWER = "wrong_answer"  # a kind of finding
NOT_COMPARED = "not judged: whether its kernels do the same where the sanitizer does not look"
NOBODYS = ("cancelled",)  # reasons of a run's end
KILLED_BY_FILTER = (-signal.SIGSYS, 128 + signal.SIGSYS)  # `cudalab sanitize` says it by its status


def sanitize_kernel(
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
        unlike = differences(submission, case, path, seed, report.tallies, LIMITS)
        says = "its threads do not do there what they do in the tests"
        return _unseen(says, "", *unlike) if unlike else stage
    if outcome.status in KILLED_BY_FILTER:
        return Stage("sanitize", Status.FAILED, says=REACHED_OUT, why=Why.FOREIGN, cost=1.0)
    return _ended_early(outcome, look)


def sanitize_program(
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
    says = counted(len(groups), "finding")
    stage = Stage("sanitize", Status.FAILED, says=says, details=details, why=Why.SANITIZER)
    stage.findings = errors[:MAX_STORED]
    return stage


# Whether the tests and the sanitizer have seen the same -------------------------------------------

# A kernel could tell the builds apart by addresses, which no layout hides, and leave its races out
# where the sanitizer looks. But what it leaves out or adds then shows: in the same order of blocks
# and threads, each build comes to as many barriers and makes as many atomic operations.

Tallies = dict[str, dict[str, int]]  # by kernel

WORDS = {
    "launches": "launches",
    "barriers": "arrivals of threads at __syncthreads()",
    "warp_barriers": "arrivals of threads at __syncwarp()",
    "updates": "atomic operations",
    "swaps": "exchanges and successful compare-and-swaps",
}
AS_IT_COMES = "asked"  # for the lanes that run together: which these are differs by build


def differences(
    kernel: Kernel,
    case: Case,
    path: Path | None,
    seed: int,
    observed: Sequence[Tallies],
    limits: Limits,
) -> list[str]:
    """What the threads do otherwise than under the sanitizer; empty if it is the same.

    `observed` has what they did there, on the input `path` or on those of the sanitizer's sizes.
    """
    with inputs(kernel, case, path, seed, len(observed)) as paths:
        outcome, tested = kernel.counted(case, paths, limits)
    if outcome.reason == "cancelled":
        return []
    if len(tested) < len(paths) or any(report.error for report in tested):
        return ["in the tests' build it does not end on the input of the sanitizer"]
    return [
        line
        for there, report in zip(observed, tested, strict=True)
        for line in _unlike(there, report.tallies)
    ][:3]


@contextmanager
def inputs(
    kernel: Kernel, case: Case, path: Path | None, seed: int, count: int
) -> Iterator[list[Path]]:
    """The first inputs that the sanitizer has looked at, as files (looking.py)."""
    if path is not None:
        yield [path]
        return
    with tempfile.TemporaryDirectory() as folder:
        lab = kernel.lab
        paths = [Path(folder, f"{number}.bin") for number in range(count)]
        for one, size in zip(paths, lab.teaching.sizes(case).sanitized, strict=False):
            lab.write_file(one, case, size, lab.distributions[0], seed)
        yield paths


def _unlike(there: Tallies, here: Tallies) -> Iterator[str]:
    for name in sorted({*there, *here}):
        one, other = there.get(name, {}), here.get(name, {})
        if one.get(AS_IT_COMES) or other.get(AS_IT_COMES):
            continue
        for what, words in WORDS.items():
            if one.get(what, 0) != other.get(what, 0):
                counts = f"{other.get(what, 0):,} in the tests, {one.get(what, 0):,} there"
                yield f"{name}: {words}: {counts}"
