"""The names that a program declares, by the kind of their type: integers, or floating-point.

Scopes are ignored, so a name may be of several kinds. It then counts as neither.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from cudalab.language.tokens import end_of_expression, opening, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cudalab.language.tokens import Token

QUALIFIERS = frozenset({"const", "constexpr", "volatile", "static", "register", "inline"})
_MARKS = frozenset({"*", "&", "const", "volatile", "__restrict__", "__restrict", "restrict"})
INTEGERS = frozenset(
    {"signed", "unsigned", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong"}
    | {"size_t", "ssize_t", "ptrdiff_t", "intptr_t", "uintptr_t", "clock_t"}
    | {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
INTEGER_VECTORS = frozenset(
    f"{sign}{kind}{size}"
    for sign in ("", "u")
    for kind in ("char", "short", "int", "long", "longlong")
    for size in (1, 2, 3, 4)
)
FLOATS = frozenset(
    {"float", "double", "half", "__half", "half2", "__half2", "__nv_bfloat16"}
    | {f"{kind}{size}" for kind in ("float", "double") for size in (1, 2, 3, 4)}
)
# Names whose values are integers, or have the type of their arguments.
_PLAIN = frozenset(
    {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "min", "max", "abs", "sizeof"}
    | {"true", "false", "nullptr", "NULL"}
)
_FIELDS = frozenset("xyzw")  # of vectors, which have the type of the vector's name
_NO_TYPES = frozenset(
    {"return", "else", "do", "case", "goto", "new", "delete", "throw", "using", "operator"}
    | {"typename", "class", "struct", "enum", "union", "template", "if", "while", "for", "switch"}
)
INTEGER = re.compile(r"(?:0[xX][\da-fA-F']+|0[bB][01']+|[\d']+)[uUlLzZ]*")
_CONSTANT = re.compile(r"[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<value>.+)", re.DOTALL)


@dataclass
class Names:
    """The names that a program declares, by the kind of their type."""

    _: KW_ONLY
    integers: set[str] = field(default_factory=set)
    floats: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)  # of a type that is not known here
    # Names of types: aliases, and those that are known only to be types, as template parameters.
    integer_types: set[str] = field(default_factory=lambda: set(INTEGERS))
    float_types: set[str] = field(default_factory=lambda: set(FLOATS))
    types: set[str] = field(default_factory=set)
    # Of the program's device functions: the parameters' types, where they are integers.
    parameters: dict[str, list[str]] = field(default_factory=dict)

    def kind(self, word: str) -> set[str] | None:
        """The names that belong to declarations with a type that ends in `word`."""
        if word in self.integer_types or word in INTEGER_VECTORS:
            return self.integers
        if word in self.float_types:
            return self.floats
        return None if word in _NO_TYPES | QUALIFIERS | _MARKS else self.others

    def is_integer(self, tokens: Sequence[Token]) -> bool:
        """Whether an expression certainly has no floating-point value in it."""
        if any(each.kind == "number" and not INTEGER.fullmatch(each.text) for each in tokens):
            return False
        names = {each.text for each in without_fields(tokens)} - _PLAIN - self.integer_types
        return names <= self.integers - self.others - self.floats

    def is_float(self, name: str) -> bool:
        """Whether a name certainly belongs to a floating-point object."""
        return name in self.floats and name not in self.integers | self.others


def without_fields(tokens: Sequence[Token]) -> list[Token]:
    """The names in an expression, without `.x` and the like."""
    return [
        token
        for i, token in enumerate(tokens)
        if token.kind == "name"
        and not (i and token.text in _FIELDS and tokens[i - 1].text in (".", "->"))
    ]


def declared(files: Sequence[list[Token]], directives: Iterable[Token]) -> Names:
    """The names that the files and their directives declare."""
    names = Names()
    for tokens in files:
        for i, token in enumerate(tokens[:-2]):
            if token.text in ("typename", "class", "using", "typedef"):
                _note_type(tokens, i, names)
    for tokens in files:
        for i, token in enumerate(tokens[:-2]):
            if token.kind == "name":
                _note_declaration(tokens, i, names)
    for directive in directives:
        match = _CONSTANT.match(directive.text)
        if match and names.is_integer(tokenize(match["value"])):
            names.integers.add(match["name"])
    return names


def _note_type(tokens: Sequence[Token], i: int, names: Names) -> None:
    """Note the type declared at tokens[i]: `using T = int;`, `typedef int T;`, `class T`."""
    end = i
    while end + 1 < len(tokens) and tokens[end].text != ";":
        end += 1
    if tokens[i].text == "typedef":
        name, words = tokens[end - 1].text, tokens[i + 1 : end - 1]
    else:
        name, words = tokens[i + 1].text, tokens[i + 3 : end]
        if tokens[i + 2].text != "=" or tokens[i].text != "using":
            words = []
    texts = {word.text for word in words if word.text not in ("std", "::")}
    if texts and texts <= INTEGERS:
        names.integer_types.add(name)
    elif texts and texts <= FLOATS:
        names.float_types.add(name)
    elif tokens[i + 1].kind == "name":
        names.types.add(name)


def _note_declaration(tokens: list[Token], i: int, names: Names) -> None:
    """Note what is declared if tokens[i] is the last word of a type."""
    kind = names.kind(tokens[i].text)
    if kind is None:
        return
    j = i + 1
    while j < len(tokens) and tokens[j].text in (*_MARKS, ">"):
        j += 1
    while j + 1 < len(tokens) and tokens[j].kind == "name" and tokens[j].text not in INTEGERS:
        if tokens[j + 1].text not in (",", ";", "=", "[", ")", "(", "{", ":"):
            return
        kind.add(tokens[j].text)
        comma = end_of_expression(tokens, j + 1)
        if tokens[j + 1].text == "(" or tokens[comma].text != ",":
            return
        j = comma + 1
        while j < len(tokens) and tokens[j].text in _MARKS:
            j += 1
        if j + 1 < len(tokens) and tokens[j + 1].text not in (",", ";", "=", "["):
            return  # the next parameter


def note_parameters(
    tokens: list[Token], functions: Iterable[tuple[int, int]], names: Names
) -> None:
    """Note the parameters of device functions; numbers are the indices of their bodies."""
    for start, _ in functions:
        end = start - 1
        while end > 0 and tokens[end].text not in (")", ";", "}", "{"):
            end -= 1
        first = opening(tokens, end) if tokens[end].text == ")" else None
        if not first or tokens[first - 1].kind != "name":
            continue
        types, i = [], first + 1
        while i < end:
            last = end_of_expression(tokens, i)
            words = [token.text for token in tokens[i : min(last, end) - 1]]
            kept = [word for word in words if word not in QUALIFIERS]
            integer = bool(kept) and set(kept) <= names.integer_types
            types.append(" ".join(kept) if integer else "")
            i = last + 1
        name = tokens[first - 1].text
        known = names.parameters.setdefault(name, types)
        if known != types:  # overloaded
            names.parameters[name] = []
