"""Bounds on the eigenvalues of a matrix, and the step sizes of iterations that follow from them.

The matrix stays on the device: only Gershgorin's circles and products of the matrix with vectors
are needed. Vectors have length n; everything is float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cudalab.errors import CudalabError

Array = np.ndarray[Any, Any]
Product = Callable[[Array], Array]

LANCZOS_STEPS = 40
WIDE = 100.0  # high / low of Gershgorin's interval above which Lanczos is worthwhile
SMALL_N = 512  # up to this order the host computes all eigenvalues of an unsymmetric matrix


@dataclass(frozen=True)
class Interval:
    """An interval that contains a matrix's eigenvalues, or their real parts."""

    low: float
    high: float
    source: str  # the method that found it

    @property
    def definite(self) -> bool:
        """Whether zero lies strictly outside."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"[{self.low:.4g}, {self.high:.4g}] ({self.source})"


class RefusalError(CudalabError):
    """A method refuses a system, with the reason, rather than give a wrong answer."""


class NoStepError(RefusalError):
    """No step size makes the iteration converge, or none is known to."""


def circles(centers: Array, radii: Array) -> Interval:
    """Gershgorin's theorem: each eigenvalue lies within radii[i] of centers[i] for some i."""
    low, high = float(np.min(centers - radii)), float(np.max(centers + radii))
    return Interval(low, high, "Gershgorin's circles")


def lanczos(product: Product, n: int, norm: float) -> Interval:
    """Estimate the extreme eigenvalues of a symmetric matrix from its products with vectors.

    They are Ritz values, which lie inside the spectrum, moved outwards by their residuals, but
    never beyond `norm` and never across zero: a positive estimate does not become negative.
    """
    steps = min(LANCZOS_STEPS, n)
    start = np.random.PCG64(1).random_raw(n) >> np.uint64(12)
    vector = start / 2.0**52 + 0.5  # without zeros, so that it has parts in all directions
    basis = np.zeros((steps, n))
    basis[0] = vector / np.linalg.norm(vector)
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    count = steps
    for k in range(steps):
        vector = product(basis[k])
        diagonal[k] = basis[k] @ vector
        for _ in range(2):  # twice is enough to keep the basis orthogonal in spite of rounding
            vector = vector - basis[: k + 1].T @ (basis[: k + 1] @ vector)
        beside[k] = np.linalg.norm(vector)
        if (
            not beside[k] > 1e-10 * norm or k + 1 == steps
        ):  # the space is exhausted, or the steps are
            count = k + 1
            break
        basis[k + 1] = vector / beside[k]
    ritz, vectors = np.linalg.eigh(
        np.diag(diagonal[:count])
        + np.diag(beside[: count - 1], 1)
        + np.diag(beside[: count - 1], -1)
    )
    errors = beside[count - 1] * np.abs(vectors[-1])
    low, high = float(ritz[0]), float(ritz[-1])
    outer_low, outer_high = max(low - errors[0], -norm), min(high + errors[-1], norm)
    if low > 0:
        outer_low = max(outer_low, low / 2)
    if high < 0:
        outer_high = min(outer_high, high / 2)
    return Interval(float(outer_low), float(outer_high), f"Lanczos, {count} steps")


def symmetric_interval(centers: Array, radii: Array, product: Product) -> Interval:
    """The interval of a symmetric matrix: by circles if they are narrow enough, else Lanczos."""
    bounds = circles(centers, radii)
    if bounds.definite and condition(bounds) <= WIDE:
        return bounds
    norm = float(np.max(np.abs(centers) + radii))
    estimate = lanczos(product, len(centers), norm)
    if bounds.definite:  # the circles are a proof, so the narrower end of each is valid
        return Interval(
            max(estimate.low, bounds.low), min(estimate.high, bounds.high), estimate.source
        )
    return estimate


def condition(bounds: Interval) -> float:
    """The quotient of the greater and the smaller magnitude of the ends."""
    one, two = abs(bounds.low), abs(bounds.high)
    return max(one, two) / min(one, two)


