"""The statistics of samples: medians and quartiles, so that a few slow samples have no effect.

Resampling uses the raw output of PCG64, so that the same samples give the same interval
everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from statistics import NormalDist
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

RESAMPLES = 2000
CONFIDENCE = 0.95
# In a normal distribution the quartiles are 1.349 standard deviations apart, and the standard
# error of the median of n samples is sqrt(pi / 2) standard deviations / sqrt(n).
QUARTILES_APART = 1.349
MEDIAN_SCATTER = 1.2533
# The modified Z-score 0.6745 * |x - median| / MAD above which a sample is an outlier. It is higher
# than usual for normal noise, because timings have a heavy tail on one side.
OUTLIER_SCORE = 14.0
MIN_PAIRS = 5  # rounds with samples of both, from which on samples are resampled in pairs


def median(samples: Sequence[float]) -> float:
    """The middle sample, or the mean of the two in the middle."""
    return float(np.median(samples))


def noise(samples: Sequence[float]) -> float:
    """The standard deviation, estimated from the quartiles, relative to the median."""
    if len(samples) < 2:
        return float("inf")
    low, middle, high = np.quantile(samples, [0.25, 0.5, 0.75])
    return float((high - low) / QUARTILES_APART / middle) if middle > 0 else 0.0


def error(samples: Sequence[float]) -> float:
    """The standard error of the median, relative to the median."""
    return MEDIAN_SCATTER * noise(samples) / len(samples) ** 0.5 if samples else float("inf")


def outliers(samples: Sequence[float]) -> list[int]:
    """The indices of samples far from the others."""
    if len(samples) < 3:
        return []
    distances = np.abs(np.asarray(samples) - np.median(samples))
    typical = float(np.median(distances))
    if typical == 0:  # most samples are equal; this is about a timer's resolution for a short time
        typical = 0.005 * float(np.median(samples))
    return [int(i) for i in np.flatnonzero(0.6745 * distances > OUTLIER_SCORE * typical)]


@dataclass(frozen=True)
class Ratio:
    """How many times longer one takes than the other, with a confidence interval."""

    value: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether one of the two is faster: the interval does not include 1."""
        return not self.low <= 1 <= self.high

    def inverse(self) -> Ratio:
        """The ratio with the two exchanged."""
        return Ratio(1 / self.value, 1 / self.high, 1 / self.low)


def ratio(of: Mapping[int, float], to: Mapping[int, float]) -> Ratio:
    """The ratio of the medians with its bootstrap interval; samples are mappings by round.

    Rounds with samples of both are resampled in pairs: whatever slows both down in a round, such
    as a lower clock, affects both medians and cancels. Samples without a partner, for example of
    the faster row, which gets more samples, are resampled independently.
    """
    rounds = sorted(of.keys() & to.keys())
    if len(rounds) < MIN_PAIRS:
        rounds = []
    pairs = _picks(len(rounds), 0)
    ratios = _medians(of, rounds, pairs, 1) / _medians(to, rounds, pairs, 2)
    value = median(list(of.values())) / median(list(to.values()))
    return _between(value, ratios, CONFIDENCE)


def _between(value: float, ratios: Array, confidence: float) -> Ratio:
    """The ratio with the interval that has so much of the resampled `ratios`."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return Ratio(value, min(float(low), value), max(float(high), value))


def _medians(samples: Mapping[int, float], rounds: list[int], pairs: Array, seed: int) -> Array:
    """Medians of RESAMPLES resamples: `pairs` index `rounds`, other samples are drawn by `seed`."""
    common = np.array([samples[r] for r in rounds])
    others = np.array([samples[r] for r in sorted(samples.keys() - rounds)])
    resampled = np.hstack([common[pairs], others[_picks(len(others), seed)]])
    medians: Array = np.median(resampled, axis=1)
    return medians


def independent_ratio(of: Sequence[float], to: Sequence[float], confidence: float) -> Ratio:
    """The ratio for samples of different runs, which have no common rounds.

    A busy machine or a falling clock slows down several samples in a row, and nothing that the
    other run has seen cancels it. So blocks of consecutive samples are resampled: samples that say
    the same make the interval no narrower. Few blocks show too little of the scatter, for which
    Student's distribution makes up.
    """
    block_of = [isqrt(len(samples)) for samples in (of, to)]
    medians = [
        np.median(np.array(samples)[_picks(len(samples), seed, block=block_of[seed])], axis=1)
        for seed, samples in enumerate((of, to))
    ]
    narrow = _between(median(of) / median(to), medians[0] / medians[1], confidence)
    blocks = sum(-(-len(one) // block) for one, block in zip((of, to), block_of, strict=True))
    wider = _student(confidence, max(blocks - 2, 1))
    low, high = ((end / narrow.value) ** wider * narrow.value for end in (narrow.low, narrow.high))
    return Ratio(narrow.value, low, high)


def _student(confidence: float, freedom: int) -> float:
    """How much wider Student's interval is than the normal distribution's, by their expansion."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    first, second = (z**2 + 1) / 4, (5 * z**4 + 16 * z**2 + 3) / 96
    return 1 + first / freedom + second / freedom**2


def _picks(n: int, seed: int, *, block: int = 1) -> Array:
    """RESAMPLES rows of n indices below n, in blocks of consecutive ones."""
    blocks = -(-n // block)
    raw = np.random.PCG64(seed).random_raw(RESAMPLES * blocks)
    first = (raw >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)
    picks = first.astype(np.intp).reshape(RESAMPLES, blocks, 1) + np.arange(block)
    return picks.reshape(RESAMPLES, blocks * block)[:, :n] % max(n, 1)
