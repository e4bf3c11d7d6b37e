"""One submission, from its source to a report: compile, correct, sanitize, time.

A stage that depends on a failed one is skipped, not failed.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from cudalab import __version__
from cudalab.backends import facts, has_gpu
from cudalab.checker import cases, draw, verdicts
from cudalab.checker.correct import Tests, digest, skipped
from cudalab.checker.explain.diagnose import is_right
from cudalab.checker.options import Settings
from cudalab.checker.sandbox.box import open_to_all
from cudalab.checker.sandbox.sandbox import Sandbox
from cudalab.checker.submit import commands, foreign, speed, stages
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import Command, Submission, Trial
from cudalab.checker.verdicts import ANY_DEVICE, Report, Stage, Status, Why
from cudalab.errors import CudalabError, KernelCompileError, NoDeviceError, ToolchainError
from cudalab.labs.base import Lab
from cudalab.language import source
from cudalab.system import exclusive

MAX_INSTRUMENTED = 1100  # elements: more than a block
EXPLAINED = (Why.WRONG, Why.OVERRUN, Why.INPUT_CHANGED, Why.CRASH, Why.EXIT)  # by the sanitizer
TURN_S = 0.2  # between two attempts to get the GPU


def check(
    lab: Lab, submission: Submission, plan: cases.Plan, sandbox: Sandbox, settings: Settings
) -> Report:
    """Judge one submission. A failure of the grader itself is a stage that is `broken`."""
    began = time.monotonic()
    plan, notes = with_draw(lab, submission, plan, settings.seed)
    names = (lab.name, submission.name, submission.kind, submission.device)
    report = _begun(*names, sandbox, settings.seed)
    report.notes, report.plan = notes, plan.source
    report.speed_offered = plan.speed.points if settings.timing else 0.0
    report.files = [verdicts.encodable(path.name) for path in submission.files]
    if submission.kind == "command" and plan.rules.only_cuda:
        report.stages.append(not_cuda())
        report.tests = skipped(plan)
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
    result: Report = verdicts.encodable(verdicts.without_paths(report))
    return result


def with_draw(
    lab: Lab, submission: Submission, plan: cases.Plan, seed: int
) -> tuple[cases.Plan, list[str]]:
    """The plan with cases drawn from those of a kernel's header, and a note about the others."""
    if submission.kind != "kernel" or submission.variant is None:
        return plan, []
    if plan.draws:
        plan = draw.with_other_cases(lab, plan, submission.variant, seed)
    return plan, draw.not_judged(lab, plan, submission.variant)


def keep_secret(submission: Submission, plan: cases.Plan, sandbox: Sandbox) -> str:
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
    """The report of a submission that could not even be compiled; the caller adds the tests."""
    report = _begun(lab, name, kind, device, sandbox, seed)
    says, details = "nothing to judge", lines_of(error)
    report.stages = [Stage("compile", Status.FAILED, says=says, details=details, why=Why.COMPILE)]
    result: Report = verdicts.encodable(report)
    return result


