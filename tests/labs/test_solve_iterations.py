"""The solve lab: growth, stopping, divergence, and steps from the spectrum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from solving import COURSE, DIRECT, DTYPES, LAB, case, compute, factorize, make, system

from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.solve import spectrum, systems
from cudalab.labs.solve.factors import UNIT, ChainedFactors, Factors
from cudalab.labs.solve.iterations import chebyshev_coefficients
from cudalab.labs.solve.residual import backward_error

# Growth, stopping, divergence ---------------------------------------------------------------------


def test_norms_of_zero_beside_a_residual_are_no_answer():
    assert backward_error(1.0, 0.0, 0.0, a_norm=0.0) == math.inf
    assert backward_error(0.0, 0.0, 0.0, a_norm=0.0) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_growing_pivots_are_noticed_and_solved(device, dtype):
    """Pivots from the column double 149 times: beyond float32's range, and beyond its digits."""
    inputs = make(150, "wilkinson", dtype)
    for name in ("lu_partial_pivot", "lu_blocked_panel", "gauss_jordan"):
        x, notes = compute(device, name, inputs, case(dtype))
        assert LAB.compare(x, inputs, case(dtype)) is None
        if name != "gauss_jordan":
            assert any("turning to complete_pivot" in note for note in notes)


def test_max_iter_ends_an_iteration_with_the_residual_reached(device):
    with pytest.raises(CudalabError, match="not converged after 7 iterations, residual") as caught:
        compute(device, "richardson", make(33, "spd"), case(max_iter=7))
    assert "lu_partial_pivot" in caught.value.hint


