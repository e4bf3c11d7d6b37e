"""Inline PTX as C++: the instructions of an `asm` statement, one after another.

An operand of the statement and a register declared in it become variables, `bfe.u32 %0, %1, 4, 8;`
an assignment. The functions that C++ and CUDA have no words for are in runtime/ptx.h.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from cudalab.language.tokens import CLOSING, OPENING, closing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cudalab.language.tokens import Token

# The C++ types of registers by the letter of a constraint, and by PTX's own names.
_CONSTRAINTS = {
    "h": "unsigned short",
    "r": "unsigned",
    "l": "unsigned long long",
    "n": "long long",
    "f": "float",
    "d": "double",
}
_TYPES = {
    "pred": "bool",
    "u8": "unsigned char",
    "s8": "signed char",
    "b8": "unsigned char",
    "u16": "unsigned short",
    "s16": "short",
    "b16": "unsigned short",
    "u32": "unsigned",
    "s32": "int",
    "b32": "unsigned",
    "u64": "unsigned long long",
    "s64": "long long",
    "b64": "unsigned long long",
    "f32": "float",
    "f64": "double",
}
_SPECIAL = {
    **{
        f"%{ptx}.{axis}": f"::{name}.{axis}"
        for ptx, name in (
            ("tid", "threadIdx"),
            ("ntid", "blockDim"),
            ("ctaid", "blockIdx"),
            ("nctaid", "gridDim"),
        )
        for axis in "xyz"
    },
    "%laneid": "::cudalab::lane()",
    "%warpid": "(::cudalab::current.thread / 32)",
    "%nwarpid": "((::blockDim.x * ::blockDim.y * ::blockDim.z + 31) / 32)",
    "%smid": "::cudalab::ptx::multiprocessor()",
    "%nsmid": "::cudalab::ptx::MULTIPROCESSORS",
    "%gridid": "0",
    "%lanemask_eq": "(1u << ::cudalab::lane())",
    "%lanemask_lt": "((1u << ::cudalab::lane()) - 1)",
    "%lanemask_le": "((2u << ::cudalab::lane()) - 1)",
    "%lanemask_gt": "(~0u - ((2u << ::cudalab::lane()) - 1))",
    "%lanemask_ge": "(~0u << ::cudalab::lane())",
    "%clock": "((unsigned)::clock64())",
    "%clock_hi": "((unsigned)(::clock64() >> 32))",
    "%clock64": "::clock64()",
    "%globaltimer": "::cudalab::ptx::global_timer()",
    "%globaltimer_lo": "((unsigned)::cudalab::ptx::global_timer())",
    "%globaltimer_hi": "((unsigned)(::cudalab::ptx::global_timer() >> 32))",
    "WARP_SZ": "32",
}
# Instructions whose result is an expression of their sources, all of the instruction's type.
_EXPRESSIONS = {
    "mov": "{a}",
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "neg": "-{a}",
    "abs": "::cudalab::ptx::magnitude({a})",
    "min": "::cudalab::ptx::least({a}, {b})",
    "max": "::cudalab::ptx::greatest({a}, {b})",
    "and": "{a} & {b}",
    "or": "{a} | {b}",
    "xor": "{a} ^ {b}",
    "not": "~{a}",
    "cnot": "{a} == 0",
    "div": "{a} / {b}",
    "rem": "{a} % {b}",
    "selp": "{c} ? {a} : {b}",
    "popc": "__builtin_popcountll((::cudalab::ptx::Bits<{t}>){a})",
    "clz": "::cudalab::ptx::leading_zeros({a})",
    "brev": "::cudalab::ptx::reversed({a})",
    "bfind": "::cudalab::ptx::find_leading({a})",
    "bfind.shiftamt": "::cudalab::ptx::leading_shift({a})",
    "bfe": "::cudalab::ptx::extract<{t}>({a}, {b}, {c})",
    "bfi": "::cudalab::ptx::insert<{t}>({a}, {b}, {c}, {d})",
    "shl": "::cudalab::ptx::shift_left({a}, {b})",
    "shr": "::cudalab::ptx::shift_right({a}, {b})",
    "shf.l.wrap": "::__funnelshift_l({a}, {b}, {c})",
    "shf.l.clamp": "::__funnelshift_lc({a}, {b}, {c})",
    "shf.r.wrap": "::__funnelshift_r({a}, {b}, {c})",
    "shf.r.clamp": "::__funnelshift_rc({a}, {b}, {c})",
    "prmt": "::cudalab::ptx::permute({a}, {b}, {c})",
    "lop3": "::cudalab::ptx::lookup({a}, {b}, {c}, {d})",
    "sad": "{c} + ({a} > {b} ? {a} - {b} : {b} - {a})",
    "dp4a": "::__dp4a({a}, {b}, {c})",
    "mul.lo": "{a} * {b}",
    "mul.hi": "::cudalab::ptx::high_product({a}, {b})",
    "mad.lo": "{a} * {b} + {c}",
    "mad.hi": "::cudalab::ptx::high_product({a}, {b}) + {c}",
    "mul24.lo": "::__mul24((int){a}, (int){b})",
    "ex2": "exp2{f}({a})",
    "lg2": "log2{f}({a})",
    "sin": "sin{f}({a})",
    "cos": "cos{f}({a})",
    "tanh": "tanh{f}({a})",
    "rsqrt": "1 / sqrt{f}({a})",
    "sqrt": "sqrt{f}({a})",
    "rcp": "1 / {a}",
    "copysign": "copysign{f}({b}, {a})",
    "fma": "fma{f}({a}, {b}, {c})",
    "mul": "{a} * {b}",
    "mad": "fma{f}({a}, {b}, {c})",
    "match.any": "::__match_any_sync({b}, {a})",
    "redux.sync.add": "::__reduce_add_sync({b}, {a})",
    "redux.sync.min": "::__reduce_min_sync({b}, {a})",
    "redux.sync.max": "::__reduce_max_sync({b}, {a})",
    "redux.sync.and": "::__reduce_and_sync({b}, {a})",
    "redux.sync.or": "::__reduce_or_sync({b}, {a})",
    "redux.sync.xor": "::__reduce_xor_sync({b}, {a})",
}
_INTEGERS_ONLY = frozenset({"and", "or", "xor", "not", "cnot", "rem", "shl", "shr", "popc", "clz"})
_COUNTS = frozenset({"popc", "clz", "bfind", "bfind.shiftamt"})  # the result is a word
# The sources that are words whatever the type of the instruction.
_WORDS = {
    "bfe": "bc",
    "bfi": "cd",
    "shl": "b",
    "shr": "b",
    "lop3": "d",
    "match": "b",
    "redux": "b",
}
# The wide products: sources of 16 or 32 bits, a result of twice as many.
_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
# Arithmetic of floats that is rounded as its name says: `add.rz.f32` is __fadd_rz.
_ROUNDED = {
    "f32": {
        "add": "__fadd",
        "sub": "__fsub",
        "mul": "__fmul",
        "div": "__fdiv",
        "rcp": "__frcp",
        "sqrt": "__fsqrt",
        "fma": "__fmaf",
        "mad": "__fmaf",
    },
    "f64": {
        "add": "__dadd",
        "sub": "__dsub",
        "mul": "__dmul",
        "div": "__ddiv",
        "rcp": "__drcp",
        "sqrt": "__dsqrt",
        "fma": "__fma",
        "mad": "__fma",
    },
}
_DIRECTIONS = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
_TO_WHOLE = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_COMPARISONS = {
    "eq": "{a} == {b}",
    "ne": "{a} < {b} || {a} > {b}",
    "lt": "{a} < {b}",
    "le": "{a} <= {b}",
    "gt": "{a} > {b}",
    "ge": "{a} >= {b}",
    "lo": "{a} < {b}",
    "ls": "{a} <= {b}",
    "hi": "{a} > {b}",
    "hs": "{a} >= {b}",
    "equ": "!({a} < {b} || {a} > {b})",
    "neu": "{a} != {b}",
    "ltu": "!({a} >= {b})",
    "leu": "!({a} > {b})",
    "gtu": "!({a} <= {b})",
    "geu": "!({a} < {b})",
    "num": "{a} == {a} && {b} == {b}",
    "nan": "{a} != {a} || {b} != {b}",
}
_ATOMICS = {
    "add": "Add",
    "min": "Min",
    "max": "Max",
    "and": "And",
    "or": "Or",
    "xor": "Xor",
    "exch": "Exch",
    "inc": "Inc",
    "dec": "Dec",
    "cas": "CAS",
}
# Instructions without a result, by their first words.
_PROCEDURES = {
    "bar.sync 0": "::__syncthreads()",
    "barrier.sync 0": "::__syncthreads()",
    "barrier.sync.aligned 0": "::__syncthreads()",
    "barrier.cta.sync 0": "::__syncthreads()",
    "cp.async.commit_group": "::__pipeline_commit()",
    "cp.async.wait_all": "::__pipeline_wait_prior(0)",
    "trap": "::__trap()",
    "brkpt": "::__brkpt()",
}
_OF_NO_EFFECT = ("prefetch", "prefetchu", "pmevent", "applypriority", "discard")
_SPACES = ("global", "shared", "local", "const", "param")

_TOKEN = re.compile(
    r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}"
    r"|[.%@!]?[A-Za-z_$][\w$]*(?:::[\w$]+)?|%\d+|\.?\d[\w.]*|\S"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+[uU]?|\d+[uU]?|\d*\.\d*(?:[eE][+-]?\d+)?")


class UnknownInstructionError(Exception):
    """An instruction that is not translated; the argument is its text."""


@dataclass(frozen=True)
class Operand:
    """An operand of an `asm` statement."""

    constraint: str  # such as `=r`
    value: str  # C++


@dataclass
class _Instruction:
    """One instruction, such as `@p add.u32 x, y, 1`."""

    text: str
    opcode: str
    modifiers: list[str]
    operands: list[str]
    _: KW_ONLY
    guard: str = ""

    @property
    def type(self) -> str:
        """The last modifier that is a type."""
        return next((word for word in reversed(self.modifiers) if word in _TYPES), "")


@dataclass
class _Block:
    """The translation of one statement."""

    operands: Sequence[Operand]
    registers: dict[str, str] = field(default_factory=dict)  # name -> C++ name
    pieces: list[str] = field(default_factory=list)
    carries: bool = False  # the carry flag has been written

    def register(self, name: str) -> str:
        """The variable of a register or an operand. KeyError for anything else."""
        return self.registers[name]


@dataclass(frozen=True)
class Statement:
    """An `asm` statement: its text and its operands."""

    text: str
    outputs: list[Operand]
    inputs: list[Operand]


def read(tokens: Sequence[Token], source: str) -> Statement | None:
    """The statement whose brackets hold `tokens` of the text `source`.

    None if its text is not made of strings alone, as where a macro's arguments are pasted in.
    """
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if depth == 0 and token.text in (":", "::"):
            parts += [[] for _ in token.text]
        else:
            parts[-1].append(token)
    strings = [_unquoted(token.text) for token in parts[0] if token.kind == "string"]
    if len(strings) != len(parts[0]) or None in strings:
        return None
    outputs, inputs = (_operands(part, source) for part in (*parts[1:3], [], [])[:2])
    return Statement("".join(map(str, strings)), outputs, inputs)


def _unquoted(literal: str) -> str | None:
    raw = re.fullmatch(r'R"(.*?)\((.*)\)\1"', literal, re.DOTALL)
    if raw:
        return raw[2]
    if not literal.startswith('"'):
        return None
    escapes = {"n": "\n", "t": "\t", "r": " "}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), literal[1:-1])


def _operands(tokens: list[Token], source: str) -> list[Operand]:
    """The operands between two colons: `"=r"(value), …`."""
    operands = []
    i = 0
    while i < len(tokens):
        constraint = ""
        while i < len(tokens) and tokens[i].kind == "string":
            constraint, i = constraint + tokens[i].text.strip('"'), i + 1
        end = closing(tokens, i) if i < len(tokens) else None
        if end is None:
            break
        value = source[tokens[i].end : tokens[end].start]
        operands.append(Operand(constraint, _on_one_line(value)))
        i = end + 2  # after the comma
    return operands


def _on_one_line(code: str) -> str:
    return " ".join(re.sub(r"\\\n", " ", code).split())


def translate(statement: Statement) -> str:
    """The statement as C++, without the semicolon at its end.

    UnknownInstructionError for anything but the usual instructions.
    """
    outputs, inputs = statement.outputs, statement.inputs
    block = _Block([*outputs, *inputs])
    before, after = [], []
    for i, operand in enumerate(block.operands):
        kind = _CONSTRAINTS.get(operand.constraint.strip("=+&"))
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
    for instruction in _instructions(statement.text.replace("%%", "%"), block):
        block.pieces.append(_translated(instruction, block))
    if block.carries:
        before.append("bool cudalab_carry = false;")
    return "do { " + " ".join([*before, *block.pieces, *after]) + " } while (0)"


# Reading -----------------------------------------------------------------------------------------


def _instructions(text: str, block: _Block) -> Iterator[_Instruction]:
    """The instructions; braces and declarations of registers are added to the block."""
    words: list[str] = []
    for word in _TOKEN.findall(_COMMENT.sub(" ", text)):
        if word in "{}" and not _in_vector(words):
            if words:
                raise UnknownInstructionError(" ".join(words))
            block.pieces.append(word)
        elif word != ";":
            words.append(word)
        elif words:
            if words[0] == ".reg":
                _declare(words, block)
            else:
                yield _parsed(words)
            words = []
    if words:
        yield _parsed(words)


def _in_vector(words: list[str]) -> bool:
    """Whether a brace after these words belongs to the operand `{x, y}`, not to a block."""
    return bool(words)


def _declare(words: list[str], block: _Block) -> None:
    kind = _TYPES.get(words[1].removeprefix("."))
    names = [word for word in words[2:] if word != ","]
    if kind is None or not all(re.fullmatch(r"%?[\w$]+", name) for name in names):
        raise UnknownInstructionError(" ".join(words))
    for name in names:
        block.registers[name] = "cudalab_" + re.sub(r"\W", "_", name)
        block.pieces.append(f"{kind} {block.registers[name]};")


def _parsed(words: list[str]) -> _Instruction:
    rest, guard = list(words), ""
    text = _written(words)
    if rest[0].startswith("@"):
        guard = rest.pop(0)[1:]
        if not guard:
            guard = rest.pop(0)
        if guard.startswith("!"):
            guard = "!" + (guard[1:] or rest.pop(0))
    opcode = rest.pop(0) if rest else ""
    modifiers = []
    while rest and rest[0].startswith(".") and not rest[0][1:2].isdigit():
        modifiers.append(rest.pop(0)[1:])
    operands, depth = [""], 0
    for word in rest:
        depth += (word in "[{(") - (word in "]})")
        if word == "," and depth == 0:
            operands.append("")
        else:
            operands[-1] += word
    return _Instruction(text, opcode, modifiers, [each for each in operands if each], guard=guard)


def _written(words: list[str]) -> str:
    """An instruction as its author would write it."""
    text = " ".join(words)
    text = re.sub(r" (?=\.[A-Za-z])", "", text)
    return re.sub(r"(?<=[\[{!@]) | (?=[\]},])", "", text)


# Writing -----------------------------------------------------------------------------------------


def _translated(instruction: _Instruction, block: _Block) -> str:
    write = _WRITERS.get(instruction.opcode, _expression)
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


def _source(word: str, kind: str, block: _Block) -> str:
    """A source operand as a value of the PTX type `kind`."""
    cpp = _TYPES[kind]
    if word in _SPECIAL:
        return f"({cpp}){_SPECIAL[word]}"
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


def _assigned(target: str, value: str, block: _Block) -> str:
    if target == "_":
        return f"(void)({value})"
    register = block.register(target)
    return f"{register} = ::cudalab::ptx::as<decltype({register})>({value})"


def _expression(instruction: _Instruction, block: _Block) -> str | None:
    """An instruction with one result and sources of one type."""
    kind, words = instruction.type, instruction.modifiers
    target, *operands = instruction.operands or [""]
    if not kind or any(each.startswith(("[", "{")) for each in (target, *operands)):
        return None
    if "wide" in words:
        return _wide_product(instruction, block)
    sources = {
        letter: _source(operand, _kind_of(instruction.opcode, letter, kind), block)
        for letter, operand in zip("abcd", operands, strict=False)
    }
    value, result = _value(instruction, sources)
    if value and "sat" in words:
        value = _saturated(value, sources, instruction)
    if not value:
        return None
    if "ftz" in words:
        value = f"::cudalab::ptx::flushed({value})"
    return _assigned(target, f"({result})({value})", block)


def _value(instruction: _Instruction, sources: dict[str, str]) -> tuple[str | None, str]:
    """The result of an instruction and its C++ type."""
    kind, words, opcode = instruction.type, instruction.modifiers, instruction.opcode
    direction = next((_DIRECTIONS[word] for word in words if word in _DIRECTIONS), None)
    rounded = _ROUNDED.get(kind, {}).get(opcode)
    if rounded and direction:
        return f"::{rounded}_{direction}({', '.join(sources.values())})", _TYPES[kind]
    names = [".".join([opcode, *words[:n]]) for n in (2, 1, 0)]
    name = next((each for each in names if each in _EXPRESSIONS), "")
    if kind[0] == "f" and name in _INTEGERS_ONLY:
        return None, ""
    try:
        value = _EXPRESSIONS[name].format(**sources, t=_TYPES[kind], f="f" if kind == "f32" else "")
    except KeyError:  # no such instruction, or it lacks an operand
        return None, ""
    return value, "unsigned" if name in _COUNTS else _TYPES[kind]


def _wide_product(instruction: _Instruction, block: _Block) -> str | None:
    """`mul.wide` and `mad.wide`: a result of twice as many bits as the factors."""
    kind = instruction.type
    if instruction.opcode not in ("mul", "mad") or kind not in _WIDE:
        return None
    wide = _TYPES[_WIDE[kind]]
    target, *operands = instruction.operands
    a, b = (_source(each, kind, block) for each in operands[:2])
    value = f"({wide}){a} * ({wide}){b}"
    if instruction.opcode == "mad":
        value += f" + {_source(operands[2], _WIDE[kind], block)}"
    return _assigned(target, f"({wide})({value})", block)


def _kind_of(opcode: str, letter: str, kind: str) -> str:
    """The type of a source, which is not the instruction's where it is a count or a predicate."""
    if opcode == "selp" and letter == "c":
        return "pred"
    return "u32" if letter in _WORDS.get(opcode, "") else kind


