"""Pivoting: why elimination exchanges rows, and which row it takes"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cudalab.output.page import Heading, Part, commands, drawing, table, text

Matrix = list[list[float]]
EPSILONS = (1e-2, 1e-4, 1e-6, 1e-8)
SMALL = 1e-6
ORDERS = (4, 8, 16, 24, 32)


class Solution(NamedTuple):
    """What elimination has made of a system."""

    x: list[float]
    growth: float  # the largest element on the way, divided by the largest of the matrix
    multiplier: float  # the largest in magnitude


def single(x: float) -> float:
    """The nearest float: all that is computed here is rounded as a kernel rounds it."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", x))
    return float(rounded)


def first(a: Matrix, k: int, scales: list[float]) -> int:  # noqa: ARG001 - as the others
    """No exchange at all."""
    return k


def partial(a: Matrix, k: int, scales: list[float]) -> int:  # noqa: ARG001 - as the others
    """The row with the largest element of the column."""
    return max(range(k, len(a)), key=lambda i: abs(a[i][k]))


def scaled(a: Matrix, k: int, scales: list[float]) -> int:
    """The row whose element is largest relative to the largest of its row at the beginning."""
    return max(range(k, len(a)), key=lambda i: abs(a[i][k]) / scales[i])


RULES: dict[str, Callable[[Matrix, int, list[float]], int]] = {
    "none": first,
    "largest of the column": partial,
    "largest, relative to its row": scaled,
}


def solve(matrix: Matrix, right: list[float], rule: str) -> Solution:
    """Eliminate with the pivots of a rule, in float32, and substitute back."""
    a = [[*map(single, line), single(f)] for line, f in zip(matrix, right, strict=True)]
    n = len(matrix)
    scales = [max(map(abs, line)) for line in matrix]
    start = largest = max(scales)
    multiplier = 0.0
    for k in range(n):
        pivot = RULES[rule](a, k, scales)
        a[k], a[pivot] = a[pivot], a[k]
        scales[k], scales[pivot] = scales[pivot], scales[k]
        for i in range(k + 1, n):
            factor = single(a[i][k] / a[k][k])
            multiplier = max(multiplier, abs(factor))
            a[i][k:] = [
                single(mine - single(factor * its))
                for mine, its in zip(a[i][k:], a[k][k:], strict=True)
            ]
            largest = max(largest, *(abs(value) for value in a[i][k + 1 : n]), 0.0)
    x = [0.0] * n
    for i in reversed(range(n)):
        rest = a[i][n]
        for j in range(i + 1, n):
            rest = single(rest - single(a[i][j] * x[j]))
        x[i] = single(rest / a[i][i])
    return Solution(x, largest / start, multiplier)


def small_pivot(epsilon: float) -> tuple[Matrix, list[float]]:
    """A well-conditioned system with a small number first; its solution is nearly (1, 1)."""
    return [[epsilon, 1.0], [1.0, 1.0]], [1.0 + epsilon, 2.0]


def large_row(doublings: int) -> tuple[Matrix, list[float]]:
    """The same, its first row doubled so often, which rounds nothing and gives it the pivot."""
    (one, two), (f, g) = small_pivot(SMALL)
    scale = 2.0**doublings
    return [[scale * value for value in one], two], [scale * f, g]


def wilkinson(n: int) -> Matrix:
    """The matrix whose elements double at each step though the largest element is the pivot."""
    return [
        [1.0 if j in (i, n - 1) else -1.0 if j < i else 0.0 for j in range(n)] for i in range(n)
    ]


def error(solution: Solution) -> str:
    """The largest distance from (1, …, 1)."""
    return f"{max(abs(value - 1) for value in solution.x):.1e}"


def written(matrix: Matrix) -> Iterator[str]:
    """A matrix of small whole numbers, a line each."""
    for line in matrix:
        yield "    " + " ".join(f"{value:>3.0f}" for value in line)


def page() -> Iterator[Part]:
    """A small pivot, scaled rows, growth, and what the search costs on a GPU."""
    yield text(
        """
        Elimination subtracts a multiple of the pivot row from each row below: factor = a[i][k] /
        a[k][k]. A pivot of 0 ends it. A small one is worse, because nothing fails: the factor is
        large, and adding a large multiple of one row wipes out the digits of another.

        [e 1; 1 1] x = (1 + e, 2) has the solution (1, 1) and is as well-conditioned as one could
        wish. Computed here in float32; the error is the largest in x:
        """
    )
    yield table(
        ("e", *RULES),
        [(f"{e:g}", *(error(solve(*small_pivot(e), rule)) for rule in RULES)) for e in EPSILONS],
    )
    yield text(
        """
        Taking the row with the largest element of the column (partial pivoting) bounds the factors
        by 1. But what is large? An equation that is multiplied by a number is still the same
        equation, but its row may now win, and all is as if there were no exchange. The system above
        with e = 10^-6, its first row multiplied by a power of two, which by itself is exact:
        """
    )
    yield table(
        ("times", *RULES),
        [
            (f"2^{k}", *(error(solve(*large_row(k), rule)) for rule in RULES))
            for k in (0, 10, 20, 30)
        ],
    )
    yield text(
        """
        So a pivot is weighed by the largest element of its row; lu_partial_pivot does that, after
        scaling rows by powers of two, which is exact. The factors are then below 2 rather than 1.
        """
    )
    yield from _growing()
    yield text(
        """
        On a GPU the search is the problem, not the arithmetic. Column k + 1 cannot be searched
        before column k is eliminated: n steps in a row, each waiting for all threads. So one panel
        of columns is factored while the rest of the matrix waits for a single large product, and a
        look-ahead factors the next panel while that product runs. A positive definite matrix needs
        no pivots at all (Cholesky), and half of the arithmetic.
        """
    )
    yield commands(
        "cudalab gen solve --n 300 > in.bin",
        "cudalab solve --variant gauss_jordan < in.bin > out.bin",
        "cudalab show solve lu_partial_pivot     # weighted pivots, by panels",
        "cudalab show solve complete_pivot",
        "cudalab bench solve --variants lu_partial_pivot,complete_pivot",
    )


def _growing() -> Iterator[Part]:
    """A matrix whose elements grow whichever row is the pivot."""
    yield Heading("Growth: where partial pivoting fails")
    yield drawing(written(wilkinson(5)))
    yield text("No rule for rows exchanges anything here, and the last column doubles each time:")
    yield table(
        ("order n", "largest factor", "growth of the elements", "error of x"),
        [growth(n) for n in ORDERS],
    )
    yield text(
        """
        The growth is 2^(n-1), and each doubling costs a bit: at order 32 a float has none left.
        Such matrices hardly occur, and the residual f - A x shows them. complete_pivot searches
        all of the matrix and is safe; refinement with residuals in double repairs mild growth.
        """
    )


def growth(n: int) -> tuple[object, ...]:
    """A row of the table: what elimination makes of Wilkinson's matrix, with x = (1, …, 1)."""
    matrix = wilkinson(n)
    # The solution must not be one that is exact in spite of the growth: thirds are not.
    right = [single(sum(value / 3 for value in line)) for line in matrix]
    solution = solve(matrix, right, "largest of the column")
    worst = max(abs(3 * value - 1) for value in solution.x)
    return n, f"{solution.multiplier:g}", f"{solution.growth:,.0f}", f"{worst:.1e}"
