"""Puts the edits of arithmetic.py and twins.py into the files of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.language import arithmetic, members, twins
from cudalab.language.refused import edits_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from cudalab.language.refused import Place
    from cudalab.language.scopes import Node, Scope
    from cudalab.language.syntax import Words
    from cudalab.program.parsed import Parsed


def rewrite(files: Sequence[Parsed], scope: Scope, refused: Counter[Place]) -> None:
    """Give conversions and shifts in device code a GPU's results, unless an edit is in the way.

    `refused` are files and lines where the compiler refuses that, and how often: statements there
    get other edits, if there are any; else they stay as they are, and their functions refuse to
    run.
    """
    divisions = not stops_at_zero()
    bodies = [(each.words, node) for each in files for node in each.bodies]
    named = {text for words, node in bodies for text in words.texts[node.first : node.last]}
    doubled = twins.edit(
        [macro for each in files for macro in each.macros], named, scope, divisions=divisions
    )
    in_classes = members.named_for(named, [(each.root, each.words) for each in files])
    for each in files:
        made, words = list(each.edits), each.words
        edited = sorted((start, end) for start, end, _ in made if start < end)
        made_groups = [
            group
            for node in (
                *arithmetic.outermost(each.bodies),
                *members.defaults(each.root, in_classes),
            )
            for group in arithmetic.groups(node, words, divisions=divisions)
        ]
        made_groups += twins.used(each.bodies, words, doubled)
        for group in made_groups:
            if group.is_inside(edited):
                continue
            edits = edits_of(group, words, _lines(each, words, group.statement), refused)
            for edit in edits:
                each.replace(*edit)
        for macro in each.macros:
            if macro.name in doubled:
                text = twins.twin(macro, each.file.text, made, doubled)
                text += f"\n#line {each.lines[macro.end] + 1}"
                each.edits.append((macro.end, macro.end, text))
        each.head = twins.defaults(doubled)


def _lines(each: Parsed, words: Words, statement: Node) -> list[Place]:
    first = each.lines[words.tokens[statement.first].start]
    last = each.lines[words.tokens[statement.last - 1].start]
    return [(each.file.label, line) for line in range(first, last + 1)]