def _saturated(value: str, sources: dict[str, str], instruction: _Instruction) -> str | None:
    if instruction.type == "f32":
        return f"::__saturatef({value})"
    if instruction.type == "s32" and instruction.opcode in ("add", "sub"):
        sign = "+" if instruction.opcode == "add" else "-"
        return f"::cudalab::ptx::clamped((long long){sources['a']} {sign} {sources['b']})"
    return None


def _move(instruction: _Instruction, block: _Block) -> str | None:
    """`mov`, which also joins and splits registers."""
    target, *sources = instruction.operands
    source = sources[0] if sources else ""
    if source.startswith("{"):
        parts = [block.register(each) for each in source.strip("{}").split(",")]
        value = f"::cudalab::ptx::joined({', '.join(parts)})"
        return _assigned(target, value, block)
    if target.startswith("{"):
        parts = target.strip("{}").split(",")
        value = _source(source, instruction.type, block)
        assignments = [
            _assigned(
                part, f"::cudalab::ptx::part<decltype({block.register(part)})>({value}, {i})", block
            )
            for i, part in enumerate(parts)
            if part != "_"
        ]
        return "; ".join(assignments)
    return _expression(instruction, block)


def _carrying(instruction: _Instruction, block: _Block) -> str | None:
    """`add.cc`, `addc`, `sub.cc`, `subc`, `mad.lo.cc` and the like."""
    words = instruction.modifiers
    takes = instruction.opcode in ("addc", "subc", "madc")
    if not takes and "cc" not in words:
        return _expression(instruction, block)
    if takes and not block.carries:
        raise UnknownInstructionError(f"{instruction.text}, whose carry is from another statement")
    block.carries = True
    kind = "u64" if instruction.type in ("u64", "s64", "b64") else "u32"
    target, *operands = instruction.operands
    values = [_source(each, kind, block) for each in operands]
    operation = "-" if instruction.opcode.startswith("sub") else "+"
    if instruction.opcode.startswith("mad"):
        product = (
            f"{values[0]} * {values[1]}"
            if "lo" in words
            else f"::cudalab::ptx::high_product({values[0]}, {values[1]})"
        )
        values = [f"({_TYPES[kind]})({product})", values[2]]
    carry = "cudalab_carry" if "cc" in words else "::cudalab::ptx::ignored()"
    taken = "cudalab_carry" if takes else "false"
    function = "difference" if operation == "-" else "sum"
    value = f"::cudalab::ptx::{function}({values[0]}, {values[1]}, {taken}, {carry})"
    return _assigned(target, value, block)


