"""The segscan lab: its format, its data, any length, segments of any length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_inputs import POISON, drawn

from cudalab import labs, runner
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs

LAB = labs.get("segscan")
CASE = LAB.complete({})
VARIANTS = [variant.name for variant in registry.variants(LAB)]
LENGTHS = (1, 2, 31, 32, 33, 255, 2048, 2049, 4097, 70_001)


def inputs(keys, items):
    arrays = {"keys": np.asarray(keys, np.int32), "items": np.asarray(items, np.int32)}
    return HostInputs(arrays, {"n": len(keys)})


def check(device, variant, given_inputs, *, runs=1):
    """Whatever a run finds in the answer's memory, every place of it is right afterwards."""
    chosen = registry.find(LAB, variant)
    step = runner.prepare(LAB, chosen, device, given_inputs, CASE, watch=runner.Stopwatch())
    for _ in range(runs):
        device.copy(np.full(step.out.nbytes, POISON, np.uint8), step.out)
        step()
        found = LAB.compare(device.to_host(step.out), given_inputs, CASE)
        assert found is None, f"{given_inputs.params['n']} items: {found}"


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**31), 2**31 - 1)), min_size=1))
def test_the_reference_against_a_loop(pairs):
    expected, before = [], None
    for key, item in pairs:
        total = item + (expected[-1] if key == before else 0)
        expected.append((total + 2**31) % 2**32 - 2**31)
        before = key
    assert LAB.reference(inputs(*zip(*pairs, strict=True)), CASE).tolist() == expected


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dist", LAB.distributions)
def test_any_length_of_any_data(device, variant, dist):
    for n in LENGTHS:
        check(device, variant, drawn(LAB, CASE, n, dist))


@pytest.mark.parametrize("variant", VARIANTS)
def test_runs_one_after_another(device, variant):
    check(device, variant, drawn(LAB, CASE, 70_001, "mixed"), runs=4)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("place", [1, 2047, 2048, 2049, 65_535, 65_536, 150_000])
def test_one_beginning_in_a_long_array(device, variant, place):
    """Look-backs over more tiles than a warp has lanes, to a beginning anywhere in a tile."""
    n = 150_001
    check(device, variant, inputs(np.arange(n) >= place, np.arange(n)))


def test_lengths_of_segments():
    average = {"short": 4, "long": 8192, "one-segment": 64_000, "each-alone": 1, "returning": 16}
    for dist, length in average.items():
        keys = drawn(LAB, CASE, 64_000, dist).arrays["keys"]
        segments = 1 + np.count_nonzero(keys[1:] != keys[:-1])
        expected = 64_000 / length
        assert abs(segments - expected) <= (0 if length in (1, 64_000) else 5 * expected**0.5)
        assert len(np.unique(keys)) == (3 if dist == "returning" else segments)


def test_sums_that_know_no_segments_are_found():
    made = drawn(LAB, CASE, 5000, "short")
    items, right = made.arrays["items"], LAB.reference(made, CASE)
    for wrong in (np.cumsum(items, dtype=np.int32), items, right - items, np.roll(right, 1)):
        assert LAB.compare(wrong, made, CASE) is not None


def test_data_that_do_not_exist():
    for n, dist in ((7, "uniform"), ((1, 2), "short")):
        with pytest.raises(UsageError, match="segscan has no data of size"):
            list(LAB.generate(CASE, n, dist, 0))
