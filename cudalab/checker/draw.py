"""The cases that a kernel's header allows: which are judged, by a draw, and which are not.

A header without `applies` says that the kernel computes every case of the lab. The tests are made
for one of them, so a few run once more in others, drawn by the check's seed: nobody knows which.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cudalab.checker.cases import Plan, Test
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.output.prose import counted

PER_TESTS = 5  # one of so many runs in another case, too


def with_other_cases(lab: Lab, plan: Plan, variant: Variant, seed: int) -> Plan:
    """The plan with some of its tests a second time, in other cases that the header allows.

    Both times have half of the points. The first test and the last have the plan's case alone, for
    the sanitizer and the clock.
    """
    draw = random.Random(seed)  # noqa: S311 - the seed is no secret after the check
    others = list(rest(lab, plan, variant))
    draw.shuffle(others)
    places = list(range(1, len(plan.tests) - 1))
    draw.shuffle(places)
    left = -(-len(places) // PER_TESTS)
    also: dict[int, Case] = {}
    for place in places:
        case = next((one for one in others if _fits(lab, plan.tests[place], one, variant)), None)
        if case is not None and left:
            others.remove(case)
            left -= 1
            also[place] = case
    tests: list[Test] = []
    for place, test in enumerate(plan.tests):
        if place not in also:
            tests.append(test)
            continue
        half = replace(test, points=test.points / 2)
        name = f"{test.name}, again"
        tests += [half, replace(half, name=name, options=also[place], drawn=True)]
    return replace(plan, tests=tuple(tests))


def _fits(lab: Lab, test: Test, case: Case, variant: Variant) -> bool:
    """Whether the public list of another case has this test, too."""
    if test.large or test.refuse or test.file is not None:
        return False
    return any(
        (row.name, row.size, row.dist) == (test.name, test.size, test.dist)
        for row in lab.teaching.public_tests(case, variant.dispatch)
        if not (row.refuse or row.options or row.made_with)
    )


def rest(lab: Lab, plan: Plan, variant: Variant) -> Iterator[Case]:
    """The cases that a header allows and no test of a plan has."""
    judged = [_axes(lab, lab.complete(dict(test.options))) for test in plan.tests]
    for case in lab.cases():
        if variant.computes(case) and _axes(lab, case) not in judged:
            yield case


def _axes(lab: Lab, case: Case) -> Case:
    return {axis: case.get(axis) for axis in lab.axes}


def not_judged(lab: Lab, plan: Plan, variant: Variant) -> list[str]:
    """A line about the cases that a header allows and nobody has judged; none if there are none."""
    others = list(rest(lab, plan, variant))
    if not others:
        return []
    judged = [lab.complete(dict(test.options)) for test in plan.tests]
    missing = {
        axis: _values(axis, others, judged) for axis in lab.axes if _values(axis, others, judged)
    }
    words = "; ".join(f"{axis} {', '.join(values)}" for axis, values in missing.items())
    count = counted(len(others), "case")
    return [f"not judged, though its header allows them: {count}{words and f', {words}'}"]


def _values(axis: str, others: Sequence[Case], judged: Sequence[Case]) -> list[str]:
    """The values of an axis that only other cases have than the judged ones."""
    known = {case.get(axis) for case in judged}
    return list(dict.fromkeys(str(case[axis]) for case in others if case[axis] not in known))