def _comparison(instruction: _Instruction, block: _Block) -> str | None:
    """`setp` and `set`."""
    words, kind = instruction.modifiers, instruction.type
    compared = _COMPARISONS.get(words[0] if words else "")
    if compared is None or not kind or len(instruction.operands) < 3:
        return None
    target, *operands = instruction.operands
    a, b = (_source(each, kind, block) for each in operands[:2])
    value = f"({compared.format(a=a, b=b)})"
    combined = next((word for word in words if word in ("and", "or", "xor")), None)
    if combined:
        sign = {"and": "&", "or": "|", "xor": "^"}[combined]
        other = _source(operands[2], "pred", block)
        if instruction.opcode == "setp" and "|" in target:
            return None
        value = f"({value} {sign} {other})"
    if instruction.opcode == "set":
        is_float = words[-2 if len(words) > 1 else 0] == "f32"
        return _assigned(target, f"{value} ? {'1.0f' if is_float else '-1'} : 0", block)
    first, _, second = target.partition("|")
    statement = _assigned(first, f"(bool)({value})", block)
    if second:
        statement += f"; {_assigned(second, f'!{block.register(first)}', block)}"
    return statement


def _conversion(instruction: _Instruction, block: _Block) -> str | None:
    """`cvt` between integers, float and double."""
    words = instruction.modifiers
    kinds = [word for word in words if word in _TYPES]
    if len(kinds) != 2 or len(instruction.operands) != 2:
        return None
    to, of = kinds
    value = _source(instruction.operands[1], of, block)
    cpp, whole = _TYPES[to], next((_TO_WHOLE[word] for word in words if word in _TO_WHOLE), None)
    direction = next((_DIRECTIONS[word] for word in words if word in _DIRECTIONS), "rn")
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
    return _assigned(instruction.operands[0], value, block)


