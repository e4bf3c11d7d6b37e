"""Adds to a kernel's assembly, for the check build, the place from which each call is made.

The compiler puts a call of a hook before every access to memory and at the start of every basic
block. The hook knows its return address; the tables added here say which line that is, whether the
block ends in a branch, and how many floating-point operations it holds. So neither debug
information nor a tool that reads it is needed, and inlined code is no special case.

Each shared array is followed by an unused zone, so that running over its end does not hit the next
array unnoticed.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field

ZONE_BYTES = 256  # behind each shared array
HEADER = "cudalab_cpu.h"  # what happens there belongs to the line that called it
RUNTIME = "/cpu/runtime/"  # as in the headers that it includes, and those of whole programs
# What happens in the code of these libraries belongs to the line that called it, but is observed.
LIBRARIES = re.compile(r"/cpu/runtime/libraries/|/include/cccl/")

# Flags of a site; check_sites.h has the same.
IS_BLOCK, IS_HEADER, IS_BRANCH, IS_END, IS_LIBRARY = 1, 2, 4, 8, 16

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_FUNCTION = re.compile(r"\s*\.type\s+[^\s,]+,\s*[@%]function")
_SECTION = re.compile(r"\s*\.(?:section|text|data|bss)\b")
_THREAD_LOCAL = re.compile(r"\s*\.section\s+\.t(?:bss|data)\b")
_SPACE = re.compile(r"\s*\.(?:zero|skip|space)\s")
_LABEL = re.compile(r"(\.?\w+):")
_INSTRUCTION = re.compile(r"\s+[a-z]")
_CALL = re.compile(r"\s+(?:rex64\s+)?(?:callq?|blr?)\s+\*?([\w.%()]+)")
# The label is empty where the jump goes to one of several places.
_JUMP_IF = re.compile(
    r"\s+(?:(?:j(?!mp)[a-z]+|b\.[a-z]+|cbn?z|tbn?z)\s+(?:[^,]+,\s*)*(\.?\w+)|jmpq?\s+\*|br\s+x)"
)
_JUMP = re.compile(r"\s+(?:jmpq?|b)\s+(\.?\w+)")
_RETURN = re.compile(r"\s+(?:rep\s+)?(?:retq?|ud2|brk)\b")
_FLOAT = re.compile(
    r"\s+(?:v?(?P<x86>add|sub|mul|div|sqrt|fn?m(?:add|sub)[123]+)s(?P<x86_width>[sd])\s"
    r"|f(?P<arm>add|sub|mul|div|sqrt|madd|msub|nmadd|nmsub)\s+(?P<arm_width>[sd])\d)"
)
_FUSED = re.compile(r"f?n?m(?!ul)")  # a multiplication and an addition
# Operations on float and double for which some compilers have an instruction and others a call.
_MATH = {"sqrtf": (1, 0), "sqrt": (0, 1), "fmaf": (2, 0), "fma": (0, 2)}
_BLOCK_HOOK, _LEAVE_HOOK = "__sanitizer_cov_trace_pc", "__tsan_func_exit"


@dataclass
class _Site:
    """A call, identified by the label after it."""

    number: int  # from 1
    file: int
    line: int
    function: int
    _: KW_ONLY
    flags: int = 0
    branch: tuple[int, int] = (0, 0)  # file and line of the last conditional jump of the block
    floats: int = 0
    doubles: int = 0
    head: int = 0  # site of the block whose condition this block goes on with


@dataclass
class _Block:
    """A basic block: from one call of its hook to the next."""

    site: _Site
    position: int  # in the order of the listing
    _: KW_ONLY
    calls: int = 0
    jumps_if: set[str] = field(default_factory=set)  # where its conditional jumps go
    jumps: str | None = None  # where its end goes
    ends: bool = False  # no way leads from its end to the next block
    returns: bool = False  # it leaves the function

    def take(self, row: str, place: tuple[int, int]) -> None:
        """Record the facts about an instruction of the block."""
        call = _CALL.match(row)
        if match := _FLOAT.match(row):
            count = 2 if _FUSED.match(match["x86"] or match["arm"]) else 1
            single = "s" in (match["x86_width"], match["arm_width"])
            self._add_operations(count if single else 0, 0 if single else count)
        elif call and (counts := _MATH.get(call[1].partition("@")[0])):
            self._add_operations(*counts)
        elif self.ends:
            return  # unreachable code
        elif jump := _JUMP_IF.match(row):
            self.site.branch = place
            self.jumps_if.add(jump[1] or "")
        elif jump := _JUMP.match(row):
            self.jumps, self.ends = jump[1], True
        elif _RETURN.match(row):
            self.ends = self.returns = True
        elif call and not call[1].startswith(_LEAVE_HOOK):
            self.calls += 1

    def rejoin(self, labels: set[str]) -> None:
        """Forget jumps inside the block: the conversion of unsigned to float has them at times."""
        self.jumps_if -= labels
        if self.jumps in labels:
            self.jumps, self.ends = None, False

    def _add_operations(self, floats: int, doubles: int) -> None:
        self.site.floats += floats
        self.site.doubles += doubles


class _Listing:
    """The rows of an assembly file, read one after another."""

    def __init__(self, sources: set[str]) -> None:
        self.sources = sources
        self.rows: list[str] = []
        self.files: dict[int, str] = {}
        self.libraries: set[int] = set()  # those of the files
        self.sites: list[_Site] = []
        self.blocks: list[_Block] = []
        self.starts: dict[str, int] = {}  # label -> the next block that begins behind it
        self._pending: set[str] = set()  # labels without code behind them so far
        self._place = (0, 0)  # file and line
        self._function = 0
        self._in_block = self._thread_local = False

    def read(self, row: str) -> None:
        """Copy a row, and add labels or zones after it."""
        self.rows.append(row)
        if _INSTRUCTION.match(row):
            self._instruction(row)
        elif match := _LABEL.match(row):
            self.starts[match[1]] = len(self.blocks)
            self._pending.add(match[1])
        elif match := _LOC.match(row):
            if match[2] != "0":  # 0: code that belongs to no line
                self._place = (int(match[1]), int(match[2]))
        elif match := _FILE.match(row):
            self.files[int(match[1])] = self._file_name(match[2], match[3])
            if LIBRARIES.search("/".join(filter(None, match.groups()[1:]))):
                self.libraries.add(int(match[1]))
        elif _FUNCTION.match(row):
            self._function, self._in_block = self._function + 1, False
        elif _SECTION.match(row):
            self._thread_local = _THREAD_LOCAL.match(row) is not None
        elif self._thread_local and _SPACE.match(row):
            self.rows.append(f"\t.zero\t{ZONE_BYTES}")

    def _instruction(self, row: str) -> None:
        call = _CALL.match(row)
        starts_block = call is not None and call[1].startswith(_BLOCK_HOOK)
        if self._in_block and not starts_block:
            self.blocks[-1].rejoin(self._pending)
            self.blocks[-1].take(row, self._place)
        self._pending.clear()
        if call is None:
            return
        site = _Site(len(self.sites) + 1, *self._place, self._function)
        file = self.files.get(site.file, "")
        if file.endswith(HEADER) or RUNTIME in file:
            site.flags |= IS_HEADER
        if site.file in self.libraries:
            site.flags |= IS_HEADER | IS_LIBRARY
        if starts_block:
            site.flags |= IS_BLOCK
            self.blocks.append(_Block(site, len(self.blocks)))
            self._in_block = True
        self.rows.append(f".Lcudalab_site_{site.number}:")
        self.sites.append(site)

    def _file_name(self, first: str, second: str | None) -> str:
        """The name as a #line directive gave it; compilers may have split off its folder."""
        if second is None:
            return first
        joined = f"{first.rstrip('/')}/{second}"
        return joined if joined in self.sources else second


