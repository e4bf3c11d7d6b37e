"""Conversions and shifts in device code that C++ leaves undefined: the edits that define them.

A conversion of a floating-point number that does not fit into an integer, and a shift by more
places than there are bits, have a value on a GPU. The functions of cudalab/arithmetic.h have it,
too; here they are put in place of casts, assignments and shifts that may need it. What consists of
integers, pointers and classes only stays as it is. What has no type in the text is left to these
functions, which change nothing where nothing is to change.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cudalab.language.scopes import KNOWN_TYPES, UNKNOWN, Node, Type
from cudalab.language.tokens import Edit, Words
from cudalab.language.types import called, constructed, declared, type_of, value_of

DEVICE = frozenset({"__global__", "__device__"})
_STREAMS = frozenset({"cout", "cerr", "clog", "std::cout", "std::cerr", "std::clog"})
_SAFE_PLACES = 31  # every integer that is shifted has as many
# Operands behind which `::cudalab::cudalab_by +` needs no brackets.
_PRIMARY = frozenset({"name", "literal", "group", "call", "index", "member", "named_cast"})
# What has statements, or parts that are looked at like one.
_CONTAINERS = frozenset({"block", "if", "for", "while", "switch", "do", "function", "lambda"})
# Kinds of nodes that may convert a value, and what edits them.
_CONVERTING = {
    **dict.fromkeys(("cast", "construct", "named_cast"), "_cast"),
    "assign": "_assignment",
    "initializer": "_initializer",
    "member_initializer": "_member",
    "new": "_new",
    "call": "_call",
}


@dataclass(frozen=True)
class Group:
    """Edits that belong together."""

    edits: list[Edit]
    statement: Node  # or the part of its head
    function: Node
    others: list[Edit] = field(default_factory=list)  # for those that the compiler refuses

    def is_inside(self, ranges: Sequence[tuple[int, int]]) -> bool:
        """Whether an edit begins in one of the ranges, which are sorted."""
        for position, _, _ in self.edits:
            behind = bisect_left(ranges, (position + 1, 0))
            if behind > 0 and position < ranges[behind - 1][1]:
                return True
        return False


def device_functions(root: Node, words: Words, marks: frozenset[str]) -> Iterator[Node]:
    """The functions and lambda expressions that are declared for the device."""
    for node in root.of_kind("function", "lambda"):
        body = next((child.first for child in node.children if child.kind == "block"), node.last)
        if marks & set(words.texts[node.first : body]) and node.children:
            yield node


def outermost(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes that lie in no other of them."""
    end = 0
    for node in nodes:
        if node.first >= end:
            end = node.last
            yield node


def groups(node: Node, words: Words, *, divisions: bool) -> Iterator[Group]:
    """The edits for a device function and the lambda expressions inside it.

    `divisions` are edited, too, for processors that do not stop at a division by zero.
    """
    yield from _Writer(words, divisions=divisions).groups(node, node, node)


