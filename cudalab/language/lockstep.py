"""Statements through which the lanes of a warp must go together: `s[i] += s[i ^ 16];`.

On a GPU all lanes of a warp read before any of them writes. Here they run one after another, in
ascending order, so such a statement is cut: `s[i] += cudalab_in_step(2, s[i ^ 16]);` waits between
the values and the writes until all lanes that come here have come. It is left alone if in ascending
order no lane reads what one before it has written.

Before Volta lanes moved in step from statement to statement, too, and such code was right; on later
GPUs it usually still is, though CUDA no longer promises it. Where a function counts on that, what
its lanes have done before ends in front of a statement: `cudalab_step(1);`.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from cudalab.language.device_functions import DeviceFunction, Element, find_shared
from cudalab.language.scopes import Node
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Edit
from cudalab.language.types import value_of

IN_STEP, STEP = "cudalab_in_step", "cudalab_step"
IN_STEP_TO_THE_END = "cudalab_in_step_to_the_end"  # of a statement whose semicolon is a macro's

_WAITS = re.compile(r"sync|barrier|^wait$|^arrive_and_wait$", re.IGNORECASE)
_ENDS_STATEMENTS = re.compile(r"#\s*define\s+(\w+)\s[^\n]*;\s*$")
_HEADS = frozenset({"if", "for", "while", "switch"})
_OF_A_WARP = re.compile(r"<(?:3[012]|[12]?\d|warpSize|[A-Z_]*WARP[A-Z_]*)\b|<=(?:31|[12]?\d)\b")


@dataclass
class _Statement:
    """An assignment or declaration that uses the memory; numbers are indices of tokens."""

    first: int
    value: int  # the first token of its value
    last: int  # its semicolon
    _: KW_ONLY
    target: Element | None  # what is written, if it is such memory
    uses: list[Element]  # what is read of it
    declares: bool

    @property
    def crosses(self) -> bool:
        """Whether it writes one element and reads others of the same array."""
        return self.target is not None and any(
            use.may_be(self.target) and use.text != self.target.text for use in self.uses
        )


def edits(files: Sequence[CudaFile]) -> list[list[Edit]]:
    """The edits for the device functions of files, a list for each of the files."""
    words = {text for file in files for text in file.words.texts}
    words |= {"volatile" for file in files for each in file.directives if "__shared__" in each.text}
    if not words & {"__shared__", "volatile"}:  # no memory that the lanes of a warp share
        return [[] for _ in files]
    functions = [
        [_Function(file.words, each) for each in file.structure.device_functions] for file in files
    ]
    find_shared(files, [each for own in functions for each in own])
    directives = (each.text for file in files for each in file.directives)
    ends = {match[1] for text in directives if (match := _ENDS_STATEMENTS.match(text))}
    return [[edit for each in own for edit in each.edits(ends)] for own in functions]


class _Function(DeviceFunction):
    """A device function, and through which statements its lanes must go together."""

    def edits(self, ends: Collection[str]) -> Iterator[Edit]:
        """The edits that let its lanes go in step where they must; `ends` are macros that end with
        a semicolon.
        """
        # A volatile pointer to global memory counts if lanes add through it.
        pointers = self.volatile_pointers() - self.shared
        self.shared |= pointers
        statements = list(self._statements(self.node))
        idle = pointers - {one.target.root for one in statements if one.target and one.crosses}
        self.shared -= idle
        if idle:
            statements = list(self._statements(self.node))
        if not self.shared or "constexpr" in self.head:
            return
        first, number = 1, 2  # the first is of a step that only old GPUs promise
        for statement in statements:
            end = ""
            if any(self._follows(one, statement) for one in statements):
                at = self.tokens[statement.first].start
                step = f"{STEP}({first or number});"
                yield at, at, f" {step} " if statement.declares else f" {{ {step} "
                end = "" if statement.declares else " }"
                first, number = 0, number + 1
            if self._meets_itself(statement, statements):
                before = self.tokens[statement.value - 1].end
                if self.tokens[statement.last - 1].text in ends:
                    yield before, before, f" {IN_STEP_TO_THE_END}({number}) ="
                else:
                    yield before, before, f" {IN_STEP}({number},"  # a space before other edits
                    end = f");{end}"
                number += 1
            if end:
                semicolon = self.tokens[statement.last]
                yield semicolon.start, semicolon.end, end if ";" in end else f";{end}"

    def _meets_itself(self, statement: _Statement, statements: list[_Statement]) -> bool:
        """Whether a lane may read what another one writes in the same statement.

        What a lane writes itself, as the other half of an exchange, no other one writes.
        """
        target = statement.target
        own = {
            one.target.text
            for one in statements
            if one.target and not self._waits(*sorted((one.first, statement.first)))
        }
        known = Known(
            text=self.text,
            value=lambda name: self.value(name, statement.first),
            by_lane=self.by_lane,
            natural=self.natural,
        )
        return target is not None and any(
            use.text not in own
            and use.may_be(target)
            and not never_meet(target.indices, use.indices, known)
            for use in statement.uses
        )

    def _follows(self, one: _Statement, other: _Statement) -> bool:
        """Whether a statement counts on what another one has done in all lanes before."""
        if not self._conflict(one, other):
            return False
        if one.last < other.first and not self._waits(one.last, other.first):
            return True
        return any(
            start < min(one.first, other.first)
            and max(one.last, other.last) <= end
            and not self._waits(one.last, end)
            and not self._waits(start, other.first)
            for start, end in self._loops
        )

    def _conflict(self, one: _Statement, other: _Statement) -> bool:
        """Whether lanes that go in step make two statements mean something else."""
        if one.target and other.target and not {one.target.root, other.target.root} & self.volatile:
            crosses = one.crosses and other.crosses and one.target.may_be(other.target)
            return crosses and self._is_of_a_warp(other)
        pairs = [(one.target, use) for use in other.uses] + [
            (other.target, use) for use in one.uses
        ]
        return any(
            target.root in self.volatile and use.may_be(target) and use.text != target.text
            for target, use in pairs
            if target
        )

    def _is_of_a_warp(self, statement: _Statement) -> bool:
        """Whether a branch lets no more than a warp come to a statement."""
        return any(
            node.children[1].first <= statement.first < node.children[1].last
            and _OF_A_WARP.search(self.text(node.children[0]))
            for node in self.node.of_kind("if")
            if len(node.children) > 1 and "constexpr" not in node.words
        )

    @cached_property
    def _loops(self) -> list[tuple[int, int]]:
        """The ranges of its loops."""
        return [(node.first, node.last) for node in self.node.of_kind("for", "while", "do")]

    def _waits(self, start: int, end: int) -> bool:
        return any(
            token.kind == "name" and _WAITS.search(token.text) for token in self.tokens[start:end]
        )

    def _statements(self, node: Node) -> Iterator[_Statement]:
        """The assignments and declarations that use an element."""
        for child in node.children:
            if child.kind == "expression" and child.children[0].kind == "assign":
                yield from self._assignment(child)
            elif child.kind == "declaration" and node.kind not in _HEADS:
                yield from self._declaration(child)
            yield from self._statements(child)

    def _assignment(self, statement: Node) -> Iterator[_Statement]:
        assign = statement.children[0]
        written, value = assign.children
        target = next(self.elements(written), None)
        if target is not None and target.root != self.tokens[written.first].text:
            target = None
        uses = list(self.elements(value))
        if target is not None and assign.text != "=":
            uses.append(target)
        if uses or target is not None:
            last = statement.last - 1
            first, value_first = statement.first, value.first
            yield _Statement(first, value_first, last, target=target, uses=uses, declares=False)

    def _declaration(self, node: Node) -> Iterator[_Statement]:
        values = [child for child in node.children if child.kind == "initializer"]
        if len(node.names) != 1 or len(values) != 1 or values[0].text != "=":
            return
        value = values[0].children[0]
        uses = list(self.elements(value)) if value.kind != "list" else []
        if uses:
            first, last = node.first, node.last - 1
            yield _Statement(first, value.first, last, target=None, uses=uses, declares=True)


# Indices ------------------------------------------------------------------------------------------
#
# An index is read as a polynomial of what the text names: `offset * (2 * t + 1) - 1`. Two that
# differ by what is not a multiple of the step from lane to lane never meet; and one that is ahead
# of another is read before its own lane writes it, as lanes run in ascending order.

Polynomial = dict[tuple[str, ...], int]  # coefficients by the factors that they belong to

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
    is_ahead = all(
        coefficient > 0 and all(map(known.natural, factors))
        for each in differences
        for factors, coefficient in each.items()
    )
    if is_ahead and all(_ascends(one, known) for one, _ in pairs):
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
    first = next(iter(step))
    in_proportion = all(
        difference[factors] * step[first] == difference[first] * step[factors] for factors in step
    )
    return in_proportion and difference[first] % step[first] != 0


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
        return {(): number} if number else {}
    value = known.value(text) if node.kind in _NAMED and text not in expanded else None
    if value is None:
        return {(text,): 1}
    return polynomial(value, known, expanded | {text})


def _plus(one: Polynomial, other: Polynomial, sign: int) -> Polynomial:
    sums = dict(one)
    for factors, coefficient in other.items():
        sums[factors] = sums.get(factors, 0) + sign * coefficient
    return {factors: coefficient for factors, coefficient in sums.items() if coefficient}


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    product: Polynomial = {}
    for factors, coefficient in one.items():
        for more, by in other.items():
            product = _plus(product, {tuple(sorted([*factors, *more])): coefficient * by}, 1)
    return product
