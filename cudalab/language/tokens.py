"""The tokens of CUDA C++: enough to edit code without touching strings and comments."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

_TOKEN = re.compile(
    r"""
    (?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\\r?\n|[^\n])*)
    |(?P<space>[^\S\n]+|\n|\\\r?\n)  # a newline by itself: a directive may follow
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
    |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
               |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<name>[A-Za-z_$]\w*)
    |(?P<sign>->|::|.)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {closing: opening for opening, closing in OPENING.items()}


def set_of(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


class Token(NamedTuple):
    """A token that is not a space or a comment."""

    kind: str  # directive (a whole preprocessor line), string, character, number, name or sign
    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`. Signs are single characters, except `->` and `::`."""
    return [
        Token(match.lastgroup or "", match[0], match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match.lastgroup not in ("space", "comment")
    ]


def closing(tokens: list[Token], opening: int) -> int | None:
    """The index where the bracket at `opening` closes; None if it does not."""
    return _partner(tokens, range(opening, len(tokens)), OPENING, CLOSING)


def opening(tokens: list[Token], closing_: int) -> int | None:
    """The index where the bracket that closes at `closing_` opens; None if it does not."""
    return _partner(tokens, range(closing_, -1, -1), CLOSING, OPENING)


def _partner(
    tokens: list[Token], places: range, deeper: Collection[str], back: Collection[str]
) -> int | None:
    depth = 0
    for i in places:
        if tokens[i].text in deeper:
            depth += 1
        elif tokens[i].text in back:
            depth -= 1
            if depth == 0:
                return i
    return None


def closing_angle(tokens: list[Token], opening_: int) -> int | None:
    """The index where the template argument list that opens with `<` closes; or None."""
    return _other_angle(tokens, opening_, forwards=True)


def opening_angle(tokens: list[Token], closing_: int) -> int | None:
    """The index where the template argument list that closes with `>` opens, or None."""
    return _other_angle(tokens, closing_, forwards=False)


def _other_angle(tokens: list[Token], i: int, *, forwards: bool) -> int | None:
    """Walk over whole brackets; braces and what no argument list contains end the search."""
    step, deeper, back, partner = (1, "<", ">", closing) if forwards else (-1, ">", "<", opening)
    entered, left = (OPENING, CLOSING) if forwards else (CLOSING, OPENING)
    depth = 0
    while 0 <= i < len(tokens):
        text = tokens[i].text
        if text in entered:
            end = partner(tokens, i)
            if end is None or text in ("{", "}"):
                return None
            i = end
        elif text == deeper:
            depth += 1
        elif text == back:
            depth -= 1
            if depth == 0:
                return i
        elif text == ";" or text in left:
            return None
        i += step
    return None


def end_of_expression(tokens: list[Token], i: int) -> int:
    """The index of the comma, semicolon or closing bracket behind an expression."""
    while i < len(tokens) - 1:
        text = tokens[i].text
        if text in OPENING:
            i = closing(tokens, i) or len(tokens) - 1
        elif text in (",", ";") or text in CLOSING:
            break
        i += 1
    return min(i, len(tokens) - 1)


class Lines:
    """The line numbers of positions in a text."""

    def __init__(self, text: str) -> None:
        """Record where lines begin."""
        self._starts = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def __getitem__(self, position: int) -> int:
        """The line number, from 1, of `position`."""
        return bisect_right(self._starts, position)
