"""Sorts n keys by their digits"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cudalab.errors import UsageError
from cudalab.formats import as_bytes
from cudalab.labs.base import Array, Case, Inputs, Lab, Size
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.radixsort import plans
from cudalab.labs.radixsort.plans import VALUE_BYTES, _is_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudalab.formats import InputStream

MOST_SPLIT = 1 << 28  # keys: more take buckets of more than a block can sort
LEAST_SPLIT_PAIRS, MOST_SPLIT_PAIRS = 1 << 22, 1 << 27  # fewer are swept over as quickly
BOUND = 1_000_000  # of the integers of the distribution `bounded`
JOINED = {"entropy-0.544": 3, "entropy-0.201": 5}  # random patterns, by "and"


class KeySort(Lab):
    """What all labs that sort keys have in common: everything but the launch plans."""

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
    )

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Header int32 n ≥ 0, then n elements of the case's dtype."""
        (n,) = stream.header("n")
        return Inputs({"keys": stream.payload("keys", case["dtype"], n)}, {"n": n})

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """As many elements as there are keys, without a header."""
        return stream.payload("sorted keys", case["dtype"], inputs.params["n"]).array()

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """Nothing in, nothing out."""
        return None if inputs.params["n"] else np.empty(0, case["dtype"])

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Random 32- or 64-bit patterns, shaped by `dist`; float keys hold NaNs and infinities."""
        if not isinstance(n, int) or dist not in self.distributions:
            raise UsageError(
                f"{self.name} has no data of size {n} with distribution {dist}",
                hint=f"one number, and a distribution of {', '.join(self.distributions)}",
            )
        yield np.array([n], "<i4").tobytes()
        yield as_bytes(draw(np.dtype(case["dtype"]), n, dist, seed))

    def reference(self, inputs: Inputs, case: Case) -> Array:
        """NumPy's sort of the keys' bits, mapped so that unsigned order is the key order."""
        del case
        keys = inputs.arrays["keys"]
        assert isinstance(keys, np.ndarray)
        bits = ordered_bits(keys)
        bits.sort()
        return from_ordered_bits(bits, keys.dtype)

    def compare(self, got: Array, inputs: Inputs, case: Case) -> Mismatches | None:
        """Exact, with the kind of mistake in words."""
        expected = self.reference(inputs, case)
        found = compare_exact(got, expected)
        if found is None:
            return None
        bits = ordered_bits(got)
        descents = np.flatnonzero(bits[1:] < bits[:-1])
        if len(descents):
            places = "place" if len(descents) == 1 else "places"
            found.findings.append(
                f"not sorted: element {descents[0] + 1} is smaller than element {descents[0]} "
                f"({len(descents):,} such {places})"
            )
            bits.sort()
        same_keys = bool((bits == ordered_bits(expected)).all())
        found.findings.append(
            "the same multiset of keys: none lost, none invented"
            if same_keys
            else "not the same multiset: some keys of the input are missing, others were not there"
        )
        return found


class RadixSort(KeySort):
    """Stream: int32 n, then n keys. Answer: the keys in ascending order, without a header.

    With --pairs n uint32 values follow the keys, in both; each goes where its key goes, and equal
    keys keep their order.
    """

    name = "radixsort"
    plans: ClassVar = plans
    axes: ClassVar = {
        "dtype": ("uint32", "int32", "float32", "uint64", "float64"),
        "layout": ("keys", "pairs"),
    }
    flags: ClassVar = {"layout": {"pairs": "Each key takes a uint32 value with it."}}

    def complete(self, given: Case) -> Case:
        """UsageError for pairs of keys that are not as wide as their values."""
        case = super().complete(given)
        if _is_pairs(case) and np.dtype(case["dtype"]).itemsize != VALUE_BYTES:
            raise UsageError(
                f"--pairs sorts keys of {VALUE_BYTES} bytes, not {case['dtype']}",
                hint="--dtype uint32, int32 or float32",
            )
        return case

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, the type of the keys in C, and PAIRS, whether values follow them."""
        return super().kernel_defines(case) | {"PAIRS": int(_is_pairs(case))}

    def choose(self, inputs: Inputs, case: Case, device: str) -> Sequence[str] | None:
        """On a GPU: sweeps for more keys or pairs than can be split, and for few pairs."""
        least, most = (LEAST_SPLIT_PAIRS, MOST_SPLIT_PAIRS) if _is_pairs(case) else (0, MOST_SPLIT)
        split = least <= inputs.params["n"] <= most
        return ("onesweep",) if device == "cuda" and not split else None

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Header int32 n ≥ 0, then n keys and, with pairs, n values: rows of one array."""
        if not _is_pairs(case):
            return super().read(stream, case)
        (n,) = stream.header("n")
        payload = stream.payload("keys and values", case["dtype"], 2, n)
        return Inputs({"keys and values": payload}, {"n": n})

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """The keys and, with pairs, the values, without a header."""
        if not _is_pairs(case):
            return super().read_answer(stream, inputs, case)
        n = inputs.params["n"]
        return stream.payload("sorted keys and values", case["dtype"], 2, n).array()

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """The keys; the values of pairs are 0, 1, 2, ...: where a key came from."""
        yield from super().generate(case, n, dist, seed)
        if _is_pairs(case) and isinstance(n, int):
            yield as_bytes(np.arange(n, dtype="<u4"))

    def reference(self, inputs: Inputs, case: Case) -> Array:
        """NumPy's sort of the keys' bits; a stable one for pairs."""
        if not _is_pairs(case):
            return super().reference(inputs, case)
        pairs = inputs.arrays["keys and values"]
        assert isinstance(pairs, np.ndarray)
        order = stable_order(ordered_bits(pairs[0]))
        sorted_pairs: Array = pairs.view(np.uint32)[:, order].view(pairs.dtype)
        return sorted_pairs

    def compare(self, got: Array, inputs: Inputs, case: Case) -> Mismatches | None:
        """Exact; keys are judged alone first, then the values."""
        if not _is_pairs(case):
            return super().compare(got, inputs, case)
        expected = self.reference(inputs, case)
        pairs = inputs.arrays["keys and values"]
        assert isinstance(pairs, np.ndarray)
        keys = Inputs({"keys": pairs[0]}, inputs.params)
        wrong_keys = super().compare(got[0], keys, case | {"layout": "keys"})
        if wrong_keys is not None:
            wrong_keys.findings.insert(0, "the keys are wrong; values were not compared")
            return wrong_keys
        found = compare_exact(got[1].view(np.uint32), expected[1].view(np.uint32))
        if found is None:
            return None
        at_home = sorted_by_pair(got) == sorted_by_pair(expected)
        found.findings.append(
            "the keys are right; every value is with a key it came with: equal keys changed order"
            if at_home
            else "the keys are right; values went astray"
        )
        return found


LAB = RadixSort()


def stable_order(bits: Array) -> Array:
    """Where each of the 4-byte keys in order came from; equal ones as they were.

    A sort of key and place in one number takes a third of the time of `np.argsort`.
    """
    placed = bits.astype(np.uint64) << np.uint64(32)
    placed |= np.arange(len(bits), dtype=np.uint64)
    placed.sort()
    return placed & np.uint64(0xFFFFFFFF)


def sorted_by_pair(pairs: Array) -> bytes:
    """Keys and values as 64-bit numbers in order: equal for equal sets of pairs."""
    keys, values = pairs.view(np.uint32).astype(np.uint64)
    return np.sort(keys << np.uint64(32) | values).tobytes()


def ordered_bits(keys: Array) -> Array:
    """The keys' bits, mapped so that their unsigned order is the order of the keys.

    int32: the sign bit flipped. float32: all bits of negatives flipped, the sign bit of the rest:
    -NaN < -inf < … < -0 < +0 < … < +inf < +NaN.
    """
    bits: Array = keys.view(f"u{keys.itemsize}")
    sign = bits.dtype.type(1 << (8 * keys.itemsize - 1))
    if keys.dtype.kind == "f":
        return np.where(bits & sign, ~bits, bits | sign)
    ordered: Array = bits ^ sign if keys.dtype.kind == "i" else bits.copy()
    return ordered


def from_ordered_bits(bits: Array, dtype: np.dtype[np.generic]) -> Array:
    """The inverse of `ordered_bits`."""
    sign = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    if dtype.kind == "i":
        bits = bits ^ sign
    elif dtype.kind == "f":
        bits = np.where(bits & sign, bits ^ sign, ~bits)
    return bits.view(dtype)


def draw(dtype: np.dtype[np.generic], n: int, dist: str, seed: int) -> Array:
    """Draw n keys from PCG64's raw output: the same seed gives the same bytes everywhere.

    `bounded` are floats from 0 to below 1, and integers below a million. Of `half-equal` keys every
    other one is the same. Keys of little entropy are random patterns of which three or five are
    joined by "and": a bit is 1 in one of 8 or 32 keys (Thearling and Smith 1992, and CUB's
    benchmarks); the number says how many bits of entropy a bit has.
    """
    raw = np.random.PCG64(seed)
    bits = _patterns(raw, n, dtype.itemsize)
    for _ in range(JOINED.get(dist, 1) - 1):
        bits = bits & _patterns(raw, n, dtype.itemsize)
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
        case _:
            raise ValueError(f"unknown distribution {dist!r}")
    return bits.view(dtype)


def _patterns(raw: np.random.PCG64, n: int, itemsize: int) -> Array:
    """That many random patterns of `itemsize` bytes."""
    words = raw.random_raw(-(-n * itemsize // 8))
    return words.astype("<u8").view(f"<u{itemsize}")[:n]


def _bounded(bits: Array, dtype: np.dtype[np.generic]) -> Array:
    """Random patterns made into floats from 0 to below 1, or integers below BOUND."""
    word = bits.dtype.type
    if dtype.kind == "f":
        digits = 24 if dtype.itemsize == 4 else 53
        steps = (bits >> word(8 * dtype.itemsize - digits)).astype(dtype)
        bounded: Array = np.ldexp(steps, -digits).astype(dtype).view(bits.dtype)
    else:
        bounded = bits % word(BOUND)
    return bounded
