"""Several rounds of a loop at a time, for kernels whose threads go through loops in step.

Compilers call it unroll and jam: each thread does its part of four rounds before the next thread
does. A sum is loaded and stored once in four rounds, and what the rounds read comes from memory
side by side. Where a row of an array is new in each round, the rows of the next rounds are asked
for ahead: a processor does not foresee rows that lie pages apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.parts import OUTER
from cudalab.backends.cpu.regions.strides import Strides, changed_elements
from cudalab.backends.cpu.regions.syntax import Local, Statement
from cudalab.backends.cpu.regions.words import CHANGING, Words, close, spaced, texts
from cudalab.backends.cpu.regions.writer import Piece
from cudalab.language.tokens import split

ROUNDS = 4  # at a time; the sums of eight do not fit into a processor's registers
_MOST_WORDS = 80  # of a round; larger ones gain nothing, and take long to compile


@dataclass
class Jammed:
    """A loop of which threads do several rounds at a time."""

    index: Local
    loop: Statement
    ahead: list[Words]  # the elements to ask for ahead

    def saving(self, names: list[str]) -> Iterator[list[Piece]]:
        """Text that keeps the index of a round each, as long as there are rounds left."""
        step: list[Piece] = [self.index.name, "; ", *self.loop.step, ";"]
        for i, name in enumerate(names):
            inside: list[Piece] = ["if (", *self.loop.condition, ") {"] if i else []
            yield [*inside, f"const auto {name} =", *step]

    def asking(self) -> list[Piece]:
        """Text that asks for what a thread reads in the next rounds, after those that are kept."""
        one: list[Piece] = []
        for each in self.ahead:
            one += ["::cudalab::ahead(&", *each, ");"]
        one += [*self.loop.step, ";"]
        name = self.index.name
        return [
            f"const auto cudalab_next = {name}; {{ auto {name} = cudalab_next;",
            *one * ROUNDS,
            "}",
        ]


def jammed(loop: Statement, facts: Facts, strides: Strides) -> Jammed | None:
    """The loop as one of these, or None."""
    if not facts.in_step or loop.kind != "for" or len(loop.declared) != 1 or not loop.condition:
        return None
    index, body = loop.declared[0], loop.parts[0]
    steps = [facts.scalar_change(step) for step in split(loop.step)]
    if steps != [index.name] or len(body.words) > _MOST_WORDS:
        return None
    if not all(_only_computes(statement, facts) for statement in body.inside):
        return None
    changed = [part for _, parts in changed_elements(body.words) for part in parts]
    if any(index.name in texts(part) for part in changed):
        return None
    return Jammed(index, loop, _new_rows(body.words, index.name, facts, strides))


def _only_computes(statement: Statement, facts: Facts) -> bool:
    """Whether a statement changes nothing that the whole block has."""
    words = statement.own
    return (
        statement.kind == "simple"
        and words[0].text not in OUTER
        and facts.scalar_change(words) is None
    )


def _new_rows(words: Words, index: str, facts: Facts, strides: Strides) -> list[Words]:
    """The elements that a round reads of a row that no round before has read."""
    parameters = facts.function.parameters
    pointers = {each.name for each in parameters if texts(each.words).count("*") == 1}
    found: dict[str, Words] = {}
    for i, word in enumerate(words):
        if word.text not in pointers or texts(words[i + 1 : i + 2]) != ["["]:
            continue
        end = close(words, i + 1)
        inside = words[i + 2 : end]
        if _is_sum(inside) and _is_multiplied(index, inside) and strides.of(inside) == 1:
            found[spaced(inside)] = words[i : end + 1]
    return list(found.values())


def _is_sum(words: Words) -> bool:
    """Whether an index reads no memory, calls nothing and changes nothing."""
    names = texts(words)
    called = any(
        after == "(" and word.kind == "name" for word, after in zip(words, names[1:], strict=False)
    )
    return not called and not ({"[", ",", "->", "?"} | CHANGING) & set(names)


def _is_multiplied(name: str, words: Words) -> bool:
    names = texts(words)
    return any(each == name and "*" in names[max(i - 1, 0) : i + 2] for i, each in enumerate(names))
