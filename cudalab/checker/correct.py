"""The stage `correct`: each test's input, what the submission makes of it, and the verdict.

The expected answer is computed here, from the input alone and after the submission has ended, so
the submission can never see it.
"""

import hashlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

import numpy.random  # noqa: F401 - or NumPy would when threads use it, and fail in some of them

from cudalab.checker import cases
from cudalab.checker.explain.diagnose import Verdict, examine, without_text
from cudalab.checker.options import Settings
from cudalab.checker.sandbox.running import Limits, MiB, end_all
from cudalab.checker.submit import commands
from cudalab.checker.submit.kernel import RUNS, Kernel
from cudalab.checker.submit.reports import input_name
from cudalab.checker.submit.submission import Attempt, Submission, Trial
from cudalab.checker.verdicts import OUT_OF_TIME, Clue, ReportedAccuracy, Result, Stage, Status, Why
from cudalab.errors import CudalabError, InputError
from cudalab.formats import InputStream
from cudalab.labs.base import Lab
from cudalab.labs.compare import Accuracy
from cudalab.labs.evidence import SANITIZE
from cudalab.labs.inputs import Case
from cudalab.labs.sizes import in_words

STDERR_LINES = 12
OUTPUT_SLACK = 1 * MiB
PIECE_BYTES = 1 << 18  # of a file that is read: as many as a cache holds
LEAST_TIME = 0.1  # of its limit, for a test behind others that have not ended in time


def skipped(plan: cases.Plan) -> list[Result]:
    """The results of tests that have not run."""
    return [
        Result(
            name=test.name,
            size=in_words(test.size),
            dist=test.dist,
            seed=None,
            status=Status.SKIPPED,
            max_points=test.points,
            hidden=test.hidden,
        )
        for test in plan.tests
    ]


