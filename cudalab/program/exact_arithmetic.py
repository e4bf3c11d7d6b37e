"""Puts the edits of arithmetic.py and macros.py into the files of a program."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.language.scopes import Node
from cudalab.program import arithmetic, macros

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from cudalab.language.scopes import Scope
    from cudalab.language.syntax import Words
    from cudalab.program.parsed import Parsed


def rewrite(files: Sequence[Parsed], scope: Scope, refused: Counter[tuple[str, int]]) -> None:
    """Give conversions and shifts in device code a GPU's results, unless an edit is in the way.

    `refused` are files and lines where the compiler refuses that, and how often: statements there
    get other edits, if there are any; else they stay as they are, and their functions refuse to
    run.
    """
    divisions = not stops_at_zero()
    twins = macros.edit(
        [macro for each in files for macro in each.macros],
        {
            text
            for each in files
            for node in each.bodies
            for text in each.words.texts[node.first : node.last]
        },
        scope,
        divisions=divisions,
    )
    for each in files:
        made, words = list(each.edits), each.words
        edited = sorted((start, end) for start, end, _ in made if start < end)
        made_groups = [
            group
            for node in _outermost(each.bodies)
            for group in arithmetic.groups(node, words, divisions=divisions)
        ]
        made_groups += _of_twins(each.bodies, words, twins)
        for group in made_groups:
            if any(_is_inside(start, edited) for start, _, _ in group.edits):
                continue
            line, times = _refused(each, words, group.statement, refused)
            edits = [group.edits, group.others][times] if times < 2 else []
            for edit in edits:
                each.replace(*edit)
            if not edits:
                each.refuse(_brace(group.function, words), line)
        for macro in each.macros:
            if macro.name in twins:
                text = macros.twin(macro, each.file.text, made, twins)
                text += f"\n#line {each.lines[macro.end] + 1}"
                each.edits.append((macro.end, macro.end, text))
        each.head = macros.defaults(twins)


def _outermost(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes that lie in no other of them."""
    end = 0
    for node in nodes:
        if node.first >= end:
            end = node.last
            yield node


def _of_twins(bodies: Sequence[Node], words: Words, twins: set[str]) -> Iterator[arithmetic.Group]:
    """The edits that replace macros by their twins."""
    seen: set[int] = set()
    for node in sorted(bodies, key=lambda each: each.last - each.first):  # the innermost first
        for i in range(node.first, node.last):
            if i not in seen and words.texts[i] in twins:
                seen.add(i)
                edits = macros.renamed([words.tokens[i]], twins)
                yield arithmetic.Group(edits, Node("name", i, i + 1), node)


def _refused(
    each: Parsed, words: Words, statement: Node, refused: Counter[tuple[str, int]]
) -> tuple[int, int]:
    """The line of a statement that the compiler has refused most often, with the count."""
    first = each.lines[words.tokens[statement.first].start]
    last = each.lines[words.tokens[statement.last - 1].start]
    times = {line: refused[each.file.label, line] for line in range(first, last + 1)}
    line = max(times, key=lambda each: times[each])
    return line, times[line]


def _brace(function: Node, words: Words) -> int:
    """The position behind the brace that opens a function's body."""
    body = next(child for child in function.children if child.kind == "block")
    return words.tokens[body.first].end


def _is_inside(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether a position is in one of the ranges, which are sorted."""
    behind = bisect_left(ranges, (position + 1, 0))
    return behind > 0 and position < ranges[behind - 1][1]