def _address(word: str, modifiers: Sequence[str], block: _Block) -> str | None:
    """The C++ pointer, as `char*`, for `[register + offset]`."""
    match = re.fullmatch(r"\[(%?\w+)\+?(-?\w+)?\]", word)
    if match is None:
        return None
    register = block.register(match[1])
    shared = "shared" in modifiers or any(each.startswith("shared::") for each in modifiers)
    pointer = f"::cudalab::ptx::pointer<{'true' if shared else 'false'}>({register})"
    return f"({pointer} + {match[2]})" if match[2] else pointer


def _load(instruction: _Instruction, block: _Block) -> str | None:
    words, kind = instruction.modifiers, instruction.type
    target, *sources = instruction.operands
    address = _address(sources[0], words, block) if len(sources) == 1 and kind else None
    if address is None:
        return None
    read = "load"
    if {"volatile", "relaxed", "acquire", "mmio"} & set(words):
        read = "load_now"
    parts = target.strip("{}").split(",") if target.startswith("{") else [target]
    if len(parts) != (4 if "v4" in words else 2 if "v2" in words else 1):
        return None
    loads = [
        _assigned(part, f"::cudalab::ptx::{read}<{_TYPES[kind]}>({address}, {i})", block)
        for i, part in enumerate(parts)
    ]
    return "; ".join(loads)


