"""Writes conditional calls in which threads meet as branches.

`x = c ? f(a) : b;`, where f has a barrier or a warp operation, becomes `T r; if (c) r = f(a); else
r = b; x = r;`. The same goes for `&&` and `||`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.parts import in_lambda
from cudalab.backends.cpu.regions.syntax import Statement, statements
from cudalab.backends.cpu.regions.words import CHANGING, calls, of_text, spaced
from cudalab.language.tokens import bracket_around, end_of_expression

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from cudalab.backends.cpu.regions.words import Words
    from cudalab.language.tokens import Token

_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def branched(statements: list[Statement], meeting: AbstractSet[str]) -> list[Statement]:
    """The statements, with branches around calls of `meeting` that are conditional."""
    branches = _Branches(meeting)
    return [each for statement in statements for each in branches.of(statement)]


class _Branches:
    def __init__(self, meeting: AbstractSet[str]) -> None:
        self.meeting = meeting
        self.count = 0

    def of(self, statement: Statement) -> list[Statement]:
        """What takes the place of a statement."""
        if statement.kind == "other" or not calls(statement.words, self.meeting):
            return [statement]
        if statement.kind == "simple":
            before, own = self._taken_out(statement.own)
            return [*before, Statement("simple", own)]
        if statement.kind == "block":
            return [self._block(statement)]
        before, condition = [], statement.condition
        bodies = [self._block(part) for part in statement.parts]
        if statement.kind == "if":
            before, condition = self._taken_out(condition)
        elif statement.kind in ("for", "while") and self._choice(condition):
            inside, rest = self._taken_out(condition)
            place = statement.own[0]
            leave = statements(of_text(place, "if ( ! (", rest, ") ) break ;"))
            bodies = [_block(place, [*inside, *leave, *bodies[0].inside])]
            condition = of_text(place, "true") if statement.kind == "while" else []
        written = Statement(
            statement.kind,
            statement.own,
            condition,
            first=statement.first,
            step=statement.step,
            parts=bodies,
        )
        return [*before, written]

    def _block(self, body: Statement) -> Statement:
        return _block(body.words[0], [each for part in body.inside for each in self.of(part)])

    def _taken_out(self, words: Words) -> tuple[list[Statement], Words]:
        """Branches that make conditional calls, and the words with their results."""
        before: list[Statement] = []
        while choice := self._choice(words):
            self.count += 1
            start, at, end = choice
            name, place = f"cudalab_chosen_{self.count}", words[start]
            whole, condition, rest = words[start:end], words[start:at], words[at + 1 : end]
            if words[at].text == "?":
                colon = _colon(rest)
                kind = f"std::decay_t<decltype({spaced(whole)})>"  # one word: it calls nothing
                made = [place._replace(text=kind, kind="name"), *of_text(place, f"{name} ;")]
                made += of_text(place, "if (", condition, f") {name} =", rest[:colon], ";")
                made += of_text(place, f"else {name} =", rest[colon + 1 :], ";")
            else:
                sign = "!" if words[at].text == "||" else ""
                made = of_text(place, f"bool {name} =", condition, ";")
                made += of_text(place, f"if ( {sign} {name} ) {name} =", rest, ";")
            before += [each for statement in statements(made) for each in self.of(statement)]
            words = [*words[:start], place._replace(text=name, kind="name"), *words[end:]]
        return before, words

    def _choice(self, words: Words) -> tuple[int, int, int] | None:
        """The outermost expression that decides on a call: its start, its operator and its end."""
        for call in calls(words, self.meeting):
            if in_lambda(words, call.name):
                continue
            found = None
            start = call.name
            while start > 0:
                start, at, outside = _before(words, start)
                if at:
                    found = start, at, end_of_expression(words, start)
                start = outside
            if found:
                return found
        return None


def _before(words: Words, i: int) -> tuple[int, int, int]:
    """The start of the expression around `i`, what decides on it there, and what is outside.

    The operator is 0 if the expression is computed in any case.
    """
    depth, operators = 0, dict[str, int]()
    for j in range(i - 1, -1, -1):
        text = words[j].text
        depth -= _BRACKETS.get(text, 0)
        if depth < 0:
            return j + 1, _lowest(operators), j
        assigns = text in CHANGING and text not in ("++", "--")
        if depth == 0 and (assigns or text in (",", "return")):
            return j + 1, _lowest(operators), bracket_around(words, j) or 0
        if depth == 0 and text in ("?", "&&", "||"):
            operators[text] = j
    return 0, _lowest(operators), 0


def _lowest(operators: dict[str, int]) -> int:
    """The first of the operators that bind least."""
    return operators.get("?") or operators.get("||") or operators.get("&&") or 0


def _colon(words: Words) -> int:
    """The colon that belongs to the `?` before the words."""
    depth = 0
    for i, word in enumerate(words):
        depth += _BRACKETS.get(word.text, 0) + (word.text == "?")
        if word.text == ":" and depth == 0:
            return i
        depth -= word.text == ":"
    return 0


def _block(place: Token, parts: list[Statement]) -> Statement:
    return Statement("block", of_text(place, "{ }"), parts=parts)
