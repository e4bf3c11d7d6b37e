"""Hooks that g++ leaves out: of objects that are passed in registers.

With -fsanitize=thread an assignment has hooks, but not what else g++ does with an object in memory:
load it as an argument, and store it as the result of a call, or of an asm statement. clang has
hooks there, too; for g++ they are added. This knows the instructions of x86-64 and of 64-bit ARM.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_HOOK = re.compile(r"__(?:tsan|sanitizer|ubsan)_")
_BEFORE_ASM, _BEHIND_ASM = "#APP", "#NO_APP"  # around the program's own assembly
_LOAD_HOOK = re.compile(r"__tsan_(?:\w*_)?read(?:(\d+)|_range)(?:@|$)")


class _Piece(NamedTuple):
    """A part of an object that one instruction moves."""

    base: str
    begin: int
    end: int


@dataclass(frozen=True, kw_only=True)
class _Processor:
    """The instructions of a kind of processor, as g++ writes them."""

    call: re.Pattern[str]
    elsewhere: re.Pattern[str]  # what is jumped to, and jumps
    size_of_range: re.Pattern[str]  # the second argument of a hook
    # What lies in memory, but not in the frame of the function.
    store: re.Pattern[str]
    load: re.Pattern[str]
    loads: re.Pattern[str]  # in other ways
    bytes_of: Callable[[re.Match[str]], int]  # that a store or a load moves
    # A call that changes no register that may be in use, wherever the stack ends.
    hook: Callable[[str, str, int, int], Iterable[str]]  # kind, base, offset, bytes

    def called(self, rows: Sequence[str], number: int) -> str | None:
        """The function that a row calls, but for the one that knows where shared memory is."""
        call = self.call.match(rows[number])
        if call is None or call[1].startswith("__tls_get_addr"):
            return None
        return None if number and rows[number - 1].startswith("\t.tlsdesccall") else call[1]

    def piece(self, move: re.Match[str]) -> _Piece:
        """The part of an object that a store or a load moves."""
        begin = int(move["offset"] or 0)
        return _Piece(move["base"], begin, begin + self.bytes_of(move))

    def pieces(self, rows: Sequence[str], number: int, moves: re.Pattern[str]) -> list[_Piece]:
        """The pieces of one object from a row on: they adjoin."""
        pieces: list[_Piece] = []
        for row in rows[number:]:
            move = moves.match(row)
            if move is None:
                break
            piece = self.piece(move)
            if pieces and (
                piece.base != pieces[-1].base
                or (piece.begin != pieces[-1].end and piece.end != pieces[-1].begin)
            ):
                break
            pieces.append(piece)
        return pieces

    def call_follows(self, rows: Sequence[str], number: int) -> bool:
        """Whether a function, or assembly, is next, before a hook or any other place."""
        for at in range(number, len(rows)):
            if rows[at] == _BEFORE_ASM:
                return True
            if called := self.called(rows, at):
                return not _HOOK.match(called)
            if self.elsewhere.match(rows[at]):
                return False
        return False


# x86-64 ------------------------------------------------------------------------------------------

_X86_FAR = r"(?P<offset>-?\d*)(?P<base>\((?!%rbp|%rsp|%rip)[^)]*\))"
_X86_MOVES = r"\s+v?mov(?P<type>b|w|l|q|[sz][bw][lq]|d|ss|sd|lps|ups|aps|dqu|dqa)\s+"
_X86_BYTES = {
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
_X86_SAVED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")


def _hook_on_x86(kind: str, base: str, offset: int, num_bytes: int) -> Iterator[str]:
    yield from (f"\tpushq\t%{register}" for register in _X86_SAVED)
    yield from (f"\tleaq\t{offset or ''}{base}, %rdi", f"\tmovl\t${num_bytes}, %esi")
    yield from ("\tmovq\t%rsp, %rax", "\tsubq\t$144, %rsp", "\tandq\t$-16, %rsp")
    yield "\tmovq\t%rax, 128(%rsp)"
    yield from (f"\tmovups\t%xmm{i}, {16 * i}(%rsp)" for i in range(8))
    yield f"\tcall\t__tsan_{kind}_object@PLT"
    yield from (f"\tmovups\t{16 * i}(%rsp), %xmm{i}" for i in range(8))
    yield "\tmovq\t128(%rsp), %rsp"
    yield from (f"\tpopq\t%{register}" for register in reversed(_X86_SAVED))


_X86 = _Processor(
    call=re.compile(r"\s+(?:rex64\s+)?callq?\s+\*?([\w.%()]+)"),
    elsewhere=re.compile(r"(?:\.L\d+|\w+):|\s+j\w+\s|\s+ret"),
    size_of_range=re.compile(r"\s+movl\s+\$(\d+), %esi$"),
    store=re.compile(rf"{_X86_MOVES}%\w+, {_X86_FAR}$"),
    load=re.compile(rf"(?:{_X86_MOVES}|\s+push(?P<pushed>q)\s+){_X86_FAR}(?:, %\w+)?$"),
    loads=re.compile(rf"\s+(?!lea|call|push)\w+\s+(?:%fs:\S*\(|-?\d+\(%rbp,|{_X86_FAR},)"),
    bytes_of=lambda move: _X86_BYTES.get(move["type"] or move["pushed"], 16),
    hook=_hook_on_x86,
)

# 64-bit ARM --------------------------------------------------------------------------------------

_ARM_FAR = r"\[(?P<base>x(?!29\b)\d+)(?:, #?(?P<offset>-?\d+))?\]$"
_ARM_REGISTERS = r"(?P<register>[bhsdqwx])(?:\d+|zr), (?:[bhsdqwx](?:\d+|zr), )?"
_ARM_IF = "eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al"
_ARM_BYTES = {"b": 1, "h": 2, "s": 4, "w": 4, "d": 8, "x": 8, "q": 16}
_ARM_SAVED = (("x", 18, 8, 0), ("q", 8, 16, 160))  # kind, number, bytes of each, where


def _saved_on_arm(one: str, two: str) -> Iterator[str]:
    """All registers that a function may change, stored or loaded by instructions `one`, `two`."""
    for kind, number, size, where in _ARM_SAVED:
        for i in range(0, number, 2):
            yield f"\t{two}\t{kind}{i}, {kind}{i + 1}, [sp, {where + i * size}]"
    yield f"\t{one}\tx30, [sp, 144]"


def _hook_on_arm(kind: str, base: str, offset: int, num_bytes: int) -> Iterator[str]:
    yield "\tsub\tsp, sp, #288"
    yield from _saved_on_arm("str", "stp")
    change, distance = ("sub" if offset < 0 else "add"), abs(offset)
    yield f"\t{change}\tx0, {base}, #{distance & 0xFFF}"
    yield f"\t{change}\tx0, x0, #{distance & ~0xFFF}"
    yield from (f"\tmov\tx1, #{num_bytes}", f"\tbl\t__tsan_{kind}_object")
    yield from _saved_on_arm("ldr", "ldp")
    yield "\tadd\tsp, sp, #288"


_ARM = _Processor(
    call=re.compile(r"\s+blr?\s+([\w.]+)"),
    elsewhere=re.compile(rf"(?:\.L\d+|\w+):|\s+(?:b\.?(?:{_ARM_IF})?|cbn?z|tbn?z|br|ret)(?:\s|$)"),
    size_of_range=re.compile(r"\s+mov\s+[wx]1, #?(\d+)$"),
    store=re.compile(rf"\s+st(?P<pair>p)?u?r?(?P<part>[bh])?\s+{_ARM_REGISTERS}{_ARM_FAR}"),
    load=re.compile(rf"\s+ld(?P<pair>p)?u?r?s?(?P<part>[bhw])?\s+{_ARM_REGISTERS}{_ARM_FAR}"),
    loads=re.compile(r"\s+ld\w+\s+[^[:]*\[x(?!29\b)[^:]*$"),
    bytes_of=lambda move: _ARM_BYTES[move["part"] or move["register"]] * (2 if move["pair"] else 1),
    hook=_hook_on_arm,
)


# -------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the rows of a listing, and writes them with the hooks that are missing."""

    def __init__(self, rows: Sequence[str], processor: _Processor) -> None:
        self.rows, self.processor = rows, processor
        self.made: list[str] = []
        self.done = 0  # the row behind the object that had its hook last
        self.behind_call = False
        self.hooked = 0  # bytes that the next loads read, which have had their hook
        self.size_of_range = 0

    def read(self, number: int) -> None:
        """Copy a row, and what it needs before it."""
        row, processor = self.rows[number], self.processor
        if "(" not in row and (size := processor.size_of_range.match(row)):
            self.size_of_range = int(size[1])
        elif called := processor.called(self.rows, number):
            self._call(called)
        elif row == _BEHIND_ASM:
            self.behind_call, self.hooked = True, 0
        elif processor.elsewhere.match(row):
            self.behind_call, self.hooked = False, 0
        elif self.behind_call and processor.store.match(row):
            self._move(number, processor.store, "write")
        elif load := processor.load.match(row):
            if self.hooked:
                _, begin, end = processor.piece(load)
                self.hooked = max(self.hooked - (end - begin), 0)
            elif processor.call_follows(self.rows, number):
                self._move(number, processor.load, "read")
        elif processor.loads.match(row):
            self.hooked = 0
        self.made.append(row)

    def _call(self, called: str) -> None:
        is_hook = _HOOK.match(called) is not None
        if load := _LOAD_HOOK.match(called):
            self.hooked += int(load[1] or self.size_of_range)
        elif not is_hook:
            self.hooked = 0
        self.behind_call = not is_hook

    def _move(self, number: int, moves: re.Pattern[str], kind: str) -> None:
        if number >= self.done:
            pieces = self.processor.pieces(self.rows, number, moves)
            self.done = number + len(pieces)
            begin, end = min(each.begin for each in pieces), max(each.end for each in pieces)
            self.made += self.processor.hook(kind, pieces[0].base, begin, end - begin)


def with_hooks(rows: Sequence[str]) -> list[str]:
    """The rows of a listing by g++, with hooks before the objects that calls take and return."""
    reader = _Reader(rows, _X86 if any("%rsp" in row for row in rows) else _ARM)
    for number in range(len(rows)):
        reader.read(number)
    return reader.made
