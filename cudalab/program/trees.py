"""The trees of a program's files, whose names are declared in one scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudalab.language.scopes import Node, Scope
from cudalab.language.structure import scan
from cudalab.language.syntax import Words
from cudalab.language.tree import Reader
from cudalab.program import arithmetic
from cudalab.program.macros import Macro, declare, macros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudalab.program.parsed import Parsed


@dataclass(frozen=True, kw_only=True)
class Trees:
    """What the trees of a program are made of, a list entry for each of its files."""

    scope: Scope
    words: list[Words]
    macros: list[list[Macro]]  # that the file defines
    bodies: list[list[Node]]  # functions and lambda expressions for the device


def read(parsed: Sequence[Parsed]) -> Trees:
    """Read all files, each behind those that it includes."""
    scope, defined = Scope("namespace"), [macros(each.directives) for each in parsed]
    marks = declare([macro for own in defined for macro in own], scope)
    words = [Words(each.tokens, each.directives) for each in parsed]
    bodies: list[list[Node]] = [[] for _ in parsed]
    for i in _in_order(parsed):
        root = Reader(words[i]).file(scope)
        parsed[i].structure = scan(root, words[i], parsed[i].lines)
        bodies[i] = list(arithmetic.device_functions(root, words[i], marks))
    return Trees(scope=scope, words=words, macros=defined, bodies=bodies)


def _in_order(parsed: Sequence[Parsed]) -> Iterator[int]:
    """The indices of the files, each behind those that it includes."""
    done: set[int] = set()

    def visit(i: int) -> Iterator[int]:
        if i not in done:
            done.add(i)
            for other in parsed[i].file.includes.values():
                yield from visit(other)
            yield i

    for i in range(len(parsed)):
        yield from visit(i)
