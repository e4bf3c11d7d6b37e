"""One submission, from its source to a report: compile, correct, sanitize, time.

A stage that depends on a failed one is skipped, not failed. The expected answer is computed here,
from the input alone and after the submission has ended, so the submission can never see it.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab import __version__
from cudalab.backends import emulated
from cudalab.checker import cases
from cudalab.checker.explain.diagnose import Verdict, examine, is_right, without_text
from cudalab.checker.sandbox.packages import open_to_all
from cudalab.checker.sandbox.sandbox import Limits, MiB, end_all
from cudalab.checker.submit import commands, necessity, sanitizing, speed
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import Command, CompileFailure, Trial
from cudalab.checker.verdicts import (
    ANY_DEVICE,
    Clue,
    Report,
    ReportedAccuracy,
    Result,
    Stage,
    Status,
    Why,
    encodable,
)
from cudalab.errors import (
    CudalabError,
    InputError,
    KernelCompileError,
    NoDeviceError,
    ToolchainError,
)
from cudalab.formats import InputStream
from cudalab.labs.evidence import SANITIZE
from cudalab.labs.sizes import in_words
from cudalab.language import source
from cudalab.program.build import has_gpu
from cudalab.system import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudalab.checker.cases import Plan, Test
    from cudalab.checker.sandbox.sandbox import Sandbox
    from cudalab.checker.settings import Settings
    from cudalab.checker.submit.submission import Attempt, Submission
    from cudalab.labs.base import Lab
    from cudalab.labs.compare import Accuracy
    from cudalab.labs.inputs import Case
    from cudalab.system.records import Scalar

STDERR_LINES = 12
MAX_INSTRUMENTED = 1100  # elements: more than a block
EXPLAINED = (Why.WRONG, Why.OVERRUN, Why.INPUT_CHANGED, Why.CRASH, Why.EXIT)  # by the sanitizer
TURN_S = 0.2  # between two attempts to get the GPU
OUTPUT_SLACK = 1 * MiB


def check(
    lab: Lab, submission: Submission, plan: Plan, sandbox: Sandbox, settings: Settings
) -> Report:
    """Judge one submission. A failure of the grader itself is a stage that is `broken`."""
    began = time.monotonic()
    report = Report(
        lab=lab.name,
        submission=submission.name,
        kind=submission.kind,
        device=submission.device,
        sandbox=sandbox.kind,
        sandbox_words=sandbox.words,
        seed=settings.seed,
        plan=plan.source,
        version=__version__,
        speed_offered=plan.speed.points if settings.timing else 0.0,
    )
    if submission.kind == "command" and plan.rules.only_cuda:
        report.stages.append(not_cuda())
        return report
    try:
        with ExitStack() as stack:
            stack.callback(submission.close)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cudalab-check-")))
            if not settings.has_turn:
                stack.enter_context(turn(submission.device))
            report.sandbox_words += keep_secret(submission, plan, sandbox)
            _Check(lab, submission, plan, settings, report, folder).run()
    except (OSError, ToolchainError) as error:  # such as a full disk
        says = "the grader could not continue"
        report.stages.append(
            Stage("grader", Status.BROKEN, says=says, details=lines_of(error), why=Why.GRADER)
        )
    report.seconds = time.monotonic() - began
    report.digest = digest(submission.files) if submission.files else ""
    result: Report = encodable(report)
    return result


def keep_secret(submission: Submission, plan: Plan, sandbox: Sandbox) -> str:
    """Hide the instructor's inputs from a command; what could not be hidden, for the report."""
    secret = [test.file.absolute() for test in plan.tests if test.file is not None]
    if isinstance(submission, Command):
        submission.hidden += tuple(secret)
    if sandbox.bwrap or sandbox.kind == "none":
        return ""
    notes = ""
    if any(map(open_to_all, secret)):
        notes += "; it can read the inputs of --tests: `chmod o-r` hides them"
    own = sandbox.imports.root / "cudalab"
    if isinstance(submission, Command | Program) and sandbox.imports.readers is None:
        notes += f"; it can run cudalab's own variants: `chmod o-rx {own}` hides them"
    return notes


