"""Kernels with barriers that begin with a guard: blocks of which no thread leaves need no masks.

`if (i >= n) return;` keeps threads out of the last blocks of a grid only. Such a kernel is written
twice: for blocks in which all threads stay, and with masks for the others. A branch that extends
to the end of a kernel, as in `if (i < n) { … __syncthreads(); … }`, is a guard in other words.
"""

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.in_step import is_guard, returning_early
from cudalab.backends.cpu.regions.rows import is_pure
from cudalab.backends.cpu.regions.syntax import Function, Statement
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.unit import BLOCK_WIDE, Unit, parsed
from cudalab.backends.cpu.regions.words import CHANGING, calls, texts


def settle_guards(unit: Unit, functions: list[Function]) -> None:
    """Let a program's kernel return early where a branch with barriers extends to its end."""
    kernel = functions[0]
    if not unit.is_program or not (own := parsed(kernel).statements):
        return
    last = own[-1]
    if last.kind != "if" or last.parts[1:] or not calls(last.words, BLOCK_WIDE | unit.block_wide):
        return
    if any(word.text.startswith("__grid_") for each in functions for word in each.body):
        return
    facts = Facts(unit, kernel, {})
    facts.look()
    if facts.levels.of(last.condition) > Level.BLOCK:
        kernel.statements = returning_early(own)


def begins_with_guards(unit: Unit, kernel: Function) -> bool:
    """Whether threads leave a program's kernel by guards at its beginning, and only there."""
    alone = len(unit.by_name[kernel.name]) == 1 and not kernel.specialized
    if not (unit.is_program and kernel.is_kernel and alone) or kernel.numbers:
        return False
    statements = kernel.statements or []
    guards = [i for i, each in enumerate(statements) if is_guard(each)]
    if not guards or "..." in texts(kernel.template):
        return False
    before, after = statements[: guards[-1] + 1], statements[guards[-1] + 1 :]
    return all(_only_looks(unit, each) for each in before) and not any(
        "return" in texts(each.words) for each in after
    )


def _only_looks(unit: Unit, statement: Statement) -> bool:
    """Whether a statement is a guard or declares variables, and has no other effects."""
    words = statement.words
    plain = is_pure(unit, words) and not unit.is_collective(words)
    if is_guard(statement):
        return plain and not CHANGING & set(texts(statement.condition))
    is_shared = statement.own[0].text in ("__shared__", "extern")
    changes = sum(word in CHANGING for word in texts(words))
    return is_shared or (
        plain
        and bool(statement.declared)
        and changes <= len(statement.declared)
        and not {"++", "--"} & set(texts(words))
    )
