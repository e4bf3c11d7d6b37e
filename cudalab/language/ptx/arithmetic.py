"""Instructions on registers: arithmetic, comparisons, conversions and moves."""

import re

from cudalab.language.ptx import tables
from cudalab.language.ptx.reading import Block, Instruction, UnknownInstructionError

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+[uU]?|\d+[uU]?|\d*\.\d*(?:[eE][+-]?\d+)?")


def value_of(word: str, kind: str, block: Block) -> str:
    """A source operand as a value of the PTX type `kind`."""
    cpp = tables.TYPES[kind]
    if word in tables.SPECIAL:
        return f"({cpp}){tables.SPECIAL[word]}"
    if literal := _literal(word, cpp):
        return literal
    if word.startswith("!"):
        return f"!{block.register(word[1:])}"
    return f"::cudalab::ptx::as<{cpp}>({block.register(word)})"


def _literal(word: str, cpp: str) -> str | None:
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", word):
        return f"::__uint_as_float(0x{word[2:]}u)"
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", word):
        return f"::__longlong_as_double(0x{word[2:]}ll)"
    if _NUMBER.fullmatch(word.removeprefix("-")):
        is_whole = "." not in word
        return f"(({cpp}){word.rstrip('uU')}{'ll' if is_whole else ''})"
    return None


def assigned(target: str, value: str, block: Block) -> str:
    """The assignment of a value to a register; `_` takes none."""
    if target == "_":
        return f"(void)({value})"
    register = block.register(target)
    return f"{register} = ::cudalab::ptx::as<decltype({register})>({value})"


def expression(instruction: Instruction, block: Block) -> str | None:
    """An instruction with one result and sources of one type."""
    kind, words = instruction.type, instruction.modifiers
    target, *operands = instruction.operands or [""]
    if not kind or any(each.startswith(("[", "{")) for each in (target, *operands)):
        return None
    if "wide" in words:
        return _wide_product(instruction, block)
    sources = {
        letter: value_of(operand, _kind_of(instruction.opcode, letter, kind), block)
        for letter, operand in zip("abcd", operands, strict=False)
    }
    value, result = _value(instruction, sources)
    if value and "sat" in words:
        value = _saturated(value, sources, instruction)
    if not value:
        return None
    if "ftz" in words:
        value = f"::cudalab::ptx::flushed({value})"
    return assigned(target, f"({result})({value})", block)


def _value(instruction: Instruction, sources: dict[str, str]) -> tuple[str | None, str]:
    """The result of an instruction and its C++ type."""
    kind, words, opcode = instruction.type, instruction.modifiers, instruction.opcode
    direction = next((tables.DIRECTIONS[word] for word in words if word in tables.DIRECTIONS), None)
    rounded = tables.ROUNDED.get(kind, {}).get(opcode)
    if rounded and direction:
        return f"::{rounded}_{direction}({', '.join(sources.values())})", tables.TYPES[kind]
    names = [".".join([opcode, *words[:n]]) for n in (2, 1, 0)]
    name = next((each for each in names if each in tables.EXPRESSIONS), "")
    if kind[0] == "f" and name in tables.INTEGERS_ONLY:
        return None, ""
    try:
        value = tables.EXPRESSIONS[name].format(
            **sources, t=tables.TYPES[kind], f="f" if kind == "f32" else ""
        )
    except KeyError:  # no such instruction, or it lacks an operand
        return None, ""
    return value, "unsigned" if name in tables.COUNTS else tables.TYPES[kind]


def _wide_product(instruction: Instruction, block: Block) -> str | None:
    """`mul.wide` and `mad.wide`: a result of twice as many bits as the factors."""
    kind = instruction.type
    if instruction.opcode not in ("mul", "mad") or kind not in tables.WIDE:
        return None
    wide = tables.TYPES[tables.WIDE[kind]]
    target, *operands = instruction.operands
    a, b = (value_of(each, kind, block) for each in operands[:2])
    value = f"({wide}){a} * ({wide}){b}"
    if instruction.opcode == "mad":
        value += f" + {value_of(operands[2], tables.WIDE[kind], block)}"
    return assigned(target, f"({wide})({value})", block)


def _kind_of(opcode: str, letter: str, kind: str) -> str:
    """The type of a source, which is not the instruction's where it is a count or a predicate."""
    if opcode == "selp" and letter == "c":
        return "pred"
    return "u32" if letter in tables.WORDS.get(opcode, "") else kind


def _saturated(value: str, sources: dict[str, str], instruction: Instruction) -> str | None:
    if instruction.type == "f32":
        return f"::__saturatef({value})"
    if instruction.type == "s32" and instruction.opcode in ("add", "sub"):
        sign = "+" if instruction.opcode == "add" else "-"
        return f"::cudalab::ptx::clamped((long long){sources['a']} {sign} {sources['b']})"
    return None


