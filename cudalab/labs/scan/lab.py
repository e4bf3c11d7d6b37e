"""Scans n numbers: each element becomes the sum of all before it"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from cudalab.backends.base import C_TYPES, Device
from cudalab.labs.base import blocks_for
from cudalab.labs.compare import Mismatches, Piece, compare_pieces
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, ends, uniform, with_nans
from cudalab.labs.kinds import ArrayLab, PiecewiseLab
from cudalab.labs.scan.reference import DRAWN_ITEMS, agree, expected_pieces

# From how many bytes on `lookback_prefetch` is taken, measured on an H200 and on parts of one.
LONG_BYTES = 16 << 20
FEW_MULTIPROCESSORS, LONG_BYTES_ON_FEW = 114, 4 << 20
HEAD_ITEMS = 4096  # enough to tell an inclusive scan from an exclusive one


class Scan(PiecewiseLab, ArrayLab):
    """Stream: int32 n, then n items. Answer: n elements, without a header.

    Exclusive: element i combines the items before i; element 0 is the operator's identity (0; for
    min and max, the type's maximum or minimum). Inclusive: item i is combined as well. Integers
    wrap. A NaN among the items makes all later elements NaN, for min and max, too.
    """

    name = "scan"
    elements, answer = "items", "scan"
    axes: ClassVar = {
        "dtype": ("float32", "int32", "uint32", "int64", "float64"),
        "op": ("sum", "min", "max"),
        "kind": ("exclusive", "inclusive"),
    }
    flags: ClassVar = {"kind": {"inclusive": "Each element includes its own item."}}
    distributions = (
        "uniform",
        "all-ones",
        "cancelling",
        "wide-range",
        "nan",
        "bits",
        "ends",
        "sorted",
        "reversed",
    )

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, OP, the operator's name in common/thread/operators.cuh, and INCLUSIVE, 0 or 1."""
        inclusive = int(case["kind"] == "inclusive")
        return {"T": C_TYPES[case["dtype"]], "OP": case["op"].capitalize(), "INCLUSIVE": inclusive}

    taken: ClassVar = {"lookback_prefetch": "16 MiB and more"}

    def choose(self, inputs: Inputs, case: Case, device: Device) -> str | None:
        """On a GPU, choose large tiles if the array has enough of them to keep it busy."""
        nbytes = inputs.params["n"] * np.dtype(case["dtype"]).itemsize
        few = device.multiprocessors <= FEW_MULTIPROCESSORS
        long = nbytes >= (LONG_BYTES_ON_FEW if few else LONG_BYTES)
        return "lookback_prefetch" if long and device.facts.many_threads else None

    drawn_at_once = DRAWN_ITEMS

    def draw(
        self, bits: Array, dtype: np.dtype[Any], dist: str, start: int, dims: tuple[int, ...]
    ) -> Array:
        """Make items of random bits; `draw` describes the distributions."""
        if dist not in ("sorted", "reversed"):
            return draw(dtype, bits, dist)
        items = _rising(np.arange(start, start + len(bits)), bits, dims[0], dtype)
        opposite = np.negative if dtype.kind == "f" else np.invert
        return items if dist == "sorted" else np.asarray(opposite(items))

    def pieces(self, inputs: HostInputs, case: Case) -> Iterator[Piece]:
        """Running sums; floats are added in float64: see `expected_pieces`."""
        return expected_pieces(inputs.arrays["items"], case)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare exactly, except sums of floats: within the bound of `tolerance_of`."""
        items = inputs.arrays["items"]
        mismatches = compare_pieces(got, self.pieces(inputs, case), agree)
        if mismatches is None:
            return None
        nearest = self.accuracy(got, inputs, case)
        if nearest is not None and nearest.used > 1:
            mismatches.findings.append(
                f"the error at [{nearest.index}] is {nearest.used:.3g} times its bound"
            )
        other = "exclusive" if case["kind"] == "inclusive" else "inclusive"
        head = items[:HEAD_ITEMS]
        _, expected, tolerance = next(expected_pieces(head, case | {"kind": other}))
        if len(head) > 1 and agree(got[:HEAD_ITEMS], expected, tolerance).all():
            mismatches.findings.append(
                f"this is the {other} scan: the {case['kind']} one was expected"
            )
        return mismatches


LAB = Scan()


def draw(dtype: np.dtype[Any], raw: Array, dist: str) -> Array:
    """Draw items from 64 random bits each: the same seed gives the same bytes everywhere.

    uniform     all integers of the type; multiples of 2^-23 (2^-52) in [-1, 1)
    nan         the same, but about one float in 512 is a NaN
    all-ones    1
    cancelling  runs of 64: 32 numbers ≥ 0, then their negatives in reverse: sums fall to 0
    wide-range  integers of all lengths; floats of both signs from 2^-32 to 2^32 (2^-128 to 2^128)
    bits        0 or 1: sums up to 2^24 are exact, and each item counts
    ends        the ends of the type, or the floats nearest to 0
    """
    bits = raw.astype("<u8")
    match dist:
        case "uniform" | "nan":
            items = uniform(bits, dtype)
            items = with_nans(items, bits) if dist == "nan" and dtype.kind == "f" else items
        case "all-ones":
            items = np.ones(len(bits), dtype)
        case "bits":
            items = (bits & np.uint64(1)).astype(dtype)
        case "cancelling":
            items = _cancelling(dtype, bits)
        case "wide-range":
            items = _wide_range(dtype, bits)
        case "ends":
            items = ends(bits, dtype)
        case _:
            raise ValueError(f"unknown distribution {dist!r}")
    return items


def _wide_range(dtype: np.dtype[Any], bits: Array) -> Array:
    size = 8 * dtype.itemsize
    top = bits >> np.uint64(64 - size)  # of the width of an item
    if dtype.kind != "f":
        drawn = top.astype(f"<u{dtype.itemsize}").view(dtype)
        return np.asarray(drawn >> (bits & np.uint64(size - 1)).astype(dtype))
    digits, half = np.finfo(dtype).nmant, 32 if size == 32 else 128
    spread = (bits & np.uint64(2 * half - 1)) + np.uint64(2 ** (size - digits - 2) - 1 - half)
    sign_and_digits = top & np.uint64((1 << (size - 1)) | ((1 << digits) - 1))
    pattern = sign_and_digits | (spread << np.uint64(digits))
    return pattern.astype(f"<u{dtype.itemsize}").view(dtype)


def _rising(places: Array, bits: Array, n: int, dtype: np.dtype[Any]) -> Array:
    """Random items that rise through the whole range of the type; floats from -1 to 1."""
    if dtype.kind == "f":
        fractions = (bits >> np.uint64(40)).astype(np.float64) * 2.0**-24
        return np.asarray((places + fractions) * (2.0 / n) - 1, dtype)
    size = 8 * dtype.itemsize
    step = np.uint64((2**size - 1) // n)
    words = places.astype(np.uint64) * step + bits % step
    unsigned = words.astype(f"<u{dtype.itemsize}")
    top = unsigned.dtype.type(1 << (size - 1) if dtype.kind == "i" else 0)
    return np.asarray((unsigned ^ top).view(dtype))


def _cancelling(dtype: np.dtype[Any], bits: Array) -> Array:
    rows = np.zeros((blocks_for(len(bits), 64), 64), np.uint64)
    rows.reshape(-1)[: len(bits)] = bits
    digits = np.finfo(dtype).nmant if dtype.kind == "f" else 8 * dtype.itemsize - 8
    whole = (rows[:, :32] >> np.uint64(64 - digits)).astype(np.int64)
    values = np.concatenate([whole, -whole[:, ::-1]], axis=1).reshape(-1)[: len(bits)]
    if dtype.kind == "f":
        return np.asarray(values * 2.0**-digits, dtype)
    return values.astype(dtype)
