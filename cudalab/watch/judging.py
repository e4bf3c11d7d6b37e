"""The verdict on one version of a file: what `check` says of it on small inputs, and its costs."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cudalab.checker import cases, judge
from cudalab.checker.cases import Plan, Test
from cudalab.checker.sandbox.running import Limits
from cudalab.checker.settings import Settings
from cudalab.checker.submit import sanitizing
from cudalab.checker.verdicts import OUT_OF_TIME, Report
from cudalab.errors import HeaderError
from cudalab.labs.base import Lab
from cudalab.watch.costs import Costs
from cudalab.watch.resident import NO_SANDBOX, Desk, ResidentKernel
from cudalab.watch.sizes import MAX_ELEMENTS, MAX_ORDER, is_small

DEVICE = "cpu"
SEED = 0  # the same inputs for each version, so that a verdict changes only with the file
KILL_AFTER_S = 5.0
ENDLESS_S = 1.0  # of processor time under the instrument, for a loop whose line is wanted


@dataclass(frozen=True)
class Judgement:
    """What there is to say of one version."""

    report: Report
    costs: Costs | None = None  # None if the kernel could not be looked at


def kernel(
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
            sanitizing.stage(
                submission, lab.complete(dict(plan.tests[0].options)), "", seed=SEED, failed=True
            )
        )
    return Judgement(report, submission.costs)


def small(lab: Lab, plan: Plan) -> Plan:
    """The tests that take no time: those with small inputs, or the first if there are none."""
    tests = [test for test in plan.tests if not test.large and _is_small(lab, test)]
    matrices = any(_is_order(lab, test) for test in plan.tests)
    largest = MAX_ORDER if matrices else MAX_ELEMENTS
    words = f"the {len(tests)} of {len(plan.tests)} public tests with n up to {largest:,}"
    return replace(plan, tests=tuple(tests) or plan.tests[:1], source=words)


def _is_small(lab: Lab, test: Test) -> bool:
    return is_small(test.size, is_order=_is_order(lab, test))


def _is_order(lab: Lab, test: Test) -> bool:
    return lab.teaching.sizes(lab.complete(dict(test.options))).is_order
