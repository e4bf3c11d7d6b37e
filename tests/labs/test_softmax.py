"""The softmax lab: its format, its bound, and rows with infinities, NaNs and large numbers."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_inputs import POISON, drawn

from cudalab import labs, runner
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.labs.softmax.lab import MAX_CHAIN, expected_pieces

LAB = labs.get("softmax")
CASE = LAB.complete({})
VARIANTS = [variant.name for variant in registry.variants(LAB)]
INF, NAN = math.inf, math.nan
LARGEST = float(np.finfo(np.float32).max)


def inputs(x):
    x = np.asarray(x, np.float32)
    return HostInputs({"x": x}, {"rows": x.shape[0], "cols": x.shape[1]})


def answer(device, variant, given_inputs):
    chosen = registry.find(LAB, variant)
    step = runner.prepare(LAB, chosen, device, given_inputs, CASE, watch=runner.Stopwatch())
    device.copy(np.full(step.out.nbytes, POISON, np.uint8), step.out)
    step()
    return device.to_host(step.out)


def check(device, variant, x):
    given_inputs = inputs(x)
    found = LAB.compare(answer(device, variant, given_inputs), given_inputs, CASE)
    assert found is None, f"{given_inputs.arrays['x'].shape}: {found}"


@given(st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=40))
def test_the_reference_against_decimals(row):
    with localcontext() as context:
        context.prec = 60
        terms = [Decimal(value).exp() for value in row]
        expected = [float(term / sum(terms)) for term in terms]
    got = LAB.reference(inputs([row]), CASE)[0]
    np.testing.assert_allclose(got, expected, rtol=2.0**-23, atol=2.0**-149)


SHAPES = [(1, 1), (1, 31), (7, 32), (33, 33), (300, 1), (2, 513), (3, 8191), (2, 8192), (2, 8193)]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dist", LAB.distributions)
def test_any_shape_of_any_numbers(device, variant, dist):
    for shape in SHAPES:
        check(device, variant, drawn(LAB, CASE, shape, dist).arrays["x"])


# Rows with their answers.
ROWS = [
    ([0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]),
    ([-INF, 3, -INF, 3], [0, 0.5, 0, 0.5]),
    ([3, -INF, -INF, -INF], [1, 0, 0, 0]),
    ([-LARGEST, -INF, -INF, -INF], [1, 0, 0, 0]),
    ([LARGEST, LARGEST, -LARGEST, 0], [0.5, 0.5, 0, 0]),
    ([-1000, -1000, -2000, -INF], [0.5, 0.5, 0, 0]),
    ([-INF, -INF, -INF, -INF], [NAN, NAN, NAN, NAN]),
    ([INF, 0, 0, 0], [NAN, NAN, NAN, NAN]),
    ([0, 0, 0, NAN], [NAN, NAN, NAN, NAN]),
]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("repeated", [1, 100, 2500])
def test_rows_of_infinities_and_nans(device, variant, repeated):
    x = np.repeat(np.array([row for row, _ in ROWS], np.float32), repeated, axis=1)
    got = answer(device, variant, inputs(x))
    expected = np.repeat([np.divide(right, repeated) for _, right in ROWS], repeated, axis=1)
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    check(device, variant, x)


def test_a_lost_item_exceeds_the_bound():
    """Wherever it is, in rows of up to a thousand items, and in longer ones a lost tile of 128."""
    for cols, lost in ((33, 1), (1000, 1), (20_000, 128)):
        x = drawn(LAB, CASE, (4, cols), "uniform").arrays["x"]
        wrong = x.copy()
        wrong[2, 5 : 5 + lost] = -np.inf
        found = LAB.compare(LAB.reference(inputs(wrong), CASE), inputs(x), CASE)
        assert found is not None
        assert found.count == cols
        assert "first in row 2, column 0" in str(found)


def test_the_bound_grows_with_the_chain_of_additions():
    x = np.zeros((1, 2 * MAX_CHAIN), np.float32)
    _, expected, bound = next(expected_pieces(x))
    share = float(bound[0] / expected[0])
    assert 6 * MAX_CHAIN * 2.0**-24 < share < 7 * MAX_CHAIN * 2.0**-24


@pytest.mark.parametrize("dist", LAB.distributions)
def test_a_row_of_several_pieces_has_the_bounds_of_a_whole_one(monkeypatch, dist):
    x = drawn(LAB, CASE, (3, 1000), dist)
    whole = LAB.bounds(x, CASE)
    monkeypatch.setattr("cudalab.labs.softmax.lab.PIECE_ITEMS", 300)
    for one, other in zip(whole, LAB.bounds(x, CASE), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=0)
    assert LAB.compare(LAB.reference(x, CASE), x, CASE) is None


def test_data_that_do_not_exist():
    for n, dist in ((7, "uniform:1"), ((1, 2, 3), "uniform"), (7, "normal")):
        with pytest.raises(UsageError, match="softmax has no data of size"):
            list(LAB.generate(CASE, n, dist, 0))
