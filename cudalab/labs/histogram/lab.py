"""Counts how many elements fall into each class"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cudalab.errors import UsageError
from cudalab.formats import as_bytes, why_unwritable
from cudalab.labs.base import Lab, Option
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.histogram import plans
from cudalab.labs.histogram.plans import bad_element
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs
from cudalab.output import plots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cudalab.formats import InputStream

BYTE_VALUES = 256
MAX_BINS = {"uint8": BYTE_VALUES, "uint32": 65_536}
# Counters of 4 bytes in the 48 KB of shared memory that every block has, less two for other words.
SHARED_BINS = 12_286
CHUNK = 1 << 20  # elements drawn or counted at a time on the host


class Histogram(Lab):
    """Stream: int32 n, then n bytes. Answer: uint32 counts, one a class, without a header.

    The class of a byte is byte * bins >> 8. With --dtype uint32 an element is its class.
    """

    name = "histogram"
    plans: ClassVar = plans
    axes: ClassVar = {"dtype": ("uint8", "uint32"), "classes": ("256", "64", "few", "many")}
    derived: ClassVar = frozenset({"classes"})
    options = (
        Option(
            "--bins", int, "Number of classes: up to 256 for bytes, 65536 for uint32.", default=256
        ),
        Option(
            "--plot",
            str,
            "Draw the histogram: to a .png or .svg FILE, or else on stderr.",
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

    def complete(self, given: Case) -> Case:
        """Add how many classes there are, in the words of the variants' headers.

        "few" fit the shared memory of a block, "many" do not. A caller that names `classes` alone
        gets a number of bins of that kind.
        """
        case = super().complete(given)
        dtype = case["dtype"]
        bins = given.get("bins")
        if bins is None:
            few = 100 if dtype == "uint8" else 1000
            of_kind = {"256": 256, "64": 64, "few": few, "many": 65_536}
            bins = of_kind[given.get("classes") or "256"]
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
            plots.check_target(target)
        classes = str(bins) if bins in (64, 256) else "few" if bins <= SHARED_BINS else "many"
        return case | {"bins": bins, "classes": classes}

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, the element type in C, and NUM_BINS, the number of classes."""
        return super().kernel_defines(case) | {"NUM_BINS": case["bins"]}

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Header int32 n ≥ 0, then n elements of the case's dtype."""
        (n,) = stream.header("n")
        payload = stream.payload("elements", case["dtype"], n)
        return StreamInputs({"elements": payload}, {"n": n, "stream": stream.name})

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """One count a class."""
        del inputs
        return stream.payload("counts", np.uint32, case["bins"]).array()

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """No elements: all counts are zero."""
        return None if inputs.params["n"] else np.zeros(case["bins"], np.uint32)

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Bytes of any value, or classes below `bins`, with the probabilities of `dist`."""
        if not isinstance(n, int):
            raise UsageError(f"histogram has no data of shape {n}", hint="give one size")
        raw = np.random.PCG64(seed)
        values = BYTE_VALUES if case["dtype"] == "uint8" else case["bins"]
        bounds = cumulative(weights(dist, values, raw.random_raw() % values))
        return self._pieces(raw, bounds, np.dtype(case["dtype"]), n)

    def _pieces(
        self, raw: np.random.PCG64, bounds: Array, dtype: np.dtype[np.generic], n: int
    ) -> Iterator[memoryview | bytes]:
        yield np.array([n], "<i4").tobytes()
        draw = Sampler(bounds, dtype)
        for start in range(0, n, CHUNK):
            bits = raw.random_raw(CHUNK // 2).astype("<u8").view("<u4")
            yield as_bytes(draw(bits[: n - start]))

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """NumPy's bincount, piece by piece. InputError for an element that is no class."""
        data, bins = inputs.arrays["elements"], case["bins"]
        of_bytes = case["dtype"] == "uint8"
        counts = np.zeros(BYTE_VALUES if of_bytes else bins, np.int64)
        for start in range(0, len(data), CHUNK):
            piece = data[start : start + CHUNK]
            if not of_bytes and int(piece.max()) >= bins:
                index = start + int(np.argmax(piece >= bins))
                raise bad_element(inputs.params, index, int(data[index]), bins)
            counts += np.bincount(piece, minlength=len(counts))
        if of_bytes:
            value_counts = counts
            counts = np.zeros(bins, np.int64)
            np.add.at(counts, np.arange(BYTE_VALUES) * bins >> 8, value_counts)
        return counts.astype(np.uint32)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Exact; says when elements were lost or counted twice."""
        found = compare_exact(got, self.reference(inputs, case))
        if found is not None:
            n, total = inputs.params["n"], int(got.sum(dtype=np.uint64))
            found.findings.append(
                f"the counts add up to {total:,}, as they must: elements are in wrong classes"
                if total == n
                else f"the counts add up to {total:,}, but there are {n:,} elements"
            )
        return found

    def finish(self, answer: Callable[[], Array], case: Case) -> None:
        """Draw what `--plot` asks for."""
        if "plot" in case:
            plots.draw(self.show(answer(), case), case["plot"])

    def show(self, counts: Array, case: Case) -> plots.Bars:
        """What a drawing of the answer `counts` shows."""
        bins = case["bins"]
        if case["dtype"] == "uint8":
            # The least byte of class c: byte * bins >> 8 >= c. Empty classes are possible.
            firsts = [-(-BYTE_VALUES * c // bins) for c in range(bins + 1)]
        else:
            firsts = list(range(bins + 1))
        total = int(counts.sum(dtype=np.uint64))
        title = f"{total:,} elements in {bins:,} class" + ("es" if bins > 1 else "")
        return plots.Bars(title, "byte" if case["dtype"] == "uint8" else "class", counts, firsts)


LAB = Histogram()


# Data. A distribution is a table of thresholds: a random 32-bit number below the first gives value
# 0, below the second value 1, and so on. Probabilities are computed in decimal arithmetic of 40
# digits, which is defined to the last digit, so that all platforms have the same table.


class Sampler:
    """Turns random 32-bit numbers into values, by thresholds."""

    def __init__(self, bounds: Array, dtype: np.dtype[np.generic]) -> None:
        """Precompute the value where the upper 16 bits decide it."""
        self.bounds = bounds
        slots = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
        low = np.searchsorted(bounds, slots, "right")
        high = np.searchsorted(bounds, slots | np.uint32(0xFFFF), "right")
        self.values = low.astype(dtype)
        self.undecided = low != high

    def __call__(self, bits: Array) -> Array:
        """The value of each number in `bits`."""
        slots = bits >> np.uint32(16)
        drawn: Array = self.values[slots]
        rest = np.flatnonzero(self.undecided[slots])
        drawn[rest] = np.searchsorted(self.bounds, bits[rest], "right")
        return drawn


def cumulative(weights: list[Decimal]) -> Array:
    """Thresholds of 2^32 times the probability of all values up to one; the last is left out."""
    with localcontext(_EXACT):
        total = sum(weights)
        if not total > 0:
            raise UsageError("no value has a probability above zero")
        below, bounds = Decimal(0), []
        for weight in weights:
            below += weight
            bounds.append(int(below * 2**32 / total))
    # A threshold of 2^32 is reached by no number: the value after it is never drawn.
    return np.array([bound for bound in bounds if bound < 2**32], np.uint32)


_EXACT = Context(prec=40, Emin=MIN_EMIN, Emax=MAX_EMAX)


def weights(dist: str, values: int, chosen: int) -> list[Decimal]:
    """How likely each of `values` values is, up to a common factor. `chosen`: one at random."""
    name, _, text = dist.partition(":")
    with localcontext(_EXACT):
        make = _WEIGHTS.get(name)
        if make is None:
            raise UsageError(
                f"histogram has no distribution {name}",
                hint=f"expected one of {', '.join(_WEIGHTS)}",
            )
        return make(_Parameters(dist, text), values, chosen)


class _Parameters:
    """The numbers behind a distribution's colon."""

    def __init__(self, dist: str, text: str) -> None:
        self.dist = dist
        try:
            self.given = [Decimal(part) for part in text.split(",")] if text else []
        except InvalidOperation:
            raise self.error("expected numbers, separated by commas") from None

    def take(
        self, *defaults: Decimal, least: float = 0, most: float = float("inf")
    ) -> list[Decimal]:
        """One number for each default, above `least` and up to `most`."""
        if len(self.given) > len(defaults):
            raise self.error(f"at most {len(defaults)} parameters")
        for number in self.given:
            if not (number.is_finite() and least < number <= most):
                limit = "" if most == float("inf") else f" and at most {most:g}"
                raise self.error(f"{number} is not above {least:g}{limit}")
        return [*self.given, *defaults[len(self.given) :]]

    def error(self, message: str) -> UsageError:
        return UsageError(f"--dist {self.dist}: {message}")


