"""The words of preprocessed CUDA C++, each with its place in the user's files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cudalab.language.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_MARKER = re.compile(r'[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"([^"]*)"')
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
CHANGING = frozenset({*_ASSIGNING, "++", "--"})
_JOINED = CHANGING | {"==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "...", "##"}
_LONGEST = 2**20  # bytes that are read in a second or two
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


class NotCoveredError(Exception):
    """The reason why a kernel keeps its fibers."""

    function = ""  # the one in which it lies, if that cannot be written
    more: Sequence[NotCoveredError] = ()  # those of other functions


class Word(NamedTuple):
    """A token, or two or three signs that belong together, such as `<<=`."""

    text: str
    kind: str  # as in language.tokens
    file: str
    line: int
    namespace: str = ""  # a named one, in which the word stands

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


Words = list[Word]


def read(text: str) -> Words:
    """The words of a preprocessed text, placed by its line markers; pragmas are left out."""
    if len(text) > _LONGEST:
        raise NotCoveredError("the file is too long")
    words: Words = []
    file, offset, line, at, end = "", 0, 1, 0, -1
    for token in tokenize(text):
        line += text.count("\n", at, token.start)
        at = token.start
        if token.kind == "directive":
            if marker := _MARKER.match(token.text):
                file, offset = marker[2], int(marker[1]) - line - 1
            continue
        if token.text == "register":  # means nothing
            continue
        joined = words[-1].text + token.text if token.start == end else ""
        if token.kind == "sign" and joined in _JOINED:
            words[-1] = words[-1]._replace(text=joined)
        else:
            words.append(Word(token.text, token.kind, file, line + offset))
        end = token.end
    return words


def spaces(words: Words) -> list[tuple[str, Words]]:
    """The namespaces, and for each the words that it can name; `""` is outside of all.

    Names are as in `outer::inner`; a part without a name is `{}`, as in `outer::{}`.
    """
    own: dict[str, Words] = {"": []}
    _sort(words, "", own)
    return [
        (name, [word for other in own if _sees(name, other) for word in own[other]]) for name in own
    ]


def _sort(words: Words, name: str, own: dict[str, Words]) -> None:
    """Add the words of the namespace `name` to those that it has, and likewise for those in it."""
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
    """Whether what is in namespace `name` can name what is in `other` without saying where."""
    while other.endswith("{}"):
        other = other[:-2].removesuffix("::")
    return not other or name == other or name.startswith(f"{other}::")


def texts(words: Iterable[Word]) -> list[str]:
    """The words' texts."""
    return [word.text for word in words]


def spaced(words: Iterable[Word]) -> str:
    """The words in one line."""
    return " ".join(word.text for word in words)


def of_text(place: Word, *pieces: str | Words) -> Words:
    """Words of our own, at a place of the user's text, and the user's between them."""
    result: Words = []
    for piece in pieces:
        if isinstance(piece, str):
            for text in piece.split():
                kind = "name" if text[0].isalpha() else "sign"
                result.append(place._replace(text=text, kind=kind))
        else:
            result += piece
    return result


def close(words: Sequence[Word], start: int) -> int:
    """The index where the bracket at `start` closes."""
    depth = 0
    for i in range(start, len(words)):
        depth += (words[i].text in _OPENING) - (words[i].text in _CLOSING)
        if depth == 0:
            return i
    raise NotCoveredError(f"{words[start].place}: a bracket that does not close")


def close_angle(words: Sequence[Word], start: int) -> int | None:
    """The index where the template arguments that `<` at `start` opens end; None if it compares."""
    depth, i = 0, start
    while i < len(words):
        text = words[i].text
        if text in _OPENING:
            i = close(words, i)
        elif text == "<":
            depth += 1
        elif text in (">", ">>"):
            depth -= len(text)
            if depth <= 0:
                return i
        elif text in (";", "&&", "||", *_CLOSING):
            return None
        i += 1
    return None


def split(words: Words, at: str = ",") -> list[Words]:
    """The parts between the separators outside of brackets; none of nothing."""
    parts: list[Words] = [[]]
    i = 0
    while i < len(words):
        end = i
        if words[i].text in _OPENING:
            end = close(words, i)
        elif words[i].text == "<" and i and words[i - 1].kind == "name":
            angle = close_angle(words, i)
            after = words[angle + 1].text if angle and angle + 1 < len(words) else ""
            if angle and after in ("(", "::", "{"):
                end = angle
        if words[i].text == at:
            parts.append([])
        else:
            parts[-1] += words[i : end + 1]
        i = end + 1
    return parts if len(parts) > 1 or parts[0] else []


def declared_name(declaration: Words) -> str:
    """The name that a declaration outside of functions declares."""
    words = texts(declaration)
    ends = [i for i, word in enumerate(words) if word in ("=", "{", "(", "[")]
    return words[min(ends, default=len(words)) - 1]


class Call(NamedTuple):
    """A call in a list of words, by the indices of its name and of its brackets."""

    name: int
    opening: int
    closing: int


def calls(words: Sequence[Word], names: Collection[str]) -> list[Call]:
    """The calls of functions with one of `names`, in the order of the text."""
    found = []
    for i, word in enumerate(words[:-1]):
        if word.text not in names or (i and words[i - 1].text in (".", "->")):
            continue
        opening = i + 1
        if words[opening].text == "<":
            opening = (close_angle(words, opening) or len(words)) + 1
        if opening < len(words) and words[opening].text == "(":
            found.append(Call(i, opening, close(words, opening)))
    return found
