"""The solve lab: what its methods solve, and what they refuse."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solving import (
    COURSE,
    DIRECT,
    DTYPES,
    ITERATIONS,
    LAB,
    ON_TENSOR_CORES,
    SOLVABLE,
    VARIANTS,
    case,
    check_it_runs,
    compute,
    make,
    system,
)

from cudalab.errors import CudalabError, InputError
from cudalab.labs.inputs import HostInputs
from cudalab.labs.solve import factors, iterations, launches
from cudalab.labs.solve.launches import arguments
from cudalab.language import source
from cudalab.language.source import parameter_names

TRIDIAGONAL = [-2.5, -4, -4.5, -4, -2.5]


# Every variant: right, or a refusal with a reason -------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DIRECT)
def test_direct_methods_solve_everything(device, name, dtype):
    """Orders at which tiles end; test_variants.py has larger ones."""
    for n in (1, 2, 3, 31, 32, 33, 65):
        for dist in SOLVABLE:
            inputs = make(n, dist, dtype, seed=n)
            x, notes = compute(device, name, inputs, case(dtype))
            found = LAB.compare(x, inputs, case(dtype))
            assert found is None, f"n = {n}, {dist}: {found}"
            assert "backward error" in notes[-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*DIRECT, None])
@pytest.mark.parametrize("n", [1, 2, 33, 100])
def test_singular_systems_are_refused(device, name, dtype, n):
    with pytest.raises(CudalabError, match=f"A is singular: in step {n} of {n}") as caught:
        compute(device, name, make(n, "singular", dtype), case(dtype))
    assert caught.value.hint


APPLIES = {
    "richardson": ("dominant", "unsymmetric", "spd", "tridiagonal"),
    "richardson_coalesced": ("dominant", "unsymmetric", "spd", "tridiagonal"),
    "jacobi": ("dominant", "unsymmetric", "tridiagonal"),
    "chebyshev": ("dominant", "spd", "tridiagonal"),
    "conjugate_gradient": ("dominant", "spd", "tridiagonal"),
    "conjugate_gradient_one_launch": ("dominant", "spd", "tridiagonal"),
    "conjugate_gradient_scaled": ("dominant", "spd", "tridiagonal"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ITERATIONS)
def test_iterations_solve_what_they_apply_to_and_refuse_the_rest(device, name, dtype):
    for n in (2, 17, 33):
        for dist in LAB.distributions:
            inputs = make(n, dist, dtype, seed=3)
            x, notes, refusal = attempt(device, name, inputs, case(dtype))
            if refusal:
                assert dist not in APPLIES[name], f"n = {n}, {dist}: {refusal}"
                assert len(refusal) > 40
            else:
                found = LAB.compare(x, inputs, case(dtype))
                assert found is None, f"n = {n}, {dist}: {found}"
                assert "iterations" in notes[-1]


def attempt(device, name, inputs, options):
    try:
        return (*compute(device, name, inputs, options), None)
    except CudalabError as error:
        return None, [], error.message


@pytest.mark.parametrize("name", ITERATIONS)
def test_negative_definite_systems(device, name):
    inputs = make(17, "tridiagonal")
    x, _ = compute(device, name, inputs, case())
    assert LAB.compare(x, inputs, case()) is None
    inputs.arrays["a"] *= -1
    x, _ = compute(device, name, inputs, case())
    assert LAB.compare(x, inputs, case()) is None


@pytest.mark.parametrize("name", [v.name for v in VARIANTS])
def test_a_zero_right_hand_side(device, name):
    check_it_runs(device, name)
    inputs = make(33, "dominant")
    inputs.arrays["f"][:] = 0
    x, _ = compute(device, name, inputs, case())
    assert not x.any()


@pytest.mark.parametrize("name", [v.name for v in VARIANTS])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(device, name, value):
    check_it_runs(device, name)
    for array, place in (("a", (3, 1)), ("f", 2)):
        inputs = make(20, "dominant")
        inputs.arrays[array][place] = value
        with pytest.raises(InputError, match=f"{array.upper() if array == 'a' else array} holds"):
            compute(device, name, inputs, case())


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 999), data=st.data())
def test_a_x_is_f(n, seed, data):
    """Whatever the default returns satisfies the equations."""
    from cudalab.backends import open_device  # noqa: PLC0415

    scale = data.draw(st.sampled_from([1, 1e-12, 1e12]))
    dist = data.draw(st.sampled_from(SOLVABLE))
    inputs = make(n, dist, "float32", seed)
    inputs.arrays["a"] *= np.float32(scale)
    with open_device("cpu", 2) as device:
        x, _ = compute(device, None, inputs, case())
    assert LAB.compare(x, inputs, case()) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-100, 100])
def test_rows_and_right_sides_of_any_size(device, dtype, exponent):
    inputs = make(40, "random", dtype)
    for name in DIRECT:
        scaled = {key: array.copy() for key, array in inputs.arrays.items()}
        scaled["a"][::2] *= 2.0**exponent
        scaled["f"][::2] *= 2.0**exponent
        x, _ = compute(device, name, HostInputs(scaled, inputs.params), case(dtype))
        plain, _ = compute(device, name, inputs, case(dtype))
        np.testing.assert_allclose(x, plain, rtol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DIRECT)
def test_columns_of_any_size(device, name, dtype):
    """Unknowns in other units, by powers of two: the digits stay, and so does what is singular."""
    n, most = 70, 40 if dtype == "float32" else 400
    units = 2.0 ** np.random.default_rng(7).integers(-most, most, n, endpoint=True)
    for dist in ("random", "pivot"):
        inputs = make(n, dist, dtype)
        plain, _ = compute(device, name, inputs, case(dtype))
        inputs.arrays["a"] = (inputs.arrays["a"] * units).astype(dtype)
        x, notes = compute(device, name, inputs, case(dtype))
        np.testing.assert_allclose(x * units, plain, rtol=1e-3)
        assert "turning to" not in " ".join(notes)
        inputs.arrays["a"][:, 41] = inputs.arrays["a"][:, 40] * 2.0**-most
        with pytest.raises(CudalabError, match="A is singular: in step"):
            compute(device, name, inputs, case(dtype))


def test_the_exact_answers_of_the_course(device):
    for name in (*DIRECT, None):
        x, _ = compute(device, name, system(COURSE, [5, 6]), case())
        assert x.tolist() == [-4, 4.5]
        x, _ = compute(device, name, make(5, "tridiagonal"), case())
        assert x.tolist() == TRIDIAGONAL


# Launches -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_arguments_are_called_as_the_kernels_call_their_parameters(
    device, request, monkeypatch, variant
):
    """Only their order counts, so a name in the wrong place would be believed."""
    if variant.name in ON_TENSOR_CORES:
        request.getfixturevalue("tensor_cores")
    called = []

    def recorded(**named):
        called.append(list(named))
        return arguments(**named)

    for module in (launches, factors, iterations):
        monkeypatch.setattr(module, "arguments", recorded)
    kernels = parameter_names(source.load(variant.path, variant.label).text).values()
    # What changes with every launch of a loop is not among those prepared before it.
    known = [*kernels, *(names[:-1] for names in kernels)]
    for dist in ("dominant", "spd"):
        with suppress(CudalabError):  # what it does not solve
            compute(device, variant.name, make(70, dist), case())
    assert called
    assert [names for names in called if names not in known] == []
