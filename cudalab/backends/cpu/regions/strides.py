"""How far apart neighbouring threads access memory, by the text of the indices."""

import re
from collections.abc import Iterator
from itertools import pairwise

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.lambdas import has_lambda
from cudalab.backends.cpu.regions.parts import Piece
from cudalab.backends.cpu.regions.syntax import Function, Statement
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.words import Words, calls, close, texts
from cudalab.language.tokens import Token, closing_angle

_TYPE = re.compile(r"\w+_t|unsigned|signed|char|short|int|long|const")
_WEAKER = frozenset(  # operators that bind less than a sum does
    {"<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||", "=", ","}
)

_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


class Strides:
    """How much values differ between neighbours along x; None if that is unclear."""

    def __init__(self, facts: Facts) -> None:
        """Examine the variables of a function in order."""
        self._unit = facts.unit
        self._names: dict[str, int | None] = {}
        for local in facts.locals:
            same = facts.levels.names.get(local.name) == Level.BLOCK
            value = None if local.name in facts.changed else self.of(local.initializer)
            self._names[local.name] = 0 if same else value

    def assume(self, name: str, stride: int) -> None:
        """Record how much a variable differs where that is known otherwise."""
        self._names[name] = stride

    def are_near(self, statement: Statement) -> bool:
        """Whether neighbours access the same or neighbouring elements in a statement."""
        words, by_name = statement.words, self._unit.by_name
        if any(_is_dereference(words, i) for i in range(len(words))):
            return False
        reading = {name for name in by_name if any(map(self._accesses, by_name[name]))}
        return all(
            self._is_near(words, i) for i, word in enumerate(words) if word.text == "["
        ) and all(
            self.of(argument) in (0, 1)
            for call in calls(words, reading)
            for argument in call.arguments
        )

    def _accesses(self, function: Function) -> bool:
        """Whether a function accesses memory by pointers."""
        return any(
            word.text == "[" or _is_dereference(each.body, i)
            for each in self._unit.called_by(function)
            for i, word in enumerate(each.body)
        )

    def with_neighbours(self, pieces: list[Piece]) -> list[Piece]:
        """The text of a region, with indices marked where neighbours access the next elements."""
        words = [piece for piece in pieces if isinstance(piece, Token)]
        if has_lambda(words) or any(" " in word.text for word in words):
            return pieces
        opening, closing = set[int](), set[int]()
        for i, (before, word) in enumerate(pairwise(words), start=1):
            if word.text == "[" and (before.kind == "name" or before.text == "]"):
                end = close(words, i)
                inside = words[i + 1 : end]
                if len(inside) > 0 and "," not in texts(inside) and self.of(inside) == 1:
                    opening.add(id(word))
                    closing.add(id(words[end]))
        result: list[Piece] = []
        for piece in pieces:
            if id(piece) in closing:
                result.append(", threadIdx.x)")
            result.append(piece)
            if id(piece) in opening:
                result.append("::cudalab::index(")
        return result

    def of(self, words: Words) -> int | None:
        """The stride of an expression."""
        while words and words[0].text == "(" and close(words, 0) == len(words) - 1:
            words = words[1:-1]
        outside = list(_outside(words))
        for question in outside:
            if words[question].text == "?":
                return self._of_choice(words, question)
        ends = [-1, *_signs(words, outside), len(words)]
        if len(ends) == 2:
            return self._of_factor(words)
        stride = 0
        for start, end in pairwise(ends):
            term = self.of(words[start + 1 : end])
            if term is None:
                return None
            stride += -term if start >= 0 and words[start].text == "-" else term
        return stride

    def _of_choice(self, words: Words, question: int) -> int | None:
        condition, colon, open_choices = words[:question], question, 0
        for i in _outside(words):
            open_choices += (words[i].text == "?") - (words[i].text == ":")
            if i > question and open_choices == 0:
                colon = i
                break
        choices = [self.of(words[question + 1 : colon]), self.of(words[colon + 1 :])]
        if texts(condition) in (["0"], ["1"]):  # a macro, perhaps
            return choices[condition[0].text == "0"]
        return choices[0] if choices[0] == choices[1] and self.of(condition) == 0 else None

    def _of_factor(self, words: Words) -> int | None:
        if words and (start := _after_cast(words)):
            return self.of(words[start:])
        if texts(words) == ["threadIdx", ".", "x"]:
            return 1
        if len(words) == 1 and words[0].text != "CUDALAB_RANK":
            return self._names.get(words[0].text, 0)
        for i, word in enumerate(words):
            is_thread = word.text == "threadIdx" and texts(words[i + 2 : i + 3]) == ["x"]
            if is_thread or word.text == "CUDALAB_RANK":
                return None
            is_member = i > 0 and words[i - 1].text in (".", "->", "::")
            if not is_member and self._names.get(word.text, 0) != 0:
                return None
        return 0

    def _is_near(self, words: Words, opening: int) -> bool:
        end, base = close(words, opening), words[opening - 1]
        stride = self.of(words[opening + 1 : end])
        before = self._names.get(base.text, 0) if base.kind == "name" else 0
        if stride is None or before is None:
            return False
        is_last = texts(words[end + 1 : end + 2]) != ["["]
        return abs(stride + before) <= is_last