def _begun(lab: str, name: str, kind: str, device: str, sandbox: Sandbox, seed: int) -> Report:
    """The report of a submission of which nothing has been judged yet."""
    return Report(
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
        plan: cases.Plan,
        settings: Settings,
        report: Report,
        folder: Path,
    ) -> None:
        self.lab, self.submission, self.plan = lab, submission, plan
        self.settings, self.report, self.folder = settings, report, folder
        self.tests = Tests(lab, submission, plan, settings, folder=folder)
        self.cases, self.seeds = self.tests.cases, self.tests.seeds
        report.case = {
            name: value
            for case in self.cases[:1]
            for name, value in case.items()
            if isinstance(value, str | int | float)
        }

    def run(self) -> None:
        """Run all stages."""
        with self.settings.together():
            ready = self._all_but_time()
        if ready and self.settings.timing:
            with self.settings.alone():
                self._stage("time", self._time)
        gpu = self.settings.predict_on
        if ready and gpu and isinstance(self.submission, Kernel):
            from cudalab.checker.submit import predicting  # noqa: PLC0415 - few checks predict

            self.settings.on_stage("predict")
            reference = self.plan.speed.reference
            remarks = predicting.remarks(self.submission, self.cases[-1], gpu, reference)
            self.report.notes += remarks

    def _all_but_time(self) -> bool:
        """Run the stages before `time`; whether the submission may be timed."""
        if self._stage("compile", self._compile) is not Status.PASSED:
            self._skip("correct", "sanitize", "time")
            return False
        right = self._stage("correct", self.tests.run) is Status.PASSED
        self.report.tests = self.tests.results
        if right and not self._kernels_compute():
            self._skip("sanitize", "time")
            return False
        clean, device = True, self.submission.device
        able = device != ANY_DEVICE and facts(device).instrumented
        free = right and self.plan.rules.races == "free"  # it explains what is wrong anyway
        enabled = self.settings.sanitize and not free
        if enabled and able and isinstance(self.submission, Kernel | Program):
            failed = None if right else self._smallest_failed()
            if right or failed is not None:
                status = self._stage("sanitize", partial(self._sanitize, failed))
                clean = status in (Status.PASSED, Status.SKIPPED)
            else:
                self._skip("sanitize")
        if not (right and clean):
            self._skip("time")
            return False
        return True

    def _stage(self, name: str, judge: Callable[[], Stage]) -> Status:
        """Run a stage, and add it to the report."""
        self.settings.on_stage(name)
        began = time.monotonic()
        stage = judge()
        stage.seconds = time.monotonic() - began
        self.report.stages.append(stage)
        return stage.status

    def _compile(self) -> Stage:
        try:
            summary = self.submission.compile(self.cases)
        except foreign.CompileFailure as error:
            hint = error.hint.replace(str(source.kernels_dir()), "cudalab's kernels")
            details = [*error.message.splitlines(), *hint.splitlines()]
            status = Status.BROKEN if error.why is Why.GRADER else Status.FAILED
            return Stage("compile", status, details=details, why=error.why)
        except KernelCompileError as error:
            details = error.message.splitlines()
            return Stage("compile", Status.FAILED, details=details, why=Why.COMPILE)
        except NoDeviceError as error:
            details = [line for line in (error.message, error.hint or "") if line]
            says = "nothing could be run"
            return Stage("compile", Status.BROKEN, says=says, details=details, why=Why.NO_DEVICE)
        details = []
        if isinstance(self.submission, Kernel | Program):
            words = "a GPU gets other code here (#if), which this device has not run"
            details = [f"{place}: {words}" for place in self.submission.built_as.on_gpu]
        return Stage("compile", Status.PASSED, says=summary, details=details)

    # Kernel, sanitize and time -------------------------------------------------------------------

    def _kernels_compute(self) -> bool:
        """Whether a program's kernels compute its answer, if they must."""
        tests = stages.telling(self.plan.tests, self.lab.distributions[0])
        if not (self.plan.rules.require_kernel and isinstance(self.submission, Program) and tests):
            return True
        slowest = max(result.seconds for result in self.report.tests)
        trials: list[stages.Judged] = []
        for number in tests:
            test, case = self.plan.tests[number], self.cases[number]
            path = self.tests.make_input(number, self.folder / f"kernel{number}.bin")
            limits = self.tests.limits(test, path)
            limits = replace(limits, seconds=min(limits.seconds, 1 + 3 * slowest))
            trials.append((Trial(case, path, limits), partial(is_right, self.lab, case, path)))
        judge = partial(stages.kernel_stage, self.submission, trials)
        return self._stage("kernel", judge) is Status.PASSED

    def _sanitize(self, failed: int | None) -> Stage:
        """Sanitize on small inputs, or on the failed test's."""
        test = None if failed is None else self.plan.tests[failed]
        usable = test is not None and test.is_small and not test.hidden
        stage = self._sanitized(failed if usable else None, failed=failed is not None)
        unseen = not stage.findings  # passed, or ended early
        if failed is not None and unseen and stage.why in (Why.NOTHING, Why.SANITIZER):
            stage.status, stage.details, stage.why = Status.SKIPPED, [], Why.NOTHING
            stage.says = f"no cause found: {stage.says}"
        if failed is None and stage.why is Why.SANITIZER:
            self._apply_rule(stage)
        return stage

    def _apply_rule(self, stage: Stage) -> None:
        """Let findings in a right submission cost what the instructor has decided."""
        rules = self.plan.rules
        if rules.races == "warning":
            stage.status, stage.why = Status.PASSED, Why.NOTHING
            stage.says += ", a warning"
        else:
            stage.cost = rules.race_cost
            stage.says += f": {rules.race_cost:.0%} of the points"

    def _sanitized(self, number: int | None, *, failed: bool) -> Stage:
        """The sanitizer's stage, on the input of a test or on inputs that suit the sanitizer."""
        assert isinstance(self.submission, Kernel | Program)
        if self.submission.built_as.tells and not failed:
            return stages.tells(self.submission.built_as.tells)
        if isinstance(self.submission, Kernel) and number is None:
            case, seed = self.cases[-1], self.settings.seed
            look = commands.sanitize(self.lab, self.submission, case, f"--seed {seed}")
            return stages.sanitize_kernel(self.submission, case, look, seed=seed, failed=failed)
        number = self._small_test() if number is None else number
        test, case, seed = self.plan.tests[number], self.cases[number], self.seeds[number]
        path = self.tests.make_input(number, self.folder / "sanitize.bin")
        by_hand = commands.of_test(self.lab, self.submission, test, seed)
        look = "" if test.hidden else by_hand.sanitize
        if isinstance(self.submission, Kernel):
            return stages.sanitize_kernel(self.submission, case, look, path, failed=failed)
        assert isinstance(self.submission, Program)
        trial = Trial(case, path, self.settings.limits)
        right = partial(is_right, self.lab, case, path)
        return stages.sanitize_program(self.submission, trial, look, right, failed=failed)

    def _smallest_failed(self) -> int | None:
        """The smallest failed test, if the sanitizer may explain its failure."""
        failed = [
            number
            for number, result in enumerate(self.report.tests)
            if result.status is Status.FAILED
            and result.why in EXPLAINED
            and not self.plan.tests[number].refuse
        ]
        return min(failed, key=lambda i: self.plan.tests[i].elements, default=None)

    def _small_test(self) -> int:
        """The largest test that is still fast enough with instrumentation; else the first."""
        sizes = [
            -1 if test.refuse or test.hidden or test.file is not None else test.elements
            for test in self.plan.tests
        ]
        return max(
            range(len(sizes)), key=lambda i: sizes[i] if sizes[i] <= MAX_INSTRUMENTED else -2
        )

    def _time(self) -> Stage:
        size = cases.timed_size(self.lab, self.plan, self.cases[-1], self.submission.device)
        try:
            self.report.speed, stage = speed.measure(
                self.lab, self.submission, self.cases[-1], self.plan, size, self.settings
            )
        except CudalabError as error:
            stage = Stage("time", Status.SKIPPED, says=error.message)
            if self.plan.speed.points:  # nobody could earn them
                stage.status, stage.why = Status.BROKEN, Why.GRADER
        return stage

    def _skip(self, *names: str) -> None:
        says = "an earlier stage did not pass"
        enabled = {"sanitize": self.settings.sanitize, "time": self.settings.timing}
        for name in names:
            if enabled.get(name, True):
                self.report.stages.append(Stage(name, Status.SKIPPED, says=says))
            if name == "correct":
                self.report.tests = skipped(self.plan)


@contextmanager
def turn(device: str) -> Iterator[None]:
    """Allow one check at a time on a GPU. A program counts as using the GPU if there is one."""
    if not has_gpu() if device == ANY_DEVICE else not facts(device).driver:
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
