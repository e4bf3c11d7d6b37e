"""Turns conditional calls in which threads meet into branches.

`x = c ? f(a) : b;`, where f has a barrier or a warp operation, becomes `T r; if (c) r = f(a); else
r = b; x = r;`. The same goes for `&&` and `||`.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from cudalab.backends.cpu.regions.parts import in_lambda
from cudalab.backends.cpu.regions.syntax import Function, Statement, nodes, statements
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import Words, calls, of_text, spaced
from cudalab.language.scopes import Node
from cudalab.language.tokens import Token


def branched(unit: Unit, function: Function) -> list[Statement]:
    """The statements, with branches around conditional calls in which threads meet."""
    branches = _Branches(unit.meeting)
    return [each for statement in function.statements for each in branches.of(statement)]


class _Branches:
    def __init__(self, meeting: AbstractSet[str]) -> None:
        self.meeting = meeting
        self.count = 0

    def of(self, statement: Statement) -> list[Statement]:
        """The replacement for a statement."""
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
        return [*before, replace(statement, condition=condition, parts=bodies)]

    def _block(self, body: Statement) -> Statement:
        return _block(body.words[0], [each for part in body.inside for each in self.of(part)])

    def _taken_out(self, words: Words) -> tuple[list[Statement], Words]:
        """The branches that make the conditional calls, and the words with their results."""
        before: list[Statement] = []
        while choice := self._choice(words):
            self.count += 1
            start, at, end = choice.first, choice.at, choice.last
            name, place = f"cudalab_chosen_{self.count}", words[start]
            whole, condition, rest = words[start:end], words[start:at], words[at + 1 : end]
            if choice.kind == "conditional":
                colon = choice.children[1].last
                kind = f"::std::decay_t<decltype({spaced(whole)})>"  # one word: it calls nothing
                made = [place._replace(text=kind, kind="name"), *of_text(place, f"{name} ;")]
                made += of_text(place, "if (", condition, f") {name} =", words[at + 1 : colon], ";")
                made += of_text(place, f"else {name} =", words[colon + 1 : end], ";")
            else:
                sign = "!" if choice.text == "||" else ""
                made = of_text(place, f"bool {name} =", condition, ";")
                made += of_text(place, f"if ( {sign} {name} ) {name} =", rest, ";")
            before += [each for statement in statements(made) for each in self.of(statement)]
            words = [*words[:start], place._replace(text=name, kind="name"), *words[end:]]
        return before, words

    def _choice(self, words: Words) -> Node | None:
        """The outermost expression that decides whether a call is made."""
        choices = [
            node
            for top in nodes(words)
            for node in top.walk()
            if node.kind == "conditional" or node.text in ("&&", "||")
        ]
        for call in calls(words, self.meeting):
            around = (node for node in choices if node.at < call.name < node.last)
            if not in_lambda(words, call.name) and (choice := next(around, None)):
                return choice
        return None


def _block(place: Token, parts: list[Statement]) -> Statement:
    return Statement("block", of_text(place, "{ }"), parts=parts)
