"""How far apart neighbouring threads access memory, by the text of the indices.

The stride of `row * n + threadIdx.x` is 1, that of `row * n` 0; of `2 * threadIdx.x` it is unclear.
"""

from collections.abc import Iterator
from itertools import pairwise

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.parts import Piece
from cudalab.backends.cpu.regions.syntax import Statement, expression
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.words import Words, calls, close, is_dereference
from cudalab.language.scopes import Node
from cudalab.language.tokens import Token, has_lambda, texts

_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


class Strides:
    """How much values differ between neighbours along x; None if that is unclear."""

    def __init__(self, facts: Facts) -> None:
        """Examine the variables of a function in order."""
        self._unit, self._uses = facts.unit, facts.uses
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
        if self._uses.of(words).pointers:
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
            word.text == "[" or is_dereference(each.body, i)
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
        return self._of(expression(tuple(words)), words) if words else 0

    def _of(self, node: Node, words: Words) -> int | None:
        """The stride of a part of an expression, which has all of these words."""
        if (node.kind == "group" and node.children) or _is_conversion(node):
            return self._of(node.children[-1], words)
        if node.kind == "conditional":
            condition, *choices = (self._of(each, words) for each in node.children)
            if node.children[0].text in ("0", "1"):  # a macro, perhaps
                return choices[node.children[0].text == "0"]
            return choices[0] if choices[0] == choices[1] and condition == 0 else None
        if node.kind == "binary" and node.text in ("+", "-"):
            one, other = (self._of(each, words) for each in node.children)
            if one is None or other is None:
                return None
            return one + other if node.text == "+" else one - other
        return self._of_factor(words[node.first : node.last])

    def _of_factor(self, own: Words) -> int | None:
        if texts(own) == ["threadIdx", ".", "x"]:
            return 1
        if len(own) == 1 and own[0].text != "CUDALAB_RANK":
            return self._names.get(own[0].text, 0)
        for i, word in enumerate(own):
            is_thread = word.text == "threadIdx" and texts(own[i + 2 : i + 3]) == ["x"]
            is_member = i > 0 and own[i - 1].text in (".", "->", "::")
            if is_thread or word.text == "CUDALAB_RANK":
                return None
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


def _is_conversion(node: Node) -> bool:
    """Whether an expression converts an integer to another one."""
    if node.kind == "cast":
        return node.type.kind == "integer" or node.text.endswith("_t")
    is_own = node.kind == "call" and node.children[0].text == "::cudalab::cudalab_fit"
    return is_own or (node.kind == "named_cast" and node.text == "static_cast")
