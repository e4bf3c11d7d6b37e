"""How far the model is from what was measured, computed from docs/results."""

from __future__ import annotations

import pytest

from cudalab.predict import ladder
from cudalab.predict.model import Constants
from tools.predict import fitting, scores, stored, tables


@pytest.fixture(scope="module")
def h100():
    return stored.pairs(stored.FITTED_ON)


def test_the_stored_times_are_those_of_the_model(h100):
    gpu, found = h100
    for pair in found:
        now_ms = 1e3 * scores.recomputed(pair, gpu, Constants())
        assert now_ms == pytest.approx(pair.rung.ms, rel=1e-3), pair.variant


def test_the_fit_finds_the_constants(h100):
    gpu, _ = h100
    fitted = fitting.fit()
    for name, value in {**vars(Constants()), "launch_us": gpu.launch_us}.items():
        assert fitted[name] == pytest.approx(value, rel=0.06), name


def test_order_factors_and_times_of_the_h100(h100):
    _, found = h100
    each = scores.ladders(found, [pair.rung.ms / 1e3 for pair in found])
    rungs = [[(time, pair.measured_s) for pair, time in one] for one in each.values()]
    whole = scores.total(map(scores.score, rungs))
    assert whole.rungs >= 91
    assert round(whole.tau, 2) >= 0.87
    assert whole.near / whole.neighbours >= 0.83
    assert whole.median <= 1.13
    assert scores.NEAR == ladder.INTERVAL
    assert whole.within / whole.rungs >= 0.9


@pytest.mark.parametrize("with_nvcc", [True, False])
def test_nine_of_ten_measured_times_lie_in_the_interval(with_nvcc):
    within = []
    for name in tables.stored_names():
        gpu, found = stored.pairs(name, today=True)
        within += [tables.is_within(pair, gpu, with_nvcc=with_nvcc) for pair in found]
    assert len(within) > 500
    assert 0.9 <= sum(within) / len(within) <= 0.97  # and it is not wider than it need be


def test_a_score_by_hand():
    # Predicted and measured: a tie, a pair in the wrong order, and one in the right order.
    score = scores.score([(1.0, 1.0), (2.0, 1.02), (1.5, 3.0)])
    assert (score.ordered, score.decided) == (1, 2)
    assert score.tau == 0
    assert (score.near, score.neighbours) == (0, 2)
    assert score.errors == pytest.approx((1.0, 2.0 / 1.02, 2.0))
    assert score.median == pytest.approx(2.0 / 1.02)
