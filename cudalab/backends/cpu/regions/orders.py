"""Loops of which threads take the rounds in another order than one thread after another.

Each of the three has a class, and a function that looks whether a loop is one:

* *Steps*: in `for (int i = first; i < n; i += step)` neighbouring threads access neighbouring
  elements in each round, but not from round to round. So the threads go through such a loop in step
  as long as all of them have a round to do; then each does what is left for it.
* *Rounds*: where each round needs the one before it, such as the pivots of a matrix, one thread's
  rounds cannot be taken at once, but those of many threads can: all that are still in the loop do
  one round, then all the next one. When few are left, each does what is left for it.
* *Jammed*: compilers call it unroll and jam. Each thread does its part of four rounds before the
  next thread does. A sum is loaded and stored once in four rounds, and what the rounds read comes
  from memory side by side. Where a row of an array is new in each round, the rows of the next
  rounds are asked for ahead: a processor does not foresee rows that lie pages apart.

The first two are for programs' kernels with barriers, the third for those that go in step.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.in_step import COMPUTING, LONG
from cudalab.backends.cpu.regions.parts import OUTER, Piece
from cudalab.backends.cpu.regions.strides import Strides, changed_elements
from cudalab.backends.cpu.regions.syntax import (
    LOOPS,
    Edit,
    Local,
    Statement,
    edited,
    statements,
    walk,
)
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.uses import INTO
from cudalab.backends.cpu.regions.words import CHANGING, Words, close, of_text
from cudalab.language.tokens import called, names_in, set_of, spaced, split, texts

_INTEGERS = set_of("int unsigned long size_t uint32_t int32_t uint64_t")
_LEAVING = set_of("return break continue")
# What is in no round that many threads take at once.
_SLOW = set_of("switch return goto do asm volatile static new")
_NO_STEP = _SLOW | LOOPS | _LEAVING | set_of("else delete -> ?")
_CALLED_IN_STEPS = re.compile(rf"{COMPUTING}|if")
_CALLED_IN_ROUNDS = re.compile(rf"{COMPUTING}|if|while|for|decltype|abs|sqrtf?")
ROUNDS = 4  # that are jammed; the sums of eight do not fit into a processor's registers
_MOST_WORDS = 80  # of a jammed round; larger ones gain nothing, and take long to compile


# Steps --------------------------------------------------------------------------------------------


@dataclass
class Steps:
    """A loop that advances by many threads at a time."""

    index: Local
    step: Words  # what the index grows by
    loop: Statement

    def declared(self, count: str) -> list[Piece]:
        """The declaration of the index, with its value in round `count`."""
        kind = " ".join(texts(self.index.spec))
        head = f"{kind} {self.index.name} = ({kind})(({kind})("
        grown = f") + ({kind}){count} * ({kind})("
        return [head, *self.index.initializer, grown, *self.step, "));"]


def steps_of(loop: Statement, facts: Facts, strides: Strides) -> Steps | None:
    """The loop as one of these, or None."""
    if loop.kind != "for" or not (facts.unit.is_program and facts.meets) or facts.in_step:
        return None
    kinds = [set(texts(local.spec)) for local in loop.declared]
    if len(kinds) != 1 or not kinds[0] <= _INTEGERS:
        return None
    index, step = loop.declared[0], _grows_by(loop)
    first = {word.text for word in index.initializer}
    if not step or index.array or index.pointer or texts(index.value[:1]) != ["="]:
        return None
    same = [word for word in loop.condition if word.text != index.name]
    if not (facts.is_scalar_value(step) and facts.is_scalar_value(same) and len(same) > 1):
        return None
    changing = facts.changed | {"[", "CUDALAB_RANK"}
    if (
        strides.of(index.initializer) != 1
        or first & changing
        or facts.levels.reads_memory(index.initializer)
    ):
        return None
    strides.assume(index.name, 1)
    words = loop.parts[0].words
    plain = (
        (_NO_STEP | facts.levels.arrays | facts.lambdas).isdisjoint(texts(words))
        and all(map(_CALLED_IN_STEPS.fullmatch, called(words)))
        and all(
            each.kind != "other" and texts(each.words[:1]) != ["&"] and strides.are_near(each)
            for each in loop.parts[0].inside
        )
        and all(  # a sum in an element may be several threads', as in in_step.py
            not is_read or any(index.name in texts(part) for part in parts)
            for is_read, parts in changed_elements(words)
        )
    )
    return Steps(index, step, loop) if plain else None


def _grows_by(loop: Statement) -> Words:
    """The amount by which a loop's index grows in each round; empty if that is unclear."""
    name, words = loop.declared[0].name, loop.step
    if texts(words[:8]) == [*INTO, name, ")", "+="]:
        words = words[5:]
        words = [words[0], *words[2:]]
    grows = texts(words[:2]) == [name, "+="]
    changes = sum(word.text in CHANGING for word in loop.step)
    inside = any(word.text == name for part in _changed(loop) for word in part)
    return words[2:] if grows and changes == 1 and not inside else []