def _store(instruction: _Instruction, block: _Block) -> str | None:
    words, kind = instruction.modifiers, instruction.type
    if len(instruction.operands) != 2 or not kind:
        return None
    address = _address(instruction.operands[0], words, block)
    if address is None:
        return None
    source = instruction.operands[1]
    parts = source.strip("{}").split(",") if source.startswith("{") else [source]
    if len(parts) != (4 if "v4" in words else 2 if "v2" in words else 1):
        return None
    write = "save"
    if {"volatile", "relaxed", "release", "mmio"} & set(words):
        write = "save_now"
    call = f"::cudalab::ptx::{write}<{_TYPES[kind]}>"
    stores = [
        _ordered(f"{call}({address}, {i}, {_source(part, kind, block)})", words)
        for i, part in enumerate(parts)
    ]
    return "; ".join(stores)


def _atomic(instruction: _Instruction, block: _Block) -> str | None:
    """`atom` and `red`, which has no result."""
    words, kind, operands = instruction.modifiers, instruction.type, instruction.operands
    function = next((_ATOMICS[word] for word in words if word in _ATOMICS), None)
    target = operands[0] if instruction.opcode == "atom" else "_"
    rest = operands[1:] if instruction.opcode == "atom" else operands
    address = _address(rest[0], words, block) if function and kind and len(rest) > 1 else None
    if address is None:
        return None
    cpp = _TYPES["u" + kind[1:] if kind[0] == "b" else kind]
    values = ", ".join(f"({cpp}){_source(each, kind, block)}" for each in rest[1:])
    scope = "_block" if "cta" in words else ""
    call = f"::atomic{function}{scope}(({cpp}*){address}, {values})"
    return _assigned(target, _ordered(call, words), block)