def annotate(text: str, sources: set[str]) -> str:
    """Add labels behind calls, the tables, and the zones behind shared arrays.

    `sources` are the names that #line directives give to files.
    """
    listing = _Listing(sources)
    for row in text.splitlines():
        listing.read(row)
    _classify(listing.blocks, listing.starts)
    return "\n".join(listing.rows + _tables(listing.sites, listing.files)) + "\n"


def _classify(blocks: list[_Block], starts: dict[str, int]) -> None:
    """Mark the blocks that end in a branch in a GPU's sense, and those that only leave.

    A jump that only chooses between values, with no memory access and no call on either path, is
    not a branch: a GPU computes both values and selects one. Some compilers do so too, others jump.
    """
    leaving: set[int] = set()
    for block in reversed(blocks):  # from the ends backwards
        if block.jumps_if and not _only_chooses(block, blocks, starts):
            block.site.flags |= IS_BRANCH
        if not block.calls and (block.returns or _ways(block, blocks, starts) <= leaving):
            leaving.add(block.position)
            block.site.flags |= IS_END
    for block in blocks:
        if block.site.flags & IS_BRANCH and not block.site.head:
            for part in _parts(block, blocks, starts):
                part.site.head = block.site.number


def _parts(head: _Block, blocks: list[_Block], starts: dict[str, int]) -> list[_Block]:
    """The blocks that evaluate the rest of a condition, such as `b` of `a && b`.

    They do nothing else, belong to the same line, and have two ways out between them.
    """
    tested: list[_Block] = []
    ways = _ways(head, blocks, starts)
    whole = 0  # how many of those make up the condition
    while True:
        if len(ways) == 2:  # true and false
            whole = len(tested)
        ahead = [way for way in ways if way > head.position and blocks[way] not in tested]
        parts = [way for way in ahead if _evaluates(blocks[way], head)]
        if not parts:
            return tested[:whole]
        block = blocks[min(parts)]
        tested.append(block)
        ways = ways - {block.position} | _ways(block, blocks, starts)


