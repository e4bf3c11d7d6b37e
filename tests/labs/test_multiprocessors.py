"""The plans on parts of a GPU: what is compared, and what the documents say of it."""

from __future__ import annotations

import pytest

from cudalab import labs
from cudalab.backends import open_device
from cudalab.labs import registry
from tools.studies import multiprocessors as parts


@pytest.mark.parametrize(
    "question", parts.QUESTIONS, ids=lambda one: f"{one.lab}-{one.variants[0]}"
)
def test_each_question_has_plans_to_choose_from(question):
    """Several variants, or one whose plan follows from the number of multiprocessors."""
    lab = labs.get(question.lab)
    case = lab.complete(question.case)
    variants = [registry.find(lab, name) for name in question.variants]
    assert all(variant.computes(case) for variant in variants)
    assert len({plan for variant in variants for plan, _ in parts.plans_of(variant, 40)}) > 1


def test_a_plan_is_made_for_the_part_and_for_others():
    variant = registry.find(labs.get("radixsort"), "onesweep")
    plans = dict(parts.plans_of(variant, 40))
    assert list(plans) == [f"onesweep for {n}" for n in (20, 40, 60, 72, 80, 114, 132)]
    assert plans["onesweep for 40"].defines["COUNT_BLOCKS"] == 120


def test_the_host_has_no_parts():
    with open_device("cpu") as device, parts.part_of(device, 40):
        assert device.multiprocessors == 40


def row(multiprocessors, chosen, **ms):
    return {
        "lab": "scan", "case": {}, "n": "1,024", "dist": "uniform", "chosen": chosen,
        "multiprocessors": multiprocessors, "ms": {k.replace("_", " "): v for k, v in ms.items()},
    }  # fmt: skip


def test_times_are_divided_by_the_best():
    rows = [
        row(132, "a for 132", a_for_132=1.0, a_for_40=2.0),
        row(114, "a for 114", a_for_114=1.0, a_for_132=1.5),
        row(40, "a for 40", a_for_40=1.2, a_for_132=1.0),
    ]
    (line,) = parts.lines(rows)
    assert line == ["`scan` uniform", "1,024", "`a`", "1.00", "", "1.20", "1.50", "", "1.00"]
    assert parts.summary(rows) == (
        "1 of 2 plans taken are within 5 % of the best, the others within 20 %"
    )
    assert parts.summary(rows[:2]) == "1 of 1 plans taken are within 5 % of the best"
