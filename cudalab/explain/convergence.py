"""Convergence: when the iteration x + alpha (A x - f) converges, and when no alpha helps"""

import cmath
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cudalab.output.page import LABEL, Heading, Part, commands, drawing, table, text

Vector = tuple[float, float]
Matrix = tuple[Vector, Vector]

DEFINITE: Matrix = ((2, 1), (1, 2))
INDEFINITE: Matrix = ((1, 2), (3, 4))
RIGHT_SIDE: Vector = (4, -1)
ALPHAS = (0.3, -0.3, -0.5, -0.7)
MARKS = "abcd"
ITERATIONS = 20


class Fate(NamedTuple):
    """The behaviour of an iteration."""

    alpha: float
    naive: float  # |alpha| times the norm of A
    radius: float  # the spectral radius of I + alpha A
    residuals: list[float]


def times(a: Matrix, x: Vector) -> Vector:
    """A x"""
    return a[0][0] * x[0] + a[0][1] * x[1], a[1][0] * x[0] + a[1][1] * x[1]


def norm(a: Matrix) -> float:
    """The maximum norm: the largest sum of magnitudes in a row."""
    return max(abs(p) + abs(q) for p, q in a)


def eigenvalues(a: Matrix) -> tuple[complex, complex]:
    """The two roots of the characteristic polynomial."""
    half_trace = (a[0][0] + a[1][1]) / 2
    root = cmath.sqrt(half_trace**2 - (a[0][0] * a[1][1] - a[0][1] * a[1][0]))
    return half_trace - root, half_trace + root


def radius(a: Matrix, alpha: float) -> float:
    """The spectral radius of I + alpha A: the factor by which the error changes in the long run."""
    return max(abs(1 + alpha * value) for value in eigenvalues(a))


def residuals(a: Matrix, f: Vector, alpha: float, iterations: int) -> list[float]:
    """The largest element of |A x - f| before the first iteration and after each, from x = 0."""
    x: Vector = (0.0, 0.0)
    largest = []
    for _ in range(iterations + 1):
        ax = times(a, x)
        r = ax[0] - f[0], ax[1] - f[1]
        largest.append(max(abs(r[0]), abs(r[1])))
        x = x[0] + alpha * r[0], x[1] + alpha * r[1]
    return largest


def fate(alpha: float) -> Fate:
    """The behaviour of the iteration with this alpha on the first example."""
    return Fate(
        alpha,
        abs(alpha) * norm(DEFINITE),
        radius(DEFINITE, alpha),
        residuals(DEFINITE, RIGHT_SIDE, alpha, ITERATIONS),
    )


def plot(
    curves: Mapping[str, Sequence[float]], low: float, high: float, height: int, step: int
) -> list[str]:
    """Plot curves between low and high, `step` columns per value; `*` marks where they meet."""
    columns = max(map(len, curves.values()))
    cells = [[" "] * (step * columns) for _ in range(height)]
    for mark, values in curves.items():
        for i, value in enumerate(values):
            line = round((high - value) / (high - low) * (height - 1))
            if 0 <= line < height:
                old = cells[line][step * i]
                cells[line][step * i] = mark if old in (" ", mark) else "*"
    return ["".join(line).rstrip() for line in cells]


def residual_plot() -> list[str]:
    """The residuals over the iterations, one line per decade."""
    top, bottom = 6, -6
    curves = {
        mark: [math.log10(max(r, 1e-300)) for r in fate(alpha).residuals]
        for mark, alpha in zip(MARKS, ALPHAS, strict=True)
    }
    lines = plot(curves, bottom, top, top - bottom + 1, 3)
    axis = "".join(f"{i:<15}" for i in range(0, ITERATIONS + 1, 5))
    return [
        *(f"{f'1e{top - k:+03d}':>{LABEL - 2}} |{line}" for k, line in enumerate(lines)),
        f"{'':>{LABEL - 2}} +{'-' * (3 * ITERATIONS + 2)}",
        f"{'iteration':>{LABEL - 1}} {axis}".rstrip(),
    ]


