"""Turns each row of a matrix into probabilities"""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import numpy as np

from cudalab.formats import as_bytes
from cudalab.labs.base import MatrixLab
from cudalab.labs.compare import Accuracy, Mismatches, compare_pieces, nearest_of_pieces
from cudalab.labs.inputs import Array, Case, HostInputs, Size, uniform, with_nans

PIECE_ITEMS = 1 << 15  # elements drawn or compared at a time: as many as a cache holds
MAX_CHAIN = 4096  # additions, one after another, whose roundings an answer may have
UNIT = 2.0**-24  # half the distance from 1 to the next float32
FLUSHED = 2.0**-126  # below this, an exponential may become 0


class Softmax(MatrixLab):
    """Stream: int32 rows, int32 cols, then rows x cols elements. Answer: as many, without a header.

    Element c of a row becomes exp(x[c] - m) / sum of exp(x[i] - m), m = the row's maximum. A row
    with a NaN or an infinity becomes NaNs, and so does one of nothing but -infinities; among other
    numbers, -infinity becomes 0.
    """

    name = "softmax"
    elements, answer = "x", "probabilities"
    axes: ClassVar = {"dtype": ("float32",)}
    distributions = ("uniform", "wide", "shifted", "masked", "rising", "nan")

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate an n x n or rows x cols matrix.

        uniform: multiples of 2^-23 in [-1, 1).
        wide: 64 times as far apart: most exponentials are near 0.
        shifted: uniform + 1024: exp(x) overflows unless the maximum is subtracted.
        masked: uniform, but about every fourth is -infinity.
        rising: column / 64: each item of a row is its maximum so far.
        nan: uniform, but about one in 512 is a NaN.
        """
        rows, cols = self.check_data(n, dist)
        yield np.array([rows, cols], "<i4").tobytes()
        raw, dtype = np.random.PCG64(seed), np.dtype(case["dtype"])
        for start in range(0, rows * cols, PIECE_ITEMS):
            count = min(PIECE_ITEMS, rows * cols - start)
            bits = raw.random_raw(count).astype("<u8")
            items = uniform(bits, dtype)
            match dist:
                case "wide":
                    items *= dtype.type(64)
                case "shifted":
                    items += dtype.type(1024)
                case "masked":
                    items[bits & np.uint64(3) == 0] = -np.inf
                case "rising":
                    items = (np.arange(start, start + count) % cols / 64).astype(dtype)
                case "nan":
                    items = with_nans(items, bits)
            yield as_bytes(items)

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Each row in float64, rounded at the end."""
        x = inputs.arrays["x"]
        answer = np.empty(x.size, case["dtype"])
        for piece, expected, _ in expected_pieces(x):
            answer[piece] = expected
        return answer.reshape(x.shape)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare within the bound of `expected_pieces`; name the row of the first mistake."""
        del case
        x = inputs.arrays["x"]
        mismatches = compare_pieces(got.reshape(-1), expected_pieces(x), _are_near)
        if mismatches is not None:
            row, col = divmod(mismatches.first[0][0], x.shape[1])
            mismatches.findings.append(f"first in row {row}, column {col}")
        return mismatches

    def bounds(self, inputs: HostInputs, case: Case) -> tuple[Array, Array] | None:
        """The probabilities in float64, and the bounds of `expected_pieces`."""
        del case
        pieces = [(expected, bound) for _, expected, bound in expected_pieces(inputs.arrays["x"])]
        expected, bound = zip(*pieces, strict=True)
        shape = inputs.arrays["x"].shape
        return np.concatenate(expected).reshape(shape), np.concatenate(bound).reshape(shape)

    def accuracy(self, got: Array, inputs: HostInputs, case: Case) -> Accuracy | None:
        """How close the answer comes to its bounds; a piece at a time, which takes less memory."""
        del case
        return nearest_of_pieces(got.reshape(-1), expected_pieces(inputs.arrays["x"]))


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
