"""Puts the edits of arithmetic.py and macros.py into the files of a program."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.language.scopes import Node, Scope
from cudalab.language.syntax import Words
from cudalab.language.tree import Reader
from cudalab.program import arithmetic, macros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudalab.program.parsed import Parsed


def rewrite(parsed: Sequence[Parsed]) -> None:
    """Define conversions and shifts in device code, where nothing else has been edited."""
    scope, divisions = Scope("namespace"), not stops_at_zero()
    defined = [macros.macros(each.directives) for each in parsed]
    marks = macros.declare([macro for own in defined for macro in own], scope)
    bodies: list[list[Node]] = [[] for _ in parsed]
    words = [Words(each.tokens, each.directives) for each in parsed]
    for i in _in_order(parsed):
        root = Reader(words[i]).file(scope)
        bodies[i] = list(arithmetic.device_functions(root, words[i], marks))
    inside = [
        [each.tokens[i] for i in sorted({i for node in own for i in range(node.first, node.last)})]
        for each, own in zip(parsed, bodies, strict=True)
    ]
    twins = macros.edit(
        [macro for own in defined for macro in own],
        {token.text for own in inside for token in own},
        scope,
        divisions=divisions,
    )
    for i, each in enumerate(parsed):
        made = list(each.edits)
        edited = sorted((start, end) for start, end, _ in made if start < end)
        for node in _outermost(bodies[i]):
            for group in arithmetic.groups(node, words[i], divisions=divisions):
                _apply(each, group.edits, edited)
        for edit in macros.renamed(inside[i], twins):
            _apply(each, [edit], edited)
        for macro in defined[i]:
            if macro.name in twins:
                text = macros.twin(macro, each.file.text, made, twins)
                text += f"\n#line {each.lines[macro.end] + 1}"
                each.edits.append((macro.end, macro.end, text))
        each.head = macros.defaults(twins)


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


def _outermost(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes that are in no other one."""
    end = 0
    for node in nodes:
        if node.first >= end:
            end = node.last
            yield node


def _apply(
    each: Parsed, edits: Sequence[tuple[int, int, str]], edited: list[tuple[int, int]]
) -> None:
    """Make edits that belong together, unless one is where something else has been edited."""
    if not any(_is_inside(start, edited) for start, _, _ in edits):
        for edit in edits:
            each.replace(*edit)


def _is_inside(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether a position is in one of the ranges, which are sorted."""
    behind = bisect_left(ranges, (position + 1, 0))
    return behind > 0 and position < ranges[behind - 1][1]