def _uniform(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    del chosen
    parameters.take()
    return [Decimal(1)] * values


def _normal(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """normal:DEVIATION,MEAN; by default an eighth of the range, its middle."""
    del chosen
    deviation, mean = parameters.take(Decimal(values) / 8, Decimal(values - 1) / 2)
    return [(-(((v - mean) / deviation) ** 2) / 2).exp() for v in range(values)]


def _binomial(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """binomial:P; as many trials as the greatest value."""
    del chosen
    (p,) = parameters.take(Decimal("0.5"), most=0.999999)
    weight, all_weights = Decimal(1), []
    for v in range(values):
        all_weights.append(weight)
        weight = weight * (values - 1 - v) / (v + 1) * p / (1 - p)
    return all_weights


def _poisson(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """poisson:MEAN; by default a quarter of the range."""
    del chosen
    (mean,) = parameters.take(Decimal(values) / 4)
    weight, all_weights = Decimal(1), []
    for v in range(values):
        all_weights.append(weight)
        weight = weight * mean / (v + 1)
    return all_weights


def _exponential(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """exponential:MEAN, rounded down; by default an eighth of the range."""
    del chosen
    (mean,) = parameters.take(Decimal(values) / 8)
    return _powers((-1 / mean).exp(), values)


def _geometric(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """geometric:P, the failures before the first success; by default 0.25."""
    del chosen
    (p,) = parameters.take(Decimal("0.25"), most=1)
    return _powers(1 - p, values)


def _powers(ratio: Decimal, values: int) -> list[Decimal]:
    all_weights = [Decimal(1)]
    while len(all_weights) < values:
        all_weights.append(all_weights[-1] * ratio)
    return all_weights


def _zipf(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """zipf:S, value v with (v + 1)^-S; by default 1."""
    del chosen
    (s,) = parameters.take(Decimal(1))
    return [Decimal(v) ** -s for v in range(1, values + 1)]


def _equal(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """equal:VALUE; by default one at random."""
    (value,) = parameters.take(Decimal(chosen), least=-1, most=values - 1)
    if value != int(value):
        raise parameters.error(f"{value} is not a whole number")
    return [Decimal(int(v == value)) for v in range(values)]


def _one_hot(parameters: _Parameters, values: int, chosen: int) -> list[Decimal]:
    """one-hot:SHARE of one value drawn at random, the rest uniform; by default half."""
    (share,) = parameters.take(Decimal("0.5"), most=1)
    rest = (1 - share) / values
    return [rest + share if v == chosen else rest for v in range(values)]


_WEIGHTS: dict[str, Callable[[_Parameters, int, int], list[Decimal]]] = {
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
