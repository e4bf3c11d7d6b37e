"""Compares an answer with the reference. Prints nothing."""

import math
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Piece = tuple[slice, Array, Array | None]  # of an answer: where, the right values, their bounds

SHOWN = 5  # mismatches listed one by one


@dataclass(frozen=True)
class Mismatches:
    """The differences between an answer and the reference."""

    count: int
    total: int
    first: list[tuple[int, str, str]] = field(default_factory=list)  # index, expected, got
    findings: list[str] = field(default_factory=list)  # sentences about what is wrong
    _: KW_ONLY
    # The name of what `first` compares if the answer is right or wrong as a whole, rather than
    # element by element.
    compared: str = ""

    def __str__(self) -> str:
        """One line for each finding and each listed element."""
        lines = [f"{self.count:,} of {self.total:,} elements differ", *self.findings]
        lines += [f"  [{i}] expected {expected}, got {got}" for i, expected, got in self.first]
        if self.count > len(self.first) > 0:
            lines.append(f"  … and {self.count - len(self.first):,} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class Accuracy:
    """How close an answer comes to its error bound."""

    error: float
    bound: float
    index: int | None  # None for the answer as a whole
    what: str = "error"

    @property
    def used(self) -> float:
        """The error as a fraction of the bound."""
        if self.bound > 0:
            return self.error / self.bound
        return 0.0 if self.error == 0 else math.inf

    def __str__(self) -> str:
        """The error, the bound, and the fraction of it."""
        where = "" if self.index is None else f" at [{self.index:,}]"
        used = f"{100 * self.used:.2g} %" if self.used < 10 else f"{self.used:.3g} times"
        return f"{self.what} {self.error:.3g}{where}, bound {self.bound:.3g}: {used} of it"


def compare_exact(got: Array, expected: Array) -> Mismatches | None:
    """Compare bit for bit (so NaNs and signed zeros count); None when all bits agree.

    Both have the same shape; indices count in C order.
    """
    got, expected = got.reshape(-1), expected.reshape(-1)
    different = differing(got, expected)
    if len(different) == 0:
        return None
    first = [(int(i), show(expected[i]), show(got[i])) for i in different[:SHOWN]]
    return Mismatches(len(different), len(expected), first)


def compare_pieces(
    got: Array,
    pieces: Iterable[Piece],
    are_right: Callable[[Array, Array, Any], Array],
    shown: Callable[[Any, Any], str] = lambda expected, _: show(expected),
) -> Mismatches | None:
    """Compare with pieces in C order.

    `are_right` judges elements by their right values and bounds; `shown` formats one of each.
    """
    count, first = 0, list[tuple[int, str, str]]()
    for piece, expected, bound in pieces:
        ours = got[piece]
        wrong = np.flatnonzero(~are_right(ours, expected, bound))
        count += len(wrong)
        first += [
            (
                piece.start + int(i),
                shown(expected[i], None if bound is None else bound[i]),
                show(ours[i]),
            )
            for i in wrong[: SHOWN - len(first)]
        ]
    return Mismatches(count, len(got), first) if count else None


def differing(one: Array, two: Array) -> Array:
    """The indices, in C order, of elements that differ in any bit."""
    bits = f"u{one.itemsize}"
    return np.flatnonzero(one.reshape(-1).view(bits) != two.reshape(-1).view(bits))


def show(value: np.generic) -> str:
    """Format an element, with its bits if the digits are ambiguous."""
    if value.dtype.kind == "f" and (np.isnan(value) or value == 0):
        return f"{value} (0x{value.view(f'u{value.itemsize}'):0{2 * value.itemsize}x})"
    return str(value)


def nearest_to_bound(got: Array, expected: Array, bound: Array) -> Accuracy | None:
    """The element whose error is the largest fraction of its bound; None if none has a bound."""
    expected, bound = expected.reshape(-1), bound.reshape(-1)
    with np.errstate(invalid="ignore"):  # of infinities
        errors = np.abs(got.reshape(-1) - expected)
    judged = np.isfinite(errors) & np.isfinite(bound) & (bound > 0)
    if not judged.any():
        return None
    shares = np.where(judged, errors / np.where(judged, bound, 1), -1)
    worst = int(np.argmax(shares))
    return Accuracy(float(errors[worst]), float(bound[worst]), worst)


def nearest_of_pieces(got: Array, pieces: Iterable[Piece]) -> Accuracy | None:
    """The same of pieces in C order."""
    nearest: Accuracy | None = None
    for piece, expected, bound in pieces:
        one = None if bound is None else nearest_to_bound(got[piece], expected, bound)
        if one and (nearest is None or one.used > nearest.used):
            nearest = replace(one, index=piece.start + (one.index or 0))
    return nearest
