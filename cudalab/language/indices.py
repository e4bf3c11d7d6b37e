"""Whether lanes that run one after another may meet the elements that others of them write.

An index is read as a polynomial of what the text names: `offset * (2 * t + 1) - 1`. Two that differ
by what is not a multiple of the step from lane to lane never meet; and one that is ahead of another
is read before its own lane writes it, as lanes run in ascending order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from cudalab.language.tokens import closing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cudalab.language.tokens import Token

    Polynomial = dict[tuple[str, ...], Fraction]  # coefficients by the factors that they belong to

_NUMBER = re.compile(r"(0[xX][\da-fA-F]+|\d+)[uUlLzZ]*")
_POSTFIX = frozenset({"(", "[", ".", "->", "::"})
_LANES = re.compile(r"(?:threadIdx\.x|\w+)[%&](?:32|31|0x1[fF]|warpSize|[A-Z_]*WARP\w*)")


_ASCENDING = re.compile(rf"[\w.]+|[\w.]+(?:/|>>)\w+|[\w.:()]*rank\(\)|{_LANES.pattern}")


class _UnreadError(Exception):
    """An expression that is no polynomial."""


@dataclass(frozen=True)
class Known:
    """What a function says about the names in its indices."""

    value: Callable[[str], Sequence[Token] | None]  # of a variable that never changes
    by_lane: Callable[[str], bool]  # whether a text may differ from lane to lane
    natural: Callable[[str], bool]  # whether it is never negative


def never_meet(
    written: Sequence[Sequence[Token]], read: Sequence[Sequence[Token]], known: Known
) -> bool:
    """Whether no lane reads an element that a lane before it writes; an index a dimension."""
    if len(written) != len(read):
        return False
    pairs = [
        (polynomial(one, known), polynomial(other, known))
        for one, other in map(_mapped, written, read)
    ]
    lanes = {atom for pair in pairs for each in pair for atom in _by_lane(each, known)}
    if not any(_by_lane(one, known) for one, _ in pairs):
        return True  # all lanes write the same element
    differences = [_plus(other, one, -1) for one, other in pairs]
    if not any(differences):
        return True
    if all(_is_natural(each, known) for each in differences) and all(
        _ascends(one, known) for one, _ in pairs
    ):
        return True
    if len(lanes) != 1 or not _is_distinct(next(iter(lanes))):
        return False
    lane = next(iter(lanes))
    return any(
        _is_apart(one, difference, lane)
        for (one, _), difference in zip(pairs, differences, strict=True)
    )


def _mapped(
    one: Sequence[Token], other: Sequence[Token]
) -> tuple[Sequence[Token], Sequence[Token]]:
    """What a function takes that leads from both to places, such as `padded(i)`: one to one."""
    texts = [[token.text for token in each[:2]] for each in (one, other)]
    if texts[0] != texts[1] or one[0].kind != "name" or texts[0][1:] != ["("]:
        return one, other
    if any(closing(list(each), 1) != len(each) - 1 for each in (one, other)):
        return one, other
    return one[2:-1], other[2:-1]


def _by_lane(one: Polynomial, known: Known) -> set[str]:
    return {atom for factors in one for atom in factors if known.by_lane(atom)}


def _is_distinct(atom: str) -> bool:
    """Whether no two lanes of a warp have the same value."""
    return atom == "threadIdx.x" or bool(_LANES.fullmatch(atom))


def _is_apart(written: Polynomial, difference: Polynomial, lane: str) -> bool:
    """Whether an index of one lane is never the other index of another lane."""
    step: Polynomial = {}
    for factors, coefficient in written.items():
        if lane in factors:
            rest = list(factors)
            rest.remove(lane)
            if lane in rest:
                return False
            step[tuple(rest)] = coefficient
    if any(lane in factors for factors in difference):
        return False
    if not step:
        return set(difference) == {()}  # a constant
    if not difference:
        return True  # only a lane itself has the same
    if set(step) != set(difference):
        return False
    ratios = {difference[factors] / step[factors] for factors in step}
    return len(ratios) == 1 and ratios.pop().denominator != 1


def _is_natural(one: Polynomial, known: Known) -> bool:
    return all(
        coefficient > 0 and all(map(known.natural, factors)) for factors, coefficient in one.items()
    )


def _ascends(one: Polynomial, known: Known) -> bool:
    """Whether lanes that come later have greater indices."""
    return all(
        coefficient > 0
        and all(known.natural(atom) or _ASCENDING.fullmatch(atom) for atom in factors)
        for factors, coefficient in one.items()
        if any(map(known.by_lane, factors))
    )


# Reading ------------------------------------------------------------------------------------------


def polynomial(tokens: Sequence[Token], known: Known) -> Polynomial:
    """An expression; what is no sum of products is one of its own atoms."""
    return _Reader(list(tokens), known, set()).read()


def _plus(one: Polynomial, other: Polynomial, sign: int) -> Polynomial:
    sums = dict(one)
    for factors, coefficient in other.items():
        sums[factors] = sums.get(factors, Fraction(0)) + sign * coefficient
    return {factors: coefficient for factors, coefficient in sums.items() if coefficient}


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    product: Polynomial = {}
    for factors, coefficient in one.items():
        for more, by in other.items():
            product = _plus(product, {tuple(sorted([*factors, *more])): coefficient * by}, 1)
    return product


class _Reader:
    """A descent through sums, products and brackets."""

    def __init__(self, tokens: list[Token], known: Known, expanded: set[str]) -> None:
        self.tokens, self.known, self.expanded = tokens, known, expanded
        self.at = 0

    def read(self) -> Polynomial:
        try:
            result = self._sum()
            if self.at == len(self.tokens):
                return result
        except (_UnreadError, IndexError):
            pass
        return {("".join(token.text for token in self.tokens),): Fraction(1)}

    @property
    def _next(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _sum(self) -> Polynomial:
        result = self._product()
        while self._next in ("+", "-"):
            sign = 1 if self._next == "+" else -1
            self.at += 1
            if self._next in ("+", "-"):
                raise _UnreadError
            result = _plus(result, self._product(), sign)
        return result

    def _product(self) -> Polynomial:
        start = self.at
        result = self._factor()
        while self._next in ("*", "/", "%"):
            sign = self._next
            self.at += 1
            factor = self._factor()
            if sign == "*":
                result = _times(result, factor)
            else:
                text = "".join(token.text for token in self.tokens[start : self.at])
                result = {(text,): Fraction(1)}
        return result

    def _factor(self) -> Polynomial:
        token = self.tokens[self.at]
        if token.text == "(":
            end = closing(self.tokens, self.at)
            if end is None:
                raise _UnreadError
            inside = _Reader(self.tokens[self.at + 1 : end], self.known, self.expanded).read()
            self.at = end + 1
            if self._next in _POSTFIX or self._follows():  # a cast
                raise _UnreadError
            return inside
        if number := _NUMBER.fullmatch(token.text):
            self.at += 1
            return {(): Fraction(int(number[1], 0))} if int(number[1], 0) else {}
        if token.kind != "name":
            raise _UnreadError
        return self._name()

    def _follows(self) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].kind in ("name", "number")

    def _name(self) -> Polynomial:
        start = self.at
        self.at += 1
        while self._next in _POSTFIX:
            if self._next in ("(", "["):
                end = closing(self.tokens, self.at)
                if end is None:
                    raise _UnreadError
                self.at = end + 1
            else:
                self.at += 2
        text = "".join(token.text for token in self.tokens[start : self.at])
        value = self.known.value(text) if text not in self.expanded else None
        if value is None:
            return {(text,): Fraction(1)}
        return _Reader(list(value), self.known, self.expanded | {text}).read()
