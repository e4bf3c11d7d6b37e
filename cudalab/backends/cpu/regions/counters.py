"""Gives each loop that first sets a counter a counter of its own.

`int i; for (i = 0; …) …` becomes `for (int i = 0; …) …` wherever `i` means nothing outside of such
loops. A counter that all threads share in one loop, and not in another one, is then two variables.
"""

from dataclasses import replace

from cudalab.backends.cpu.regions.parts import by_itself
from cudalab.backends.cpu.regions.syntax import Function, Local, Statement
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import Words, texts
from cudalab.language.scopes import BASIC


def own_counters(unit: Unit, function: Function) -> list[Statement]:
    """The function's statements, whose loops declare their counters.

    No counter does whose address, or a reference to it, may outlive a loop.
    """
    places = unit.places(function)
    kept = {
        change.name
        for statement in function.statements
        for each in statement.walk()
        for words in each.pieces
        for change in places.of(words).changes
        if not change.is_plain
    }
    return with_own_counters(function.statements, kept)


def with_own_counters(
    statements: list[Statement], kept: frozenset[str] | set[str] = frozenset()
) -> list[Statement]:
    """The statements with `for (int i = 0; …)`, but for the counters that are `kept`."""
    result: list[Statement] = []
    for at, each in enumerate(statements):
        after = statements[at + 1 :]
        counters = {
            local.name: local.spec
            for local in each.declared
            if each.kind == "simple"
            and local.name not in kept
            and _is_unset_number(local)
            and _is_set_by_loops(local.name, after)
        }
        if counters:
            others = [local for local in each.declared if local.name not in counters]
            declaring = [_declaring(counters, one) for one in after]
            rest = [Statement("simple", [*by_itself(one), each.own[-1]]) for one in others]
            return [*result, *rest, *with_own_counters(declaring, kept)]
        result.append(replace(each, parts=with_own_counters(each.parts, kept)))
    return result


def _is_unset_number(local: Local) -> bool:
    is_number = all(word in BASIC or word.endswith("_t") for word in texts(local.spec))
    return is_number and not (local.pointer or local.array or local.value or local.align)


def _is_set_by_loops(name: str, statements: list[Statement]) -> bool:
    """Whether a variable is used only in loops that first set it."""
    return all(
        name not in texts(each.words)
        or _counter_of(each) == name
        or (name not in _head(each) and bool(each.parts) and _is_set_by_loops(name, each.parts))
        for each in statements
    )


def _counter_of(loop: Statement) -> str:
    """The variable that a loop first sets, and does nothing else before its first round."""
    words = texts(loop.first)
    sets = words[1:2] == ["="] and "," not in words and words[0] not in words[2:]
    return words[0] if sets else ""


def _head(statement: Statement) -> list[str]:
    """The words of a statement that are not in the statements inside it."""
    own, first, step = statement.own, statement.first, statement.step
    return texts([*own, *first, *statement.condition, *step])


def _declaring(counters: dict[str, Words], statement: Statement) -> Statement:
    """A statement whose loops declare the counters that they first set."""
    name, first = _counter_of(statement), statement.first
    if name in counters:
        place = first[0]
        spec = [place._replace(text=word.text, kind=word.kind) for word in counters[name]]
        first = [*spec, *first]
        counters = {other: words for other, words in counters.items() if other != name}
    parts = [_declaring(counters, part) for part in statement.parts]
    return replace(statement, first=first, parts=parts)
