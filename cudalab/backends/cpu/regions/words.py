"""The words of preprocessed CUDA C++, each with its place in the user's files.

A word is a token whose operators are joined, such as `+=`. What asks only whether a name or a call
is among some words looks at them one by one; what asks for more reads their tree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from cudalab.language.tokens import (
    KEYWORDS,
    Token,
    as_sign,
    closing,
    closing_angle,
    split,
    texts,
    tokenize,
)

_MARKER = re.compile(r'[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"([^"]*)"')
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
CHANGING = frozenset({*_ASSIGNING, "++", "--"})
_JOINED = CHANGING | {"==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "...", "##", ".*", "->*"}
_LONGEST = 2**20  # bytes that are read in a second or two


class NotCoveredError(Exception):
    """The reason why a kernel keeps its fibers."""

    function = ""  # the one in which it lies, if that cannot be written
    more: Sequence[NotCoveredError] = ()  # those of other functions


Words = list[Token]


def read(text: str) -> Words:
    """The words of a preprocessed text, placed by its line markers; pragmas are left out."""
    if len(text) > _LONGEST:
        raise NotCoveredError("the file is too long")
    words: Words = []
    file, offset, line, at, end = "", 0, 1, 0, -1
    for token in map(as_sign, tokenize(text)):
        line += text.count("\n", at, token.start)
        at = token.start
        if token.kind == "directive":
            if marker := _MARKER.match(token.text):
                file, offset = marker[2], int(marker[1]) - line - 1
            continue
        if token.text == "register":  # means nothing
            continue
        joined = words[-1].text + token.text if token.start == end else ""
        end = token.end
        if token.kind == "sign" and joined in _JOINED:
            words[-1] = words[-1]._replace(text=joined, end=end)
        else:
            words.append(Token(*token[:4], file, line + offset))
    return words


def spaces(words: Words) -> list[tuple[str, Words]]:
    """The words visible from each namespace, by its name; `""` is the global one.

    Names have the form `outer::inner`; an unnamed namespace is `{}`, as in `outer::{}`.
    """
    own: dict[str, Words] = {"": []}
    _sort(words, "", own)
    return [
        (name, [word for other in own if _sees(name, other) for word in own[other]]) for name in own
    ]


def _sort(words: Words, name: str, own: dict[str, Words]) -> None:
    """Sort words into the namespace `name` and the namespaces nested in it."""
    i = 0
    while i < len(words):
        start, inside = i, name
        if words[i].text == "namespace":
            i += 1
            while words[i].kind == "name" or words[i].text == "::":
                i += 1
            part = "".join(texts(words[start + 1 : i])) or "{}"
            inside = f"{name}::{part}" if name else part
        elif texts(words[i : i + 1]) == ["extern"] and words[i + 1].kind == "string":
            i += 2
        if i > start and words[i].text == "{":
            end = close(words, i)
            own.setdefault(inside, [])
            _sort(words[i + 1 : end], inside, own)
        else:
            end = close(words, start) if words[start].text == "{" else start
            here = words[start : end + 1]
            own[name] += [word._replace(namespace=name) for word in here] if name else here
        i = end + 1


def _sees(name: str, other: str) -> bool:
    """Whether namespace `name` can use names of `other` unqualified."""
    while other.endswith("{}"):
        other = other[:-2].removesuffix("::")
    return not other or name == other or name.startswith(f"{other}::")


def of_text(place: Token, *pieces: str | Words) -> Words:
    """Generated words at a place of the user's text, mixed with words of the user."""
    result: Words = []
    for piece in pieces:
        if isinstance(piece, str):
            for text in piece.split():
                kind = "name" if text.isidentifier() else "sign"
                result.append(place._replace(text=text, kind=kind))
        else:
            result += piece
    return result


def is_dereference(words: Words, i: int) -> bool:
    """Whether word `i` is an arrow or the `*` before a pointer, as far as the words before it say.

    Behind a bracket, which may be a cast, only the tree knows.
    """
    if words[i].text != "*" or i == 0:
        return words[i].text in ("*", "->")
    before = words[i - 1]
    is_value = before.kind in ("name", "number") and before.text not in KEYWORDS
    return not is_value and before.text not in (")", "]", ">")


def close(words: Sequence[Token], start: int) -> int:
    """The index where the bracket at `start` closes."""
    end = closing(words, start)
    if end is None:
        raise NotCoveredError(f"{words[start].place}: a bracket that does not close")
    return end


class Call(NamedTuple):
    """A call in a list of words, by the indices of its name and of its brackets."""

    name: int
    opening: int
    closing: int
    words: Sequence[Token]

    @property
    def word(self) -> Token:
        """The name of the function."""
        return self.words[self.name]

    @property
    def span(self) -> slice:
        """The call's own words."""
        return slice(self.name, self.closing + 1)

    @property
    def arguments(self) -> list[Words]:
        """What the function is given."""
        return split(self.words[self.opening + 1 : self.closing])


def whole_arguments(words: Words, names: Collection[str]) -> Iterator[str]:
    """What is a whole argument of a call of a function with one of `names`, by its name."""
    for call in calls(words, names):
        yield from (each[0].text for each in call.arguments if len(each) == 1)


def calls(words: Sequence[Token], names: Collection[str]) -> list[Call]:
    """The calls of functions with one of `names`, in the order of the text."""
    found = []
    for i in [i for i, word in enumerate(words[:-1]) if word.text in names]:
        if i and words[i - 1].text in (".", "->"):
            continue
        opening = i + 1
        if words[opening].text == "<":
            opening = (closing_angle(words, opening) or len(words)) + 1
        if opening < len(words) and words[opening].text == "(":
            found.append(Call(i, opening, close(words, opening), words))
    return found
