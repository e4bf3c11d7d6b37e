"""Puts the edits of arithmetic.py and twins.py into the files of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.language import arithmetic, twins

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from cudalab.language.scopes import Node, Scope
    from cudalab.language.syntax import Words
    from cudalab.program.parsed import Parsed


def rewrite(files: Sequence[Parsed], scope: Scope, refused: Counter[tuple[str, int]]) -> None:
    """Give conversions and shifts in device code a GPU's results, unless an edit is in the way.

    `refused` are files and lines where the compiler refuses that, and how often: statements there
    get other edits, if there are any; else they stay as they are, and their functions refuse to
    run.
    """
    divisions = not stops_at_zero()
    doubled = twins.edit(
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
            for node in arithmetic.outermost(each.bodies)
            for group in arithmetic.groups(node, words, divisions=divisions)
        ]
        made_groups += twins.used(each.bodies, words, doubled)
        for group in made_groups:
            if group.is_inside(edited):
                continue
            line, times = _refused(each, words, group.statement, refused)
            edits = [group.edits, group.others][times] if times < 2 else []
            for edit in edits:
                each.replace(*edit)
            if not edits:
                each.refuse(_brace(group.function, words), line)
        for macro in each.macros:
            if macro.name in doubled:
                text = twins.twin(macro, each.file.text, made, doubled)
                text += f"\n#line {each.lines[macro.end] + 1}"
                each.edits.append((macro.end, macro.end, text))
        each.head = twins.defaults(doubled)


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
