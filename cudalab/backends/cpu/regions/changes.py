"""The variables that statements change, as far as the text says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.syntax import locals_of
from cudalab.backends.cpu.regions.words import CHANGING, Words, texts
from cudalab.language.tokens import opening as bracket

if TYPE_CHECKING:
    from collections.abc import Iterator


def changes_of(words: Words) -> Iterator[tuple[str, bool, Words]]:
    """What a statement changes besides the variables that it declares, as `changed` says it."""
    if not any(word.text in CHANGING for word in words):
        return
    declared = locals_of(words)
    for part in [local.initializer for local in declared] if declared else [words]:
        yield from changed(part)


def changed(words: Words) -> Iterator[tuple[str, bool, Words]]:
    """The variables that an expression changes: name, whether what it points to, and from where."""
    for i, word in enumerate(words):
        if word.text not in CHANGING or (
            word.text == "=" and i and words[i - 1].text in ("[", "<")
        ):
            continue
        after = words[i + 1 : i + 2]
        if word.text in ("++", "--") and after and after[0].kind == "name":
            through = texts(words[i + 2 : i + 3]) in (["["], ["->"])
            yield after[0].text, through, words[i + 1 :]
            continue
        start, through = _base(words, i)
        if start is not None:
            yield words[start].text, through, words[start:]


def _base(words: Words, i: int) -> tuple[int | None, bool]:
    """The variable that begins the expression before `i`, and whether the way is through it."""
    through = False
    j = i - 1
    while j >= 0:
        text = words[j].text
        if text in ("]", ")"):
            opening = bracket(words, j) or 0
            through |= text == "]"
            if text == ")" and opening == j - 2 and words[j - 1].kind == "name":
                return j - 1, through
            j = opening - 1
            continue
        if words[j].kind == "name":
            if j and words[j - 1].text in (".", "->"):
                through |= words[j - 1].text == "->"
                j -= 2
                continue
            through |= (
                bool(j)
                and words[j - 1].text == "*"
                and (
                    j == 1 or (words[j - 2].kind == "sign" and words[j - 2].text not in (")", "]"))
                )
            )
            return j, through
        return None, through
    return None, through
