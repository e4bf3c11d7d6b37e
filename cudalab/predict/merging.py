"""Loads that nvcc's assembler merges: neighbouring words of shared memory, read by one lane.

It merges loads where it can prove that their address is a multiple of their size. A wavefront of
four merged words serves 8 lanes, and so does one of single words that lie four apart: a merged load
has as many wavefronts as each of its parts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from cudalab.predict.instructions import Block, Instruction

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
