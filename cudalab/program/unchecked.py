"""Failed calls of the runtime API whose result the program ignores."""

import re
from collections.abc import Mapping, Sequence

from cudalab.language.tokens import Lines, closing, opening, tokenize

# What a program counts on: bytes that are copied or set, and memory that is made or given back.
_NEEDED = re.compile(
    r"(?P<file>[^:\n]+):(?P<line>\d+): "
    r"(?P<name>cuda(?:Memcpy|Memset|Malloc|Free|HostAlloc|HostRegister)\w*): "
    r"cudaError(?!NotSupported)\w+: (?P<why>.*)",
    re.DOTALL,
)
_MAKES = re.compile(r": cuda(?:Malloc|HostAlloc)\w*: ")
_OF_NULL = "(nil)"
_CONDITIONAL = frozenset({"if", "for", "while", "switch"})
_BEFORE_STATEMENT = frozenset({"", ";", "{", "}", "else", "do", ":"})


def unchecked(messages: Sequence[tuple[str, str]], texts: Mapping[str, Sequence[str]]) -> list[str]:
    """The failures in `messages` that the program neither checks nor queries later.

    `messages` are kinds and texts as observe.py sends them, `texts` the lines of the source files.
    """
    waiting: dict[str, None] = {}
    for kind, text in messages:
        if kind == "errors read":
            waiting.clear()
        elif kind == "failed call" and (match := _NEEDED.match(text)):
            lines = texts.get(match["file"], ())
            if _is_thrown_away("\n".join(lines), match["name"], int(match["line"])):
                waiting[text] = None
    return list(waiting)


def causes(ignored: Sequence[str]) -> tuple[list[str], list[str]]:
    """The failures, and those caused by an earlier one: a failed allocation."""
    made = [text for text in ignored if _MAKES.search(text)]
    follow = [text for text in ignored if made and text not in made and _OF_NULL in text]
    return [text for text in ignored if text not in follow], follow


def leaves_null(ignored: Sequence[str]) -> bool:
    """Whether one of the failures is an allocation, which leaves its pointer null."""
    return any(_MAKES.search(text) for text in ignored)


def _is_thrown_away(text: str, name: str, line: int) -> bool:
    """Whether a call of `name` on a line is a statement by itself."""
    tokens, lines = tokenize(text), Lines(text)
    for i, token in enumerate(tokens[:-1]):
        if token.text != name or tokens[i + 1].text != "(" or lines[token.start] > line:
            continue
        end = closing(tokens, i + 1)
        if end is None or end + 1 >= len(tokens) or lines[tokens[end].start] < line:
            continue
        words = ["", *(each.text for each in tokens[:i])]
        if words[-1] == "::":
            words.pop()
        if words[-3:] == ["(", "void", ")"]:
            del words[-3:]
        if words[-1] == ")":
            begin = opening(tokens, len(words) - 2)
            is_statement = bool(begin) and tokens[(begin or 1) - 1].text in _CONDITIONAL
        else:
            is_statement = words[-1] in _BEFORE_STATEMENT
        if is_statement and tokens[end + 1].text == ";":
            return True
    return False
