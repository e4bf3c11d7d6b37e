"""The compact lab: its format, its data, any length, and values that are or are not 0."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_inputs import POISON, drawn

from cudalab import labs, runner
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs

LAB = labs.get("compact")
VARIANTS = [variant.name for variant in registry.variants(LAB)]
TYPES = LAB.axes["dtype"]
DATA = [(dtype, dist) for dtype in TYPES for dist in LAB.distributions
        if dtype in ("int32", "float64") or dist == "special"]  # fmt: skip
LENGTHS = (1, 31, 32, 33, 255, 2048, 2049, 4097, 6145, 70_001)


def inputs(items, dtype):
    items = np.asarray(items, dtype)
    return HostInputs({"items": items}, {"n": len(items)})


def check(device, variant, given_inputs, *, runs=1):
    """Whatever a run finds in the answer's memory, every place of it is right afterwards."""
    case = LAB.complete({"dtype": given_inputs.arrays["items"].dtype.name})
    chosen = registry.find(LAB, variant)
    step = runner.prepare(LAB, chosen, device, given_inputs, case, watch=runner.Stopwatch())
    for _ in range(runs):
        device.copy(np.full(step.out.nbytes, POISON, np.uint8), step.out)
        step()
        found = LAB.compare(device.to_host(step.out), given_inputs, case)
        assert found is None, f"{len(given_inputs.arrays['items'])} items: {found}"


@given(st.lists(st.integers(-2, 2)))
def test_the_reference_against_a_loop(items):
    expected = [item for item in items if item] + [item for item in items if not item]
    got = LAB.reference(inputs(items, np.int32), LAB.complete({}))
    assert got.tolist() == expected


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("dtype", "dist"), DATA)
def test_any_length_of_any_data(device, variant, dtype, dist):
    case = LAB.complete({"dtype": dtype})
    for n in LENGTHS:
        check(device, variant, drawn(LAB, case, n, dist))


@pytest.mark.parametrize("variant", VARIANTS)
def test_runs_one_after_another(device, variant):
    check(device, variant, drawn(LAB, LAB.complete({}), 70_001, "half"), runs=4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_0_among_floats(device, variant):
    items = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1e-45, -1e-45, 2.0**-126, 1.0]
    check(device, variant, inputs(items * 300, np.float32))
    kept = LAB.reference(inputs(items, np.float32), LAB.complete({"dtype": "float32"}))
    np.testing.assert_array_equal(kept, np.array([*items[2:], 0, 0], np.float32))


def test_shares_of_zeros():
    shares = {"half": 32, "few-kept": 63, "most-kept": 1, "all-zeros": 64, "no-zeros": 0}
    for dtype in TYPES:
        for dist, of_64 in shares.items():
            items = drawn(LAB, LAB.complete({"dtype": dtype}), 64_000, dist).arrays["items"]
            zeros = np.count_nonzero(items == 0)
            assert abs(zeros - 1000 * of_64) < (700 if 0 < of_64 < 64 else 1), (dtype, dist)
    runs = drawn(LAB, LAB.complete({}), 64_000, "runs").arrays["items"].reshape(-1, 128)
    kept = np.count_nonzero(runs, axis=1)
    assert set(kept.tolist()) == {0, 128}
    assert 150 < np.count_nonzero(kept) < 350


def test_a_lost_item_and_another_order_are_found():
    made = drawn(LAB, LAB.complete({}), 5000, "half")
    right = LAB.reference(made, LAB.complete({}))
    for wrong in (np.roll(right, 1), np.sort(right), np.where(right == right[7], 0, right)):
        assert LAB.compare(wrong, made, LAB.complete({})) is not None


def test_data_that_do_not_exist():
    for n, dist in ((7, "uniform"), ((1, 2), "half")):
        with pytest.raises(UsageError, match="compact has no data of size"):
            list(LAB.generate(LAB.complete({}), n, dist, 0))