def refused(
    lab: str, name: str, kind: str, device: str, sandbox: Sandbox, seed: int, error: CudalabError
) -> Report:
    """The report of a submission that could not even be compiled."""
    report = Report(
        lab=lab,
        submission=name,
        kind=kind,
        device=device,
        sandbox=sandbox.kind,
        sandbox_words=sandbox.words,
        seed=seed,
        plan="",
        version=__version__,
    )
    report.stages = [
        Stage(
            "compile",
            Status.FAILED,
            says="nothing to judge",
            details=lines_of(error),
            why=Why.COMPILE,
        )
    ]
    result: Report = encodable(report)
    return result


def not_cuda() -> Stage:
    """The stage of a submission that the language of the course rules out."""
    return Stage(
        "compile",
        Status.FAILED,
        says="this is a script or another program; a kernel file or a CUDA program is asked for",
        details=['--language any, or language = "any" under [rules], accepts it'],
        why=Why.LANGUAGE,
    )


def lines_of(error: Exception) -> list[str]:
    """The message and the hint of an error, line by line."""
    return [*str(error).splitlines(), *(getattr(error, "hint", None) or "").splitlines()]


class _Check:
    """The stages of one check, in order."""

    def __init__(
        self,
        lab: Lab,
        submission: Submission,
        plan: Plan,
        settings: Settings,
        report: Report,
        folder: Path,
    ) -> None:
        self.lab, self.submission, self.plan = lab, submission, plan
        self.settings, self.report, self.folder = settings, report, folder
        self.seeds = cases.seeds(plan.tests, settings.seed)
        self.cases: list[Case] = [lab.complete(dict(test.options)) for test in plan.tests]
        report.case = _plain(self.cases[0]) if self.cases else {}

    def run(self) -> None:
        """Run all stages."""
        with self.settings.together():
            ready = self._all_but_time()
        if ready and self.settings.timing:
            with self.settings.alone():
                self._time()

    def _all_but_time(self) -> bool:
        """Run the stages before `time`; whether the submission may be timed."""
        if not self._compile():
            self._skip("correct", "sanitize", "time")
            return False
        right, clean = self._correct(), True
        if right and not self._kernels_compute():
            self._skip("sanitize", "time")
            return False
        if self._can_sanitize(right):
            failed = None if right else self._smallest_failed()
            if right or failed is not None:
                clean = self._sanitize(failed)
            else:
                self._skip("sanitize")
        if not (right and clean):
            self._skip("time")
            return False
        return True

    def _compile(self) -> bool:
        self.settings.on_stage("compile")
        began = time.monotonic()
        try:
            summary = self.submission.compile(self.cases)
            stage = Stage("compile", Status.PASSED, says=summary)
        except CompileFailure as error:
            hint = error.hint.replace(str(source.kernels_dir()), "cudalab's kernels")
            details = [*error.message.splitlines(), *hint.splitlines()]
            status = Status.BROKEN if error.why is Why.GRADER else Status.FAILED
            stage = Stage("compile", status, says="", details=details, why=error.why)
        except KernelCompileError as error:
            stage = Stage(
                "compile",
                Status.FAILED,
                says="",
                details=error.message.splitlines(),
                why=Why.COMPILE,
            )
        except NoDeviceError as error:
            details = [line for line in (error.message, error.hint or "") if line]
            stage = Stage(
                "compile",
                Status.BROKEN,
                says="nothing could be run",
                details=details,
                why=Why.NO_DEVICE,
            )
        stage.seconds = time.monotonic() - began
        self.report.stages.append(stage)
        return stage.status is Status.PASSED

    # Correct -------------------------------------------------------------------------------------

    def _correct(self) -> bool:
        self.settings.on_stage("correct")
        began = time.monotonic()
        jobs = self.settings.jobs  # on a GPU too: all are tests of one submission
        with ThreadPoolExecutor(jobs) as pool:
            tests = [pool.submit(self._test, number) for number in range(len(self.plan.tests))]
            try:
                self.report.tests = [test.result() for test in tests]
            except KeyboardInterrupt:
                end_all(tests)
                raise
        failed = [test for test in self.report.tests if test.status is Status.FAILED]
        broken = [test for test in self.report.tests if test.status is Status.BROKEN]
        total = len(self.report.tests)
        right = total - len(failed) - len(broken)
        stage = Stage("correct", Status.PASSED, says=f"{right} of {total} tests")
        if failed:
            stage.status, stage.why = Status.FAILED, failed[0].why
        if broken or not total:
            stage.status, stage.why = Status.BROKEN, Why.GRADER
            stage.details = [test.says for test in broken] or ["there is no test"]
        stage.seconds = time.monotonic() - began
        self.report.stages.append(stage)
        return stage.status is Status.PASSED

    def _test(self, number: int) -> Result:
        test, case, seed = self.plan.tests[number], self.cases[number], self.seeds[number]
        result = Result(
            name=test.name,
            size=in_words(test.size) if test.file is None else test.file.name,
            dist=test.dist if test.file is None else "",
            seed=seed if test.file is None else None,
            status=Status.PASSED,
            max_points=test.points,
            hidden=test.hidden,
        )
        path = self.folder / f"input-{number}.bin"
        try:
            make_input(self.lab, case, test, seed, path)
        except CudalabError as error:
            result.status, result.why = Status.BROKEN, Why.GRADER
            result.says = f"{test.name}: its input cannot be made: {error.message}"
            return result
        made = digest([path])
        limits = self._limits(test, path)
        second = self._second_input(test, case, seed, number)
        trial = Trial(case, path, limits, pipe=test.pipe, once=test.large, second=second)
        try:
            attempt = self.submission.attempt(trial)
            if number == len(self.plan.tests) - 1 and not isinstance(self.submission, Kernel):
                self._again(trial, attempt)
        except OSError as error:  # the grader itself has run out of processes, memory or disk
            result.status, result.why = Status.BROKEN, Why.GRADER
            result.says = f"{test.name}: the grader could not run it: {error}"
            return result
        result.seconds, result.cpu_s = attempt.outcome.seconds, attempt.outcome.cpu_s
        result.peak_bytes = attempt.outcome.peak_bytes
        result.stderr = "\n".join(attempt.outcome.stderr.strip().splitlines()[-STDERR_LINES:])
        if attempt.why is Why.GRADER:
            result.status, result.why = Status.BROKEN, Why.GRADER
            result.says = f"{test.name}: {attempt.says}"
            return result
        if digest([path]) == made:
            self._judge(test, case, path, attempt, result)
        else:  # no sandbox keeps it from the judge's files
            _fail(result, Why.INPUT_CHANGED, "it overwrote the file that it is judged by")
        if second is not None:
            self._judge_second(case, second, attempt, result)
        if result.status is Status.PASSED:
            result.points = test.points
        else:
            self._show_commands(test, seed, result)
            self._keep(path, number)
        path.unlink(missing_ok=True)
        return result

    def _judge(self, test: Test, case: Case, path: Path, attempt: Attempt, result: Result) -> None:
        if test.refuse:
            self._judge_refusal(attempt, result)
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

    def _again(self, trial: Trial, attempt: Attempt) -> None:
        """Run a program a second time on the same input, to compare the bytes."""
        if attempt.why:
            return
        second = self.submission.attempt(replace(trial, pipe=False))
        attempt.why, attempt.says, attempt.runs = second.why, second.says, 2
        attempt.answers += [answer for answer in second.answers if answer not in attempt.answers]

    def _second_input(self, test: Test, case: Case, seed: int, number: int) -> Path | None:
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

    def _judge_refusal(self, attempt: Attempt, result: Result) -> None:
        refused = attempt.why is Why.EXIT
        if attempt.why and not refused:
            _fail(result, attempt.why, attempt.says)
        elif not refused:
            _fail(
                result,
                Why.ACCEPTED_BAD_INPUT,
                "exit status 0 although the input ends too early: check what fread returns",
            )
        elif attempt.outcome.stdout_bytes:
            _fail(
                result,
                Why.ACCEPTED_BAD_INPUT,
                f"{attempt.outcome.stdout_bytes:,} bytes on stdout before the error: "
                "write nothing until everything is computed",
            )

    def _limits(self, test: Test, path: Path) -> Limits:
        limits = self.settings.limits
        output_bytes = max(
            limits.output_bytes,
            8 * path.stat().st_size + OUTPUT_SLACK,
            # An input may be no more than a header that announces a long answer.
            4 * commands.elements(test) + OUTPUT_SLACK,
        )
        limits = replace(limits, output_bytes=output_bytes)
        if test.seconds is not None:
            limits = replace(
                limits,
                seconds=test.seconds,
                cpu_seconds=max(limits.cpu_seconds, 4 * test.seconds),
            )
        return replace(limits, memory_bytes=test.memory_bytes or limits.memory_bytes)

    def _show_commands(self, test: Test, seed: int, result: Result) -> None:
        """Add the commands that repeat a failed test by hand and examine it more closely."""
        by_hand = commands.of_test(self.lab, self.submission, test, seed)
        result.commands = by_hand.repeat()
        for clue in result.clues:
            clue.look = by_hand.fill(clue.look)
        if by_hand.sanitize and not any(clue.look for clue in result.clues):
            result.details.append(f"see: {by_hand.sanitize}")

    def _keep(self, path: Path, number: int) -> None:
        if self.settings.keep is not None:
            self.settings.keep.mkdir(parents=True, exist_ok=True)
            path.replace(self.settings.keep / f"input-{number + 1}.bin")

    # Kernel, sanitize and time -------------------------------------------------------------------

    def _kernels_compute(self) -> bool:
        """Whether a program's kernels compute its answer, if they must."""
        tests = necessity.telling(self.plan.tests, self.lab.distributions[0])
        if not (self.plan.rules.require_kernel and isinstance(self.submission, Program) and tests):
            return True
        self.settings.on_stage("kernel")
        began = time.monotonic()
        stage = necessity.stage(self.submission, map(self._without_kernels, tests))
        stage.seconds = time.monotonic() - began
        self.report.stages.append(stage)
        return stage.status is Status.PASSED

    def _without_kernels(self, number: int) -> necessity.Judged:
        """A test on which a program is to run without its kernels, and the judge of its answer."""
        test, case, path = self.plan.tests[number], self.cases[number], self.folder / "kernel.bin"
        make_input(self.lab, case, test, self.seeds[number], path)
        limits = self._limits(test, path)
        slowest = max(result.seconds for result in self.report.tests)
        limits = replace(limits, seconds=min(limits.seconds, 1 + 3 * slowest))
        return Trial(case, path, limits), partial(is_right, self.lab, case, path)

    def _can_sanitize(self, right: bool) -> bool:
        on_host = self.submission.device != ANY_DEVICE and emulated(self.submission.device)
        free = right and self.plan.rules.races == "free"  # it explains what is wrong anyway
        enabled = self.settings.sanitize and not free
        return enabled and on_host and isinstance(self.submission, Kernel | Program)

    def _sanitize(self, failed: int | None) -> bool:
        """Sanitize on small inputs, or on the failed test's; whether nothing was found."""
        self.settings.on_stage("sanitize")
        began = time.monotonic()
        test = None if failed is None else self.plan.tests[failed]
        usable = test is not None and commands.is_small(test) and not test.hidden
        stage = self._sanitized(failed if usable else None)
        stage.seconds = time.monotonic() - began
        if failed is not None and stage.status is Status.PASSED:
            stage.status, stage.details = Status.SKIPPED, []
            stage.says = f"no cause found: {stage.says}"
        if failed is None and stage.why is Why.SANITIZER:
            self._apply_rule(stage)
        self.report.stages.append(stage)
        return stage.status in (Status.PASSED, Status.SKIPPED)

    def _apply_rule(self, stage: Stage) -> None:
        """Let findings in a right submission cost what the instructor has decided."""
        rules = self.plan.rules
        if rules.races == "warning":
            stage.status, stage.why = Status.PASSED, Why.NOTHING
            stage.says += ", a warning"
        else:
            stage.cost = rules.race_cost
            stage.says += f": {rules.race_cost:.0%} of the points"

    def _sanitized(self, number: int | None) -> Stage:
        """The sanitizer's stage, on the input of a test or on inputs that suit the sanitizer."""
        if isinstance(self.submission, Kernel) and number is None:
            case, seed = self.cases[-1], self.settings.seed
            look = commands.sanitize(self.lab, self.submission, case, f"--seed {seed}")
            return sanitizing.stage(self.submission, case, look, seed=seed)
        number = self._small_test() if number is None else number
        test, case, seed = self.plan.tests[number], self.cases[number], self.seeds[number]
        path = self.folder / "sanitize.bin"
        make_input(self.lab, case, test, seed, path)
        by_hand = commands.of_test(self.lab, self.submission, test, seed)
        look = "" if test.hidden else by_hand.sanitize
        if isinstance(self.submission, Kernel):
            return sanitizing.stage(self.submission, case, look, path)
        assert isinstance(self.submission, Program)
        return sanitizing.program_stage(self.submission, path, look)

    def _smallest_failed(self) -> int | None:
        """The smallest failed test, if the sanitizer may explain its failure."""
        failed = [
            number
            for number, result in enumerate(self.report.tests)
            if result.status is Status.FAILED
            and result.why in EXPLAINED
            and not self.plan.tests[number].refuse
        ]
        return min(failed, key=lambda i: commands.elements(self.plan.tests[i]), default=None)

    def _small_test(self) -> int:
        """The largest test that is still fast enough with instrumentation; else the first."""
        sizes = [
            -1 if test.refuse or test.hidden or test.file is not None else commands.elements(test)
            for test in self.plan.tests
        ]
        return max(
            range(len(sizes)), key=lambda i: sizes[i] if sizes[i] <= MAX_INSTRUMENTED else -2
        )

    def _time(self) -> None:
        self.settings.on_stage("time")
        began = time.monotonic()
        size = cases.timed_size(self.lab, self.plan, self.cases[-1], self.submission.device)
        try:
            result, stage = speed.measure(
                self.lab, self.submission, self.cases[-1], self.plan, size, self.settings
            )
        except CudalabError as error:
            result, stage = None, Stage("time", Status.SKIPPED, says=error.message)
            if self.plan.speed.points:  # nobody could earn them
                stage.status, stage.why = Status.BROKEN, Why.GRADER
        self.report.speed = result
        stage.seconds = time.monotonic() - began
        self.report.stages.append(stage)

    def _skip(self, *names: str) -> None:
        for name in names:
            enabled = {"sanitize": self.settings.sanitize, "time": self.settings.timing}
            if name and enabled.get(name, True):
                self.report.stages.append(
                    Stage(name, Status.SKIPPED, says="an earlier stage did not pass")
                )
            if name == "correct":
                self.report.tests = [
                    Result(
                        name=test.name,
                        size=in_words(test.size),
                        dist=test.dist,
                        seed=None,
                        status=Status.SKIPPED,
                        max_points=test.points,
                        hidden=test.hidden,
                    )
                    for test in self.plan.tests
                ]