def changed_elements(words: Words) -> Iterator[tuple[bool, list[Words]]]:
    """The elements that a text changes: whether it reads them, too; their array, their indices."""
    names = texts(words)
    for i, word in enumerate(words):
        if word.text != "[" or names[i - 1] == "]":
            continue
        brackets = [(i, close(words, i))]
        while names[brackets[-1][1] + 1 :][:1] == ["["]:
            opening = brackets[-1][1] + 1
            brackets.append((opening, close(words, opening)))
        after, before = names[brackets[-1][1] + 1 :][:1], names[max(i - 3, 0) : i - 1]
        steps = after in (["++"], ["--"]) or before[-1:] in (["++"], ["--"])
        if steps or before == ["cudalab_into", "("] or after in ([each] for each in _ASSIGNMENTS):
            indices = [words[opening + 1 : closed] for opening, closed in brackets]
            yield after != ["="] or names.count(names[i - 1]) > 1, [words[i - 1 : i], *indices]


def _is_dereference(words: Words, i: int) -> bool:
    """Whether word `i` is the `*` before a pointer, or an arrow."""
    if words[i].text != "*" or i == 0:
        return words[i].text in ("*", "->")
    before = words[i - 1]
    return before.kind not in ("name", "number") and before.text not in (")", "]", ">")


def _outside(words: Words) -> Iterator[int]:
    """The indices of the words that are outside of brackets."""
    i = 0
    while i < len(words):
        yield i
        i = close(words, i) + 1 if words[i].text in ("(", "[", "{") else i + 1


def _signs(words: Words, outside: list[int]) -> list[int]:
    """The indices of the signs between the terms of a sum."""
    if any(words[i].text in _WEAKER for i in outside):
        return []
    ends = [words[i - 1] for i in outside]
    return [
        i
        for i, before in zip(outside, ends, strict=True)
        if i > 0
        and words[i].text in ("+", "-")
        and (before.kind != "sign" or before.text in (")", "]"))
    ]


def _after_cast(words: Words) -> int:
    """The index after a cast at the beginning; 0 if there is none."""
    if texts(words[:4]) == ["::", "cudalab", "::", "cudalab_fit"]:
        return (closing_angle(words, 4) or 0) + 1
    if words[0].text == "static_cast":
        return (closing_angle(words, 1) or 0) + 1
    end = close(words, 0) if words[0].text == "(" else 0
    inside = texts(words[1:end])
    return end + 1 if inside and all(map(_TYPE.fullmatch, inside)) else 0
