"""Turns each row of a matrix into probabilities"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cudalab.labs.compare import Mismatches, Piece, compare_pieces
from cudalab.labs.inputs import Array, Case, HostInputs, uniform, with_nans
from cudalab.labs.kinds import MatrixLab, PiecewiseLab

PIECE_ITEMS = 1 << 15  # elements compared at a time: as many as a cache holds
MAX_CHAIN = 4096  # additions, one after another, whose roundings an answer may have
UNIT = 2.0**-24  # half the distance from 1 to the next float32
FLUSHED = 2.0**-126  # below this, an exponential may become 0


class Softmax(PiecewiseLab, MatrixLab):
    """Stream: int32 rows, int32 cols, then rows x cols elements. Answer: as many, without a header.

    Element c of a row becomes exp(x[c] - m) / sum of exp(x[i] - m), m = the row's maximum. A row
    with a NaN or an infinity becomes NaNs, and so does one of nothing but -infinities; among other
    numbers, -infinity becomes 0.
    """

    name = "softmax"
    elements, answer = "x", "probabilities"
    axes: ClassVar = {"dtype": ("float32",)}
    distributions = ("uniform", "wide", "shifted", "masked", "rising", "nan")

    def draw(
        self, bits: Array, dtype: np.dtype[Any], dist: str, start: int, dims: tuple[int, ...]
    ) -> Array:
        """Make elements of random bits.

        uniform: multiples of 2^-23 in [-1, 1).
        wide: 64 times as far apart: most exponentials are near 0.
        shifted: uniform + 1024: exp(x) overflows unless the maximum is subtracted.
        masked: uniform, but about every fourth is -infinity.
        rising: column / 64: each item of a row is its maximum so far.
        nan: uniform, but about one in 512 is a NaN.
        """
        items = uniform(bits, dtype)
        match dist:
            case "wide":
                items *= dtype.type(64)
            case "shifted":
                items += dtype.type(1024)
            case "masked":
                items[bits & np.uint64(3) == 0] = -np.inf
            case "rising":
                items = (np.arange(start, start + len(bits)) % dims[1] / 64).astype(dtype)
            case "nan":
                items = with_nans(items, bits)
        return items

    def pieces(self, inputs: HostInputs, case: Case) -> Iterator[Piece]:
        """Some rows at a time, or some columns of a long row: see `expected_pieces`."""
        del case
        return expected_pieces(inputs.arrays["x"])

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare within the bound of `expected_pieces`; name the row of the first mistake."""
        mismatches = compare_pieces(got.reshape(-1), self.pieces(inputs, case), _are_near)
        if mismatches is not None:
            row, col = divmod(mismatches.first[0][0], inputs.params["cols"])
            mismatches.findings.append(f"first in row {row}, column {col}")
        return mismatches


LAB = Softmax()


def _are_near(ours: Array, expected: Array, bound: Array) -> Array:
    with np.errstate(invalid="ignore"):
        near: Array = np.abs(ours.astype(np.float64) - expected) <= bound
    return near | np.isnan(ours) & np.isnan(expected)


def expected_pieces(x: Array) -> Iterator[tuple[slice, Array, Array]]:
    """The answer piece by piece, in C order: the slice, the values in float64, the error bounds.

    u = 2^-24, d = m - x[c]. The difference is rounded, and an exponential is off by a few units in
    the last place, with intrinsics by one more for each unit of d: 4 (1 + d) u at most. Each term
    of the sum has that error, too, and min(cols, MAX_CHAIN) additions round; if a running maximum
    grows before each of them, the sum is multiplied by another exponential: 6 u altogether. The
    quotient rounds twice. What is less than FLUSHED may be lost.
    """
    rows, cols = x.shape
    at_once = max(PIECE_ITEMS // max(cols, 1), 1)
    for start in range(0, rows, at_once):
        yield from _expected_rows(x, slice(start, min(start + at_once, rows)))


def _expected_rows(x: Array, rows: slice) -> Iterator[tuple[slice, Array, Array]]:
    """The pieces of some whole rows: several of a row that is longer than a piece."""
    cols = x.shape[1]
    of_row = partial(_terms, x[rows], x[rows].max(axis=1, keepdims=True).astype(np.float64))
    columns = [slice(c, min(c + PIECE_ITEMS, cols)) for c in range(0, cols, PIECE_ITEMS)]
    with np.errstate(invalid="ignore", over="ignore"):
        kept = list(map(of_row, columns)) if len(columns) == 1 else None
        total, off_total = np.zeros((2, len(x[rows]), 1))
        for terms, off in kept or map(of_row, columns):
            total += terms.sum(axis=1, keepdims=True)
            off_total += (terms * off).sum(axis=1, keepdims=True)
        of_sum = off_total / total + 6 * min(cols, MAX_CHAIN)
        for column, (terms, off) in zip(columns, kept or map(of_row, columns), strict=True):
            expected = terms / total
            bound = expected * (off + of_sum + 2) * UNIT * 1.01 + FLUSHED
            start = rows.start * cols + column.start
            yield slice(start, start + expected.size), expected.reshape(-1), bound.reshape(-1)


def _terms(x: Array, greatest: Array, column: slice) -> tuple[Array, Array]:
    """The exponentials of some columns, and how many units each may be off."""
    below = greatest - x[:, column]
    return np.exp(-below), 4 * (1 + np.minimum(below, 200))  # beyond that, terms are 0