@contextmanager
def turn(device: str) -> Iterator[None]:
    """Allow one check at a time on a GPU. A program counts as using the GPU if there is one."""
    if not has_gpu() if device == ANY_DEVICE else emulated(device):
        yield
        return
    gpu = exclusive.visible_gpu()
    while True:
        with ExitStack() as stack:
            try:
                stack.enter_context(exclusive.alone(gpu))
            except exclusive.BusyError:
                time.sleep(TURN_S)
                continue
            yield
            return


def make_input(lab: Lab, case: Case, test: Test, seed: int, path: Path) -> None:
    """Write a test's input."""
    if test.file is not None:
        path.write_bytes(test.file.read_bytes())
    else:
        lab.write_file(path, case, test.size, test.dist, seed)
    if test.cut_bytes:
        with path.open("r+b") as file:
            file.truncate(max(path.stat().st_size - test.cut_bytes, 0))
    if not test.refuse:
        with path.open("rb") as file:  # an instructor's mistake is not the submission's
            try:
                lab.read(InputStream(file.fileno(), str(test.file or path.name)), case)
            except InputError as error:
                raise CudalabError(f"{error.message}", "refuse = true expects an error") from None


def digest(paths: Sequence[Path]) -> str:
    """A hash of the bytes of a submission's files."""
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        state.update(path.read_bytes())
    return state.hexdigest()


def _fail(result: Result, why: Why, says: str) -> None:
    result.status, result.why, result.says = Status.FAILED, why, says


def _reported(accuracy: Accuracy) -> ReportedAccuracy:
    """How close an answer comes to its bound, as the report holds it."""
    return ReportedAccuracy(
        error=accuracy.error,
        bound=accuracy.bound,
        index=accuracy.index,
        what=accuracy.what,
        says=str(accuracy),
    )


def _plain(case: Case) -> dict[str, Scalar]:
    return {name: value for name, value in case.items() if isinstance(value, str | int | float)}