def _changed(loop: Statement) -> list[Words]:
    """The parts before the operator of statements in a loop that change something."""
    parts = []
    for each in loop.parts[0].walk():
        words = each.words if each.kind == "simple" and not each.declared else []
        at = next((i for i, word in enumerate(words) if word.text in CHANGING), None)
        if at is not None and "[" not in texts(words[:at]):
            parts.append(words[: at + 2])
    return parts


# Rounds -------------------------------------------------------------------------------------------


@dataclass
class Rounds:
    """A loop whose rounds threads do side by side."""

    loop: Statement
    index: Local | None  # the same for all threads that are in the loop
    facts: Facts

    @property
    def step(self) -> Words:
        """What each thread does for itself at the end of a round."""
        return [] if self.index else self.loop.step

    @property
    def ends_together(self) -> bool:
        """Whether all threads do the same number of rounds."""
        leaves = any(each.words[0].text == "break" for each in self.loop.walk())
        return self._is_same(self.loop.condition) and not leaves

    def body(self, leave: str, go_on: str) -> Statement:
        """A round of one thread; what it does for `break`, and the label of `continue`."""
        ways = {"break": leave, "continue": f"goto {go_on}"}
        place, inside = self.loop.words[0], self.loop.parts[0].inside
        words = (each.words for each in inside)
        [body] = statements(of_text(place, "{", *words, "}"))
        jumps = (each for each in body.walk() if each.kind == "simple")
        edits = [
            (each.start, each.end, of_text(each.words[0], f"{{ {way} ; }}"))
            for each in jumps
            if (way := ways.get(each.words[0].text))
        ]
        return edited([body], edits)[0]

    def without_same(self, body: Statement, prefix: str) -> tuple[Statement, list[Words]]:
        """A round in which the elements that all threads read have names; and these elements.

        The compiler has no vector instruction that reads such an element only if a thread needs it.
        """
        read, edits = list[Words](), list[Edit]()
        for part in body.inside:
            if part.kind == "simple":
                edits.append((part.start, part.end, self._named(part.words, prefix, read)))
            elif part.kind == "if":
                condition = self._named(part.condition, prefix, read)
                edits.append((*part.of_condition, condition))
            if "goto" in texts(part.words):  # not each thread comes to what follows
                break
        return edited([body], edits)[0], read

    def _named(self, words: Words, prefix: str, read: list[Words]) -> Words:
        """The words with names for the elements that are `read` before the first condition."""
        result: Words = []
        i = 0
        while i < len(words) and words[i].text not in ("?", "&&", "||", "&"):
            end = i + 1
            while words[i].kind == "name" and texts(words[end : end + 1]) == ["["]:
                end = close(words, end) + 1
            element = words[i:end]
            if len(element) > 1 and self._is_same(element):
                known = [texts(each) for each in read]
                if texts(element) not in known:
                    read.append(element)
                number = [texts(each) for each in read].index(texts(element))
                element = [element[0]._replace(text=f"{prefix}_{number}")]
            result += element
            i = end
        return [*result, *words[i:]]

    def _is_same(self, words: Words) -> bool:
        """Whether an expression is the same for all threads in a round."""
        index = self.index.name if self.index else ""
        others = [word for word in words if word.text != index]
        return self.facts.is_scalar_value(others, memory=True)


def rounds_of(loop: Statement, facts: Facts, strides: Strides) -> Rounds | None:
    """The loop as one of these, or None."""
    if loop.kind not in ("for", "while") or not (facts.unit.is_program and facts.meets):
        return None
    if facts.in_step or "volatile" in texts([*facts.function.head, *facts.function.body]):
        return None
    index = None
    if loop.first:
        index = _common_index(loop, facts)
        if index is None:
            return None
        strides.assume(index.name, 0)
    inside = [each for each in loop.parts[0].walk() if each.kind != "block"]
    ends = [*loop.condition, *(word for local in loop.declared for word in local.initializer)]
    few = {name for name, number in facts.unit.numbers.items() if number < LONG}
    few |= facts.function.template_names | {local.name for local in loop.declared}
    plain = (
        bool(loop.kind == "while" or names_in(ends) - few)  # rounds that nobody knows beforehand
        and all(each.kind in ("simple", "if") for each in inside)
        and (_SLOW | facts.levels.arrays | facts.lambdas).isdisjoint(texts(loop.parts[0].words))
        and CHANGING.isdisjoint(texts(loop.condition))
        and all(map(_CALLED_IN_ROUNDS.fullmatch, called(loop.words)))
    )
    if not (plain and _changes_own(loop, inside, index, facts)):
        return None
    _follow(loop, facts, strides)
    return Rounds(loop, index, facts) if strides.are_near(loop) else None


