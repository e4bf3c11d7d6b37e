"""Loops that threads go through side by side, in kernels with barriers.

Where each round of a loop needs the one before it, such as the pivots of a matrix, one thread's
rounds cannot be taken at once, but those of many threads can: all that are still in the loop do one
round, then all the next one. When few are left, each does what is left for it.
"""

import re
from dataclasses import dataclass, replace

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.in_step import LONG
from cudalab.backends.cpu.regions.places import INTO
from cudalab.backends.cpu.regions.strides import Strides
from cudalab.backends.cpu.regions.syntax import Local, Statement
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.words import CHANGING, Words, close, of_text, texts

# Functions that the compiler has vector instructions for.
_COMPUTING = re.compile(
    r"if|while|for|cudalab_into|cudalab_fit|sizeof|decltype|\w+_cast|f?min|f?max|f?abs|fabsf|f(?:min|max)f|fmaf?|sqrtf?|__ldg"
)
_NOT_PLAIN = frozenset({"switch", "return", "goto", "do", "asm", "volatile", "static", "new"})
_LOOPS = frozenset({"for", "while", "do"})
_LEAVING = frozenset({"return", "break", "continue"})


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
        leaves = any(each.own[0].text == "break" for each in self.loop.walk())
        return self._is_same(self.loop.condition) and not leaves

    def body(self, leave: str, go_on: str) -> Statement:
        """A round of one thread; what it does for `break`, and the label of `continue`."""
        ways = {"break": leave, "continue": f"goto {go_on}"}
        return _leaving(self.loop.parts[0], ways)

    def without_same(self, body: Statement, prefix: str) -> tuple[Statement, list[Words]]:
        """A round in which the elements that all threads read have names; and these elements.

        The compiler has no vector instruction that reads such an element only if a thread needs it.
        """
        read: list[Words] = []
        parts = []
        certain = True  # that each thread comes here
        for part in body.inside:
            parts.append(part)
            if certain and part.kind == "simple":
                parts[-1] = replace(part, own=self._named(part.own, prefix, read))
            elif certain and part.kind == "if":
                condition = self._named(part.condition, prefix, read)
                parts[-1] = replace(part, condition=condition)
            certain &= "goto" not in texts(part.words)
        return Statement("block", of_text(self.loop.own[0], "{ }"), parts=parts), read

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
    plain = _is_long(loop, facts) and all(_is_plain(each, facts) for each in inside)
    plain &= not CHANGING & set(texts(loop.condition))
    if not (plain and _computes(loop.words) and _changes_own(loop, inside, index, facts)):
        return None
    _follow(loop, facts, strides)
    return Rounds(loop, index, facts) if strides.are_near(loop) else None


def leads_to_rounds(statement: Statement, facts: Facts, strides: Strides) -> bool:
    """Whether a loop of this kind is in a branch or a block, outside of other loops."""
    if statement.kind in ("for", "while"):
        return rounds_of(statement, facts, strides) is not None
    if statement.kind not in ("block", "if"):
        return False
    words = statement.condition
    if statement.kind == "if" and (_leaves(statement) or not _may_be_cut(words, facts)):
        return False
    return any(leads_to_rounds(part, facts, strides) for part in statement.parts)


def _may_be_cut(condition: Words, facts: Facts) -> bool:
    """Whether each thread has its own answer to a condition, or all certainly have the same."""
    return facts.levels.of(condition) > Level.BLOCK or facts.is_scalar_value(condition, memory=True)


def _leaves(statement: Statement) -> bool:
    """Whether a branch can be left other than through loops inside it."""
    if statement.kind in _LOOPS:
        return "return" in texts(statement.words)
    if statement.parts:
        return any(map(_leaves, statement.parts))
    return bool(_LEAVING & set(texts(statement.own)))


def _follow(loop: Statement, facts: Facts, strides: Strides) -> None:
    """Assume that values which grow alike in all threads keep their distance."""
    begun = {
        local.name: local.initializer
        for statement in facts.statements
        for each in statement.walk()
        for local in each.declared
    }
    for each in loop.walk():
        words = each.own if each.kind == "simple" else []
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
    changed = {name for name, *_ in facts.places.of(loop.step).changes}
    others = [each for each in loop.walk() if each is not loop]
    inside = {
        name
        for words in (loop.condition, *(words for each in others for words in each.pieces))
        for name, *_ in facts.places.of(words).changes
    }
    if index.array or index.is_reference or texts(index.value[:1]) != ["="]:
        return None
    if changed != {index.name} or index.name in inside | facts.levels.escaping:
        return None
    alike = facts.is_scalar_value(index.initializer) and facts.is_scalar_value(same)
    return index if alike else None


def _is_long(loop: Statement, facts: Facts) -> bool:
    """Whether the number of rounds is unknown to the compiler, or too large to be unrolled."""
    index = loop.declared[0].name if loop.declared else ""
    words = [*loop.condition, *(word for local in loop.declared for word in local.initializer)]
    names = {word.text for word in words if word.kind == "name"} - {index}
    numbers = facts.unit.numbers
    names -= facts.function.template_names | {each for each in numbers if numbers[each] < LONG}
    return loop.kind == "while" or bool(names)


def _is_plain(statement: Statement, facts: Facts) -> bool:
    """Whether a statement in a loop only computes and assigns, or is a branch."""
    words = set(texts(statement.words))
    if statement.kind not in ("simple", "if") or _NOT_PLAIN & words:
        return False
    return not words & (facts.levels.arrays | facts.lambdas)


def _computes(words: Words) -> bool:
    """Whether only functions are called that the compiler has instructions for."""
    return all(
        _COMPUTING.fullmatch(word.text)
        for word, after in zip(words, texts(words[1:]), strict=False)
        if word.kind == "name" and after == "("
    )


def _changes_own(
    loop: Statement, inside: list[Statement], index: Local | None, facts: Facts
) -> bool:
    """Whether a loop changes only variables that each thread has for itself."""
    own = {parameter.name for parameter in facts.function.parameters if not parameter.is_reference}
    for statement in facts.statements:
        for each in statement.walk():
            own |= {local.name for local in each.declared if not local.is_reference}
    own -= facts.levels.escaping | facts.levels.shared
    changing = [words for each in inside for words in each.pieces]
    changing += [] if index else [loop.step]
    return all(
        name in own and is_plain and not through and texts(words[1:2]) != ["."]
        for part in changing
        for name, through, words, is_plain in facts.places.of(part).changes
    )


def _leaving(statement: Statement, ways: dict[str, str]) -> Statement:
    """A statement with `break` and `continue` replaced."""
    if statement.kind == "simple" and (way := ways.get(statement.own[0].text)):
        return Statement("simple", of_text(statement.own[0], f"{{ {way} ; }}"))
    return replace(statement, parts=[_leaving(part, ways) for part in statement.parts])
