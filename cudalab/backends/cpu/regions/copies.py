"""Finds kernels with asynchronous copies that fibers run faster.

A copy is a call that must know its thread. Awaited in a loop, copies cut each of its rounds into
regions, and what a thread has summed up in an array leaves the registers at each cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.unit import AWAITING
from cudalab.backends.cpu.regions.words import NotCoveredError, calls, texts

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions.syntax import Function, Statement
    from cudalab.backends.cpu.regions.unit import Unit


def refuse_copies(unit: Unit, functions: list[Function]) -> None:
    """NotCoveredError for a loop that awaits copies while threads have arrays of their own."""
    every = [each for function in functions for part in function.statements for each in part.walk()]
    waits = AWAITING | unit.awaiting
    loops = (each for each in every if each.kind in ("for", "while", "do"))
    loop = next((each for each in loops if calls(each.words, waits)), None)
    if loop and any(map(_declares_array, every)):
        raise NotCoveredError(
            f"{loop.words[0].place}: a loop that awaits asynchronous copies, beside arrays of each "
            "thread, which fibers run faster"
        )


def _declares_array(statement: Statement) -> bool:
    shared = "__shared__" in texts(statement.own)
    return not shared and any(local.array for local in statement.declared)
