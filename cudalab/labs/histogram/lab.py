"""Counts how many elements fall into each class"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from cudalab.errors import UsageError, nearest
from cudalab.formats import InputStream, as_bytes, why_unwritable
from cudalab.labs.base import Lab, Option
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.histogram.plans import bad_element
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs
from cudalab.output import plots

BYTE_VALUES = 256
MAX_BINS = {"uint8": BYTE_VALUES, "uint32": 65_536}
# 4-byte counters in the 48 KB of shared memory that every block has, less two for other words.
SHARED_BINS = 12_286
CHUNK = 1 << 20  # elements drawn or counted at a time on the host


class Histogram(Lab):
    """Stream: int32 n, then n bytes. Answer: a uint32 count for each class, without a header.

    The class of a byte is byte * bins >> 8. With --dtype uint32 an element is its class.
    """

    name = "histogram"
    answer = "counts"
    axes: ClassVar = {"dtype": ("uint8", "uint32"), "classes": ("256", "64", "few", "many")}
    derived: ClassVar = frozenset({"classes"})
    options = (
        Option(
            "--bins", int, "Number of classes: up to 256 for bytes, 65536 for uint32.", default=256
        ),
        Option(
            "--plot",
            str,
            "Draw the histogram: to a .svg, .png or .pdf FILE, or else on stderr.",
            bare=plots.TERMINAL,
            runs_only=True,
        ),
    )
    distributions = (
        "uniform",
        "normal",
        "binomial",
        "poisson",
        "exponential",
        "geometric",
        "zipf",
        "equal",
        "one-hot",
    )

    def complete(self, options: Case) -> Case:
        """Add the axis `classes`, by which variants' headers refer to the number of classes.

        "few" classes fit in the shared memory of a block, "many" do not. A caller that names only
        `classes` gets a suitable number of bins.
        """
        case = super().complete(options)
        dtype = case["dtype"]
        bins = options.get("bins")
        if bins is None:
            few = 100 if dtype == "uint8" else 1000
            bins_of = {"256": 256, "64": 64, "few": few, "many": 65_536}
            bins = bins_of[options.get("classes") or "256"]
        if not 1 <= bins <= MAX_BINS[dtype]:
            raise UsageError(
                f"--bins {bins}: {dtype} elements have 1 to {MAX_BINS[dtype]:,} classes",
                hint="--dtype uint32 has up to 65,536 classes" if dtype == "uint8" else None,
            )
        if "plot" in case:
            target = case["plot"]
            reason = why_unwritable(Path(target)) if target != plots.TERMINAL else None
            if reason:
                raise UsageError(f"--plot {target}: {reason}")
            plots.check_target(target, "--plot without a name draws in the terminal")
        classes = str(bins) if bins in (64, 256) else "few" if bins <= SHARED_BINS else "many"
        return case | {"bins": bins, "classes": classes}

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, the element type in C, and NUM_BINS, the number of classes."""
        return super().kernel_defines(case) | {"NUM_BINS": case["bins"]}

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header, int32 n ≥ 0; n elements of the case's dtype follow."""
        (n,) = stream.header("n")
        payload = stream.payload("elements", case["dtype"], n)
        return StreamInputs({"elements": payload}, {"n": n, "stream": stream.name})

    def answer_form(self, inputs: Inputs, case: Case) -> tuple[tuple[int, ...], str]:
        """One count for each class."""
        del inputs
        return (case["bins"],), "uint32"

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """Zeros if there are no elements."""
        return None if inputs.params["n"] else np.zeros(case["bins"], np.uint32)

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate bytes, or classes below `bins`, with the probabilities of `dist`."""
        if not isinstance(n, int):
            raise UsageError(f"histogram has no data of shape {n}", hint="give one size")
        raw = np.random.PCG64(seed)
        values = BYTE_VALUES if case["dtype"] == "uint8" else case["bins"]
        bounds = thresholds(dist, values, raw.random_raw() % values)
        return self._pieces(raw, bounds, np.dtype(case["dtype"]), n)

    def _pieces(
        self, raw: np.random.PCG64, bounds: Array, dtype: np.dtype[np.generic], n: int
    ) -> Iterator[memoryview | bytes]:
        yield np.array([n], "<i4").tobytes()
        draw = Sampler(bounds, dtype)
        for start in range(0, n, CHUNK):
            count = min(CHUNK, n - start)
            bits = raw.random_raw(-(-count // 2)).astype("<u8").view("<u4")
            yield as_bytes(draw(bits[:count]))

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Count with NumPy's bincount, piece by piece. InputError for an invalid class."""
        data, bins = inputs.arrays["elements"], case["bins"]
        is_bytes = case["dtype"] == "uint8"
        counts = np.zeros(BYTE_VALUES if is_bytes else bins, np.int64)
        for start in range(0, len(data), CHUNK):
            piece = data[start : start + CHUNK]
            if not is_bytes and int(piece.max()) >= bins:
                index = start + int(np.argmax(piece >= bins))
                raise bad_element(inputs.params, index, int(data[index]), bins)
            counts += np.bincount(piece, minlength=len(counts))
        if is_bytes:
            value_counts = counts
            counts = np.zeros(bins, np.int64)
            np.add.at(counts, np.arange(BYTE_VALUES) * bins >> 8, value_counts)
        return counts.astype(np.uint32)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare exactly; the findings say whether elements were lost or counted twice."""
        mismatches = compare_exact(got, self.reference(inputs, case))
        if mismatches is not None:
            n, total = inputs.params["n"], int(got.sum(dtype=np.uint64))
            mismatches.findings.append(
                f"the counts add up to {total:,}, as they must: elements are in wrong classes"
                if total == n
                else f"the counts add up to {total:,}, but there are {n:,} elements"
            )
        return mismatches

    def finish(self, answer: Callable[[], Array], case: Case) -> None:
        """Draw the histogram if there is a `--plot`."""
        if "plot" in case:
            plots.draw(self.show(answer(), case), case["plot"])

    def show(self, counts: Array, case: Case) -> plots.Bars:
        """The content of a plot of the answer `counts`."""
        bins = case["bins"]
        firsts = classes_of_bytes(bins) if case["dtype"] == "uint8" else list(range(bins + 1))
        total = int(counts.sum(dtype=np.uint64))
        title = f"{total:,} elements in {bins:,} class" + ("es" if bins > 1 else "")
        return plots.Bars(title, "byte" if case["dtype"] == "uint8" else "class", counts, firsts)


LAB = Histogram()


def classes_of_bytes(bins: int) -> list[int]:
    """The first byte of each class, and then 256; a class may be empty."""
    return [-(-BYTE_VALUES * c // bins) for c in range(bins + 1)]


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
            raise UsageError(f"histogram has no distribution {name}", hint=nearest(name, _WEIGHTS))
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
