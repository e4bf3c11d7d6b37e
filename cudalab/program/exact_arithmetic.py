"""Puts the edits of language/exact.py into the files of a program."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.language import exact
from cudalab.language.scopes import Node, Scope
from cudalab.language.tokens import Place
from cudalab.program.parsed import Parsed


def rewrite(files: Sequence[Parsed], scope: Scope, refused: Counter[Place]) -> None:
    """Give conversions and shifts in device code a GPU's results, unless an edit is in the way.

    `refused` are files and lines where the compiler refuses that, and how often: statements there
    get other edits, if there are any; else they stay as they are, and their functions refuse to
    run.
    """
    macros = [macro for each in files for macro in each.macros]
    code = exact.Exact(files, macros, scope, divisions=not stops_at_zero())
    for each in files:
        made = list(each.edits)
        for edit in code.edits(each, made, partial(_lines, each), refused):
            each.replace(*edit)
        for macro, text in code.twins(each.macros, each.file.text, made):
            line = f"\n#line {each.lines[macro.end] + 1}"
            each.edits.append((macro.end, macro.end, text + line))
        each.head = exact.defaults(code.doubled)


def _lines(each: Parsed, statement: Node) -> list[Place]:
    first = each.lines[each.words.tokens[statement.first].start]
    last = each.lines[each.words.tokens[statement.last - 1].start]
    return [(each.file.label, line) for line in range(first, last + 1)]
