"""The solve lab: factors by panels, pivots, tensor cores."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from lab_inputs import target
from solving import (
    CHOLESKY_ON_TENSOR_CORES,
    DIRECT,
    DTYPES,
    LAB,
    LU_ON_TENSOR_CORES,
    ON_TENSOR_CORES,
    SOLVABLE,
    case,
    check_it_runs,
    compute,
    factorize,
    make,
    system,
)

from cudalab import runner
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.solve.factors import UNIT, BlockedFactors, ElectedFactors
from cudalab.labs.solve.lab import (
    CHOLESKY_N,
    LOOK_AHEAD_N,
    TENSOR_CORES_N,
    WIDE_STRIPS_N,
    large_cholesky_factors,
    large_factors,
)
from cudalab.labs.solve.tensor_factors import CholeskyFactors

# Elections of at most 128 rows (in double 64) at a time, and blocks of two panels (one).
SMALL = {"MAX_THREADS_PER_BLOCK": 128, "BLOCK": 64}


def scaled_rows(device, found, inputs):
    """A as it was factorized, in float64: scaled, and its rows in the order of the pivots."""
    n = found.n
    scales, column_scales = (
        device.to_host(scales)[:n].astype(np.float64)
        for scales in (found.scales, found.column_scales)
    )
    order = device.to_host(found.row_of)[: found.padded]
    assert sorted(order.tolist()) == list(range(found.padded))
    padded = np.eye(found.padded)
    padded[:n, :n] = inputs.arrays["a"].astype(np.float64) * scales[:, None] * column_scales
    return padded[order]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "method", "defines"),
    [
        ("lu_elected_panel", ElectedFactors, {}),
        ("lu_elected_panel", ElectedFactors, {"MAX_THREADS_PER_BLOCK": 128}),
        ("lu_blocked_panel", BlockedFactors, {}),
        ("lu_blocked_panel", BlockedFactors, SMALL),
        ("lu_blocked_panel", BlockedFactors, {**SMALL, "BLOCK": 128}),
    ],
)
def test_factors_multiply_to_the_matrix(device, dtype, name, method, defines):
    """Also where pivots are found in several rounds, and panels in several blocks."""
    for n, dist in [(1, "random"), (33, "pivot"), (130, "random"), (257, "pivot"), (400, "random")]:
        inputs = make(n, dist, dtype, seed=n)
        found = factorize(device, name, method, inputs, case(dtype), **defines)
        work = device.to_host(found.work).astype(np.float64)
        factors = work[: found.padded, : found.padded]
        assert not work[found.padded :].any()
        assert not work[:, found.padded :].any()
        lower, upper = np.tril(factors, -1) + np.eye(found.padded), np.triu(factors)
        # Each of up to n products of a sum is rounded, and so is each partial sum.
        allowed = 2 * n * UNIT[dtype] * (np.abs(lower) @ np.abs(upper))
        error = np.abs(lower @ upper - scaled_rows(device, found, inputs))
        assert (error <= allowed).all(), f"n = {n}: {(error / (allowed + 1e-300)).max()}"
        # Partial pivoting keeps multipliers below 1 up to the scaling of rows by powers of two,
        # the election of pivots in blocks below a small number.
        assert np.abs(lower).max() < (2 if found.finds_greatest else 20)


def block_of(device):
    """The shipped number of columns, or half of it where compiling takes longer than computing."""
    return 128 if device.name == "cpu" else 256


@pytest.mark.usefixtures("tensor_cores")
def test_factors_from_tensor_cores_multiply_to_the_matrix(device):
    """As exactly as floats; looking ahead changes no bit."""
    for n, block in [(33, 128), (300, 128), (420, block_of(device))]:
        inputs = make(n, "random", seed=n)
        found = [
            factorize(device, name, method, inputs, case(), BLOCK=block)
            for name, method in LU_ON_TENSOR_CORES.items()
        ]
        plain, ahead = (device.to_host(one.work) for one in found)
        np.testing.assert_array_equal(plain, ahead)
        padded = found[0].padded
        assert not plain[padded:].any()
        assert not plain[:, padded:].any()
        factors = plain[:padded, :padded].astype(np.float64)
        lower, upper = np.tril(factors, -1) + np.eye(padded), np.triu(factors)
        allowed = n * UNIT["float32"] * (np.abs(lower) @ np.abs(upper))
        error = np.abs(lower @ upper - scaled_rows(device, found[0], inputs))
        assert (error <= allowed).all(), f"n = {n}: {(error / (allowed + 1e-300)).max()}"


@pytest.mark.usefixtures("tensor_cores")
def test_cholesky_factors_multiply_to_the_matrix(device):
    """Definite matrices of either sign and in any units; U is D times L transposed."""
    for n, block, sign in [(33, 128, 1), (300, 128, -1), (700, block_of(device), 1)]:
        inputs = make(n, "spd:1e3", seed=n)
        units = np.exp2(np.arange(n) % 21 - 10)
        inputs.arrays["a"] = (sign * units[:, None] * inputs.arrays["a"] * units).astype(np.float32)
        found = factorize(
            device, "cholesky_tensor_cores", CholeskyFactors, inputs, case(), BLOCK=block
        )
        found.check()
        work, padded = device.to_host(found.work).astype(np.float64), found.padded
        assert not work[padded:].any()
        assert not work[:, padded:].any()
        lower, upper = np.tril(work[:padded, :padded], -1) + np.eye(padded), np.triu(work)
        upper = upper[:padded, :padded]
        scaled = scaled_rows(device, found, inputs)
        scaled[n:] *= sign
        assert 1 <= np.abs(scaled.diagonal()).min() <= np.abs(scaled.diagonal()).max() < 4
        allowed = n * UNIT["float32"] * (np.abs(lower) @ np.abs(upper))
        error = np.abs(lower @ upper - scaled)
        assert (error <= allowed).all(), f"n = {n}: {(error / (allowed + 1e-300)).max()}"
        # U has the same elements as L, before they were divided by the pivots.
        np.testing.assert_allclose(upper, (lower * upper.diagonal()).T, rtol=4 * UNIT["float32"])


@pytest.mark.usefixtures("tensor_cores")
@pytest.mark.parametrize("name", CHOLESKY_ON_TENSOR_CORES)
def test_cholesky_factors_are_for_definite_matrices(device, name):
    """All others go to LU factors."""
    x, notes = compute(device, name, make(200, "spd"), case())
    assert np.isfinite(x).all()
    assert any(note.startswith(f"{name}: 1 refinement") for note in notes)
    unsymmetric = np.eye(300)
    unsymmetric[290, 5], unsymmetric[5, 290] = 0.9, -5
    for inputs, reason in [
        (system(np.diag([2.0, 3, -1, 1]), np.ones(4)), "A is not definite: in step 3 of 4"),
        (system(unsymmetric, np.ones(300)), "backward error"),
    ]:
        x, notes = compute(device, name, inputs, case())
        assert LAB.compare(x, inputs, case()) is None
        (turned,) = [note for note in notes if "turning to lu_look_ahead" in note]
        assert reason in turned


def test_large_systems_are_for_tensor_cores():
    a = np.ones((TENSOR_CORES_N, TENSOR_CORES_N), np.float32)
    a[0, 1] = 2
    definite = np.ones((CHOLESKY_N, CHOLESKY_N), np.float32)
    mixed = np.copysign(definite, np.arange(CHOLESKY_N) - 5)
    for matrix, n, dtype, device, chosen in [
        (a, TENSOR_CORES_N, "float32", "cuda", "lu_tensor_cores"),
        (a, TENSOR_CORES_N - 1, "float32", "cuda", None),
        (a, TENSOR_CORES_N, "float64", "cuda", None),
        (a, TENSOR_CORES_N, "float32", "cpu", None),
        (definite, CHOLESKY_N, "float32", "cuda", "cholesky_narrow_strips"),
        (-definite, CHOLESKY_N, "float32", "cuda", "cholesky_narrow_strips"),
        (mixed + mixed.T, CHOLESKY_N, "float32", "cuda", None),
        (definite, CHOLESKY_N - 1, "float32", "cuda", None),
        (definite, CHOLESKY_N, "float64", "cuda", None),
        (definite, CHOLESKY_N, "float32", "cpu", None),
    ]:
        inputs = system(matrix[:n, :n], np.ones(n), dtype)
        assert LAB.choose(inputs, case(dtype), target(device)) == chosen
        assert inputs.params["policy"].startswith("auto: ")
    assert large_factors(LOOK_AHEAD_N - 1) == "lu_tensor_cores"
    assert large_factors(LOOK_AHEAD_N) == "lu_look_ahead"
    assert large_cholesky_factors(WIDE_STRIPS_N - 1) == "cholesky_narrow_strips"
    assert large_cholesky_factors(WIDE_STRIPS_N) == "cholesky_tensor_cores"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "method"), [("lu_elected_panel", ElectedFactors), ("lu_blocked_panel", BlockedFactors)]
)
def test_one_block_finds_the_greatest_pivots_of_whole_columns(device, dtype, name, method):
    """Of sizes that differ by less than 1 / 8192, any is as good."""
    for n, dist in [(40, "pivot"), (100, "random"), (300, "random")]:
        inputs = make(n, dist, dtype, seed=n)
        found = factorize(device, name, method, inputs, case(dtype))
        rest = scaled_rows(device, found, inputs)
        weights = device.to_host(found.relative).astype(np.float64)[
            device.to_host(found.row_of)[: found.padded]
        ]
        for k in range(n):
            sizes = np.abs(rest[k:, k]) * weights[k:]
            assert sizes[0] > (1 - 2**-12) * sizes.max(), (n, k)
            rest[k + 1 :] -= np.outer(rest[k + 1 :, k] / rest[k, k], rest[k])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_upper_of_equal_rows_is_the_pivot(device, dtype):
    """Elections are the same in every run: ties are decided by place."""
    n = 96
    a = np.where(np.arange(n)[:, None] >= np.arange(n)[None, :], 1, -1).astype(dtype)
    inputs = system(a, np.ones(n), dtype)
    orders = [
        device.to_host(
            factorize(
                device, "lu_blocked_panel", BlockedFactors, inputs, case(dtype), **SMALL
            ).row_of
        )[:n].tolist()
        for _ in range(2)
    ]
    assert orders[0] == orders[1]
    assert orders[0][0] == 0


@pytest.mark.parametrize("name", ["lu_graph", *ON_TENSOR_CORES])
@pytest.mark.parametrize("n", [256, 700, 1100])
def test_a_graph_gives_the_answer_of_its_launches(device, name, n):
    """Of several strips too, which streams eliminate beside updates."""
    check_it_runs(device, name)
    inputs = make(n, "spd" if name in CHOLESKY_ON_TENSOR_CORES else "random")
    step = runner.prepare(
        LAB, registry.find(LAB, name), device, inputs, case(), watch=runner.Stopwatch()
    )
    answers = set()
    for _ in range(4):
        step()
        answers.add(device.to_host(step.out).tobytes())
        device.copy(np.zeros(n, np.float32), step.out)
        assert "turning to" not in " ".join(step.notes)
    assert len(answers) == 1


def test_elections_have_room_for_all_rows():
    method = object.__new__(BlockedFactors)
    for method.max_threads in (64, 320, 640):
        for rows in (32, 64, 640, 704, 768, 800, 4096, 16_384, 65_536):
            blocks, threads = method.election(rows)
            assert threads % 32 == 0
            assert 64 <= threads <= method.max_threads
            assert (blocks - 1) * threads < rows <= blocks * threads
            assert blocks == 1 or rows > method.max_threads


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*DIRECT, "small"])
def test_a_permutation_is_undone_exactly(device, name, dtype):
    """Most rows are zero in all columns of a panel: an election must not lose the others."""
    n = 230
    order = np.random.default_rng(3).permutation(n)
    inputs = system(np.eye(n)[order], np.arange(n), dtype)
    variant = small_elections() if name == "small" else registry.find(LAB, name)
    step = runner.prepare(LAB, variant, device, inputs, case(dtype), watch=runner.Stopwatch())
    step()
    np.testing.assert_array_equal(device.to_host(step.out)[order], np.arange(n))
    assert "turning to" not in " ".join(step.notes)


def small_elections():
    variant = registry.find(LAB, "lu_blocked_panel")
    return dataclasses.replace(variant, defines={**variant.defines, **SMALL})


@pytest.mark.parametrize("dtype", DTYPES)
def test_elections_in_rounds_solve_and_refuse(device, dtype):
    small = small_elections()
    for dist in (*SOLVABLE, "singular"):
        inputs = make(230, dist, dtype)
        step = runner.prepare(LAB, small, device, inputs, case(dtype), watch=runner.Stopwatch())
        if dist == "singular":
            with pytest.raises(CudalabError, match="A is singular: in step 230 of 230"):
                step()
            # The verdict is that of a method that searches the whole column.
            assert "turning to lu_partial_pivot" in step.notes[-1]
        else:
            step()
            x = device.to_host(step.out)
            assert LAB.compare(x, inputs, case(dtype)) is None, dist