class _Writer:
    """Makes the edits for expressions."""

    def __init__(self, words: Words, *, divisions: bool) -> None:
        self.words, self.divisions = words, divisions
        self.edits: list[Edit] = []
        self.others: list[Edit] = []
        self.objects: set[Node] = set()  # whose members are used, as in `Reduce(memory).sum(x)`

    def groups(self, node: Node, statement: Node, function: Node) -> Iterator[Group]:
        """The edits for a node and all below it, from the outside in."""
        if node.kind in ("function", "lambda"):
            function = node
        self.edits, self.others = [], []
        self._visit(node, function)
        if self.edits:
            yield Group(self.edits, statement, function, self.others)
        for child in node.children:
            inner = child if node.kind in _CONTAINERS else statement
            yield from self.groups(child, inner, function)

    def _visit(self, node: Node, function: Node) -> None:
        if node.kind in ("member", "index", "call"):
            self.objects.add(node.children[0])
        if node.kind == "binary" and node.text in ("<<", ">>"):
            self._shift(node)
        elif node.kind == "binary" and node.text in ("/", "%") and self.divisions:
            left, right = node.children
            if _may_be_integer(type_of(left)) and _may_be_zero(right):
                self._insert(right.first, "::cudalab::cudalab_zero_too ->* ")
        elif node.kind == "return" and node.children:
            self._convert(node.children[0], function.type)
        elif node.kind in _CONVERTING:
            getattr(self, _CONVERTING[node.kind])(node)

    # Shifts and divisions -------------------------------------------------------------------------

    def _shift(self, node: Node) -> None:
        left, right = node.children
        first = left
        while first.kind == "binary":
            first = first.children[0]
        is_stream = first.kind == "name" and first.text in _STREAMS
        if not _may_be_integer(type_of(left)) or not _is_place(right) or is_stream:
            return
        name = declared(left)
        if name is not None and name.is_bit_field:  # which has no references
            self._insert(left.first, "+")
        if right.kind in _PRIMARY:
            self._insert(right.first, "::cudalab::cudalab_by + ")
        else:
            self._wrap(right, "::cudalab::cudalab_by + (")

    # Conversions ----------------------------------------------------------------------------------

    def _cast(self, node: Node) -> None:
        """(T)value, T(value), static_cast<T>(value)"""
        words, first = self.words, node.first
        if words.texts[node.at] == "(" and self._construction(node.type, node.children):
            return
        if node in self.objects or len(node.children) != 1:
            return
        if not _needs_conversion(node.children[0], node.type):
            return
        if node.kind == "cast" and node.text:
            value = node.children[0]
            self._replace(first, value.first, f"::cudalab::cudalab_cast<{node.text}>(")
            self._insert_behind(value.last, ")")
        elif node.kind == "named_cast" and node.text == "static_cast" and node.type.text:
            spelled = words.text(first + 2, node.at - 1)
            if "&" not in spelled:
                self._replace(first, node.at, f"::cudalab::cudalab_cast<{spelled}>")
        elif node.kind == "construct" and words.texts[node.at] == "(" and node.text:
            self._replace(first, node.at, f"::cudalab::cudalab_cast<{node.text}>")

    def _initializer(self, node: Node) -> None:
        """T name = value, T name(value)"""
        value = node.children[0]
        values = value.children if value.kind == "list" else [value]
        if node.text != "{" and self._construction(node.type, values):
            return
        if value.kind == "list":
            if node.text != "(" or len(value.children) != 1:
                return
            value = value.children[0]
        self._convert(value, node.type)

    def _member(self, node: Node) -> None:
        """member(value), or Base(values)"""
        name, *values = node.children
        member = declared(name)
        type_ = type_of(name)
        if member is None or member.kind == "function":  # a base, whose constructors are members
            scopes = name.scope.enclosing() if name.scope is not None else ()
            outside = (scope.own(name.text) for scope in scopes)
            type_ = next((each.type for each in outside if each and each.kind == "class"), UNKNOWN)
        if not self._construction(type_, values) and len(values) == 1:
            self._convert(values[0], type_)

    def _new(self, node: Node) -> None:
        """New T(values)"""
        values = node.children
        if node.text != "new" or self.words.texts[node.at] != "(":
            return
        if not self._construction(node.type, values) and len(values) == 1:
            self._convert(values[0], node.type)

    def _construction(self, type_: Type, values: list[Node]) -> bool:
        """Convert what a constructor of the program is given; whether it is known."""
        parameters = constructed(type_, len(values))
        for value, parameter in zip(values, parameters or (), strict=False):
            if parameter.kind == "integer":
                self._convert(value, parameter)
        return parameters is not None

    def _convert(self, value: Node, to: Type) -> None:
        """Convert a value to the type `to`, as an initialization does."""
        if self._construction(to, [value]):
            return
        is_number = to.kind == "integer" and type_of(value).kind in ("float", "half")
        if to.is_reference and not is_number:  # which may be bound to the value itself
            return
        if to.text and _needs_conversion(value, to):
            self._wrap(value, f"::cudalab::cudalab_fit<{to.text}>(")

    def _assignment(self, node: Node) -> None:
        """Target = value, target += value, target <<= value"""
        words, (target, value), sign = self.words, node.children, node.text
        if words.texts[target.first] == ".":  # in a list, which narrows nothing
            return
        type_ = type_of(target)
        bits = declared(target)
        behind = node.at + words.width(node.at, sign)
        if sign in ("<<=", ">>=", "/=", "%="):
            if sign in ("<<=", ">>="):
                wrap = _may_be_integer(type_) and _is_place(value)
                opening = "::cudalab::cudalab_by + ("
            else:
                wrap = self.divisions and _may_be_integer(type_) and _may_be_zero(value)
                opening = "::cudalab::cudalab_zero_too ->* ("
            if wrap and bits is not None and bits.is_bit_field:
                text = words.text(target.first, target.last)
                self._replace(node.at, behind, f"= +{text} {sign[:-1]} {opening}")
                self._insert_behind(value.last, ")")
                return
            if wrap:
                self._wrap(value, opening)
                return
        if not _needs_conversion(value, type_):
            return
        written = words.text(target.first, target.last)
        type_text = type_.text if type_.kind == "integer" and type_.text else f"decltype({written})"
        if sign == "=":
            if not any(target.of_kind("lambda", "unknown", "block")):
                self._wrap(value, f"::cudalab::cudalab_fit<{type_text}>(")
        elif sign in ("+=", "-=", "*=", "/="):
            is_bits = bits is not None and bits.is_bit_field
            self._compound(node, behind, f"::cudalab::cudalab_fit<{type_text}>(", is_bits=is_bits)

    def _compound(self, node: Node, behind: int, fit: str, *, is_bits: bool) -> None:
        """Target += value; a bit-field is written twice, since no reference can bind to it"""
        target, value = node.children
        written = self.words.text(target.first, target.last)
        self._replace(node.at, behind, f"= {fit}{written} {node.text[0]} (")
        self._insert_behind(value.last, "))")
        if not is_bits:
            twice, self.edits = self.edits, []
            self._insert(target.first, "::cudalab::cudalab_into(")
            self._insert_behind(target.last, ")")
            self.others = twice if self._may_be_written_twice(target) else []

    def _call(self, node: Node) -> None:
        """The arguments of the program's own functions, and of make_uchar4 and the like"""
        callee, *values = node.children
        function = called(node) or (declared(callee) if callee.kind == "member" else None)
        if function is not None and function.kind == "function":
            for value, type_ in zip(values, function.parameters or (), strict=False):
                if type_.kind in ("integer", "class"):
                    self._convert(value, type_)
            return
        vector = KNOWN_TYPES.get(callee.text.removeprefix("make_"))
        if vector is None or callee.kind != "name" or not callee.text.startswith("make_"):
            return
        if not vector.text.endswith(str(len(values))):  # of another vector, by a header's function
            return
        if any(_needs_conversion(value, vector.element or UNKNOWN) for value in values):
            self._replace(callee.first, callee.last, f"::cudalab::cudalab_make<{vector.text}>")

    # Text -----------------------------------------------------------------------------------------

    def _may_be_written_twice(self, node: Node) -> bool:
        """Whether an expression only names something: perhaps a bit-field of a template's type."""
        kinds, texts = self.words.kinds, self.words.texts
        return all(
            kinds[i] in ("name", "number") or texts[i] in (".", "->", "[", "]", "::")
            for i in range(node.first, node.last)
        )

    def _insert(self, first: int, text: str) -> None:
        """Insert a text before a token."""
        position = self.words.tokens[first].start
        self.edits.append((position, position, text))

    def _insert_behind(self, last: int, text: str) -> None:
        position = self.words.tokens[last - 1].end
        self.edits.append((position, position, text))

    def _replace(self, first: int, last: int, text: str) -> None:
        tokens = self.words.tokens
        self.edits.append((tokens[first].start, tokens[last - 1].end, text))

    def _wrap(self, node: Node, opening: str) -> None:
        self._insert(node.first, opening)
        self._insert_behind(node.last, ")")