@pytest.mark.parametrize("dtype", DTYPES)
def test_unknowns_of_different_size_cost_no_iterations(device, dtype):
    """Rows and columns by the same powers of two: badly conditioned, but only by scaling."""
    inputs = make(120, "spd:10", dtype)
    units = 2.0 ** np.random.default_rng(3).integers(-6, 6, 120)
    inputs.arrays["a"] = (inputs.arrays["a"] * units * units[:, None]).astype(dtype)
    inputs.arrays["f"] = (inputs.arrays["f"] * units).astype(dtype)
    counts = []
    for name in ("conjugate_gradient_scaled", "conjugate_gradient"):
        x, notes = compute(device, name, inputs, case(dtype))
        assert LAB.compare(x, inputs, case(dtype)) is None
        counts.append(int(notes[-1].split()[1]))
    assert 3 * counts[0] < counts[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_launch_an_iteration_needs_no_more_iterations(device, dtype, sign):
    """The same method: `conjugate_gradient` only looks at its residual less often."""
    inputs = make(120, "spd:100", dtype)
    inputs.arrays["a"] = sign * inputs.arrays["a"]
    counts = []
    for name in ("conjugate_gradient_one_launch", "conjugate_gradient"):
        x, notes = compute(device, name, inputs, case(dtype))
        assert LAB.compare(x, inputs, case(dtype)) is None
        assert name in notes[-1]
        counts.append(int(notes[-1].split()[1]))
    assert counts[0] <= counts[1] <= counts[0] + 12


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_chain_of_substitutions_gives_what_the_factors_say(device, dtype):
    """Both take the same factors; they add up in another order."""
    for n in (1, 32, 33, 250):
        inputs = make(n, "random", dtype, seed=n)
        solutions = []
        for name, method in [
            ("lu_partial_pivot", Factors),
            ("lu_substitution_chain", ChainedFactors),
        ]:
            found = factorize(device, name, method, inputs, case(dtype))
            device.copy(np.arange(1, found.ld + 1).astype(dtype), found.b)
            found.substitute()
            solutions.append(device.to_host(found.y)[:n].astype(np.float64))
        one, other = solutions
        assert np.linalg.norm(one - other) <= 1e5 * UNIT[dtype] * np.linalg.norm(one)


def test_tol_stops_earlier(device):
    inputs = make(33, "spd")
    counts = []
    for tol in (1e-2, 1e-4, None):
        x, notes = compute(device, "richardson", inputs, case(tol=tol))
        assert LAB.compare(x, inputs, case(tol=tol)) is None
        counts.append(int(notes[-1].split()[1]))
    assert counts[0] < counts[1] < counts[2]


def test_an_unreachable_tol_is_an_error(device):
    for name in ("lu_partial_pivot", "jacobi"):
        with pytest.raises(CudalabError, match="backward error"):
            compute(device, name, make(33, "dominant"), case(tol=1e-14, max_iter=200))


@pytest.mark.parametrize("name", ["lu_partial_pivot", "complete_pivot", "jacobi"])
def test_an_unreachable_tol_is_named_as_the_reason(device, name):
    options = case(tol=1e-30, max_iter=200)
    with pytest.raises(CudalabError, match="--tol asks for 1e-30") as caught:
        compute(device, name, make(33, "dominant"), options)
    assert "rounding" in caught.value.hint
    assert "lu_partial_pivot" not in caught.value.hint


def test_direct_methods_say_that_they_ignore_max_iter(device):
    warning = "warning: ignored --max-iter: {} does not iterate"
    for name in (*DIRECT, None):
        _, notes = compute(device, name, make(9), case(max_iter=1))
        assert warning.format(name or registry.default(LAB, case(), device.name).name) in notes
    _, notes = compute(device, None, make(150, "dominant"), case(max_iter=1))
    assert "turning to lu_partial_pivot" in " ".join(notes)
    assert "ignored" not in " ".join(notes)
    _, notes = compute(device, "lu_partial_pivot", make(9), case())
    assert "ignored" not in " ".join(notes)


def test_divergence_is_detected(device):
    inputs = make(17, "spd")
    with pytest.raises(CudalabError, match=r"richardson diverges: after \d+ iterations, residual"):
        compute(device, "richardson", inputs, case(alpha=0.5))
    x, notes = compute(device, "richardson", inputs, case(alpha=-0.5))
    assert LAB.compare(x, inputs, case()) is None
    assert notes[0] == "richardson: alpha = -0.5: given"


def test_a_given_alpha_means_that_iteration(device):
    inputs = system([[2, -1], [-1, 2]], [1, 1])
    x, notes = compute(device, None, inputs, case(alpha=-0.5))
    np.testing.assert_allclose(x, [1, 1], rtol=1e-5)
    assert notes[0].startswith("richardson: alpha = -0.5")
    with pytest.raises(CudalabError, match="diverges"):
        compute(device, None, system(COURSE, [5, 6]), case(alpha=-0.1))


# Steps from the spectrum --------------------------------------------------------------------------


def richardson_step(a):
    a = np.array(a, np.float64)
    radii = np.abs(a).sum(axis=1) - np.abs(np.diagonal(a))
    return spectrum.richardson_step(
        np.diagonal(a),
        radii,
        symmetric=bool((a == a.T).all()),
        product=lambda v: a @ v,
        transposed=lambda v: a.T @ v,
        matrix=lambda: a,
    )


def radius(a, alpha):
    return np.abs(1 + alpha * np.linalg.eigvals(np.array(a, np.float64))).max()


@pytest.mark.parametrize("dist", ["dominant", "unsymmetric", "spd", "spd:1e4", "tridiagonal"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_chosen_alpha_converges(dist, sign):
    for n in (1, 2, 17, 60):
        a = sign * make(n, dist, "float64").arrays["a"]
        alpha, _ = richardson_step(a)
        assert radius(a, alpha) < 1
        assert np.sign(alpha) == -np.sign(a[0, 0])


def test_the_sign_of_alpha_is_not_that_of_the_lecture():
    """|alpha| |A| < 1 is not enough: with alpha > 0 a positive definite matrix diverges."""
    a = [[2, 1], [1, 2]]
    alpha, _ = richardson_step(a)
    assert alpha == pytest.approx(-0.5)
    assert radius(a, -alpha) > 1
    assert radius(a, 0.1) > 1


def test_no_alpha_converges_on_the_course_s_system(device):
    for alpha in np.linspace(-3, 3, 601):
        assert radius(COURSE, alpha) >= 1
    with pytest.raises(spectrum.NoStepError, match="no alpha converges: the eigenvalues of A"):
        compute(device, "richardson", system(COURSE, [5, 6]), case())
    with pytest.raises(spectrum.NoStepError, match="A is symmetric with eigenvalues of both signs"):
        richardson_step([[1, 2], [2, 1]])


def test_complex_eigenvalues_right_of_zero():
    a = [[1, 5, 0], [-5, 1, 0], [3, 0, 2]]
    alpha, why = richardson_step(a)
    assert radius(a, alpha) < 1
    best = min(radius(a, -step) for step in np.linspace(1e-3, 0.2, 2000))
    assert radius(a, alpha) <= best * (1 + 1e-4)
    assert "real parts from 1 to 2" in why


def test_a_large_matrix_with_a_definite_symmetric_part(monkeypatch):
    monkeypatch.setattr(spectrum, "SMALL_N", 16)
    n = 60
    upper = np.triu(systems.draw(n, "random", 3, np.dtype("float64"))[0], 1) / np.sqrt(n)
    a = 2 * np.eye(n) + upper - upper.T
    alpha, why = richardson_step(a)
    assert radius(a, alpha) < 1
    assert "symmetric part" in why
    with pytest.raises(spectrum.NoStepError, match="no alpha is known to converge"):
        richardson_step(a - 2 * np.eye(n) + np.diag(np.arange(n) % 2 - 0.5))


@pytest.mark.parametrize("n", [1, 2, 10, 50, 300])
def test_lanczos_finds_the_ends_of_the_spectrum(n):
    a = systems.draw(n, "spd:1000", 2, np.dtype("float64"))[0]
    found = spectrum.lanczos(lambda v: a @ v, n, float(np.abs(a).sum(axis=1).max()))
    values = np.linalg.eigvalsh(a)
    assert found.definite
    assert found.high >= values[-1] * (1 - 1e-6)
    assert found.high <= 1.1 * values[-1]
    assert found.low <= 2 * values[0] or n > spectrum.LANCZOS_STEPS


def test_chebyshev_coefficients_give_chebyshev_s_polynomial():
    low, high, steps = 1.0, 9.0, 6
    values = np.linspace(low, high, 50)
    error, step = np.ones_like(values), np.zeros_like(values)
    for _, (c1, c2) in zip(range(steps), chebyshev_coefficients(low, high), strict=False):
        step = c1 * step + c2 * values * error  # f - A x = A times the error
        error = error - step

    def polynomial(x):
        return np.cosh(steps * np.arccosh(x + 0j)).real

    expected = polynomial((high + low - 2 * values) / (high - low)) / polynomial(10 / 8)
    np.testing.assert_allclose(error, expected, atol=1e-12)
