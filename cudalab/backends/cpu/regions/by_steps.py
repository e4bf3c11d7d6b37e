"""Loops that advance by a row of threads or by the whole grid, in kernels with barriers.

In `for (int i = first; i < n; i += step)` neighbouring threads access neighbouring elements in each
round, but not from round to round. So the threads go through such a loop in step as long as all of
them have a round to do; then each does what is left for it.
"""

import re
from dataclasses import dataclass

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.places import INTO
from cudalab.backends.cpu.regions.strides import Strides, changed_elements
from cudalab.backends.cpu.regions.syntax import Local, Statement, locals_of
from cudalab.backends.cpu.regions.words import CHANGING, Words, texts
from cudalab.backends.cpu.regions.writer import Piece

_INTEGERS = frozenset({"int", "unsigned", "long", "size_t", "uint32_t", "int32_t", "uint64_t"})
_COMPUTING = re.compile(
    r"if|cudalab_into|cudalab_fit|sizeof|\w+_cast|f?min|f?max|f(?:abs|min|max)f?|fmaf?|__ldg"
)
_NOT_PLAIN = frozenset(
    {
        "for",
        "while",
        "do",
        "switch",
        "break",
        "continue",
        "return",
        "else",
        "goto",
        "asm",
        "volatile",
    }
    | {"new", "delete", "->", "static", "?"}
)


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
    plain = all(_is_plain(each, facts) and strides.are_near(each) for each in loop.parts[0].inside)
    words = loop.parts[0].words  # a sum in an element may be several threads', as in in_step.py
    plain &= all(
        not is_read or any(index.name in texts(part) for part in parts)
        for is_read, parts in changed_elements(words)
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
        words = each.own if each.kind == "simple" and not locals_of(each.own) else []
        at = next((i for i, word in enumerate(words) if word.text in CHANGING), None)
        if at is not None and "[" not in texts(words[:at]):
            parts.append(words[: at + 2])
    return parts


def _is_plain(statement: Statement, facts: Facts) -> bool:
    """Whether a statement only computes and assigns, without loops."""
    words = texts(statement.words)
    if _NOT_PLAIN & set(words) or statement.kind == "other":
        return False
    if (facts.levels.arrays | facts.lambdas) & set(words) or "&" in words[:1]:
        return False
    return all(
        _COMPUTING.fullmatch(word.text)
        for word, after in zip(statement.words, words[1:], strict=False)
        if word.kind == "name" and after == "("
    )
