"""The instructions of an `asm` statement, and what its operands and registers are in C++."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field

from cudalab.language.ptx.tables import CONSTRAINTS, TYPES
from cudalab.language.tokens import CLOSING, OPENING, Token, closing

_TOKEN = re.compile(
    r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}"
    r"|[.%@!]?[A-Za-z_$][\w$]*(?:::[\w$]+)?|%\d+|\.?\d[\w.]*|\S"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class UnknownInstructionError(Exception):
    """An instruction that is not translated; the argument is its text."""


@dataclass(frozen=True)
class Operand:
    """An operand of an `asm` statement."""

    constraint: str  # such as `=r`
    value: str  # C++


@dataclass(frozen=True)
class Statement:
    """An `asm` statement: its text and its operands."""

    text: str
    outputs: list[Operand]
    inputs: list[Operand]

    @property
    def keeps_values(self) -> bool:
        """Whether it has outputs, and each is read before, from a register."""
        constraints = [each.constraint for each in self.outputs]
        known = all(each[0] == "+" and each[1:].strip("&") in CONSTRAINTS for each in constraints)
        return bool(constraints) and known


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
        operands.append(Operand(constraint, " ".join(re.sub(r"\\\n", " ", value).split())))
        i = end + 2  # after the comma
    return operands


@dataclass
class Instruction:
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
        return next((word for word in reversed(self.modifiers) if word in TYPES), "")


@dataclass
class Block:
    """The translation of one statement."""

    operands: Sequence[Operand]
    registers: dict[str, str] = field(default_factory=dict)  # name -> C++ name
    pieces: list[str] = field(default_factory=list)
    carries: bool = False  # the carry flag has been written

    def register(self, name: str) -> str:
        """The variable of a register or an operand. KeyError for anything else."""
        return self.registers[name]


def instructions(text: str, block: Block) -> Iterator[Instruction]:
    """The instructions; braces and declarations of registers are added to the block."""
    words: list[str] = []
    for word in _TOKEN.findall(_COMMENT.sub(" ", text)):
        if word in "{}" and not words:  # else of the operand `{x, y}`
            block.pieces.append(word)
        elif word != ";":
            words.append(word)
        elif words:
            if words[0] == ".reg":
                kind = TYPES.get(words[1].removeprefix("."))
                names = [word for word in words[2:] if word != ","]
                if kind is None or not all(re.fullmatch(r"%?[\w$]+", name) for name in names):
                    raise UnknownInstructionError(" ".join(words))
                for name in names:
                    block.registers[name] = "cudalab_" + re.sub(r"\W", "_", name)
                    block.pieces.append(f"{kind} {block.registers[name]};")
            else:
                yield _parsed(words)
            words = []
    if words:
        yield _parsed(words)


def _parsed(words: list[str]) -> Instruction:
    rest, guard = list(words), ""
    text = " ".join(words)  # as its author would write it:
    text = re.sub(r" (?=\.[A-Za-z])", "", text)
    text = re.sub(r"(?<=[\[{!@]) | (?=[\]},])", "", text)
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
    return Instruction(text, opcode, modifiers, [each for each in operands if each], guard=guard)
