"""Inline PTX as C++: the instructions of an `asm` statement, one after another.

An operand of the statement and a register declared in it become variables, `bfe.u32 %0, %1, 4, 8;`
an assignment. The functions that C++ and CUDA have no words for are in runtime/ptx.h.
"""

from collections.abc import Callable

from cudalab.language.ptx import arithmetic, memory, threads
from cudalab.language.ptx.reading import (
    Block,
    Instruction,
    Statement,
    UnknownInstructionError,
    instructions,
    read,
)
from cudalab.language.ptx.tables import CONSTRAINTS, OF_NO_EFFECT

__all__ = ["Statement", "UnknownInstructionError", "read", "translate"]

_WRITERS: dict[str, Callable[[Instruction, Block], str | None]] = {
    "mov": arithmetic.move,
    **dict.fromkeys(("add", "addc", "sub", "subc", "mad", "madc"), arithmetic.carrying),
    **dict.fromkeys(("setp", "set"), arithmetic.comparison),
    **dict.fromkeys(("ld", "ldu"), memory.load),
    **dict.fromkeys(("atom", "red"), memory.atomic),
    **dict.fromkeys(("membar", "fence"), memory.fence),
    **dict.fromkeys(
        ("bar", "barrier", "trap", "brkpt", "nanosleep", *OF_NO_EFFECT), threads.procedure
    ),
    "st": memory.store,
    "cvt": arithmetic.conversion,
    "vote": threads.vote,
    "shfl": threads.shuffle,
    "cvta": memory.cvta,
    "cp": threads.copy,
    "activemask": threads.activemask,
    "vabsdiff4": arithmetic.difference_of_bytes,
}


def translate(statement: Statement) -> str:
    """The statement as C++, without the semicolon at its end: an empty one keeps its outputs.

    UnknownInstructionError for anything but the usual instructions.
    """
    outputs, inputs = statement.outputs, statement.inputs
    if not statement.text.strip():
        kept = [
            f"{{ auto& cudalab_kept = {each.value}; cudalab_kept = cudalab_kept; }}"
            for each in outputs
        ]
        return f"do {{ {' '.join(kept)} }} while (0)"
    block = Block([*outputs, *inputs])
    before, after = [], []
    for i, operand in enumerate(block.operands):
        kind = CONSTRAINTS.get(operand.constraint.strip("=+&"))
        if kind is None:
            raise UnknownInstructionError(f'operand "{operand.constraint}"')
        variable = f"cudalab_{i}"
        block.registers[f"%{i}"] = variable
        if "=" in operand.constraint:
            before.append(f"{kind} {variable};")
        else:
            before.append(f"{kind} {variable} = ({kind})({operand.value});")
        if i < len(outputs):
            after.append(f"::cudalab::ptx::store({operand.value}, {variable});")
    for instruction in instructions(statement.text.replace("%%", "%"), block):
        block.pieces.append(_translated(instruction, block))
    if block.carries:
        before.append("bool cudalab_carry = false;")
    return "do { " + " ".join([*before, *block.pieces, *after]) + " } while (0)"


def _translated(instruction: Instruction, block: Block) -> str:
    write = _WRITERS.get(instruction.opcode, arithmetic.expression)
    try:
        statement = write(instruction, block)
        guard = block.register(instruction.guard.removeprefix("!")) if instruction.guard else ""
    except (KeyError, IndexError, ValueError):  # another kind or number of operands
        statement = None
    if statement is None:
        raise UnknownInstructionError(instruction.text)
    if not guard:
        return f"{statement};"
    negated = "!" if instruction.guard.startswith("!") else ""
    return f"if ({negated}{guard}) {{ {statement}; }}"
