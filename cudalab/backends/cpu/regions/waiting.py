"""Finds loops in which a thread may wait for others: loops over threads would never end there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.levels import changes_of
from cudalab.backends.cpu.regions.syntax import locals_of
from cudalab.backends.cpu.regions.unit import BLOCK_WIDE
from cudalab.backends.cpu.regions.words import NotCoveredError, calls, texts

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions.syntax import Function, Statement
    from cudalab.backends.cpu.regions.words import Words

# In the names of what reads memory that other threads may change, besides atomic functions.
_POLLING = frozenset(
    {"compare_exchange_weak", "compare_exchange_strong", "fetch_add", "exchange", "test_and_set"}
    | {"volatile", "__ldcv"}
)


def refuse_waiting(unit: Unit, functions: list[Function]) -> None:
    """NotCoveredError for a loop that ends when another thread has changed memory.

    Such memory is read by an atomic operation or as volatile. In a loop with a block-wide barrier
    no thread runs ahead: such a loop waits at most for other blocks.
    """
    polling: set[str] = set()
    before = None
    while before != polling:  # functions that have such operations, or call one that has
        before = set(polling)
        polling |= {function.name for function in functions if _polls(function.body, polling)}
    for function in functions:
        for statement in function.statements:
            for loop in statement.walk():
                if loop.kind not in ("for", "while", "do"):
                    continue
                together = calls(loop.words, BLOCK_WIDE | unit.block_wide)
                if not together and _waits(loop, polling, function):
                    place = loop.own[0].place
                    raise NotCoveredError(f"{place}: a loop that waits for other threads")


def _polls(words: Words, functions: set[str]) -> bool:
    """Whether an expression reads what other threads may change meanwhile."""
    return any(word.text.startswith("atomic") or word.text in _POLLING for word in words) or bool(
        calls(words, functions)
    )


def _waits(loop: Statement, polling: set[str], function: Function) -> bool:
    """Whether what other threads change may decide when a loop ends."""
    names = {
        local.name
        for statement in function.statements
        for each in statement.walk()
        for local in each.declared
        if "volatile" in texts(local.value)  # a pointer, perhaps
    }
    before = None
    while before != names:
        before = set(names)
        _follow(loop, polling, names, decided=False)
    return _decides(loop.condition, polling, names) or any(
        _decides(each.condition, polling, names) and _leaves(each)
        for each in loop.parts[0].walk()
        if each.kind == "if"
    )


def _follow(statement: Statement, polling: set[str], names: set[str], *, decided: bool) -> None:
    """Add to `names` the variables that depend on what other threads change."""
    for words in (statement.own, statement.first, statement.condition, statement.step):
        for local in locals_of(words):
            if decided or _decides(local.value, polling, names):
                names.add(local.name)
        for name, _, value in changes_of(words):
            if decided or _decides(value, polling, names):
                names.add(name)
    inside = decided or (statement.kind == "if" and _decides(statement.condition, polling, names))
    for part in statement.parts:
        _follow(part, polling, names, decided=inside)


def _decides(words: Words, polling: set[str], names: set[str]) -> bool:
    return _polls(words, polling) or any(word.text in names for word in words)


def _leaves(branch: Statement) -> bool:
    return any(
        each.kind == "simple" and each.own[0].text in ("break", "return") for each in branch.walk()
    )
