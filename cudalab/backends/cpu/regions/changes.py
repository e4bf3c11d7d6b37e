"""The variables that statements change, as far as the text tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.syntax import TYPES, locals_of
from cudalab.backends.cpu.regions.words import CHANGING, Words, texts
from cudalab.language.tokens import CLOSING, OPENING, bracket_around, closing
from cudalab.language.tokens import opening as bracket

if TYPE_CHECKING:
    from collections.abc import Iterator

# What program/arithmetic.py puts before the target of an assignment.
INTO = ("::", "cudalab", "::", "cudalab_into", "(")


def changes_of(words: Words) -> Iterator[tuple[str, bool, Words]]:
    """What a statement changes other than the variables it declares, in the form of `changed`."""
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
        if word.text in ("++", "--") and texts(after) == ["("]:  # `++(c ? a : b)`
            starts, through = _named(words, i + 1), False
        else:
            starts, through = _bases(words, i)
        for start in starts:
            yield words[start].text, through, words[start:]


def _named(words: Words, opening: int) -> list[int]:
    """The names in a bracket of which an expression may be any, as in `(c ? a : b) = 1`."""
    return [
        j
        for j in range(opening + 1, closing(words, opening) or len(words))
        if words[j].kind == "name"
        and words[j - 1].text not in (".", "->", "::")
        and texts(words[j + 1 : j + 2]) not in (["("], ["::"])
    ]


def _bases(words: Words, i: int) -> tuple[list[int], bool]:
    """The variables that may begin the expression before `i`; whether the way is through them."""
    through = False
    j = i - 1
    while j >= 0:
        text = words[j].text
        if text in ("]", ")"):
            opening = bracket(words, j) or 0
            through |= text == "]"
            if text == ")" and words[opening - 1].text == INTO[-2]:  # around the target
                j -= 1
                continue
            if text == ")" and opening == j - 2 and words[j - 1].kind == "name":
                return [j - 1], through
            if text == ")" and _is_whole(words, opening):
                return _named(words, opening), through
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
            return [j], through
        return [], through
    return [], through


def _is_whole(words: Words, opening: int) -> bool:
    """Whether a bracket is an expression of its own: no call's, no pointer's, and no cast's."""
    before = words[opening - 1] if opening else None
    if before is None or before.kind == "name":
        return before is None
    return before.text not in ("*", ")", "]", ">")


def referred(words: Words) -> Iterator[Words]:
    """What references are to that are declared anywhere in a statement, as in a lambda's body."""
    for i in range(1, len(words) - 2):
        behind_type = words[i - 1].kind == "name" or words[i - 1].text == ">"
        if words[i].text in ("&", "&&") and behind_type:
            end = _end_of_reference(words, i)
            if end is not None:
                yield words[end + 1 : _end_of_value(words, end + 1)]


def _end_of_reference(words: Words, i: int) -> int | None:
    """The index of `=`, or what is in its place, in `int& name = value`; None for an operator."""
    name = i + 1
    if words[name].text == "[":  # auto& [a, b] = pair
        name = closing(words, name) or name
    elif words[name].kind != "name":
        return None
    after = texts(words[name + 1 : name + 2])
    if after == [":"]:
        around = bracket_around(words, i)
        return name + 1 if around and words[around - 1].text == "for" else None
    of_type = words[i - 1].text in TYPES and after == ["("]
    return name + 1 if after in (["="], ["{"]) or of_type else None


def _end_of_value(words: Words, i: int) -> int:
    """The index of what is behind a value: a comma, a semicolon or a closing bracket."""
    while i < len(words) and words[i].text not in (",", ";", *CLOSING):
        i = (closing(words, i) or i) + 1 if words[i].text in OPENING else i + 1
    return i


def keeping_classes(words: Words) -> frozenset[str]:
    """The classes whose objects may refer to what they are made of, and so change it later."""
    return frozenset(
        words[i + 1].text
        for i, word in enumerate(words[:-2])
        if word.text in ("struct", "class") and words[i + 1].kind == "name"
        if _refers(words, i + 2)
    )


def _refers(words: Words, i: int) -> bool:
    """Whether the body of a class, behind its name, names a reference to what may change."""
    while i < len(words) and words[i].text not in ("{", ";", ")", ">", ",", "="):
        i += 1
    if i == len(words) or words[i].text != "{":
        return False
    inside = words[i : closing(words, i) or i]
    return any(
        word.text in ("&", "&&")
        and before.kind == "name"
        and after.kind == "name"
        and "const" not in (first.text, before.text)
        for first, before, word, after in zip(
            inside, inside[1:], inside[2:], inside[3:], strict=False
        )
    )