def _may_be_integer(type_: Type) -> bool:
    return type_.kind in ("integer", "bool", "unknown")


def _is_place(node: Node) -> bool:
    """Whether a shift may be by more places than the operand has bits."""
    node = _without_brackets(node)
    if not _may_be_integer(type_of(node)) or node.kind in ("unknown", "list"):
        return False
    values = [node]
    if node.kind == "binary" and node.text == "&":
        values = node.children if type_of(node).kind == "integer" else []
    known = (value_of(_without_brackets(value).text) for value in values)
    return not any(value is not None and value <= _SAFE_PLACES for value in known)


def _may_be_zero(node: Node) -> bool:
    certain = value_of(_without_brackets(node).text)
    return _may_be_integer(type_of(node)) and not certain and node.kind != "unknown"


def _without_brackets(node: Node) -> Node:
    while node.kind == "group" and len(node.children) == 1:
        node = node.children[0]
    return node


def _needs_conversion(value: Node, to: Type) -> bool:
    """Whether a value that may be floating-point is converted to what may be an integer."""
    if to.kind not in ("integer", "unknown") or to.is_auto:
        return False
    if value.kind in ("list", "lambda", "new", "unknown", "empty", "throw"):
        return False
    if _without_brackets(value).kind in ("block", "unknown"):
        return False
    return type_of(value).kind in ("float", "half", "unknown")