def _ordered(call: str, words: Sequence[str]) -> str:
    """An atomic operation with the fences that its order stands for, which check mode observes."""
    to_grid = str("cta" not in words).lower()
    if {"acquire", "acq_rel"} & set(words):
        call = f"::cudalab::ptx::acquired({call}, {to_grid})"
    if {"release", "acq_rel"} & set(words):
        call = f"(CUDALAB_FENCED({to_grid}), {call})"
    return call


def _fence(instruction: _Instruction, _: _Block) -> str:
    return f"::__threadfence{'_block' if 'cta' in instruction.modifiers else ''}()"


def _vote(instruction: _Instruction, block: _Block) -> str | None:
    words = instruction.modifiers
    mode = next((word for word in words if word in ("ballot", "all", "any")), None)
    if mode is None or "sync" not in words or len(instruction.operands) != 3:
        return None
    target, predicate, mask = instruction.operands
    arguments = f"{_source(mask, 'u32', block)}, {_source(predicate, 'pred', block)}"
    return _assigned(target, f"::__{mode}_sync({arguments})", block)


def _shuffle(instruction: _Instruction, block: _Block) -> str | None:
    mode = next((word for word in instruction.modifiers if word in _SHUFFLES), None)
    if mode is None or "sync" not in instruction.modifiers or len(instruction.operands) != 5:
        return None
    target, value, *rest = instruction.operands
    first, _, second = target.partition("|")
    arguments = ", ".join(_source(each, "u32", block) for each in (value, *rest))
    inside = block.register(second) if second else "::cudalab::ptx::ignored()"
    value = f"::cudalab::ptx::shuffle({_SHUFFLES[mode]}, {arguments}, {inside})"
    return _assigned(first, value, block)


