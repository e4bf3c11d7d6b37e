"""What the names in a device function stand for: shared memory, and values of lanes."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cudalab.language.tokens import OPENING, closing, closing_angle, end_of_expression, tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from cudalab.language.structure import Declared
    from cudalab.language.tokens import Token

SIGNS = frozenset("+-*/%&|^<>=")
COMPARING = frozenset({"==", "<=", ">=", "!="})
POINTING = frozenset({"*", "&", "const", "__restrict__", "__restrict", "volatile"})
_BUILT_IN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_GROWING = frozenset({"=", "+=", "*=", "/=", ">>=", "<<=", "&=", "++"})
_NATURAL = re.compile(r"(?:block(?:Dim|Idx)|threadIdx|gridDim)\.[xyz]|warpSize|[A-Z][A-Z0-9_]*")
_CALLS_OF_NUMBERS = frozenset({"min", "max", "sizeof", "int", "unsigned"})


class File(NamedTuple):
    """A file, and where its device functions are among its tokens."""

    tokens: list[Token]  # without directives
    directives: list[Token]
    functions: list[Declared]


@dataclass
class Element:
    """An element of shared memory in an expression."""

    root: str
    text: str
    indices: list[list[Token]]
    _: KW_ONLY
    members: list[str]  # of structures, on the way to it

    def may_be(self, other: Element) -> bool:
        """Whether it may be the other one, but for the indices."""
        return self.root == other.root and all(
            one == its for one, its in zip(self.members, other.members, strict=False)
        )


@dataclass
class Change:
    """What sets or changes a variable at a token."""

    place: int
    operator: str
    value: Sequence[Token] = ()


def find_shared(files: Sequence[File], functions: Sequence[DeviceFunction]) -> None:
    """Let functions know which of their names may stand for shared memory."""
    outside: set[str] = set()
    for file in files:
        inside = {i for each in file.functions for i in range(*each.body)}
        shared = _shared_names(file.tokens, 0, len(file.tokens))
        outside |= {name for i, name in shared if i not in inside}
        for directive in file.directives:
            if "__shared__" in directive.text:  # in a macro
                words = tokenize(directive.text.lstrip("# \t"))
                outside |= {name for _, name in _shared_names(words, 0, len(words))}
    by_name: dict[str, list[DeviceFunction]] = {}
    for function in functions:
        function.shared |= outside
        by_name.setdefault(function.name, []).append(function)
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        function.follow_pointers()
        for name, position in function.handed_over(by_name.keys()):
            for callee in by_name[name]:
                if callee.learn(position) and callee not in waiting:
                    waiting.append(callee)


def _shared_names(tokens: list[Token], start: int, end: int) -> Iterator[tuple[int, str]]:
    """The variables that are declared with `__shared__`."""
    for i in range(start, end):
        if tokens[i].text != "__shared__":
            continue
        j = i + 1
        while j < end and tokens[j].text not in (";", "{", "="):
            if tokens[j].text in ("(", "["):
                j = closing(tokens, j) or end
            elif tokens[j].kind == "name" and tokens[j + 1].text in ("[", ";", ",", "=", "{"):
                yield i, tokens[j].text
            j += 1


def split(tokens: list[Token], start: int, end: int) -> list[tuple[int, int]]:
    """The ranges between the commas of tokens[start:end]."""
    parts, first, i = [], start, start
    while i < end:
        if tokens[i].text in OPENING:
            i = closing(tokens, i) or end
        elif tokens[i].text == "<":
            i = closing_angle(tokens, i) or i
        elif tokens[i].text == ",":
            parts.append((first, i))
            first = i + 1
        i += 1
    return [*parts, (first, end)] if end > start else []


class DeviceFunction:
    """A device function: tokens[start] is the bracket that opens its body."""

    def __init__(self, tokens: list[Token], declared: Declared) -> None:
        self.tokens, (self.start, self.end) = tokens, declared.body
        self.head = {token.text for token in tokens[declared.first : self.start]}
        self.name = declared.node.text.rpartition("::")[2]
        self.parameters = [(each.first, each.last) for each in declared.node.parameters]
        self.names = [
            next((t.text for t in reversed(tokens[a:b]) if t.kind == "name"), "")
            for a, b in self.parameters
        ]
        self.shared = {name for _, name in _shared_names(tokens, self.start, self.end)}
        if not self.is_kernel:  # whose parameters point to global memory
            self.shared |= {
                name
                for name, (a, b) in zip(self.names, self.parameters, strict=True)
                if any(token.text == "volatile" for token in tokens[a:b])
            }

    # What its names stand for ---------------------------------------------------------------------

    @cached_property
    def values(self) -> dict[str, list[Change]]:
        """What each variable is set to or changed by."""
        found: dict[str, list[Change]] = {}
        tokens = self.tokens
        for i in range(self.start + 1, self.end - 1):
            word, after = tokens[i], tokens[i + 1]
            if word.kind != "name" or tokens[i - 1].text in (".", "->", "::"):
                continue
            operator = self.operator_at(i + 1)
            j = i + 1 + len(operator)
            before = tokens[i - 1].text + tokens[i - 2].text
            if operator in ("++", "--") or before in ("++", "--"):
                found.setdefault(word.text, []).append(Change(i, operator or before))
            elif operator.endswith("=") and operator not in COMPARING:
                end = end_of_expression(tokens, j)
                found.setdefault(word.text, []).append(Change(i, operator, tokens[j:end]))
            elif before[:1] == "&" or (after.text == "(" and tokens[i - 1].kind == "name"):
                found.setdefault(word.text, []).append(Change(i, "&"))
        return found

    def operator_at(self, i: int) -> str:
        """The signs that stand together from token `i` on, up to the one that assigns."""
        tokens, operator = self.tokens, ""
        while tokens[i].text in SIGNS and (not operator or tokens[i].start == tokens[i - 1].end):
            if operator.endswith("=") and tokens[i].text != "=":
                break
            operator += tokens[i].text
            i += 1
        return operator

    def value(self, name: str, place: int) -> Sequence[Token] | None:
        """The value that a variable has at token `place`, if it never changes."""
        changes = self.values.get(name, [])
        declared = all(
            each.operator == "="
            and (len(changes) == 1 or before.kind == "name" or before.text == ",")
            for each in changes
            for before in [self.tokens[each.place - 1]]
        )
        before = [each.value for each in changes if each.place < place]
        return before[-1] if declared and before else None

    @cached_property
    def lanes(self) -> set[str]:
        """The names whose values may differ from lane to lane."""
        found = {"threadIdx"} | (set() if self.is_kernel else set(self.names))
        before = None
        while before != found:
            before = set(found)
            for name, values in self.values.items():
                if any(
                    token.text in found
                    or (i and self._is_unknown(each.value[i - 1].text, token.text))
                    or (not i and self._is_unknown("", token.text))
                    or (token.text == "[" and i)
                    or (token.text == "(" and i and self._may_tell_lanes(each.value[i - 1]))
                    for each in values
                    for i, token in enumerate(each.value)
                ):
                    found.add(name)
        return found

    @staticmethod
    def _may_tell_lanes(called: Token) -> bool:
        return called.kind == "name" and called.text not in _CALLS_OF_NUMBERS

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.head

    def by_lane(self, text: str) -> bool:
        """Whether an atom may differ from lane to lane."""
        return "rank" in text or any(
            name in self.lanes or self._is_unknown(before, name)
            for before, name in re.findall(r"(\.|->|::|)\b([A-Za-z_]\w*)", text)
        )

    def _is_unknown(self, before: str, name: str) -> bool:
        """Whether a name may be that of a variable which a macro declares, or a class."""
        return (
            name.isidentifier()
            and before not in (".", "->", "::")
            and name not in self.values.keys() | self.head | self.shared | _BUILT_IN
            and name not in _CALLS_OF_NUMBERS
            and not _NATURAL.fullmatch(name)
        )

    def natural(self, text: str) -> bool:
        """Whether an atom is never negative."""
        if "-" in text or "~" in text:
            return False
        names = re.findall(r"[A-Za-z_][\w.]*", text)
        return all(_NATURAL.fullmatch(name) or self._grows(name, set()) for name in names)

    def _grows(self, name: str, seen: set[str]) -> bool:
        values = self.values.get(name)
        if not values or name in seen:
            return False
        return all(
            each.operator in _GROWING
            and all(
                token.kind == "number"
                or (token.kind == "sign" and token.text not in "-~")
                or token.text in {*_BUILT_IN, "x", "y", "z"}
                or _NATURAL.fullmatch(token.text)
                or self._grows(token.text, seen | {name})
                for token in each.value
            )
            for each in values
        )

    def follow_pointers(self) -> None:
        """Count in the pointers that are set to shared memory."""
        before = None
        while before != self.shared:
            before = set(self.shared)
            for name, values in self.values.items():
                for each in values:
                    words = {token.text for token in each.value}
                    points = bool(words & self.shared) and not self._is_read(each.value)
                    points |= any("Shared" in word for word in words)
                    if each.operator == "=" and points and self._is_pointer(name):
                        self.shared.add(name)

    def _is_read(self, value: Sequence[Token]) -> bool:
        """Whether a value is an element, not the place of one."""
        return value[0].text != "&" and value[-1].text == "]" and value[0].kind == "name"

    def _is_pointer(self, name: str) -> bool:
        return any(
            token.text == name and self.tokens[i - 1].text in (*POINTING, "auto")
            for i, token in enumerate(self.tokens[self.start : self.end], self.start)
        )

    def handed_over(self, names: Collection[str]) -> Iterator[tuple[str, int]]:
        """The calls of functions with shared memory as an argument: which one of them."""
        tokens = self.tokens
        for i in range(self.start, self.end - 1):
            if tokens[i].text not in names:
                continue
            opening = i + 1
            if tokens[opening].text == "<":
                opening = (closing_angle(tokens, opening) or i) + 1
            if tokens[opening].text != "(":
                continue
            for k, (a, b) in enumerate(split(tokens, opening + 1, closing(tokens, opening) or 0)):
                if self.shared & {token.text for token in tokens[a:b]}:
                    yield tokens[i].text, k

    def learn(self, position: int) -> bool:
        """Note that a parameter may be shared memory; whether that is news."""
        if position >= len(self.parameters):
            return False
        a, b = self.parameters[position]
        words = {token.text for token in self.tokens[a:b]}
        name = self.names[position]
        if not words & {"*", "&", "["} or name in self.shared:
            return False
        self.shared.add(name)
        return True

    def elements(self, first: int, last: int) -> Iterator[Element]:
        """The elements of shared memory in an expression."""
        tokens = self.tokens
        for i in range(first, last - 1):
            if tokens[i].text not in self.shared or tokens[i - 1].text in (".", "->", "::"):
                continue
            indices, members, j = [], [], i + 1
            while j < last and tokens[j].text in ("[", ".", "->"):
                if tokens[j].text == "[":
                    end = closing(tokens, j) or last
                    indices.append(tokens[j + 1 : end])
                    j = end + 1
                else:
                    members.append(tokens[j + 1].text)
                    j += 2
            if indices:
                text = "".join(token.text for token in tokens[i:j])
                yield Element(tokens[i].text, text, indices, members=members)
