"""Instructions on memory: loads, stores, atomic operations, fences, copies and addresses."""

import re
from collections.abc import Sequence

from cudalab.language.ptx.arithmetic import assigned, value_of
from cudalab.language.ptx.reading import Block, Instruction
from cudalab.language.ptx.tables import ATOMICS, TYPES


def pointer_to(word: str, modifiers: Sequence[str], block: Block) -> str | None:
    """The C++ pointer, as `char*`, for `[register + offset]`."""
    match = re.fullmatch(r"\[(%?\w+)\+?(-?\w+)?\]", word)
    if match is None:
        return None
    register = block.register(match[1])
    shared = "shared" in modifiers or any(each.startswith("shared::") for each in modifiers)
    pointer = f"::cudalab::ptx::pointer<{'true' if shared else 'false'}>({register})"
    return f"({pointer} + {match[2]})" if match[2] else pointer


def load(instruction: Instruction, block: Block) -> str | None:
    """`ld`, of up to four elements."""
    words, kind = instruction.modifiers, instruction.type
    target, *sources = instruction.operands
    address = pointer_to(sources[0], words, block) if len(sources) == 1 and kind else None
    if address is None:
        return None
    read = "load"
    if {"volatile", "relaxed", "acquire", "mmio"} & set(words):
        read = "load_now"
    parts = target.strip("{}").split(",") if target.startswith("{") else [target]
    if len(parts) != (4 if "v4" in words else 2 if "v2" in words else 1):
        return None
    loads = [
        assigned(part, f"::cudalab::ptx::{read}<{TYPES[kind]}>({address}, {i})", block)
        for i, part in enumerate(parts)
    ]
    return "; ".join(loads)


def store(instruction: Instruction, block: Block) -> str | None:
    """`st`, of up to four elements."""
    words, kind = instruction.modifiers, instruction.type
    if len(instruction.operands) != 2 or not kind:
        return None
    address = pointer_to(instruction.operands[0], words, block)
    if address is None:
        return None
    source = instruction.operands[1]
    parts = source.strip("{}").split(",") if source.startswith("{") else [source]
    if len(parts) != (4 if "v4" in words else 2 if "v2" in words else 1):
        return None
    write = "save"
    if {"volatile", "relaxed", "release", "mmio"} & set(words):
        write = "save_now"
    call = f"::cudalab::ptx::{write}<{TYPES[kind]}>"
    stores = [
        _ordered(f"{call}({address}, {i}, {value_of(part, kind, block)})", words)
        for i, part in enumerate(parts)
    ]
    return "; ".join(stores)


def atomic(instruction: Instruction, block: Block) -> str | None:
    """`atom` and `red`, which has no result."""
    words, kind, operands = instruction.modifiers, instruction.type, instruction.operands
    function = next((ATOMICS[word] for word in words if word in ATOMICS), None)
    target = operands[0] if instruction.opcode == "atom" else "_"
    rest = operands[1:] if instruction.opcode == "atom" else operands
    address = pointer_to(rest[0], words, block) if function and kind and len(rest) > 1 else None
    if address is None:
        return None
    cpp = TYPES["u" + kind[1:] if kind[0] == "b" else kind]
    values = ", ".join(f"({cpp}){value_of(each, kind, block)}" for each in rest[1:])
    scope = "_block" if "cta" in words else ""
    call = f"::atomic{function}{scope}(({cpp}*){address}, {values})"
    return assigned(target, _ordered(call, words), block)


def _ordered(call: str, words: Sequence[str]) -> str:
    """An atomic operation with the fences that its order stands for, which check mode observes."""
    to_grid = str("cta" not in words).lower()
    if {"acquire", "acq_rel"} & set(words):
        call = f"::cudalab::ptx::acquired({call}, {to_grid})"
    if {"release", "acq_rel"} & set(words):
        call = f"(CUDALAB_FENCED({to_grid}), {call})"
    return call


def fence(instruction: Instruction, _: Block) -> str:
    """`membar` and `fence`."""
    return f"::__threadfence{'_block' if 'cta' in instruction.modifiers else ''}()"


def cvta(instruction: Instruction, block: Block) -> str | None:
    """Addresses of shared memory are offsets in a window; all others are the same in any space."""
    target, source = instruction.operands
    value = value_of(source, instruction.type, block)
    if "shared" in instruction.modifiers:
        if "to" in instruction.modifiers:
            value = f"::__cvta_generic_to_shared((const void*)(size_t){value})"
        else:
            value = f"(size_t)::__cvta_shared_to_generic((size_t){value})"
    return assigned(target, f"({TYPES[instruction.type]}){value}", block)