_SHUFFLES = {"idx": 0, "up": 1, "down": 2, "bfly": 3}


def _cvta(instruction: _Instruction, block: _Block) -> str | None:
    """Addresses of shared memory are offsets in a window; all others are the same in any space."""
    target, source = instruction.operands
    value = _source(source, instruction.type, block)
    if "shared" in instruction.modifiers:
        if "to" in instruction.modifiers:
            value = f"::__cvta_generic_to_shared((const void*)(size_t){value})"
        else:
            value = f"(size_t)::__cvta_shared_to_generic((size_t){value})"
    return _assigned(target, f"({_TYPES[instruction.type]}){value}", block)


def _copy(instruction: _Instruction, block: _Block) -> str | None:
    """`cp.async`."""
    words, operands = instruction.modifiers, instruction.operands
    if words[:1] != ["async"] or "bulk" in words:
        return None
    if "commit_group" in words or "wait_all" in words:
        return _procedure(instruction, block)
    if "wait_group" in words:
        return f"::__pipeline_wait_prior({operands[0]})"
    to = _address(operands[0], ("shared",), block)
    source = _address(operands[1], (), block) if len(operands) > 2 else None
    if to is None or source is None:
        return None
    size = _source(operands[2], "u32", block)
    used = f", {size} - {_source(operands[3], 'u32', block)}" if len(operands) > 3 else ""
    return f"::__pipeline_memcpy_async({to}, {source}, {size}{used})"


