"""The running sums of a scan, and the error bounds of an answer in floating point."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cudalab.labs.base import blocks_for
from cudalab.labs.inputs import Array, Case

OPERATORS = {"sum": np.add, "min": np.minimum, "max": np.maximum}
DRAWN_ITEMS = 1 << 20  # drawn at a time, so that large n needs little memory
PIECE_ITEMS = 1 << 15  # compared at a time: as many as a cache holds
ROW_ITEMS = 1 << 10  # the reference's own chains of additions are at most this long


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
