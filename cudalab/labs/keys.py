"""Keys: their order by bits, their data, and the part that all sorting labs share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from cudalab.formats import as_bytes
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.inputs import Array, Case, HostInputs, Size, ends, patterns, special
from cudalab.labs.kinds import ArrayLab

BOUND = 1_000_000  # above the integers of the distribution `bounded`
JOINED = {"entropy-0.544": 3, "entropy-0.201": 5}  # number of random patterns combined by "and"


class KeySort(ArrayLab):
    """A lab that sorts keys: everything but its launch plans."""

    elements, answer = "keys", "sorted keys"
    distributions: ClassVar[tuple[str, ...]] = (
        "uniform",
        "sorted",
        "reversed",
        "equal",
        "few",
        "half-equal",
        "top-byte",
        "bounded",
        "entropy-0.544",
        "entropy-0.201",
        "ends",
    )

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate random patterns, shaped by `dist`; float keys include NaNs and infinities."""
        (n,) = self.check_data(n, dist)
        yield np.array([n], "<i4").tobytes()
        yield as_bytes(draw(np.dtype(case["dtype"]), n, dist, seed))

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Sort with NumPy by the keys' bits, mapped so that unsigned order is key order."""
        del case
        keys = inputs.arrays["keys"]
        bits = ordered_bits(keys)
        bits.sort()
        return from_ordered_bits(bits, keys.dtype)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare exactly, and describe the kind of mistake."""
        expected = self.reference(inputs, case)
        mismatches = compare_exact(got, expected)
        if mismatches is None:
            return None
        bits = ordered_bits(got)
        descents = np.flatnonzero(bits[1:] < bits[:-1])
        if len(descents):
            places = "place" if len(descents) == 1 else "places"
            mismatches.findings.append(
                f"not sorted: element {descents[0] + 1} is smaller than element {descents[0]} "
                f"({len(descents):,} such {places})"
            )
            bits.sort()
        same_keys = bool((bits == ordered_bits(expected)).all())
        mismatches.findings.append(
            "the same multiset of keys: none lost, none invented"
            if same_keys
            else "not the same multiset: some keys of the input are missing, others were not there"
        )
        return mismatches


def ordered_bits(keys: Array, xp: Any = np) -> Array:
    """The bits of keys of NumPy or CuPy, mapped so that their unsigned order is the keys' order.

    int32: the sign bit flipped. float32: all bits of negatives flipped, the sign bit of the rest:
    -NaN < -inf < … < -0 < +0 < … < +inf < +NaN.
    """
    bits: Array = keys.view(f"u{keys.itemsize}")
    sign = bits.dtype.type(1 << (8 * keys.itemsize - 1))
    if keys.dtype.kind == "f":
        ordered: Array = xp.where(bits & sign, ~bits, bits | sign)
    else:
        ordered = bits ^ sign if keys.dtype.kind == "i" else bits.copy()
    return ordered


def from_ordered_bits(bits: Array, dtype: np.dtype[np.generic], xp: Any = np) -> Array:
    """The inverse of `ordered_bits`."""
    sign = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    if dtype.kind == "i":
        bits = bits ^ sign
    elif dtype.kind == "f":
        bits = xp.where(bits & sign, bits ^ sign, ~bits)
    return bits.view(dtype)


def draw(dtype: np.dtype[np.generic], n: int, dist: str, seed: int) -> Array:
    """Draw n keys from PCG64's raw output: the same seed gives the same bytes everywhere.

    `bounded` floats lie in [0, 1), and integers below a million. `ends` are those of the type; of
    floats every other one is a zero, a number near 0, an infinity or a NaN, of both signs. Every
    other `half-equal` key is the same. Low-entropy keys are the "and" of three or five random
    patterns, so that a bit is 1 in one of 8 or 32 keys (Thearling and Smith 1992, and CUB's
    benchmarks); the number is the entropy of a bit, in bits.
    """
    raw = np.random.PCG64(seed)
    bits = patterns(raw, n, dtype.itemsize)
    for _ in range(JOINED.get(dist, 1) - 1):
        bits = bits & patterns(raw, n, dtype.itemsize)
    word = bits.dtype.type
    match dist:
        case "uniform" | "entropy-0.544" | "entropy-0.201":
            pass
        case "sorted" | "reversed":
            bits = from_ordered_bits(np.sort(bits), dtype).view(bits.dtype)
            bits = bits[::-1].copy() if dist == "reversed" else bits
        case "equal":
            bits = np.full(n, word(raw.random_raw() & (2 ** (8 * dtype.itemsize) - 1)))
        case "few":
            values = raw.random_raw(16).astype("<u8").view(bits.dtype)[:16]
            bits = values[bits % word(16)]
        case "half-equal":
            bits = bits.copy()
            bits[::2] = word(raw.random_raw() & (2 ** (8 * dtype.itemsize) - 1))
        case "top-byte":
            bits = bits << word(8 * dtype.itemsize - 8)
        case "bounded":
            bits = _bounded(bits, dtype)
        case "ends":
            shaped = special if dtype.kind == "f" else ends
            bits = shaped(raw.random_raw(n), np.dtype(dtype)).view(bits.dtype)
        case _:
            raise ValueError(f"unknown distribution {dist!r}")
    return bits.view(dtype)


def _bounded(bits: Array, dtype: np.dtype[np.generic]) -> Array:
    """Turn random patterns into floats in [0, 1), or integers below BOUND."""
    word = bits.dtype.type
    if dtype.kind == "f":
        digits = 24 if dtype.itemsize == 4 else 53
        steps = (bits >> word(8 * dtype.itemsize - digits)).astype(dtype)
        bounded: Array = np.ldexp(steps, -digits).astype(dtype).view(bits.dtype)
    else:
        bounded = bits % word(BOUND)
    return bounded
