"""Adds the hooks that g++ leaves out: of objects that functions take and return in registers.

With -fsanitize=thread an assignment has hooks, but not what else g++ does with an object in memory:
load it as an argument, and store it as the result of a call. clang has hooks there, too. This knows
the instructions of x86-64 only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CALL = re.compile(r"\s+(?:rex64\s+)?callq?\s+\*?([\w.%()]+)")
_HOOK = re.compile(r"__(?:tsan|sanitizer|ubsan)_")
_LOAD_HOOK = re.compile(r"__tsan_(?:\w*_)?read(?:(\d+)|_range)(?:@|$)")
_ADDRESS_OF_SHARED = "__tls_get_addr"
_SIZE_OF_RANGE = re.compile(r"\s+movl\s+\$(\d+), %esi$")
_ELSEWHERE = re.compile(r"(?:\.L\d+|\w+):|\s+j\w+\s|\s+ret")  # what is jumped to, and jumps
# What lies in memory, but not in the frame of the function.
_FAR = r"(?P<offset>-?\d*)(?P<base>\((?!%rbp|%rsp|%rip)[^)]*\))"
_MOVES = r"\s+v?mov(?P<type>b|w|l|q|[sz][bw][lq]|d|ss|sd|lps|ups|aps|dqu|dqa)\s+"
_STORE = re.compile(rf"{_MOVES}%\w+, {_FAR}$")
_LOAD = re.compile(rf"(?:{_MOVES}|\s+push(?P<pushed>q)\s+){_FAR}(?:, %\w+)?$")
_LOADS = re.compile(rf"\s+(?!lea|call|push)\w+\s+(?:%fs:\S*\(|{_FAR},)")
_BYTES = {
    "b": 1,
    "w": 2,
    "zbl": 1,
    "zwl": 2,
    "sbl": 1,
    "swl": 2,
    "l": 4,
    "d": 4,
    "ss": 4,
    "q": 8,
    "sd": 8,
    "lps": 8,
}  # others: 16
_SAVED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")


class _Piece(NamedTuple):
    """A part of an object that one instruction moves."""

    base: str
    begin: int
    end: int

    @staticmethod
    def of(move: re.Match[str]) -> _Piece:
        begin = int(move["offset"] or 0)
        kind = move["type"] or move["pushed"]
        return _Piece(move["base"], begin, begin + _BYTES.get(kind, 16))


class _Reader:
    """Reads the rows of a listing, and writes them with the hooks that are missing."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = rows
        self.made: list[str] = []
        self.done = 0  # the row behind the object that had its hook last
        self.behind_call = False
        self.hooked = 0  # bytes that the next loads read, which have had their hook
        self.size_of_range = 0

    def read(self, number: int) -> None:
        """Copy a row, and what it needs before it."""
        row = self.rows[number]
        if "(" not in row and (size := _SIZE_OF_RANGE.match(row)):
            self.size_of_range = int(size[1])
        elif call := _CALL.match(row):
            self._call(call[1])
        elif _ELSEWHERE.match(row):
            self.behind_call, self.hooked = False, 0
        elif self.behind_call and _STORE.match(row):
            self._move(number, _STORE, "write")
        elif load := _LOAD.match(row):
            if self.hooked:
                _, begin, end = _Piece.of(load)
                self.hooked = max(self.hooked - (end - begin), 0)
            elif _call_follows(self.rows, number):
                self._move(number, _LOAD, "read")
        elif _LOADS.match(row):
            self.hooked = 0
        self.made.append(row)

    def _call(self, called: str) -> None:
        if called.startswith(_ADDRESS_OF_SHARED):
            return
        is_hook = _HOOK.match(called) is not None
        if load := _LOAD_HOOK.match(called):
            self.hooked += int(load[1] or self.size_of_range)
        elif not is_hook:
            self.hooked = 0
        self.behind_call = not is_hook

    def _move(self, number: int, moves: re.Pattern[str], kind: str) -> None:
        if number >= self.done:
            pieces = _pieces(self.rows, number, moves)
            self.done = number + len(pieces)
            self.made += _hook(pieces, kind)


def with_hooks(rows: Sequence[str]) -> list[str]:
    """The rows of a listing by g++, with hooks before the objects that calls take and return."""
    reader = _Reader(rows)
    for number in range(len(rows)):
        reader.read(number)
    return reader.made


def _pieces(rows: Sequence[str], number: int, moves: re.Pattern[str]) -> list[_Piece]:
    """The pieces of one object from a row on: they adjoin."""
    pieces: list[_Piece] = []
    for row in rows[number:]:
        move = moves.match(row)
        if move is None:
            break
        piece = _Piece.of(move)
        if pieces and (
            piece.base != pieces[-1].base
            or (piece.begin != pieces[-1].end and piece.end != pieces[-1].begin)
        ):
            break
        pieces.append(piece)
    return pieces


def _call_follows(rows: Sequence[str], number: int) -> bool:
    """Whether the next call, before any other place is reached, is one of a function."""
    for row in rows[number:]:
        if call := _CALL.match(row):
            if not call[1].startswith(_ADDRESS_OF_SHARED):
                return not _HOOK.match(call[1])
        elif _ELSEWHERE.match(row):
            return False
    return False


def _hook(pieces: Sequence[_Piece], kind: str) -> Iterable[str]:
    """A call that changes no register that may be in use, wherever the stack ends."""
    begin, end = min(each.begin for each in pieces), max(each.end for each in pieces)
    yield from (f"\tpushq\t%{register}" for register in _SAVED)
    yield from (f"\tleaq\t{begin or ''}{pieces[0].base}, %rdi", f"\tmovl\t${end - begin}, %esi")
    yield from ("\tmovq\t%rsp, %rax", "\tsubq\t$144, %rsp", "\tandq\t$-16, %rsp")
    yield "\tmovq\t%rax, 128(%rsp)"
    yield from (f"\tmovups\t%xmm{i}, {16 * i}(%rsp)" for i in range(8))
    yield f"\tcall\t__tsan_{kind}_range@PLT"
    yield from (f"\tmovups\t{16 * i}(%rsp), %xmm{i}" for i in range(8))
    yield "\tmovq\t128(%rsp), %rsp"
    yield from (f"\tpopq\t%{register}" for register in reversed(_SAVED))
