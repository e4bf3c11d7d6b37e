"""An instruction of a kernel, and a stretch of them without a jump."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import KW_ONLY, dataclass, field

# File, line, space and kind of an access, as the profile names them; or "barrier" and its kind.
Key = tuple[str, int, str, str]
BARRIER = ("barrier", "block")  # of a key
SHORT = 12  # instructions

# Instructions of a GPU for one of PTX: those that another instruction absorbs are 0, and what has
# no instruction of its own takes several.
_FREE = ("mov", "cvta", "ld.param", "ld.const", "bra.uni", "ret", "cvt.u64.u32", "cvt.s64.s32")
_SEVERAL = {
    "div.u32": 20, "div.s32": 24, "rem.u32": 21, "rem.s32": 25, "div.u64": 90, "div.s64": 100,
    "rem.u64": 90, "rem.s64": 100, "div.rn.f32": 9, "div.rn.f64": 12, "sqrt.rn.f32": 9,
    "sqrt.rn.f64": 14, "mul.lo.s64": 4, "mul.lo.u64": 4, "mad.lo.s64": 4,
}  # fmt: skip
_SLOW = ("popc", "clz", "bfind", "brev", "ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt", "tanh")
_FLOAT = re.compile(r"(?:add|sub|mul|fma|mad)\.(?:\w+\.)*f(?:32|16x2|16)$")
_DOUBLE = re.compile(r"\w+\.(?:\w+\.)*f64$")
_WIDE = re.compile(r"(?:add|sub|and|or|xor|shl|shr|setp|selp|min|max)\.(?:\w+\.)*[bsu]64$")


@dataclass
class Instruction:
    """One instruction of PTX."""

    op: str
    key: Key | None  # what the profile counts of it
    _: KW_ONLY
    bytes: int  # by a lane
    target: tuple[str, ...]  # registers
    sources: tuple[str, ...]
    operands: str = ""
    is_guarded: bool = False  # by a predicate
    is_merged: bool = False  # into another load

    @property
    def space(self) -> str:
        """The memory that it accesses."""
        return self.key[2] if self.key else "local" if ".local" in self.op else ""

    @property
    def weight(self) -> int:
        """Its weight in its line: compilers merge neighbouring accesses into wider ones."""
        return 1 if self.key and self.key[2] == "barrier" else self.bytes

    @property
    def takes_turn(self) -> bool:
        """Whether it takes a turn in L1 of its own."""
        if self.key and self.key[2] == "barrier":
            return self.op.startswith("shfl")
        return not self.is_merged

    def cost(self) -> int:
        """How many instructions of a GPU it becomes."""
        if self.is_merged or self.op.startswith(_FREE):
            return 0
        if self.op in _SEVERAL:
            return _SEVERAL[self.op]
        if self.op == "add.s64" and not self.sources[1:]:
            return 0  # a constant offset is part of the access
        return 2 if _WIDE.match(self.op) and self.op != "add.s64" else 1

    def unit(self) -> str:
        """The part of a multiprocessor that executes it."""
        if self.key or self.space or self.op.startswith(("bra", "bar", "ret", "exit")):
            return "other"
        if _DOUBLE.match(self.op):
            return "double"
        if self.op.startswith(_SLOW):
            return "slow"
        return "float" if _FLOAT.match(self.op) else "integer"


@dataclass
class Block:
    """A basic block: it is entered at its beginning and left at its end."""

    instructions: list[Instruction] = field(default_factory=list)
    depth: int = 0  # in loops
    back: int | None = None  # the first block of the loop that it ends, if that has none inside
    is_joined: bool = False  # with the one before it: a short condition becomes a predicate

    @property
    def is_short(self) -> bool:
        """Whether the assembler predicates it rather than jumping over it."""
        length = sum(one.cost() for one in self.instructions)
        return length <= SHORT and not self.barriers()

    def counts(self) -> Counter[str]:
        """Its instructions by the unit that executes them; those to local memory as "local"."""
        result: Counter[str] = Counter()
        for one in self.instructions:
            result[one.unit()] += one.cost()
            if one.space == "local":
                result["local"] += one.bytes // 4
        return result

    def is_taken(self, lines: Collection[tuple[str, int]]) -> bool:
        """Whether all lines on which it accesses memory were executed.

        Asynchronous copies are written in PTX: on the CPU device, other lines do that.
        """
        sure = (one for one in self.instructions if not one.is_guarded)
        accesses = (one.key for one in sure if not one.op.startswith("cp."))
        return all(key[:2] in lines for key in accesses if key and key[2] != "barrier")

    def barriers(self) -> int:
        """How many barriers of a thread block it has."""
        return sum(one.key is not None and one.key[2:] == BARRIER for one in self.instructions)


WORD, WIDTHS = 4, (4, 2)  # bytes; words of a merged load
LARGEST = 128  # of the alignments that count; an array is assumed to have the largest
_ADDRESS = re.compile(r"\[([%\w$]+)(?:\+(-?\d+))?\]")
_LOAD = re.compile(r"ld\.(?:volatile\.)?shared\.[busf]32$")


def merge(blocks: Iterable[Block]) -> None:
    """Mark the loads that become part of another one."""
    blocks = list(blocks)
    alignments = _Alignments(one for block in blocks for one in block.instructions)
    for block in blocks:
        near: dict[str, dict[int, Instruction]] = defaultdict(dict)  # by base and offset
        for one in block.instructions:
            match = _ADDRESS.search(one.operands)
            if match and _LOAD.match(one.op):
                near[match[1]].setdefault(int(match[2] or 0), one)
            elif one.key and one.space in ("shared", "barrier"):
                _join(near, alignments)
                near.clear()
        _join(near, alignments)


def _join(near: dict[str, dict[int, Instruction]], alignments: _Alignments) -> None:
    for base, loads in near.items():
        for width in WIDTHS:
            size = width * WORD
            for offset in sorted(loads):
                group = [loads.get(offset + WORD * i) for i in range(width)]
                if offset % size or alignments.of(base) % size or None in group:
                    continue
                for i, one in enumerate(group):
                    if one and i:
                        one.is_merged = True
                    del loads[offset + WORD * i]


class _Alignments:
    """What the address in a register is a multiple of."""

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self._made: dict[str, list[Instruction]] = defaultdict(list)
        for one in instructions:
            for name in one.target:
                self._made[name].append(one)
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        """A power of two, for a register, a number or an array."""
        if re.fullmatch(r"-?\d+", text):
            return int(text) & -int(text) or LARGEST
        if not text.startswith("%"):
            return LARGEST
        if text not in self._known:
            self._known[text] = LARGEST  # while it depends on itself, in a loop
            made = self._made.get(text, [])
            self._known[text] = min(map(self._result, made)) if made else 1
        return self._known[text]

    def _result(self, one: Instruction) -> int:
        _, *names = [part.strip() for part in one.operands.split(",")]
        each = [self.of(name) for name in names]
        if one.op.startswith(("mul.lo", "mul.wide", "mad.lo")):
            return min(LARGEST, each[0] * each[1], *each[2:])
        if one.op.startswith("shl") and names[1].isdigit():
            return min(LARGEST, each[0] << int(names[1]))
        if one.op.startswith("and"):
            return max(each)
        if one.op.startswith(("mov", "cvt", "add", "sub", "or.", "xor", "selp", "min", "max")):
            return min(each[:2])
        return 1
