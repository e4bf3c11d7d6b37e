"""How far predictions are from measurements."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from cudalab.predict import model
from cudalab.predict.gpus import Gpu
from cudalab.predict.model import Constants
from tools.predict.stored import Pair, number_of

TIE = 0.05  # rungs that were measured closer than this have no order
NEAR = 1.5  # a factor, between a prediction and a measurement, that counts as right


def recomputed(pair: Pair, gpu: Gpu, k: Constants) -> float:
    """The seconds that the model predicts now."""
    return model.seconds(pair.rung.kernels or [], gpu, k)


@dataclass(frozen=True, kw_only=True)
class Score:
    """How far predictions are from measurements."""

    rungs: int
    ordered: int  # pairs of rungs in the right order
    decided: int  # pairs that the measurement decides
    near: int  # neighbours whose factor is within NEAR
    neighbours: int
    errors: tuple[float, ...]  # of the times, as factors of at least 1

    @property
    def tau(self) -> float:
        """Kendall's tau; pairs that were measured within TIE are left out."""
        return 2 * self.ordered / self.decided - 1 if self.decided else 1.0

    @property
    def median(self) -> float:
        """The factor by which half of the times are off at most."""
        return sorted(self.errors)[len(self.errors) // 2]

    @property
    def within(self) -> int:
        """How many times are off by a factor of NEAR at most."""
        return sum(error <= NEAR for error in self.errors)


def score(rungs: Sequence[tuple[float, float]]) -> Score:
    """Score one ladder: predicted and measured times, in its order."""
    decided = [
        (a > b) == (x > y) for (a, x), (b, y) in combinations(rungs, 2) if abs(x / y - 1) > TIE
    ]
    factors = [(a / b) / (x / y) for (a, x), (b, y) in pairwise(rungs)]
    return Score(
        rungs=len(rungs),
        ordered=sum(decided),
        decided=len(decided),
        near=sum(off(factor) <= NEAR for factor in factors),
        neighbours=len(factors),
        errors=tuple(off(a / x) for a, x in rungs),
    )


def off(factor: float) -> float:
    """A factor, or its inverse, whichever is above 1."""
    return max(factor, 1 / factor)


def total(scores: Iterable[Score]) -> Score:
    """All ladders together; only rungs of one ladder are compared with each other."""
    every = list(scores)
    return Score(
        rungs=sum(one.rungs for one in every),
        ordered=sum(one.ordered for one in every),
        decided=sum(one.decided for one in every),
        near=sum(one.near for one in every),
        neighbours=sum(one.neighbours for one in every),
        errors=tuple(error for one in every for error in one.errors),
    )


def ladders(
    found: Sequence[Pair], times: Sequence[float]
) -> dict[tuple[str, str], list[tuple[Pair, float]]]:
    """The rungs with their times, by lab and size, in the order of the ladder."""
    result: dict[tuple[str, str], list[tuple[Pair, float]]] = {}
    for pair, time in sorted(zip(found, times, strict=True), key=lambda one: one[0].order):
        result.setdefault((pair.lab, pair.size), []).append((pair, time))
    return dict(sorted(result.items(), key=lambda one: (one[0][0], number_of(one[0][1]))))
