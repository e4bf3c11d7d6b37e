"""Finds loops in which a thread may wait for others: loops over threads would never end there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.levels import changes_of
from cudalab.backends.cpu.regions.syntax import locals_of
from cudalab.backends.cpu.regions.words import NotCoveredError, calls

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions.syntax import Function, Statement
    from cudalab.backends.cpu.regions.unit import Unit
    from cudalab.backends.cpu.regions.words import Words

_MEMBERS = frozenset(
    {"compare_exchange_weak", "compare_exchange_strong", "fetch_add", "exchange", "test_and_set"}
)


def refuse_waiting(functions: list[Function]) -> None:
    """NotCoveredError for a loop that ends when an atomic operation has a certain result."""
    atomic: set[str] = set()
    before = None
    while before != atomic:  # functions that have such operations, or call one that has
        before = set(atomic)
        atomic |= {function.name for function in functions if _is_atomic(function.body, atomic)}
    for function in functions:
        for statement in function.statements:
            for loop in statement.walk():
                if loop.kind in ("for", "while", "do") and _waits(loop, atomic):
                    place = loop.own[0].place
                    raise NotCoveredError(f"{place}: a loop that waits for an atomic operation")


def refuse_needless(unit: Unit, functions: list[Function]) -> None:
    """NotCoveredError for a kernel without barriers whose threads have loops of their own.

    The runtime runs such threads one after another, without fibers. As parts of a loop over all
    threads they are not faster, and g++ 12 compiles some to wrong code.
    """
    kernel = functions[0]
    if unit.is_collective(kernel.body):
        return
    for function in functions:
        if any(word.text in ("for", "while", "do") for word in function.body):
            place = kernel.head[0].place
            raise NotCoveredError(f"{place}: no barriers; each thread has loops of its own")


def _is_atomic(words: Words, functions: set[str]) -> bool:
    return any(word.text.startswith("atomic") or word.text in _MEMBERS for word in words) or bool(
        calls(words, functions)
    )


def _waits(loop: Statement, atomic: set[str]) -> bool:
    """Whether the result of an atomic operation may decide when a loop ends."""
    names: set[str] = set()
    before = None
    while before != names:
        before = set(names)
        _follow(loop, atomic, names, decided=False)
    return _decides(loop.condition, atomic, names) or any(
        _decides(each.condition, atomic, names) and _leaves(each)
        for each in loop.parts[0].walk()
        if each.kind == "if"
    )


def _follow(statement: Statement, atomic: set[str], names: set[str], *, decided: bool) -> None:
    """Add to `names` the variables that depend on the result of an atomic operation."""
    for words in (statement.own, statement.first, statement.condition, statement.step):
        for local in locals_of(words):
            if decided or _decides(local.value, atomic, names):
                names.add(local.name)
        for name, _, value in changes_of(words):
            if decided or _decides(value, atomic, names):
                names.add(name)
    inside = decided or (statement.kind == "if" and _decides(statement.condition, atomic, names))
    for part in statement.parts:
        _follow(part, atomic, names, decided=inside)


def _decides(words: Words, atomic: set[str], names: set[str]) -> bool:
    return _is_atomic(words, atomic) or any(word.text in names for word in words)


def _leaves(branch: Statement) -> bool:
    return any(
        each.kind == "simple" and each.own[0].text in ("break", "return") for each in branch.walk()
    )
