"""Puts the edits of language/exact.py into the files of a program."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.language import exact
from cudalab.language.exact import Code, Place, named_for
from cudalab.language.scopes import Node, Scope
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
    doubled = exact.edit_macros(
        [macro for each in files for macro in each.macros], named, scope, divisions=divisions
    )
    in_classes = named_for(named, [(each.root, each.words) for each in files])
    for each in files:
        made, code = list(each.edits), Code(each.root, each.words, each.bodies, in_classes, doubled)
        for edit in code.edits(made, partial(_lines, each), refused, divisions=divisions):
            each.replace(*edit)
        for macro in each.macros:
            if macro.name in doubled:
                text = exact.twin(macro, each.file.text, made, doubled)
                text += f"\n#line {each.lines[macro.end] + 1}"
                each.edits.append((macro.end, macro.end, text))
        each.head = exact.defaults(doubled)


def _lines(each: Parsed, statement: Node) -> list[Place]:
    first = each.lines[each.words.tokens[statement.first].start]
    last = each.lines[each.words.tokens[statement.last - 1].start]
    return [(each.file.label, line) for line in range(first, last + 1)]
