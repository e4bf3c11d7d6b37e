"""The solve lab: which method a matrix gets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from solving import (
    ITERATIONS,
    LAB,
    ON_TENSOR_CORES,
    VARIANTS,
    case,
    check_it_runs,
    compute,
    make,
    system,
)

from cudalab import runner
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.solve import systems
from cudalab.labs.solve.lab import quick_iteration


def dominant(n, factor, *, symmetric=False):
    a = systems.draw(n, "random", 4, np.dtype("float64"))[0]
    a = a + a.T if symmetric else a
    np.fill_diagonal(a, 0)
    np.fill_diagonal(a, factor * np.abs(a).sum(axis=1).max())
    return a.astype(np.float32)


def test_the_policy_chooses_by_the_matrix():
    assert quick_iteration(dominant(400, 2), 1e-5)[0] == "jacobi"
    name = "conjugate_gradient_scaled"
    assert quick_iteration(dominant(400, 1.1, symmetric=True), 1e-5)[0] == name
    for a, why in [
        (make(100, "random").arrays["a"], "not strictly diagonally dominant"),
        (make(400, "tridiagonal").arrays["a"], "not strictly diagonally dominant"),
        (make(400, "pivot").arrays["a"], "not strictly diagonally dominant"),
        (np.full((300, 300), np.nan, np.float32), "not strictly diagonally dominant"),
        (dominant(200, 1.01), "which is not much"),
    ]:
        variant, reason = quick_iteration(a, 1e-5)
        assert variant is None
        assert why in reason


def test_the_policy_keeps_its_promise_about_iterations(device):
    for a in (dominant(200, 3), dominant(200, 1.5, symmetric=True)):
        inputs = system(a, np.ones(200))
        x, notes = compute(device, None, inputs, case())
        assert LAB.compare(x, inputs, case()) is None
        assert notes[0].startswith("auto: ")
        promised = int(notes[0].split("about ")[1].split()[0])
        assert int(notes[-1].split()[1]) <= promised + 4  # measured at every fourth or later


def test_the_policy_says_what_it_did(device):
    direct = registry.default(LAB, case(), device.name).name
    for dist, variant in [
        ("random", direct),
        ("unsymmetric", "jacobi"),
        ("dominant", "conjugate_gradient_scaled"),
    ]:
        inputs = make(200, dist)
        x, notes = compute(device, None, inputs, case())
        assert LAB.compare(x, inputs, case()) is None
        assert notes[0].startswith(f"auto: {variant}: ")
        assert notes[-1].startswith(f"{variant}: ")
        assert "residual" in notes[-1]


def test_a_policy_that_was_wrong_turns_to_lu(device):
    """An iteration that the policy chose, and that then does not converge or does not apply."""
    for name, dist, max_iter in [
        ("conjugate_gradient", "random", 1000),
        ("conjugate_gradient_scaled", "random", 1000),
        ("conjugate_gradient_scaled", "tridiagonal", 3),
        ("jacobi", "tridiagonal", 3),
        ("richardson", "pivot", 1000),
    ]:
        inputs = make(70, dist)
        inputs.params["policy"] = "auto: a wrong guess"
        x, notes = compute(device, name, inputs, case(max_iter=max_iter))
        assert LAB.compare(x, inputs, case()) is None
        assert notes[0] == "auto: a wrong guess"
        assert "turning to lu_partial_pivot" in " ".join(notes)
        assert notes[-1].startswith("lu_partial_pivot: ")


def test_the_policy_reads_a_stream_in_order(device, tmp_path):
    path = tmp_path / "in.bin"
    path.write_bytes(b"".join(LAB.generate(case(), 100, "dominant", 9)))
    with path.open("rb") as file:
        inputs = LAB.read(InputStream(file.fileno()), case())
        x, _ = compute(device, None, inputs, case())
    assert LAB.compare(x, make(100, "dominant", seed=9), case()) is None


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_step_can_be_repeated(device, variant):
    check_it_runs(device, variant.name)
    inputs = make(40, "dominant")
    step = runner.prepare(LAB, variant, device, inputs, case(), watch=runner.Stopwatch())
    answers = []
    for _ in range(4):  # a graph is launched, recorded, and repeated
        step()
        answers.append((device.to_host(step.out).tobytes(), list(step.notes)))
        device.copy(np.zeros(40, np.float32), step.out)
    assert all(answer == answers[0] for answer in answers)


def test_every_row_of_the_ladder_is_there():
    assert [variant.name for variant in VARIANTS] == [
        *ITERATIONS, "gauss_jordan", "lu_partial_pivot", "lu_substitution_chain",
        "lu_elected_panel", "lu_blocked_panel", "lu_graph", *ON_TENSOR_CORES, "complete_pivot",
    ]  # fmt: skip
    assert all(one.order < two.order for one, two in pairwise(VARIANTS))
