"""Systems of linear equations to test solvers with: the same seed, the same bytes everywhere.

Random numbers are PCG64's raw output. All computations with them are exact, or sequences of single
IEEE operations in a fixed order; no bit depends on a library function.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from cudalab.errors import UsageError
from cudalab.labs.inputs import Array, uniform

UNSOLVABLE = ("singular", "nan")  # distributions; direct methods solve all others
DEFAULT_CONDITION = 100.0
TINY = 2.0**-40  # a leading element that is a bad pivot beside numbers up to 1


def draw(n: int, dist: str, seed: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return A (n x n) and f (n)."""
    name, _, parameter = dist.partition(":")
    if parameter and name != "spd":
        raise UsageError(f"distribution {name} takes no parameter, got {dist!r}")
    raw = np.random.PCG64(seed)
    if name == "spd":
        a = _positive_definite(raw, n, _condition(parameter, dtype))
    elif name in MATRICES:
        a = MATRICES[name](raw, n)
    else:
        raise ValueError(f"unknown distribution {dist!r}")
    f = np.ones(n) if name == "tridiagonal" else _uniform(raw, n)
    if name == "scaled":  # f becomes the solution, since errors are small beside great unknowns
        f = np.array([math.fsum(row) for row in a * f])
    return a.astype(dtype), f.astype(dtype)


def _uniform(raw: np.random.PCG64, count: int) -> Array:
    """Draw multiples of 2^-23 in [-1, 1), which float32 holds exactly."""
    return uniform(raw.random_raw(count), np.dtype(np.float32)).astype(np.float64)


def _random(raw: np.random.PCG64, n: int) -> Array:
    return _uniform(raw, n * n).reshape(n, n)


def _dominant(raw: np.random.PCG64, n: int) -> Array:
    """Symmetric, diagonally dominant by a factor of two: every method solves it."""
    lower = np.tril(_random(raw, n), -1)
    return _with_diagonal(lower + lower.T)


def _unsymmetric(raw: np.random.PCG64, n: int) -> Array:
    """Diagonally dominant by a factor of two."""
    return _with_diagonal(_random(raw, n))


def _with_diagonal(a: Array) -> Array:
    """Set the diagonal to twice the sum of the magnitudes beside it (1 for order 1)."""
    np.fill_diagonal(a, 0)
    # Whole multiples of 2^-23, fewer than 2^53 of them: the sum is exact in any order.
    np.fill_diagonal(a, 2 * np.abs(a).sum(axis=1) + (len(a) == 1))
    return a


def _needs_pivoting(raw: np.random.PCG64, n: int) -> Array:
    """A dominant matrix with rows shifted by one: zeros and tiny numbers on the diagonal."""
    a = np.roll(_unsymmetric(raw, n), -1, axis=0)
    if n > 1:
        np.fill_diagonal(a, np.where(np.arange(n) % 2, TINY, 0))
    return a


def _wilkinson(raw: np.random.PCG64, n: int) -> Array:
    """Pivots from one column double at every step."""
    del raw
    a = np.eye(n) - np.tri(n, k=-1)
    a[:, n - 1 :] = 1
    return a


def _scaled(raw: np.random.PCG64, n: int) -> Array:
    """Random, its columns times 1 to 1/16, and the last one times another 2^-26.

    Unscaled, the last pivot counts as zero in float32.
    """
    a: Array = _random(raw, n) / (1 << raw.random_raw(n) % 5)
    a[:, n - 1 :] *= 2.0**-26
    return a


def _singular(raw: np.random.PCG64, n: int) -> Array:
    """Random, but the last row is half the first; zero for order 1."""
    a = _random(raw, n)
    a[:1, :1] = 1  # the greatest number, so row 0 is the first pivot and the rest is exact
    a[n - 1 :] = a[:1] / 2 if n > 1 else 0
    return a


def _nan(raw: np.random.PCG64, n: int) -> Array:
    """Dominant, but an element is no number."""
    a = _dominant(raw, n)
    a[n - 1 :, :1] = math.nan
    return a


def _tridiagonal(raw: np.random.PCG64, n: int) -> Array:
    """1, -2, 1 in each row."""
    del raw
    a = np.diag(np.full(n, -2.0))
    a += np.diag(np.ones(max(n - 1, 0)), 1)[:n, :n]
    a += np.diag(np.ones(max(n - 1, 0)), -1)[:n, :n]
    return a


def _condition(parameter: str, dtype: np.dtype[Any]) -> float:
    """Parse the number after `spd:`; the rounded matrix must still be positive definite."""
    highest = 1e6 if dtype.itemsize == 4 else 1e14
    try:
        value = float(parameter) if parameter else DEFAULT_CONDITION
    except ValueError:
        value = math.nan
    if not 1 <= value <= highest:
        raise UsageError(
            f"spd:{parameter}: the condition number must be 1 to {highest:g} in {dtype.name}",
            hint="for example --dist spd:1e4",
        )
    return value


def _positive_definite(raw: np.random.PCG64, n: int, cond: float) -> Array:
    """H D H, with D the geometric sequence from 1 to 1 / cond and H a Householder reflection.

    H = I - b v v', so H D H = D - v w' - w v' with w = b (D v - (b v'D v / 2) v): elementwise
    operations, and two sums that math.fsum rounds correctly.
    """
    with localcontext() as context:
        context.prec = 30  # Decimal's exp and ln are rounded correctly on every platform
        logarithm = Decimal(cond).ln()
        spectrum = [float((-logarithm * i / max(n - 1, 1)).exp()) for i in range(n)]
    d = np.array(spectrum, np.float64)
    v = _uniform(raw, n) / 4 + 0.5  # no zeros: the matrix is full
    b = 2 / math.fsum(v * v) if n else 0.0
    half = b * math.fsum(v * v * d) / 2
    w = b * (d * v - half * v)
    mixed = v[:, None] * w[None, :]
    a: Array = -(mixed + mixed.T)  # addition commutes, so it is symmetric to the last bit
    np.fill_diagonal(a, d + np.diagonal(a))
    return a


MATRICES = {  # of the distributions without a parameter
    "dominant": _dominant,
    "unsymmetric": _unsymmetric,
    "random": _random,
    "pivot": _needs_pivoting,
    "wilkinson": _wilkinson,
    "scaled": _scaled,
    "singular": _singular,
    "nan": _nan,
    "tridiagonal": _tridiagonal,
}
DISTRIBUTIONS = (*MATRICES, "spd")  # with a chosen condition: spd:1e4
