"""Instructions by which threads meet or wait, and others without a result."""

from cudalab.language.ptx.arithmetic import assigned, value_of
from cudalab.language.ptx.memory import pointer_to
from cudalab.language.ptx.reading import Block, Instruction
from cudalab.language.ptx.tables import OF_NO_EFFECT, PROCEDURES, SHUFFLES


def vote(instruction: Instruction, block: Block) -> str | None:
    """`vote.sync`."""
    words = instruction.modifiers
    mode = next((word for word in words if word in ("ballot", "all", "any")), None)
    if mode is None or "sync" not in words or len(instruction.operands) != 3:
        return None
    target, predicate, mask = instruction.operands
    arguments = f"{value_of(mask, 'u32', block)}, {value_of(predicate, 'pred', block)}"
    return assigned(target, f"::__{mode}_sync({arguments})", block)


def shuffle(instruction: Instruction, block: Block) -> str | None:
    """`shfl.sync`."""
    mode = next((word for word in instruction.modifiers if word in SHUFFLES), None)
    if mode is None or "sync" not in instruction.modifiers or len(instruction.operands) != 5:
        return None
    target, value, *rest = instruction.operands
    first, _, second = target.partition("|")
    arguments = ", ".join(value_of(each, "u32", block) for each in (value, *rest))
    inside = block.register(second) if second else "::cudalab::ptx::ignored()"
    value = f"::cudalab::ptx::shuffle({SHUFFLES[mode]}, {arguments}, {inside})"
    return assigned(first, value, block)


def copy(instruction: Instruction, block: Block) -> str | None:
    """`cp.async`, and waiting for it."""
    words, operands = instruction.modifiers, instruction.operands
    if words[:1] != ["async"] or "bulk" in words:
        return None
    if "commit_group" in words or "wait_all" in words:
        return procedure(instruction, block)
    if "wait_group" in words:
        return f"::__pipeline_wait_prior({operands[0]})"
    to = pointer_to(operands[0], ("shared",), block)
    source = pointer_to(operands[1], (), block) if len(operands) > 2 else None
    if to is None or source is None:
        return None
    size = value_of(operands[2], "u32", block)
    used = f", {size} - {value_of(operands[3], 'u32', block)}" if len(operands) > 3 else ""
    return f"::__pipeline_memcpy_async({to}, {source}, {size}{used})"


def procedure(instruction: Instruction, block: Block) -> str | None:
    """Instructions without a result, such as `bar.sync`, and those without an effect."""
    if instruction.opcode in OF_NO_EFFECT:
        return "(void)0"
    words = ".".join([instruction.opcode, *instruction.modifiers])
    if instruction.opcode == "nanosleep":
        return f"::__nanosleep({value_of(instruction.operands[0], 'u32', block)})"
    if words == "bar.warp.sync":
        return f"::__syncwarp({value_of(instruction.operands[0], 'u32', block)})"
    return PROCEDURES.get(" ".join([words, *instruction.operands]))


def activemask(instruction: Instruction, block: Block) -> str:
    """`activemask`."""
    return assigned(instruction.operands[0], "__activemask()", block)