def _procedure(instruction: _Instruction, block: _Block) -> str | None:
    if instruction.opcode in _OF_NO_EFFECT:
        return "(void)0"
    words = ".".join([instruction.opcode, *instruction.modifiers])
    if instruction.opcode == "nanosleep":
        return f"::__nanosleep({_source(instruction.operands[0], 'u32', block)})"
    if words == "bar.warp.sync":
        return f"::__syncwarp({_source(instruction.operands[0], 'u32', block)})"
    return _PROCEDURES.get(" ".join([words, *instruction.operands]))


def _activemask(instruction: _Instruction, block: _Block) -> str:
    return _assigned(instruction.operands[0], "__activemask()", block)


def _difference_of_bytes(instruction: _Instruction, block: _Block) -> str | None:
    """`vabsdiff4` of unsigned bytes."""
    if instruction.modifiers[:3] != ["u32"] * 3 or len(instruction.operands) != 4:
        return None
    target, *operands = instruction.operands
    a, b, c = (_source(each, "u32", block) for each in operands)
    if instruction.modifiers[3:] == ["add"]:
        return _assigned(target, f"::__vsadu4({a}, {b}) + {c}", block)
    return _assigned(target, f"::__vabsdiffu4({a}, {b})", block) if c == "((unsigned)0u)" else None


_WRITERS: dict[str, Callable[[_Instruction, _Block], str | None]] = {
    "mov": _move,
    **dict.fromkeys(("add", "addc", "sub", "subc", "mad", "madc"), _carrying),
    **dict.fromkeys(("setp", "set"), _comparison),
    **dict.fromkeys(("ld", "ldu"), _load),
    **dict.fromkeys(("atom", "red"), _atomic),
    **dict.fromkeys(("membar", "fence"), _fence),
    **dict.fromkeys(("bar", "barrier", "trap", "brkpt", "nanosleep", *_OF_NO_EFFECT), _procedure),
    "st": _store,
    "cvt": _conversion,
    "vote": _vote,
    "shfl": _shuffle,
    "cvta": _cvta,
    "cp": _copy,
    "activemask": _activemask,
    "vabsdiff4": _difference_of_bytes,
}