def richardson_step(
    centers: Array,
    radii: Array,
    *,
    symmetric: bool,
    product: Product,
    transposed: Product,
    matrix: Callable[[], Array],
) -> tuple[float, str]:
    """Return (alpha, reason) with which x + alpha (A x - f) converges. NoStepError if none does.

    |1 + alpha lambda| < 1 must hold for every eigenvalue lambda. If they are real and lie in
    [low, high] on one side of zero, alpha = -2 / (low + high) minimizes their maximum.
    """
    bounds = circles(centers, radii)
    if symmetric:
        bounds = symmetric_interval(centers, radii, product)
        if not bounds.definite:
            raise NoStepError(
                "no alpha converges: A is symmetric with eigenvalues of both signs, or zero, in "
                f"{bounds}: |1 + alpha lambda| < 1 needs alpha < 0 for the positive ones and "
                "alpha > 0 for the negative ones"
            )
    if bounds.definite:
        alpha = -2 / (bounds.low + bounds.high)
        factor = (condition(bounds) - 1) / (condition(bounds) + 1)
        return alpha, f"eigenvalues in {bounds}, an iteration leaves {factor:.4g} of the error"
    if len(centers) <= SMALL_N:
        return _step_for(np.linalg.eigvals(matrix().astype(np.float64)))
    return _step_from_symmetric_part(centers, radii, product, transposed)


def _step_for(eigenvalues: Array) -> tuple[float, str]:
    """The best step size if all eigenvalues are known."""
    real = eigenvalues.real
    low, high = float(real.min()), float(real.max())
    tiny = 1e-12 * float(np.abs(eigenvalues).max())
    if not (low > tiny or high < -tiny):
        raise NoStepError(
            f"no alpha converges: the eigenvalues of A have real parts from {low:.4g} to "
            f"{high:.4g}, and |1 + alpha lambda| < 1 needs alpha < 0 for those right of zero and "
            "alpha > 0 for those left of it"
        )
    # The maximum of |1 + alpha lambda| is convex in alpha: ternary search finds its minimum.
    sign = -1.0 if low > 0 else 1.0
    left, right = 0.0, float(np.min(2 * np.abs(real) / np.abs(eigenvalues) ** 2))

    def greatest(size: float) -> float:
        return float(np.abs(1 + sign * size * eigenvalues).max())

    for _ in range(100):
        third = (right - left) / 3
        if greatest(left + third) < greatest(right - third):
            right -= third
        else:
            left += third
    # Six digits: further ones depend on the host's arithmetic.
    size = float(f"{(left + right) / 2:.6g}")
    return sign * size, (
        f"eigenvalues with real parts from {low:.4g} to {high:.4g}, "
        f"an iteration leaves {greatest(size):.4g} of the error in the long run"
    )


def _step_from_symmetric_part(
    centers: Array, radii: Array, product: Product, transposed: Product
) -> tuple[float, str]:
    """A safe step size if (A + transpose(A)) / 2 is definite: its eigenvalues bound real parts.

    Let mu be the eigenvalue next to zero and s the norm of A. For every alpha between 0 and
    -2 mu / s^2, I + alpha A shrinks every vector; the middle is best.
    """
    n = len(centers)
    norm = float(np.max(np.abs(centers) + radii))
    part = lanczos(lambda v: (product(v) + transposed(v)) / 2, n, max(norm, n * norm))
    if not part.definite:
        raise NoStepError(
            f"no alpha is known to converge: Gershgorin's circles reach from "
            f"{np.min(centers - radii):.4g} to {np.max(centers + radii):.4g}, and the symmetric "
            f"part of A has eigenvalues of both signs, in {part}",
            hint="--alpha A tries one; lu_partial_pivot solves any system",
        )
    mu = part.low if part.low > 0 else part.high
    square = 1.05 * lanczos(lambda v: transposed(product(v)), n, n * norm**2).high
    return -mu / square, f"the symmetric part has eigenvalues in {part}"