def move(instruction: Instruction, block: Block) -> str | None:
    """`mov`, which also joins and splits registers."""
    target, *sources = instruction.operands
    source = sources[0] if sources else ""
    if source.startswith("{"):
        parts = [block.register(each) for each in source.strip("{}").split(",")]
        value = f"::cudalab::ptx::joined({', '.join(parts)})"
        return assigned(target, value, block)
    if target.startswith("{"):
        parts = target.strip("{}").split(",")
        value = value_of(source, instruction.type, block)
        assignments = [
            assigned(
                part, f"::cudalab::ptx::part<decltype({block.register(part)})>({value}, {i})", block
            )
            for i, part in enumerate(parts)
            if part != "_"
        ]
        return "; ".join(assignments)
    return expression(instruction, block)


def carrying(instruction: Instruction, block: Block) -> str | None:
    """`add.cc`, `addc`, `sub.cc`, `subc`, `mad.lo.cc` and the like."""
    words = instruction.modifiers
    takes = instruction.opcode in ("addc", "subc", "madc")
    if not takes and "cc" not in words:
        return expression(instruction, block)
    if takes and not block.carries:
        raise UnknownInstructionError(f"{instruction.text}, whose carry is from another statement")
    block.carries = True
    kind = "u64" if instruction.type in ("u64", "s64", "b64") else "u32"
    target, *operands = instruction.operands
    values = [value_of(each, kind, block) for each in operands]
    operation = "-" if instruction.opcode.startswith("sub") else "+"
    if instruction.opcode.startswith("mad"):
        product = (
            f"{values[0]} * {values[1]}"
            if "lo" in words
            else f"::cudalab::ptx::high_product({values[0]}, {values[1]})"
        )
        values = [f"({tables.TYPES[kind]})({product})", values[2]]
    carry = "cudalab_carry" if "cc" in words else "::cudalab::ptx::ignored()"
    taken = "cudalab_carry" if takes else "false"
    function = "difference" if operation == "-" else "sum"
    value = f"::cudalab::ptx::{function}({values[0]}, {values[1]}, {taken}, {carry})"
    return assigned(target, value, block)


def comparison(instruction: Instruction, block: Block) -> str | None:
    """`setp` and `set`."""
    words, kind = instruction.modifiers, instruction.type
    compared = tables.COMPARISONS.get(words[0] if words else "")
    if compared is None or not kind or len(instruction.operands) < 3:
        return None
    target, *operands = instruction.operands
    a, b = (value_of(each, kind, block) for each in operands[:2])
    value = f"({compared.format(a=a, b=b)})"
    combined = next((word for word in words if word in ("and", "or", "xor")), None)
    if combined:
        sign = {"and": "&", "or": "|", "xor": "^"}[combined]
        other = value_of(operands[2], "pred", block)
        if instruction.opcode == "setp" and "|" in target:
            return None
        value = f"({value} {sign} {other})"
    if instruction.opcode == "set":
        is_float = words[-2 if len(words) > 1 else 0] == "f32"
        return assigned(target, f"{value} ? {'1.0f' if is_float else '-1'} : 0", block)
    first, _, second = target.partition("|")
    statement = assigned(first, f"(bool)({value})", block)
    if second:
        statement += f"; {assigned(second, f'!{block.register(first)}', block)}"
    return statement


def conversion(instruction: Instruction, block: Block) -> str | None:
    """`cvt` between integers, float and double."""
    words = instruction.modifiers
    kinds = [word for word in words if word in tables.TYPES]
    if len(kinds) != 2 or len(instruction.operands) != 2:
        return None
    to, of = kinds
    value = value_of(instruction.operands[1], of, block)
    cpp, whole = (
        tables.TYPES[to],
        next((tables.TO_WHOLE[word] for word in words if word in tables.TO_WHOLE), None),
    )
    direction = next((tables.DIRECTIONS[word] for word in words if word in tables.DIRECTIONS), "rn")
    if of[0] == "f" and whole:
        value = f"{whole}{'f' if of == 'f32' else ''}({value})"
    if of[0] == "f" and to[0] != "f":
        value = f"::cudalab::ptx::whole<{cpp}>({value})"
    elif to[0] == "f" and direction != "rn":
        towards = {"rz": "TO_ZERO", "rd": "DOWN", "ru": "UP"}[direction]
        value = f"::cudalab::rounded<{cpp}>({value}, ::cudalab::{towards})"
    elif "sat" in words and to[0] != "f":
        value = f"::cudalab::ptx::clamped_to<{cpp}>({value})"
    value = f"({cpp}){value}"
    if "sat" in words and to == "f32":
        value = f"::__saturatef({value})"
    if "ftz" in words:
        value = f"::cudalab::ptx::flushed({value})"
    return assigned(instruction.operands[0], value, block)


def difference_of_bytes(instruction: Instruction, block: Block) -> str | None:
    """`vabsdiff4` of unsigned bytes."""
    if instruction.modifiers[:3] != ["u32"] * 3 or len(instruction.operands) != 4:
        return None
    target, *operands = instruction.operands
    a, b, c = (value_of(each, "u32", block) for each in operands)
    if instruction.modifiers[3:] == ["add"]:
        return assigned(target, f"::__vsadu4({a}, {b}) + {c}", block)
    return assigned(target, f"::__vabsdiffu4({a}, {b})", block) if c == "((unsigned)0u)" else None
