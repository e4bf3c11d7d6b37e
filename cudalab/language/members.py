"""Default values of the members of classes that device code may make objects of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudalab.language.scopes import Node
    from cudalab.language.syntax import Words

_CONSTANT = {"static", "constexpr"}


def defaults(root: Node, named: set[str]) -> Iterator[Node]:
    """The declarations of members with default values, of the classes `named` for the device.

    Those in functions are left out, and constants, whose values the compiler checks.
    """
    functions = list(root.of_kind("function", "lambda"))
    for each in root.of_kind("class"):
        local = any(function.first <= each.first < function.last for function in functions)
        if local or each.text not in named:
            continue
        for member in each.children:
            is_value = member.kind == "declaration" and not (member.words & _CONSTANT)
            if is_value and any(child.kind == "initializer" for child in member.children):
                yield member


def named_for(device: set[str], files: Sequence[tuple[Node, Words]]) -> set[str]:
    """The names that `device` code uses, and those in the classes among them."""
    classes = [(each, words) for root, words in files for each in root.of_kind("class")]
    named, size = set(device), 0
    while len(named) != size:
        size = len(named)
        for each, words in classes:
            if each.text in named:
                named.update(words.texts[each.first : each.last])
    return named
