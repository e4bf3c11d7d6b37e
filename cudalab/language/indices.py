"""Whether lanes that run one after another may meet the elements that others of them write.

An index is read as a polynomial of what the text names: `offset * (2 * t + 1) - 1`. Two that differ
by what is not a multiple of the step from lane to lane never meet; and one that is ahead of another
is read before its own lane writes it, as lanes run in ascending order.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cudalab.language.scopes import Node
from cudalab.language.types import value_of

Polynomial = dict[tuple[str, ...], Fraction]  # coefficients by the factors that they belong to

_NAMED = frozenset({"name", "member", "index", "call"})
_LANES = re.compile(r"(?:threadIdx\.x|\w+)[%&](?:32|31|0x1[fF]|warpSize|[A-Z_]*WARP\w*)")
_ASCENDING = re.compile(rf"[\w.]+|[\w.]+(?:/|>>)\w+|[\w.:()]*rank\(\)|{_LANES.pattern}")


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a function says about the names in its indices."""

    text: Callable[[Node], str]  # of an expression, without spaces
    value: Callable[[str], Node | None]  # of a variable that never changes
    by_lane: Callable[[str], bool]  # whether a text may differ from lane to lane
    natural: Callable[[str], bool]  # whether it is never negative


def never_meet(written: Sequence[Node], read: Sequence[Node], known: Known) -> bool:
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
    lane = next(iter(lanes), "")
    # No two lanes of a warp have the same value of these.
    if len(lanes) != 1 or not (lane == "threadIdx.x" or _LANES.fullmatch(lane)):
        return False
    return any(
        _is_apart(one, difference, lane)
        for (one, _), difference in zip(pairs, differences, strict=True)
    )


def _mapped(one: Node, other: Node) -> tuple[Node, Node]:
    """What a function takes that leads from both to places, such as `padded(i)`: one to one."""
    calls = [each for each in (one, other) if each.kind == "call" and len(each.children) == 2]
    if len(calls) < 2 or one.children[0].text != other.children[0].text:
        return one, other
    return one.children[1], other.children[1]


def _by_lane(one: Polynomial, known: Known) -> set[str]:
    return {atom for factors in one for atom in factors if known.by_lane(atom)}


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


def polynomial(node: Node, known: Known, expanded: frozenset[str] = frozenset()) -> Polynomial:
    """An expression; what is no sum of products is one of its own atoms.

    Names have their values in it, but for those that are `expanded` already.
    """
    if node.kind == "group" and len(node.children) == 1:
        return polynomial(node.children[0], known, expanded)
    if node.kind == "binary" and node.text in ("+", "-", "*"):
        one, other = (polynomial(each, known, expanded) for each in node.children)
        return (
            _times(one, other)
            if node.text == "*"
            else _plus(one, other, 1 - 2 * (node.text == "-"))
        )
    text = known.text(node)
    if (number := value_of(text)) is not None:
        return {(): Fraction(number)} if number else {}
    value = known.value(text) if node.kind in _NAMED and text not in expanded else None
    if value is None:
        return {(text,): Fraction(1)}
    return polynomial(value, known, expanded | {text})


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
