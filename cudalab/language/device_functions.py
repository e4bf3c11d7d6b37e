"""What the names in a device function stand for: shared memory, and values of lanes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise

from cudalab.language.macros import read_body
from cudalab.language.scopes import Node, Scope
from cudalab.language.structure import CudaFile, Declared
from cudalab.language.tokens import Token, Words, closure, set_of, texts

_BUILT_IN = set_of("threadIdx blockIdx blockDim gridDim")
_GROWING = set_of("= += *= /= >>= <<= &= ++")
_NATURAL = re.compile(r"(?:block(?:Dim|Idx)|threadIdx|gridDim)\.[xyz]|warpSize|[A-Z][A-Z0-9_]*")
_CALLS_OF_NUMBERS = set_of("min max sizeof int unsigned")


@dataclass
class Element:
    """An element of shared memory in an expression."""

    root: str
    text: str
    indices: list[Node]
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
    value: Node | None = None
    _: KW_ONLY
    declares: bool = False


def find_shared(files: Sequence[CudaFile], functions: Sequence[DeviceFunction]) -> None:
    """Let functions know which of their names may stand for shared memory."""
    outside: set[str] = set()
    for file in files:
        inside = {i for each in file.structure.device_functions for i in range(*each.body)}
        outside |= {name for i, name in _shared_names(file.root) if i not in inside}
        for macro in file.macros:
            if "__shared__" in macro.words:
                _, body = read_body(macro, file.root.scope or Scope("namespace"))
                outside |= {name for _, name in _shared_names(body)}
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


def _shared_names(root: Node) -> Iterator[tuple[int, str]]:
    """The variables that are declared with `__shared__`, and where their declarations begin."""
    for node in root.of_kind("declaration"):
        if "__shared__" in node.words:
            yield from ((node.first, name.name) for name in node.names)


class DeviceFunction:
    """A device function: tokens[start] is the bracket that opens its body."""

    def __init__(self, words: Words, declared: Declared) -> None:
        self.node, tokens = declared.node, words.tokens
        self.tokens, (self.start, self.end) = tokens, declared.body
        self.head = set(texts(tokens[declared.first : self.start]))
        self.name = declared.node.text.rpartition("::")[2]
        self.parameters = declared.node.parameters
        self.names = [each.names[-1].name if each.names else "" for each in self.parameters]
        self.shared = {name for _, name in _shared_names(self.node)}
        if not self.is_kernel:  # whose parameters point to global memory
            volatile = (each for each in self.parameters if "volatile" in texts(self.within(each)))
            self.shared |= {name.name for each in volatile for name in each.names}

    @cached_property
    def _declarations(self) -> list[Node]:
        """Its parameters, and the declarations in it."""
        return [*self.parameters, *self.node.of_kind("declaration")]

    def volatile_pointers(self) -> set[str]:
        """The local pointers to volatile memory, whichever it is."""
        return {
            self.tokens[each.name].text
            for node in self.node.of_kind("declaration")
            for each in node.declarators
            if "volatile" in node.words and self.tokens[each.value].text == "="
            if "*" in texts(self.tokens[each.first : each.name])
        }

    @cached_property
    def volatile(self) -> set[str]:
        """What of its shared memory is volatile."""
        declared = {
            self.tokens[each.name].text
            for node in self._declarations
            for each in node.declarators
            if "volatile" in texts(self.tokens[node.first : each.name])
        }
        return declared & self.shared

    # What its names stand for ---------------------------------------------------------------------

    def text(self, node: Node) -> str:
        """An expression without spaces."""
        return "".join(texts(self.within(node)))

    def within(self, node: Node | None) -> Sequence[Token]:
        """The tokens of an expression."""
        return self.tokens[node.first : node.last] if node else ()

    @cached_property
    def values(self) -> dict[str, list[Change]]:
        """What each variable is set to or changed by."""
        found: dict[str, list[Change]] = {}
        for node in self.node.walk():
            target, sign = (node.children or [node])[0], node.text.lstrip("_")
            change = None
            if node.kind == "initializer" and node.names:
                value = target if sign == "=" else None
                change = Change(node.at, "=" if value else "&", value, declares=True)
                found.setdefault(node.names[0].name, []).append(change)
            elif target.kind == "name" and node.kind == "assign":
                change = Change(target.first, sign, node.children[1])
                found.setdefault(target.text, []).append(change)
            elif target.kind == "name" and node.kind == "unary" and sign in ("++", "--", "&"):
                found.setdefault(target.text, []).append(Change(target.first, sign))
        return found

    def value(self, name: str, place: int) -> Node | None:
        """The value that a variable has at token `place`, if it never changes."""
        changes = self.values.get(name, [])
        known = all(
            each.operator == "=" and (len(changes) == 1 or each.declares) for each in changes
        )
        before = [each.value for each in changes if each.place < place]
        return before[-1] if known and before else None

    @cached_property
    def lanes(self) -> set[str]:
        """The names whose values may differ from lane to lane."""
        return closure(
            {"threadIdx"} | (set() if self.is_kernel else set(self.names)),
            lambda known: (
                name
                for name, values in self.values.items()
                if any(self._differs(self.within(each.value), known) for each in values)
            ),
        )

    def _differs(self, tokens: Sequence[Token], known: set[str]) -> bool:
        """Whether an expression may differ from lane to lane, as what is `known` does."""
        for before, token in pairwise([None, *tokens]):
            if token and token.text in known:
                return True
            if token and self._is_unknown(before.text if before else "", token.text):
                return True
            if before and token and token.text in ("[", "("):
                is_of_numbers = before.kind != "name" or before.text in _CALLS_OF_NUMBERS
                if token.text == "[" or not is_of_numbers:
                    return True
        return False

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
                for token in self.within(each.value)
            )
            for each in values
        )

    def follow_pointers(self) -> None:
        """Count in the pointers that are set to shared memory."""
        pointers = {
            name.name
            for node in self._declarations
            for name in node.names
            if name.type.kind == "pointer" or name.type.is_reference or name.type.is_auto
        }
        values = [
            (name, self.within(each.value))
            for name, changes in self.values.items()
            for each in changes
            if name in pointers and each.operator == "="
        ]

        def points(value: Sequence[Token], shared: set[str]) -> bool:
            words = set(texts(value))
            if any("Shared" in word for word in words):
                return True
            is_element = value[-1:] and value[-1].text == "]" and value[0].kind == "name"
            return not (words.isdisjoint(shared) or is_element)

        self.shared = closure(
            self.shared, lambda shared: (name for name, value in values if points(value, shared))
        )

    def handed_over(self, names: Collection[str]) -> Iterator[tuple[str, int]]:
        """The calls of functions with shared memory as an argument: which one of them."""
        for call in self.node.of_kind("call"):
            name = call.children[0].text.rpartition("::")[2]
            for k, argument in enumerate(call.children[1:] if name in names else ()):
                if not self.shared.isdisjoint(texts(self.within(argument))):
                    yield name, k

    def learn(self, position: int) -> bool:
        """Note that a parameter may be shared memory; whether that is news."""
        if position >= len(self.parameters):
            return False
        name, words = self.names[position], self.within(self.parameters[position])
        if name in self.shared or {"*", "&", "["}.isdisjoint(texts(words)):
            return False
        self.shared.add(name)
        return True

    def elements(self, node: Node) -> Iterator[Element]:
        """The elements of shared memory in an expression."""
        indices: list[Node] = []
        members: list[str] = []
        base = node
        while base.kind in ("index", "member"):
            if base.kind == "index":
                indices.insert(0, base.children[-1])
            else:
                members.insert(0, base.text)
            base = base.children[0]
        is_element = base.kind == "name" and base.text in self.shared and indices
        if is_element:
            yield Element(base.text, self.text(node), indices, members=members)
        for part in indices if is_element else node.children:
            yield from self.elements(part)