def radius_plot() -> list[str]:
    """The spectral radius over alpha from -1 to 1, for both matrices."""
    alphas = [k / 30 for k in range(-30, 31)]
    curves = {
        "-": [1.0] * len(alphas),
        "o": [radius(DEFINITE, alpha) for alpha in alphas],
        "x": [radius(INDEFINITE, alpha) for alpha in alphas],
    }
    low, high, height = 0.4, 2.6, 12
    lines = plot(curves, low, high, height, 1)
    return [
        *(
            f"{high - k * (high - low) / (height - 1):>{LABEL - 2}.1f} |{line}"
            for k, line in enumerate(lines)
        ),
        f"{'':>{LABEL - 2}} +{'-' * len(alphas)}",
        f"{'alpha':>{LABEL - 2}}  -1{'0':>29}{'1':>30}",
    ]


def page() -> Iterator[Part]:
    """The iteration of the error, two examples, and the choice of alpha."""
    yield text(
        """
        The lecture solves A x = f by x <- x + alpha (A x - f). Let x* be the solution and
        d = x - x* the error. Since A x - f = A d, the error obeys d <- (I + alpha A) d. It goes to
        zero from every starting point if and only if |1 + alpha lambda| < 1 for every eigenvalue
        lambda of A, that is, if the spectral radius of I + alpha A is less than 1.

        "|alpha| times the norm of A is less than 1" is not that condition. It ignores the sign of
        alpha, which must be negative if the eigenvalues are positive.
        """
    )
    yield from _definite()
    yield from _indefinite()
    yield text(
        """
        Without --alpha the program bounds the eigenvalues (by Gershgorin's circles, then more
        tightly) and chooses alpha; if no alpha converges, it says why. Elimination with pivoting
        only requires that the matrix is not singular.
        """
    )
    yield commands(
        "cudalab gen solve --n 100 --dist spd > in.bin",
        "cudalab solve --variant richardson < in.bin > out.bin",
        "cudalab solve --variant richardson --alpha 0.3 < in.bin > out.bin",
        "cudalab solve --variant conjugate_gradient < in.bin > out.bin",
        "printf '2 1 2 3 4 5 6' | cudalab solve --text --variant richardson > x.txt",
        "cudalab show solve richardson",
    )


def _definite() -> Iterator[Part]:
    """A matrix for which the right alpha converges, and the residuals for several."""
    a, f = DEFINITE, RIGHT_SIDE
    low, high = (value.real for value in eigenvalues(a))
    best = -2 / (low + high)
    yield Heading(f"A = {show(a)}: eigenvalues {low:g} and {high:g}, norm {norm(a):g}")
    yield text(f"With f = ({f[0]:g}, {f[1]:g}), starting from x = 0:")
    fates = [fate(alpha) for alpha in ALPHAS]
    yield table(
        ("", "alpha", "|alpha| norm", "radius", f"|A x - f| after {ITERATIONS}", "it"),
        [
            (
                mark,
                f"{each.alpha:+g}",
                f"{each.naive:.2g}",
                f"{each.radius:.2g}",
                f"{each.residuals[-1]:.3g}",
                "converges" if each.radius < 1 else "diverges",
            )
            for mark, each in zip(MARKS, fates, strict=True)
        ],
    )
    yield drawing(residual_plot())
    yield text(
        f"""
        Line a meets the wrong condition and diverges; c does not meet it and converges fastest;
        d has the right sign, but is too large. If the eigenvalues lie between low and high, both
        positive, alpha = -2 / (low + high) minimises the radius: here alpha is {best:g} and the
        radius {radius(a, best):g} = (high - low) / (high + low). The farther apart the eigenvalues
        are, the closer the radius is to 1, and the slower the iteration.
        """
    )


def _indefinite() -> Iterator[Part]:
    """A matrix with eigenvalues of both signs, and the radius over alpha."""
    one, two = (value.real for value in eigenvalues(INDEFINITE))
    nearest = min(
        (k / 1000 for k in range(-1000, 1001) if k), key=lambda alpha: radius(INDEFINITE, alpha)
    )
    yield Heading(f"A = {show(INDEFINITE)}: no alpha converges")
    yield text(
        f"""
        Its eigenvalues are {one:.4f} and {two:.4f}. One requires alpha > 0, the other alpha < 0.
        The radius of I + alpha A is 1 for alpha = 0, where nothing moves, and greater for every
        other alpha (among -1, -0.999, ... 1 the minimum is {radius(INDEFINITE, nearest):.6f},
        for alpha = {nearest:g}). In the plot, o is {show(DEFINITE)}, x is this matrix, - marks 1,
        and * is where they meet.
        """
    )
    yield drawing(radius_plot())


def show(a: Matrix) -> str:
    """A matrix in one line."""
    return str([[int(value) for value in line] for line in a])
