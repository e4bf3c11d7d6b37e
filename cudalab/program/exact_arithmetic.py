"""Puts the edits of arithmetic.py and macros.py into the files of a program."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.program import arithmetic, declarations, macros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudalab.program.parsed import Parsed


def rewrite(parsed: Sequence[Parsed]) -> None:
    """Define conversions and shifts in device code, where nothing else has been edited."""
    names = declarations.declared(
        [each.tokens for each in parsed], [each for file in parsed for each in file.directives]
    )
    for each in parsed:
        declarations.note_parameters(each.tokens, each.structure.device_functions, names)
    divisions = not stops_at_zero()
    functions = [
        [*each.structure.device_functions, *arithmetic.closures(each.tokens)] for each in parsed
    ]
    words = [
        [each.tokens[i] for i in sorted({i for start, end in own for i in range(start, end)})]
        for each, own in zip(parsed, functions, strict=True)
    ]
    defined = [macros.macros(each.directives) for each in parsed]
    twins = macros.edit(
        [macro for own in defined for macro in own],
        {token.text for own in words for token in own},
        names,
        divisions=divisions,
    )
    for each, own, bodies, inside in zip(parsed, defined, functions, words, strict=True):
        made = list(each.edits)
        edited = sorted((start, end) for start, end, _ in made if start < end)
        groups = [
            *arithmetic.edits(each.tokens, bodies, names, divisions=divisions),
            *([edit] for edit in macros.renamed(inside, twins)),
        ]
        for group in groups:
            if not any(_is_inside(start, edited) for start, _, _ in group):
                for edit in group:
                    each.replace(*edit)
        for macro in own:
            if macro.name in twins:
                text = macros.twin(macro, each.file.text, made, twins)
                text += f"\n#line {each.lines[macro.end] + 1}"
                each.edits.append((macro.end, macro.end, text))
        each.head = macros.defaults(twins)


def _is_inside(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether a position is in one of the ranges, which are sorted."""
    behind = bisect_left(ranges, (position + 1, 0))
    return behind > 0 and position < ranges[behind - 1][1]
