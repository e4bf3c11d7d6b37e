"""The verdict on each version of a kernel file, with what it costs and its place on the ladder."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from cudalab.checker import cases, judge
from cudalab.checker.options import Settings
from cudalab.checker.sandbox.running import Limits
from cudalab.checker.submit import stages
from cudalab.checker.verdicts import OUT_OF_TIME, Report
from cudalab.errors import CudalabError, HeaderError
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source
from cudalab.watch import KILL_AFTER_S
from cudalab.watch.changes import Version, facts_of, verdict_of, was_observed
from cudalab.watch.costs import MAX_ELEMENTS, MAX_ORDER, Costs, is_small
from cudalab.watch.ladder import Counts, counted, place_of, rungs_for
from cudalab.watch.resident import NO_SANDBOX, Desk, ResidentKernel

DEVICE = "cpu"
SEED = 0  # the same inputs for each version, so that a verdict changes only with the file
ENDLESS_S = 1.0  # of processor time under the instrument, for a loop whose line is wanted


@dataclass(frozen=True)
class Judgement:
    """What there is to say of one version."""

    report: Report
    costs: Costs | None = None  # None if the kernel could not be looked at


def judge_kernel(
    lab: Lab, path: Path, label: str, case_options: dict[str, Any], desk: Desk,
    kill_after: float = KILL_AFTER_S,
) -> Judgement:  # fmt: skip
    """Judge a kernel file as `check --no-time` does, on the small inputs of its public list."""
    settings = Settings(
        seed=SEED,
        limits=Limits(seconds=kill_after, cpu_seconds=4 * kill_after),
        jobs=1,
        timing=False,
    )
    try:
        submission = ResidentKernel(
            lab=lab,
            path=path,
            sandbox=NO_SANDBOX,
            device=DEVICE,
            label=label,
            desk=desk,
            kill_after=kill_after,
        )
    except HeaderError as error:
        return Judgement(judge.refused(lab.name, label, "kernel", DEVICE, NO_SANDBOX, SEED, error))
    options = cases.case_for(lab, case_options, submission.variant)
    plan = small(lab, cases.public(lab, options, submission.variant, quick=False))
    report = judge.check(lab, submission, plan, NO_SANDBOX, settings)
    if any(test.why in OUT_OF_TIME for test in report.tests):
        report.stages = [stage for stage in report.stages if stage.name != "sanitize"]
        # Look for the loop that does not end; the judge leaves a kernel that takes too long alone.
        submission.kill_after = min(submission.kill_after, ENDLESS_S)
        report.stages.append(
            stages.sanitize_kernel(
                submission, lab.complete(dict(plan.tests[0].options)), "", seed=SEED, failed=True
            )
        )
    return Judgement(report, submission.costs)


def small(lab: Lab, plan: cases.Plan) -> cases.Plan:
    """The tests that take no time: those with small inputs, or the first if there are none."""
    orders = [lab.teaching.sizes(lab.complete(dict(one.options))).is_order for one in plan.tests]
    tests = [
        test
        for test, is_order in zip(plan.tests, orders, strict=True)
        if not test.large and is_small(test.size, is_order=is_order)
    ]
    matrices = any(orders)
    largest = MAX_ORDER if matrices else MAX_ELEMENTS
    words = f"the {len(tests)} of {len(plan.tests)} public tests with n up to {largest:,}"
    return replace(plan, tests=tuple(tests) or plan.tests[:1], source=words)


@dataclass
class KernelWatcher:
    """Judges the versions of a kernel file of a lab."""

    lab: Lab
    path: Path
    label: str
    desk: Desk
    _: KW_ONLY
    options: dict[str, Any] = field(default_factory=dict)  # the lab's, as on the command line
    kill_after: float = KILL_AFTER_S
    climbs: bool = True  # whether it looks for the place on the ladder
    on_rungs: Callable[[], None] = field(default=lambda: None)  # called before rungs are counted
    _counts: Counts | None = field(default=None, init=False)

    def judge(self) -> Version:
        """Judge the present version."""
        one = judge_kernel(
            self.lab, self.path, self.label, dict(self.options), self.desk, self.kill_after
        )
        facts = facts_of(one.report, one.costs, self.label)
        place = None
        if self.climbs and one.report.passed and one.costs is not None and one.costs.counts:
            if self._counts is None:
                self.on_rungs()
                self._counts = counted(self.lab, self._case())
            place = place_of(one.costs.counts, self.rungs(), self._counts)
        counts = one.costs.counts if one.costs is not None else {}
        return Version(
            verdict_of(one.report),
            facts,
            right=one.report.passed,
            observed=was_observed(one.report),
            exit_code=int(one.report.exit_code),
            place=place,
            counts=counts,
            notes=_notes(one),
        )

    def headers(self) -> Sequence[Path]:
        """The files that the present version includes, as far as they can be read."""
        try:
            return source.load(self.path, self.label).files
        except CudalabError:
            return ()

    def rungs(self) -> list[Variant]:
        """The rungs of the ladders for the case of this file."""
        return rungs_for(self.lab, self._case())

    def _case(self) -> dict[str, Any]:
        return self.lab.complete(dict(self.options))


def _notes(one: Judgement) -> Sequence[str]:
    """What was not looked at, where a version is right."""
    if not one.report.passed:
        return ()
    if one.costs is None:
        return ("its accesses were not counted",)
    return (f"its accesses were not counted: {one.costs.failed}",) if one.costs.failed else ()
