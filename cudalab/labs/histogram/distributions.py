"""Elements of a named distribution, the same on every platform.

A distribution is a table of thresholds: a random 32-bit number below the first gives value 0, below
the second value 1, and so on. Probabilities are computed in decimal arithmetic of 40 digits, which
is defined to the last digit, so that all platforms have the same table.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache

import numpy as np

from cudalab.errors import UsageError, nearest
from cudalab.labs.inputs import Array


class Sampler:
    """Turns random 32-bit numbers into values by comparing them with thresholds."""

    def __init__(self, bounds: Array, dtype: np.dtype[np.generic]) -> None:
        """Precompute the value for those upper 16 bits that determine it."""
        self.bounds = bounds
        slots = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
        low = np.searchsorted(bounds, slots, "right")
        high = np.searchsorted(bounds, slots | np.uint32(0xFFFF), "right")
        self.values = low.astype(dtype)
        self.ambiguous = low != high

    def __call__(self, bits: Array) -> Array:
        """The value of each number in `bits`."""
        slots = bits >> np.uint32(16)
        drawn: Array = self.values[slots]
        rest = np.flatnonzero(self.ambiguous[slots])
        drawn[rest] = np.searchsorted(self.bounds, bits[rest], "right")
        return drawn


def cumulative(weights: list[Decimal]) -> Array:
    """The thresholds: 2^32 times the cumulative probabilities, without the last."""
    with localcontext(_EXACT):
        total = sum(weights)
        if not total > 0:
            raise UsageError("no value has a probability above zero")
        below, bounds = Decimal(0), []
        for weight in weights:
            below += weight
            bounds.append(int(below * 2**32 / total))
    # No number reaches a threshold of 2^32: the value after it is never drawn.
    return np.array([bound for bound in bounds if bound < 2**32], np.uint32)


_EXACT = Context(prec=40, Emin=MIN_EMIN, Emax=MAX_EMAX)


def thresholds(dist: str, values: int, chosen: int) -> Array:
    """The thresholds of a distribution; `chosen` as for `weights`."""
    depends = dist.partition(":")[0] in ("equal", "one-hot")
    return _thresholds(dist, values, chosen if depends else 0)


@lru_cache(maxsize=64)  # exact arithmetic takes longer than drawing a short array
def _thresholds(dist: str, values: int, chosen: int) -> Array:
    return cumulative(weights(dist, values, chosen))


def weights(dist: str, values: int, chosen: int) -> list[Decimal]:
    """The weights of all values; `chosen` is a random value, for `equal` and `one-hot`."""
    name, _, text = dist.partition(":")
    with localcontext(_EXACT):
        make = _WEIGHTS.get(name)
        if make is None:
            raise UsageError(
                f"histogram has no distribution {name}",
                hint=nearest(name, _WEIGHTS),
            )
        return make(_Parameters(dist, text, chosen), values)


class _Parameters:
    """The numbers after a distribution's colon, and a random value for those that need one."""

    def __init__(self, dist: str, text: str, chosen: int) -> None:
        self.dist, self.chosen = dist, chosen
        try:
            self.numbers = [Decimal(part) for part in text.split(",")] if text else []
        except InvalidOperation:
            raise self.error("expected numbers, separated by commas") from None

    def take(
        self, *defaults: Decimal, above: float = 0, up_to: float = float("inf")
    ) -> list[Decimal]:
        """Return one number for each default, in (above, up_to]."""
        if len(self.numbers) > len(defaults):
            raise self.error(f"at most {len(defaults)} parameters")
        for number in self.numbers:
            if not (number.is_finite() and above < number <= up_to):
                limit = "" if up_to == float("inf") else f" and at most {up_to:g}"
                raise self.error(f"{number} is not above {above:g}{limit}")
        return [*self.numbers, *defaults[len(self.numbers) :]]

    def error(self, message: str) -> UsageError:
        return UsageError(f"--dist {self.dist}: {message}")


def _uniform(parameters: _Parameters, values: int) -> list[Decimal]:
    parameters.take()
    return [Decimal(1)] * values


def _normal(parameters: _Parameters, values: int) -> list[Decimal]:
    """normal:DEVIATION,MEAN; by default an eighth of the range, and its middle."""
    deviation, mean = parameters.take(Decimal(values) / 8, Decimal(values - 1) / 2)
    return [(-(((v - mean) / deviation) ** 2) / 2).exp() for v in range(values)]


def _binomial(parameters: _Parameters, values: int) -> list[Decimal]:
    """binomial:P, by default 0.5; the number of trials is the greatest value."""
    (p,) = parameters.take(Decimal("0.5"), up_to=0.999999)
    weight, all_weights = Decimal(1), []
    for v in range(values):
        all_weights.append(weight)
        weight = weight * (values - 1 - v) / (v + 1) * p / (1 - p)
    return all_weights


def _poisson(parameters: _Parameters, values: int) -> list[Decimal]:
    """poisson:MEAN; by default a quarter of the range."""
    (mean,) = parameters.take(Decimal(values) / 4)
    weight, all_weights = Decimal(1), []
    for v in range(values):
        all_weights.append(weight)
        weight = weight * mean / (v + 1)
    return all_weights


def _exponential(parameters: _Parameters, values: int) -> list[Decimal]:
    """exponential:MEAN, rounded down; by default an eighth of the range."""
    (mean,) = parameters.take(Decimal(values) / 8)
    return _powers((-1 / mean).exp(), values)


def _geometric(parameters: _Parameters, values: int) -> list[Decimal]:
    """geometric:P, the number of failures before the first success; by default 0.25."""
    (p,) = parameters.take(Decimal("0.25"), up_to=1)
    return _powers(1 - p, values)


def _powers(ratio: Decimal, values: int) -> list[Decimal]:
    all_weights = [Decimal(1)]
    while len(all_weights) < values:
        all_weights.append(all_weights[-1] * ratio)
    return all_weights


def _zipf(parameters: _Parameters, values: int) -> list[Decimal]:
    """zipf:S, weight (v + 1)^-S for value v; by default 1."""
    (s,) = parameters.take(Decimal(1))
    return [Decimal(v) ** -s for v in range(1, values + 1)]


def _equal(parameters: _Parameters, values: int) -> list[Decimal]:
    """equal:VALUE; by default a random one."""
    (value,) = parameters.take(Decimal(parameters.chosen), above=-1, up_to=values - 1)
    if value != int(value):
        raise parameters.error(f"{value} is not a whole number")
    return [Decimal(int(v == value)) for v in range(values)]


def _one_hot(parameters: _Parameters, values: int) -> list[Decimal]:
    """one-hot:SHARE for one random value, the rest uniform; by default half."""
    (share,) = parameters.take(Decimal("0.5"), up_to=1)
    rest = (1 - share) / values
    return [rest + share if v == parameters.chosen else rest for v in range(values)]


_WEIGHTS: dict[str, Callable[[_Parameters, int], list[Decimal]]] = {
    "uniform": _uniform,
    "normal": _normal,
    "binomial": _binomial,
    "poisson": _poisson,
    "exponential": _exponential,
    "geometric": _geometric,
    "zipf": _zipf,
    "equal": _equal,
    "one-hot": _one_hot,
}
