"""Scans n numbers: each element becomes the sum of all before it"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from cudalab.backends.base import C_TYPES, Device
from cudalab.labs.base import blocks_for
from cudalab.labs.compare import Mismatches, Piece, compare_pieces
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, ends, uniform, with_nans
from cudalab.labs.kinds import ArrayLab, PiecewiseLab

OPERATORS = {"sum": np.add, "min": np.minimum, "max": np.maximum}
DRAWN_ITEMS = 1 << 20  # drawn at a time, so that large n needs little memory
PIECE_ITEMS = 1 << 15  # compared at a time: as many as a cache holds
ROW_ITEMS = 1 << 10  # the reference's own chains of additions are at most this long
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


# The running sums, and the error bounds of an answer in floating point ---------------------------


def identity(op: str, dtype: np.dtype[Any]) -> Any:
    """The identity of the operator, with which an exclusive scan starts."""
    if op == "sum":
        return dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(np.inf if op == "min" else -np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if op == "min" else limits.min)


def expected_pieces(items: Array, case: Case) -> Iterator[tuple[slice, Array, Array | None]]:
    """The answer piece by piece: its slice, the values and, for sums of floats, the tolerance."""
    if items.dtype.kind == "f" and case["op"] == "sum":
        yield from _float_sums(items, inclusive=case["kind"] == "inclusive")
        return
    operator = OPERATORS[case["op"]]
    before = identity(case["op"], items.dtype)
    for start in range(0, len(items), PIECE_ITEMS):
        piece = slice(start, min(start + PIECE_ITEMS, len(items)))
        with np.errstate(over="ignore", invalid="ignore"):  # integers wrap, NaNs are passed on
            running = np.concatenate([[before], items[piece]]).astype(items.dtype, copy=False)
            running = operator.accumulate(running, dtype=items.dtype)
        before = running[-1]
        yield piece, running[1:] if case["kind"] == "inclusive" else running[:-1], None


def _float_sums(items: Array, *, inclusive: bool) -> Iterator[tuple[slice, Array, Array]]:
    """Running sums in float64, with the tolerance of each."""
    total, magnitude = np.zeros(1), np.zeros(1)  # of the items before the piece
    seen = np.zeros((3, 1), bool)  # whether +inf, -inf, NaN came before
    finest, unit = np.inf, np.finfo(items.dtype).eps / 2
    for start in range(0, len(items), PIECE_ITEMS):
        piece = slice(start, min(start + PIECE_ITEMS, len(items)))
        values = items[piece].astype(np.float64)
        usual = not seen.any() and bool(np.isfinite(values).all())
        if not usual:
            special = np.stack([values == np.inf, values == -np.inf, np.isnan(values)])
            values[special.any(axis=0)] = 0
        if magnitude[0] <= finest / unit:  # beyond that, no sum is known to be exact
            finest = min(finest, _granularity(values))
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.concatenate([total, _running(values) + total])
            magnitudes = np.concatenate([magnitude, _running(np.abs(values)) + magnitude])
        total, magnitude = sums[-1:], magnitudes[-1:]
        part = slice(1, None) if inclusive else slice(None, -1)
        expected = sums[part]
        tolerance = tolerance_of(items.dtype, len(items), magnitudes[part], finest)
        if not usual:
            flags = np.logical_or.accumulate(np.concatenate([seen, special], axis=1), axis=1)
            seen = flags[:, -1:]
            plus, minus, nan = flags[:, part]
            expected[plus] = np.inf
            expected[minus] = -np.inf
            expected[(plus & minus) | nan] = np.nan
        yield piece, expected, tolerance


def _running(values: Array) -> Array:
    """Inclusive running sums, by rows, so that no chain of additions exceeds ROW_ITEMS."""
    rows = blocks_for(len(values), ROW_ITEMS)
    table = np.zeros((rows, ROW_ITEMS))
    table.reshape(-1)[: len(values)] = values
    np.cumsum(table, axis=1, out=table)
    table[1:] += np.cumsum(table[:-1, -1])[:, None]
    running: Array = table.reshape(-1)[: len(values)]
    return running


def _granularity(values: Array) -> float:
    """The largest power of two that divides all `values`; inf if all are zero."""
    mantissas, exponents = np.frexp(values[values != 0])
    if len(mantissas) == 0:
        return float(np.inf)
    bits = (mantissas * 2.0**53).astype(np.int64)
    lowest = np.log2((bits & -bits).astype(np.float64)).astype(np.int64)  # powers of two: exact
    return float(np.ldexp(1.0, max(int((lowest + exponents).min()) - 53, -1074)))


def tolerance_of(dtype: np.dtype[Any], n: int, magnitudes: Array, finest: float) -> Array:
    """The error bound of an element, relative to the float64 sum; `magnitudes` are sums of |x|.

    In any order of n additions, the error is at most g(d)·Σ|x| with g(d) = d·u / (1 - d·u), where
    d is the longest chain of additions from an item to the sum and u half the distance from 1 to
    the next float (Higham, Accuracy and Stability, 4.2). d ≤ n - 1 always. Our variants
    keep d ≤ 2·1024 + 2·n/2^20 + 8: the longest is reduce_then_scan_serial's, twice through a tile
    or the chunk sums (1024 each) and twice through a chunk's tiles (n / 2^20). The reference adds
    ROW_ITEMS + PIECE_ITEMS / ROW_ITEMS + n / PIECE_ITEMS additions in float64.

    If all items are multiples of some 2^q and Σ|x| ≤ 2^q/u, every partial sum is exact in any
    order, and the tolerance is 0. If Σ|x| exceeds the type's range, partial sums may overflow
    although the sum does not; then any value is accepted.
    """
    unit = np.finfo(dtype).eps / 2
    chain = min(n, 2056 + n // 2**19)
    own_chain = min(n, ROW_ITEMS + PIECE_ITEMS // ROW_ITEMS + blocks_for(n, PIECE_ITEMS))
    bound = chain * unit / (1 - chain * unit) + own_chain * 2.0**-53
    with np.errstate(over="ignore", invalid="ignore"):
        tolerance = np.where(magnitudes <= finest / unit, 0.0, bound * magnitudes)
        tolerance[magnitudes * (1 + bound) > np.finfo(dtype).max] = np.nan  # any value is accepted
    return tolerance


def agree(got: Array, expected: Array, tolerance: Array | None) -> Array:
    """Compare by element; NaN agrees with NaN, infinities and zeros by value."""
    if expected.dtype.kind != "f":
        return np.asarray(got == expected)
    with np.errstate(invalid="ignore"):
        agree = (got == expected) | (np.isnan(got) & np.isnan(expected))
        if tolerance is not None:
            agree |= (np.abs(got - expected) <= tolerance) & np.isfinite(expected)
            agree |= np.isnan(tolerance)
    return np.asarray(agree)