def _evaluates(block: _Block, head: _Block) -> bool:
    """Whether a block may be a part of the condition that begins in `head`."""
    place = block.site.branch if block.jumps_if else (block.site.file, block.site.line)
    return block.calls == 0 and place == head.site.branch


def _only_chooses(block: _Block, blocks: list[_Block], starts: dict[str, int]) -> bool:
    """Whether all ways from the block meet again before any other work."""
    ways = _ways(block, blocks, starts)
    while len(ways) > 1:
        if min(ways) <= block.position:
            return False  # a loop, or unknown
        block = blocks[min(ways)]  # compilers lay out blocks before those that they lead to
        if block.calls:
            return False
        ways = ways - {block.position} | _ways(block, blocks, starts)
    return -1 not in ways


def _ways(block: _Block, blocks: list[_Block], starts: dict[str, int]) -> set[int]:
    """The positions of the blocks that follow; -1: unknown."""
    ways = {starts.get(label, -1) for label in block.jumps_if}
    if block.jumps:
        ways.add(starts.get(block.jumps, -1))
    elif not block.ends:
        ways.add(block.position + 1)
    return {way if way < len(blocks) else -1 for way in ways} or {-1}


def _tables(sites: list[_Site], files: dict[int, str]) -> list[str]:
    """The tables of sites and file names, as check_sites.h declares them."""
    index = {number: position for position, number in enumerate(sorted(files))}
    rows = ['\t.section\t.data.rel.ro,"aw"', "\t.p2align\t3", *_exported("cudalab_check_sites")]
    for s in sites:
        branch = index.get(s.branch[0], 0), s.branch[1]
        operations = s.floats, s.doubles
        values = index.get(s.file, 0), s.line, s.flags, *branch, *operations, s.function, s.head
        rows.append(f"\t.quad\t.Lcudalab_site_{s.number}")
        rows.append("\t.long\t" + ", ".join(map(str, values)))
        rows.append("\t.p2align\t3")
    rows += [*_exported("cudalab_check_num_sites"), f"\t.quad\t{len(sites)}"]
    rows += _exported("cudalab_check_files")
    rows += [f"\t.quad\t.Lcudalab_file_{position}" for position in index.values()]
    rows += [*_exported("cudalab_check_num_files"), f"\t.quad\t{len(files)}"]
    rows.append('\t.section\t.rodata.cudalab,"a"')
    for number, position in index.items():
        rows.append(f".Lcudalab_file_{position}:")
        rows.append("\t.byte\t" + ", ".join(str(byte) for byte in files[number].encode() + b"\0"))
    return rows


def _exported(symbol: str) -> list[str]:
    return [f"\t.globl\t{symbol}", f"{symbol}:"]