@dataclass
class Tests:
    """The tests of a plan, as one submission is judged by them."""

    lab: Lab
    submission: Submission
    plan: cases.Plan
    settings: Settings
    _: KW_ONLY
    folder: Path  # for inputs

    __test__ = False  # for pytest: not a test class

    def __post_init__(self) -> None:
        """Complete the case and the seed of each test."""
        self.cases: list[Case] = [self.lab.complete(dict(t.options)) for t in self.plan.tests]
        self.seeds = cases.seeds(self.plan.tests, self.settings.seed)
        self.results: list[Result] = []  # of `run`
        self._late = 0  # tests that have not ended in time

    def run(self) -> Stage:
        """Judge the submission by all tests, several at a time."""
        jobs = self.settings.jobs  # on a GPU too: all are tests of one submission
        with ThreadPoolExecutor(jobs) as pool:
            tests = [pool.submit(self._test, number) for number in range(len(self.plan.tests))]
            try:
                self.results = results = [test.result() for test in tests]
            except KeyboardInterrupt:
                end_all(tests)
                raise
        failed = [test for test in results if test.status is Status.FAILED]
        broken = [test for test in results if test.status is Status.BROKEN]
        right = len(results) - len(failed) - len(broken)
        stage = Stage("correct", Status.PASSED, says=f"{right} of {len(results)} tests")
        if failed:
            stage.status, stage.why = Status.FAILED, failed[0].why
        if broken or not results:
            stage.status, stage.why = Status.BROKEN, Why.GRADER
            stage.details = [test.says for test in broken] or ["there is no test"]
        return stage

    def make_input(self, number: int, path: Path) -> Path:
        """Write the input of a test."""
        make_input(self.lab, self.cases[number], self.plan.tests[number], self.seeds[number], path)
        return path

    def _test(self, number: int) -> Result:
        test, case, seed = self.plan.tests[number], self.cases[number], self.seeds[number]
        result = self._begun(number)
        path = self.folder / f"input-{number}.bin"
        try:
            make_input(self.lab, case, test, seed, path)
        except CudalabError as error:
            return _broken(result, f"its input cannot be made: {error.message}")
        made = digest([path])
        limits = self.limits(test, path)
        second = self._second_input(test, case, seed, number)
        trial = Trial(case, path, limits, pipe=test.pipe, once=test.large, second=second)
        try:
            attempt = self.submission.attempt(trial)
            last = number == len(self.plan.tests) - 1
            if last and not isinstance(self.submission, Kernel) and not attempt.why:
                # A program runs a second time on the same input, to compare the bytes.
                again = self.submission.attempt(replace(trial, pipe=False))
                attempt.why, attempt.says, attempt.runs = again.why, again.says, 2
                attempt.answers += [one for one in again.answers if one not in attempt.answers]
        except OSError as error:  # the grader itself has run out of processes, memory or disk
            return _broken(result, f"the grader could not run it: {error}")
        result.seconds, result.cpu_s = attempt.outcome.seconds, attempt.outcome.cpu_s
        result.peak_bytes = attempt.outcome.peak_bytes
        result.stderr = "\n".join(attempt.outcome.stderr.strip().splitlines()[-STDERR_LINES:])
        if attempt.why is Why.GRADER:
            return _broken(result, attempt.says)
        result.details += self._on_time(test, attempt, limits)
        if digest([path]) == made:
            self._judge(test, case, path, attempt, result)
        else:  # no sandbox keeps it from the judge's files
            _fail(result, Why.INPUT_CHANGED, "it overwrote the file that it is judged by")
        if second is not None:
            self._judge_second(case, second, attempt, result)
        if result.status is Status.FAILED and attempt.other_types:
            result.details[:0] = [*attempt.other_types[1:], f"{result.why}: {result.says}"]
            _fail(result, Why.CONTRACT, attempt.other_types[0])
        if result.status is Status.PASSED:
            result.points = test.points
        else:
            self._show_commands(test, seed, result)
            if self.settings.keep is not None:
                self.settings.keep.mkdir(parents=True, exist_ok=True)
                path.replace(self.settings.keep / f"input-{number + 1}.bin")
        path.unlink(missing_ok=True)
        return result

    def _begun(self, number: int) -> Result:
        """The result of a test that has not failed yet."""
        test, own = self.plan.tests[number], self.plan.tests[number].file is not None
        other = self.lab.words(self.cases[number]) if test.drawn else []
        values = [word for word in other if word.removeprefix("--") not in self.lab.axes]
        data = " ".join([test.dist, *(word.removeprefix("--") for word in values)])
        return Result(
            name=test.name,
            size=test.file.name if test.file is not None else in_words(test.size),
            dist="" if own else data,
            seed=None if own else self.seeds[number],
            status=Status.PASSED,
            max_points=test.points,
            hidden=test.hidden,
        )

    def _judge(
        self, test: cases.Test, case: Case, path: Path, attempt: Attempt, result: Result
    ) -> None:
        if test.refuse:
            self._judge_refusal(case, path, attempt, result)
            return
        if attempt.outcome.survivors:
            result.notes.append(
                "it left a process running, which was killed"
                if attempt.outcome.survivors == 1
                else f"it left {attempt.outcome.survivors} processes running: they were killed"
            )
        result.notes += attempt.notes
        if attempt.why:
            _fail(result, attempt.why, attempt.says)
            result.details += [line for line in attempt.hint.splitlines() if line]
            if attempt.why not in (Why.OVERRUN, Why.INPUT_CHANGED):
                return
        for answer in attempt.answers:
            verdict = examine(self.lab, case, path, answer, attempt.launches)
            if not verdict.right:
                self._wrong(attempt, verdict, result)
                return
            if verdict.accuracy is not None:
                result.accuracy = _reported(verdict.accuracy)
        if len(attempt.answers) > 1:
            result.notes.append(
                f"{len(attempt.answers)} different answers in {attempt.runs} runs, all within the "
                "bound: the order of the additions varies"
            )
        elif attempt.runs > 1:
            result.notes.append(f"{attempt.runs} runs gave the same bytes")

    def _second_input(self, test: cases.Test, case: Case, seed: int, number: int) -> Path | None:
        """A second input for a kernel: one that remembers its first answer gets this one wrong."""
        if not isinstance(self.submission, Kernel) or test.file is not None or test.refuse:
            return None
        if test.large:
            return None
        path = self.folder / f"second-{number}.bin"
        make_input(self.lab, case, test, seed + 1, path)
        return path

    def _judge_second(self, case: Case, path: Path, attempt: Attempt, result: Result) -> None:
        if result.status is Status.PASSED and attempt.second_answer is not None:
            verdict = examine(self.lab, case, path, attempt.second_answer, attempt.launches)
            if not verdict.right:
                _fail(
                    result, Why.WRONG, "right on one input, wrong on the next in the same process"
                )
                result.details += verdict.lines
                cause = "does the kernel keep data from an earlier launch?"
                result.clues.append(Clue("keeps an answer", verdict.lines[0], cause))
        path.unlink(missing_ok=True)

    def _wrong(self, attempt: Attempt, verdict: Verdict, result: Result) -> None:
        if result.status is Status.PASSED:
            says = f"{verdict.wrong:,} of {verdict.total:,} elements" if verdict.total else ""
            _fail(result, Why.WRONG, says or verdict.lines[0])
        result.details += verdict.lines
        result.clues += [Clue(f.pattern, f.says, f.cause, f.look) for f in verdict.findings]
        if isinstance(self.submission, Kernel) and self.submission.asks_who_runs:
            says = "here it is the calling thread's lane alone, which CUDA allows"
            cause = "name the lanes that take part by a mask of your own"
            result.clues.append(Clue("__activemask()", says, cause))
        if verdict.accuracy is not None:
            result.accuracy = _reported(verdict.accuracy)
        answers = set(attempt.answers)
        if verdict.bare is not None:  # a time that was printed differs in every run
            answers = {without_text(answer, len(verdict.bare)) or b"" for answer in answers}
        if len(answers) > 1 and not any(finding.root for finding in verdict.findings):
            clue = Clue(
                "another answer each time",
                f"{len(answers)} different answers in {attempt.runs} runs on one input",
                "several threads access one place with nothing to order them, or they read "
                "memory that was never written",
                SANITIZE,
            )
            at = 0 if verdict.bare is None else len(result.clues)
            result.clues.insert(at, clue)

    def _judge_refusal(self, case: Case, path: Path, attempt: Attempt, result: Result) -> None:
        refused = attempt.why is Why.EXIT
        if attempt.why and not refused:
            _fail(result, attempt.why, attempt.says)
        elif isinstance(self.submission, Kernel):
            expected = refusal(self.lab, case, path)
            if not refused:
                _fail(result, Why.ACCEPTED_BAD_INPUT, f"not reported: {expected}")
            elif attempt.says != expected:
                _fail(result, Why.WRONG, "another error than that of the input")
                result.details += [f"expected: {expected}", f"got:      {attempt.says}"]
        elif not refused:
            says = "exit status 0 although the input ends too early: check what fread returns"
            _fail(result, Why.ACCEPTED_BAD_INPUT, says)
        elif attempt.outcome.stdout_bytes:
            before = f"{attempt.outcome.stdout_bytes:,} bytes on stdout before the error"
            says = f"{before}: write nothing until everything is computed"
            _fail(result, Why.ACCEPTED_BAD_INPUT, says)

    def limits(self, test: cases.Test, path: Path) -> Limits:
        """The limits of a run on the input in `path`."""
        limits = self.settings.limits
        input_bytes, elements = path.stat().st_size, test.elements
        # An input may be no more than a header that announces a long answer.
        output_bytes = max(8 * input_bytes, 4 * elements) + OUTPUT_SLACK
        # A kernel's box holds copies of two inputs, and the answer of each run.
        own_bytes = 2 * input_bytes + (RUNS + 1) * max(input_bytes, 8 * elements)
        seconds, cpu_seconds = test.seconds, limits.cpu_seconds
        if seconds is None:
            seconds = limits.seconds * max(LEAST_TIME, 0.5**self._late)
        else:
            cpu_seconds = max(cpu_seconds, 4 * seconds)
        return replace(
            limits,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
            output_bytes=max(limits.output_bytes, output_bytes),
            disk_bytes=limits.disk_bytes + own_bytes,
            memory_bytes=test.memory_bytes or limits.memory_bytes,
        )

    def _on_time(self, test: cases.Test, attempt: Attempt, limits: Limits) -> list[str]:
        """Count a test that has not ended in time; a line if those before have cost it time."""
        if attempt.why not in OUT_OF_TIME:
            return []
        self._late += 1
        usual = self.settings.limits.seconds
        if test.seconds is not None or limits.seconds >= usual:
            return []
        had = f"it had {limits.seconds:g} s and not {usual:g}"
        return [f"{had}, since tests before it did not end in time"]

    def _show_commands(self, test: cases.Test, seed: int, result: Result) -> None:
        """Add the commands that repeat a failed test by hand and examine it more closely."""
        by_hand = commands.of_test(self.lab, self.submission, test, seed)
        if test.drawn:
            words = " ".join(self.lab.words(self.lab.complete(dict(test.options))))
            result.details.append(f"its header allows {words}: `applies` restricts a kernel")
        result.commands = by_hand.repeat()
        for clue in result.clues:
            clue.look = by_hand.fill(clue.look)
        if by_hand.sanitize and not any(clue.look for clue in result.clues):
            result.details.append(f"see: {by_hand.sanitize}")


