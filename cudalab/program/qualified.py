"""Kernels whose names a `using namespace` gives a second meaning, as `swap`, `count` or `max`.

nvcc chooses by a launch's arguments. Here the launch names the kernel: the one outside of all
namespaces, with its parameters' types.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from cudalab.language.tokens import closing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudalab.language.tokens import Token
    from cudalab.program.parsed import Parsed

_DECLARES = frozenset({"*", "&", ">"})
_NO_TYPES = frozenset({"return", "else", "do", "case", "goto", "throw", "new", "delete"})


def kernels(files: Sequence[Parsed], plain: set[str], templates: set[str]) -> dict[str, str]:
    """The kernels of a program with a `using namespace`, each as an expression of C++.

    That of a template is its name.
    """
    uses = any(
        (one.text, other.text) == ("using", "namespace")
        for each in files
        for one, other in pairwise(each.tokens)
    )
    if not uses:
        return {}
    found: dict[str, str | None] = {}
    inside: set[str] = set()
    for each in files:
        for name, types, is_outside in _declared(each.tokens):
            found[name] = types if found.get(name, types) == types else None
            inside |= set() if is_outside else {name}
    return {
        name: f"::{name}" if name in templates else f"static_cast<void (*)({types})>(::{name})"
        for name, types in found.items()
        if name not in inside and (name in templates or (types is not None and name in plain))
    }


def _declared(tokens: Sequence[Token]) -> Iterator[tuple[str, str | None, bool]]:
    """Each declared kernel, its parameters' types, and whether it is in no namespace or class."""
    depth, outside = 0, list[bool]()
    for i, token in enumerate(tokens):
        if token.text == "{":
            outside.append(i > 0 and tokens[i - 1].kind == "string")  # extern "C" {
            depth += not outside[-1]
        elif token.text == "}" and outside:
            depth -= not outside.pop()
        elif token.text == "__global__":
            begin = _parameters(tokens, i)
            end = None if begin is None else closing(list(tokens), begin)
            if begin is not None and end is not None:
                types = _types(tokens[begin + 1 : end])
                yield tokens[begin - 1].text, types, depth == 0


def _parameters(tokens: Sequence[Token], i: int) -> int | None:
    """The index of the bracket with a kernel's parameters, after `__global__` at `i`."""
    while i + 1 < len(tokens) and tokens[i].text not in (";", "{", "("):
        if tokens[i].text == "__launch_bounds__":
            i = closing(list(tokens), i + 1) or i
        i += 1
    return i if i < len(tokens) and tokens[i].text == "(" and tokens[i - 2].text != "::" else None


def _types(params: Sequence[Token]) -> str | None:
    """The types of parameters without their names; None for those of arrays and functions."""
    words: list[list[str]] = [[]]
    depth = 0
    for token in params:
        depth += (token.text in "(<[{") - (token.text in ")>]}")
        if token.text in "([{":
            return None
        if token.text == "," and depth == 0:
            words.append([])
        else:
            words[-1].append(token.text)
    types = []
    for each in words:
        given = each[: each.index("=")] if "=" in each else each
        named = len(given) > 1 and given[-1].isidentifier() and given[-2] != "::"
        if named and (given[-2] != "const" or len(given) > 2) and given[-2] != "unsigned":
            given = given[:-1]
        types.append(" ".join(given))
    return ", ".join(types)


def is_hidden(name: str, tokens: Sequence[Token]) -> bool:
    """Whether a function, whose `tokens` are given, seems to declare something of this name."""
    return any(
        token.text == name
        and (before.text in _DECLARES or (before.kind == "name" and before.text not in _NO_TYPES))
        for before, token in pairwise(tokens)
    )