def leads_to_rounds(statement: Statement, facts: Facts, strides: Strides) -> bool:
    """Whether a loop of this kind is in a branch or a block, outside of other loops."""
    if statement.kind in ("for", "while"):
        return rounds_of(statement, facts, strides) is not None
    if statement.kind not in ("block", "if"):
        return False
    if statement.kind == "if":  # each thread has its own answer, or all certainly have the same
        own = facts.levels.of(statement.condition) > Level.BLOCK
        same = facts.is_scalar_value(statement.condition, memory=True)
        if _leaves(statement) or not (own or same):
            return False
    return any(leads_to_rounds(part, facts, strides) for part in statement.parts)


def _leaves(statement: Statement) -> bool:
    """Whether a branch can be left other than through loops inside it."""
    if statement.kind in LOOPS:
        return "return" in texts(statement.words)
    if statement.parts:
        return any(map(_leaves, statement.parts))
    return bool(_LEAVING & set(texts(statement.words)))


def _follow(loop: Statement, facts: Facts, strides: Strides) -> None:
    """Assume that values which grow alike in all threads keep their distance."""
    begun = {local.name: local.initializer for local in facts.locals}
    for each in loop.walk():
        words = each.words if each.kind == "simple" else []
        if texts(words[:5]) == [*INTO]:
            words = [words[5], *words[7:]]
        grows = texts(words[1:2]) == ["+="] and words[0].text in begun
        if grows and strides.of(words[2:-1]) == 0:
            stride = strides.of(begun[words[0].text])
            if stride is not None:
                strides.assume(words[0].text, stride)


def _common_index(loop: Statement, facts: Facts) -> Local | None:
    """The index of a `for` loop that all threads start and change alike."""
    if len(loop.declared) != 1:
        return None
    index = loop.declared[0]
    same = [word for word in loop.step if word.text not in {*CHANGING, index.name}]
    changed = {each.name for each in facts.uses.of(loop.step).changes}
    inside = {each.name for each in facts.uses.of(loop.condition).changes}
    inside |= {each.name for each in facts.uses.changes(walk(loop.parts))}
    if index.array or index.is_reference or texts(index.value[:1]) != ["="]:
        return None
    if changed != {index.name} or index.name in inside | facts.levels.escaping:
        return None
    alike = facts.is_scalar_value(index.initializer) and facts.is_scalar_value(same)
    return index if alike else None


def _changes_own(
    loop: Statement, inside: list[Statement], index: Local | None, facts: Facts
) -> bool:
    """Whether a loop changes only variables that each thread has for itself."""
    own = {parameter.name for parameter in facts.function.parameters if not parameter.is_reference}
    own |= {local.name for local in facts.locals if not local.is_reference}
    own -= facts.levels.escaping | facts.levels.shared
    changes = [*facts.uses.changes(inside)]
    changes += [] if index else facts.uses.of(loop.step).changes
    return all(
        name in own and is_plain and not through and texts(words[1:2]) != ["."]
        for name, through, words, is_plain in changes
    )


# Jammed -------------------------------------------------------------------------------------------


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
    if not all(  # which changes nothing that the whole block has
        each.kind == "simple"
        and each.words[0].text not in OUTER
        and facts.scalar_change(each.words) is None
        for each in body.inside
    ):
        return None
    changed = [part for _, parts in changed_elements(body.words) for part in parts]
    if any(index.name in texts(part) for part in changed):
        return None
    return Jammed(index, loop, _new_rows(body.words, index.name, facts, strides))


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
        if _advances(inside, index) and strides.of(inside) == 1:
            found[spaced(inside)] = words[i : end + 1]
    return list(found.values())


def _advances(index: Words, name: str) -> bool:
    """Whether an index that only computes is a multiple of `name` and something else."""
    names = texts(index)
    if any(called(index)) or not ({"[", ",", "->", "?"} | CHANGING).isdisjoint(names):
        return False
    return any(each == name and "*" in names[max(i - 1, 0) : i + 2] for i, each in enumerate(names))