def make_input(lab: Lab, case: Case, test: cases.Test, seed: int, path: Path) -> None:
    """Write a test's input."""
    if test.file is not None:
        path.write_bytes(test.file.read_bytes())
    else:
        made = lab.complete({**test.options, **test.made_with}) if test.made_with else case
        lab.write_file(path, made, test.size, test.dist, seed)
    if test.cut_bytes:
        with path.open("r+b") as file:
            file.truncate(max(path.stat().st_size - test.cut_bytes, 0))
    if not test.refuse:
        with path.open("rb") as file:  # an instructor's mistake is not the submission's
            try:
                lab.read(InputStream(file.fileno(), str(test.file or path.name)), case)
            except InputError as error:
                raise CudalabError(f"{error.message}", "refuse = true expects an error") from None


def refusal(lab: Lab, case: Case, path: Path) -> str:
    """What the lab says of an invalid input, as the run of a kernel does; empty if it is valid."""
    try:
        lab.reference(lab.read_file(path, case, input_name(0)), case)
    except InputError as error:
        return error.message
    return ""


def digest(paths: Sequence[Path]) -> str:
    """A hash of the bytes of a submission's files."""
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        with path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                state.update(piece)
    return state.hexdigest()


def _fail(result: Result, why: Why, says: str) -> None:
    result.status, result.why, result.says = Status.FAILED, why, says


def _broken(result: Result, says: str) -> Result:
    """The result of a test that the grader or the machine has failed."""
    result.status, result.why, result.says = Status.BROKEN, Why.GRADER, f"{result.name}: {says}"
    return result


def _reported(accuracy: Accuracy) -> ReportedAccuracy | None:
    """How close an answer comes to its bound, as the report holds it: None without a number."""
    if not (math.isfinite(accuracy.error) and math.isfinite(accuracy.bound)):
        return None
    return ReportedAccuracy(
        error=accuracy.error,
        bound=accuracy.bound,
        index=accuracy.index,
        what=accuracy.what,
        says=str(accuracy),
    )
