"""The rows of a kernel's assembly, as check mode reads and changes them."""

import re
from collections import Counter
from dataclasses import dataclass, replace

from cudalab.backends.cpu import layout
from cudalab.backends.cpu.assembly.control_flow import (
    BLOCK_HOOK,
    BOUNDS_HOOK,
    ENTRY_HOOK,
    LEAVE_HOOK,
    LOOKS,
    Block,
    Site,
    may_stop,
)
from cudalab.language.source import QUOTED, unquoted

ZONE_BYTES = 256  # before each shared array and variable; behind each shared array and table
RUNTIME = "/cpu/runtime/"  # what happens in its headers belongs to the line that called it
# What happens in the code of these, and in headers of the system, belongs to the line that called
# it, but is observed: libraries, types of numbers, and what the rewriter puts around the user's
# accesses.
LIBRARIES = re.compile(
    r"/cpu/runtime/optional/cccl/|/cpu/runtime/(?:optional/\w+/)?include/"
    r"(?:cuda_fp16|cuda_bf16|cuComplex|curand\w*|cudalab/(?:arithmetic|narrow|curand)\w*)\.h"
)

_FILE = re.compile(rf"\s*\.file\s+(\d+)\s+{QUOTED}(?:\s+{QUOTED})?")
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
_FUNCTION = re.compile(r"\s*\.type\s+([^\s,]+),\s*[@%]function")
_SECTION = re.compile(r"\s*\.(?:section|text|data|bss)\b")
_THREAD_LOCAL = re.compile(r"\s*\.section\s+\.t(?:bss|data)\b")
_VARIABLES = re.compile(  # in builtins.h, and those that no section can hold
    r"\s*\.section\s+\"?(?:cudalab_(?:device|constant|managed)\b|\.(?:bss|data|rodata)\.)"
)
_TABLES = re.compile(r"\s*\.section\s+\"?\.(?:rodata|data\.rel\.ro)\.")  # what never changes
_ALIGN = re.compile(r"\s*\.(?:p2|b)?align\s")
_SPACE = re.compile(r"\s*\.(?:zero|skip|space)\s")
_LABEL = re.compile(r"(\.?\w+):")
_INSTRUCTION = re.compile(r"\s+[a-z]")
_CALL = re.compile(r"\s+(?:rex64\s+)?(?:callq?|blr?)\s+\*?([\w.%()]+)")
_SPILLS = (" Spill", " Folded Spill")  # to any place
# Where a block begins that g++ has added later than the hooks: the end of a function.
_JUMPED_TO = re.compile(r"\.L\d+")
# The register that holds a call's result.
_RESULT = re.compile(r"%[re]?ax\b|%[ad]l\b|%xmm0\b|\b[wx]0\b|\b[sd]0\b")
_READERS = ("st", "cmp", "tst", "cbz", "cbnz", "tbz", "tbnz")  # on ARM; others write the first
# The address of an array in the frame of its function.
_OF_FRAME = re.compile(r"\(%r[bs]p,|\blea\w*\s+-?\d*\(%r[bs]p\)|\badd\s+x\d+, (?:sp|x29),")
_ADDS = re.compile(r"\badd|\blea\w*\s+\S*\(%r\w+,")
# An access to memory that is not the frame of a function: the address is in a register, or a name.
_FAR = re.compile(
    r"\s+(?!lea|call|jmp|push|nop)\w+\s.*(?:\(%r(?!bp|sp|ip)\w+|(?<![.\w@])[A-Za-z_][\w$]*\(%rip\))"
    r"|\s+(?:ld|st)\w+\s.*\[x(?!29\b)\d+"
)
# Where a function's arguments lie, if it aligns its frame: x86-64's register, and its copies.
_ARGUMENTS = re.compile(r"\tleaq\t\d+\(%r[bs]p\), (%r\w+)")
_COPY = re.compile(r"\tmovq\t(%r\w+), (%r\w+)")
_INTO = re.compile(r".*, (%r\w+)$")
# The address of a variable.
_OF_NAME = re.compile(
    r"\blea\w*\s+(?:\d+\+)?([A-Za-z_][\w.$]*)(?:[+]\d+)?\(%rip\)|:lo12:([A-Za-z_][\w.$]*)"
)
_BY_NAME = re.compile(r"(?:\d+\+)?([A-Za-z_][\w.$]*)(?:[+]\d+)?\(%rip\)")
_OF_TABLE = re.compile(r"\.L\d+\(%rip\)|:lo12:\.L\d+")  # of jumps, which a switch makes
# A hook before an access: the bytes that it is told of, if it is one of that many.
_HOOK = re.compile(
    r"__tsan_(?:(?:unaligned_)?(?:volatile_)?(?P<kinds>(?:read_?|write)+)(?P<bytes>\d+)?|vptr_\w+)"
)
_POINTER_BYTES = 8
_ANY_NUMBER = 1 << 30  # of bytes
# What an instruction that moves something moves, by the end of its name.
_MOVES = re.compile(r"\s+v?(?:mov[sz]?|add|sub|cmp|and|or|xor|test)([bwlq])[lq]?\s")
_ADDRESS = re.compile(r"[^\s,]*\([^)]*\)|\[[^\]]*\]")
_BYTES = {"b": 1, "w": 2, "l": 4, "q": 8}
# What kernels of labs call of the C library, and what observes it. Programs have heap.cpp.
_OBSERVED = {name: f"__tsan_{name}" for name in ("memcpy", "memmove", "memset")}
_OBSERVED |= dict.fromkeys(("malloc", "_Znwm", "_Znam"), "cudalab_heap_allocate")
_OBSERVED |= dict.fromkeys(("free", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm"), "cudalab_heap_free")
_PLAIN = re.compile(r"__tsan_(unaligned_)?((?:read|write)\d+)$")
# What kernels/locals.h has: the function that calls it has local variables that are known.
_LOCALS = re.compile(
    r"_ZN7cudalab(?:9LocalZone|10LocalValue|11LocalObject|13LocalVariable|14cudalab_begins|"
    r"13cudalab_given)"
)
_EXCHANGE = re.compile(r"_Z\d+atomicExch")
# atomicAdd of an int or unsigned; and its second argument, if that is the constant 1.
_ADDITION = re.compile(r"_Z\d+atomicAdd(?:P([ij])\1|_(?:block|system)I([ij])J[ij]E)")
_ONE = re.compile(r"movl\s+\$1, %esi(?!.*, ?%[re]si\b)|mov\s+w1, ?#?1\b(?!.*\s[wx]1,)")


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What the tables of the files before, which are linked to one library, hold."""

    sites: int = 0
    files: tuple[str, ...] = ()  # the names that sources have there
    functions: int = 0


@dataclass
class _Index:
    """A check of an index: whether the array whose access follows is in the function's frame.

    g++ computes the index once more, with what it reads.
    """

    check: Site
    column: str  # of the access, too
    in_frame: bool = False  # what has been addressed since the last read, or call of a function
    at_first: bool | None = None  # before the first call

    def is_decided(self, called: str, column: str) -> bool:
        """Take the next call; set the flag of the check if that decides it."""
        if self.at_first is None:
            self.at_first = self.in_frame
        hook = _HOOK.match(called)
        is_access = hook is not None and column == self.column
        if not is_access and (hook is None or hook["kinds"] == "read"):
            self.in_frame = False  # what is stored is computed, or read, behind the check
            return False
        self.decide(is_access=is_access)
        return True

    def decide(self, *, is_access: bool = False) -> None:
        """Set the flag of the check; `is_access` says that the array is known to be read now."""
        in_frame = self.in_frame or (bool(self.at_first) and not is_access)
        self.check.flags |= layout.IS_LOCAL if in_frame else 0


class Listing:
    """The rows of an assembly file, read one after another."""

    def __init__(self, sources: set[str], before: Counts, *, is_program: bool = False) -> None:
        self.sources, self.is_program, self.before = sources, is_program, before
        self.rows: list[str] = []
        self.files: dict[int, str] = {}
        self.headers: dict[int, int] = {}  # the flags of those of the files that are ours
        self.sites: list[Site] = []
        self.blocks: list[Block] = []
        self.functions: dict[str, int] = {}  # name -> number
        self.hooks: dict[int, Site] = {}  # number of a row -> the call that begins a block there
        self.starts: dict[str, int] = {}  # label -> the next block that begins behind it
        self._pending: set[str] = set()  # labels without code behind them so far
        self._place = (0, 0)  # file and line
        self._column = ""
        self._function = before.functions
        self._in_block = self._thread_local = self._variables = self._has_locals = False
        self._in_tables = self._tables = False  # in a section of those; behind one of them
        self._fixed: set[str] = set()  # names of what never changes
        self._indexed: list[tuple[Site, str]] = []  # by checks of an index, and what is named there
        self._alignment = ""  # the last such row of the section
        self._address = ""  # the instructions since the last call
        # A call whose result has not been used so far, and the flag that it gets if that is so.
        self._exchange: Site | None = None
        self._unused = layout.RESULT_UNUSED
        self._index: _Index | None = None  # a check whose array has not been accessed so far
        self._arguments = set[str]()  # registers that lead to those of the function
        self._hooked = 0  # bytes of the next accesses, of which hooks have been told
        # Of the accesses since the last hook: to write a bit field is to read it, too.
        self._addresses: set[str] = set()
        # By function, file and line: the blocks of accesses of which no hook has been told, and the
        # names of what is accessed, if the instruction has one.
        self._blind: dict[tuple[int, int, int], list[tuple[Site, str]]] = {}

    def read(self, row: str) -> None:
        """Copy a row, and add labels or zones."""
        self.rows.append(row)
        if _INSTRUCTION.match(row):
            self._instruction(row)
        elif match := _LABEL.match(row):
            self._label(match[1])
        elif match := _LOC.match(row):
            if match[2] != "0":  # 0: code that belongs to no line
                self._place, self._column = (int(match[1]), int(match[2])), match[3]
        elif match := _FILE.match(row):
            names = unquoted(match[2]), match[3] and unquoted(match[3])
            self.files[int(match[1])] = self._file_name(*names)
            self.headers[int(match[1])] = self._header_flags(*names)
        elif match := _FUNCTION.match(row):
            self._function, self._in_block, self._has_locals = self._function + 1, False, False
            self._arguments.clear()
            self._end_index()
            self.functions[match[1]] = self._function
        elif _SECTION.match(row):
            self.rows[-1:-1] = [f"\t.zero\t{ZONE_BYTES}"] * self._tables
            self._tables = False
            self._thread_local = _THREAD_LOCAL.match(row) is not None
            self._variables = _VARIABLES.match(row) is not None
            self._in_tables = _TABLES.match(row) is not None
            self._alignment = ""
        elif _ALIGN.match(row):
            self._alignment = row
        elif self._thread_local and _SPACE.match(row):
            self.rows.append(f"\t.zero\t{ZONE_BYTES}")

    def _label(self, name: str) -> None:
        self.starts[name] = len(self.blocks)
        self._pending.add(name)
        if (self._variables or self._thread_local) and not name.startswith("."):
            self.rows[-1:] = [f"\t.zero\t{ZONE_BYTES}", self._alignment, self.rows[-1]]
            if self._in_tables:
                self._tables = True
                self._fixed.add(name)

    def _instruction(self, row: str) -> None:
        call = _CALL.match(row)
        called = call[1] if call else None
        name = called.partition("@")[0] if called else ""
        if called and not self.is_program and name in _OBSERVED:
            self.rows[-1] = row = row.replace(name, _OBSERVED[name])
            called = called.replace(name, _OBSERVED[name])
        starts_block = called is not None and called.startswith(BLOCK_HOOK)
        if self._in_block and not starts_block:
            self._continue_block(row, called)
        self._pending.clear()
        self._look_behind_calls(row, called)
        if called is None:
            self._address += "" if row.endswith(_SPILLS) else row
            of_arguments = any(f"({register})" in row for register in self._arguments)
            of_table = _OF_TABLE.search("".join(self.rows[-4:]))
            if _FAR.match(row) and not of_table and not of_arguments:
                self._access(row)
            self._find_arguments(row)
            return
        self._take_hook(called)
        number = self.before.sites + len(self.sites) + 1
        site = Site(number, *self._place, self._function)
        site.flags |= self.headers.get(site.file, 0)
        self._read_hook(site, called)
        if self._in_block:
            self.blocks[-1].sites.append(site)
            in_header = site.flags & (layout.IS_HEADER | layout.IS_LIBRARY) == layout.IS_HEADER
            if may_stop(called, in_header=in_header):
                self.blocks[-1].stops.append(called)
            # A hook of the user's is called whenever its block is entered.
            block = self.blocks[-1]
            if _HOOK.match(called) and not site.flags and block.site.number and block.is_straight:
                site.flags |= layout.IS_ACCESS
                site.head = block.site.number
        if LOOKS.match(called):
            site.looks = self._address
        self._expect_look(site, called)
        self._address = ""
        self.rows.append(f".Lcudalab_site_{site.number}:")
        self.sites.append(site)

    def _find_arguments(self, row: str) -> None:
        """Note the registers that lead to the arguments of the function."""
        if match := _ARGUMENTS.match(row):
            self._arguments.add(match[1])
        elif (match := _COPY.match(row)) and match[1] in self._arguments:
            self._arguments.add(match[2])
        elif self._arguments and (match := _INTO.match(row)):
            self._arguments -= {match[1], match[1].removesuffix("d")}

    def _expect_look(self, site: Site, called: str) -> None:
        """Note a call of which the instructions before or behind it tell more."""
        if _EXCHANGE.match(called):
            self._exchange, self._unused = site, layout.RESULT_UNUSED
        elif _ADDITION.match(called) and _ONE.search(self._address):
            self._exchange, self._unused = site, layout.ADDS_ONE
        elif called.startswith(BOUNDS_HOOK):
            self._end_index()
            self._index = _Index(site, self._column)
        elif _HOOK.match(called) and _OF_FRAME.search(self._address):
            site.flags |= layout.IN_FRAME  # and not what a pointer leads to
            site.flags |= 0 if _ADDS.search(self._address) else layout.IS_WHOLE

    def _end_index(self) -> None:
        """Decide about a check behind which no access was seen."""
        if self._index:
            self._index.decide()
        self._index = None

    def _take_hook(self, called: str) -> None:
        """Note of how many bytes hooks have been told for the accesses that follow."""
        hook = _HOOK.match(called)
        if hook is None:
            # These only begin a block, or say where the thread's own variables are.
            is_quiet = called.startswith((BLOCK_HOOK, "__tls_get_addr"))
            is_quiet |= "tlscall" in self.rows[-1].lower()
            if not is_quiet and ".tlsdesccall" not in "".join(self.rows[-2:-1]):
                self._hooked = 0
            return
        told = int(hook["bytes"]) * (1 + (hook["kinds"] == "read_write")) if hook["bytes"] else 0
        told = told if hook["kinds"] else _POINTER_BYTES
        self._hooked = (0 if self._addresses else self._hooked) + (told or _ANY_NUMBER)
        self._addresses = set()

    def _access(self, row: str) -> None:
        """Note an access of which no hook has been told."""
        address = _ADDRESS.search(row)
        is_known = address is not None and address[0] in self._addresses
        if self._hooked or is_known:
            self._addresses.add(address[0] if address else "")
        moves = _MOVES.match(row)
        moved = _BYTES[moves[1]] if moves else self._hooked
        if not (self._hooked or is_known) and self.blocks and self.blocks[-1].site.number:
            named = _BY_NAME.search(row)
            access = self.blocks[-1].site, named[1] if named else ""
            self._blind.setdefault((self._function, *self._place), []).append(access)
        if self._hooked < _ANY_NUMBER:
            self._hooked -= min(moved, self._hooked)

    def end(self) -> None:
        """Set the flags of checks that depend on what comes behind them."""
        for check, name in self._indexed:
            check.flags |= layout.IS_FIXED if name in self._fixed else 0

    def blind(self) -> list[Site]:
        """A site for each line of a function with an access of which no hook is told.

        Of what never changes only the index matters, which a check has seen.
        """
        checked = Counter(
            (check.function, check.file, check.line)
            for check in {id(check): check for check, _ in self._indexed}.values()
            if check.flags & layout.IS_FIXED
        )
        sites = []
        for (function, file, line), accesses in self._blind.items():
            unknown = [block for block, name in accesses if name not in self._fixed]
            block = accesses[0][0]
            is_blind = len(unknown) > checked[function, file, line]
            if is_blind and block.function == function and not self.headers.get(file, 0):
                flags = layout.NO_CALL | layout.IS_BLIND
                sites.append(replace(block, file=file, line=line, flags=flags, head=block.number))
        return sites

    def _read_hook(self, site: Site, called: str) -> None:
        """Note or change the call of a hook, in the last row."""
        if called.startswith(BLOCK_HOOK):
            site.flags |= layout.IS_BLOCK
            self.hooks[len(self.rows) - 1] = site
            self.blocks.append(Block(site, len(self.blocks)))
            self._in_block = True
        elif called.startswith(LEAVE_HOOK) and self._has_locals:
            self.rows[-1] = self.rows[-1].replace(LEAVE_HOOK, "cudalab_leave")
        elif called.startswith((ENTRY_HOOK, LEAVE_HOOK)):
            self._drop(site)
        elif _LOCALS.match(called):
            self._has_locals = True
        elif match := _PLAIN.match(called):
            self._read_plain(site, called, match)

    def _read_plain(self, site: Site, called: str, hook: re.Match[str]) -> None:
        """Change the call of a hook before a plain access."""
        row, is_own = self.rows[-1], not site.flags & layout.IS_HEADER
        if is_own and not hook[1]:
            self.rows[-1] = numbered(row.replace(called, f"cudalab_{hook[2]}"), site, 1)
        elif is_own or site.flags & layout.IS_LIBRARY:
            return
        elif self.is_program or hook[2].startswith("write"):  # perhaps to a local variable
            where = "header" if self.is_program else "own"
            self.rows[-1] = row.replace(called, f"cudalab_{where}_{hook[2]}")
        else:
            self._drop(site)  # no host code calls it

    def _drop(self, site: Site) -> None:
        """Remove the call in the last row."""
        site.flags |= layout.NO_CALL
        self.rows[-1] = ""

    def _continue_block(self, row: str, called: str | None) -> None:
        block = self.blocks[-1]
        block.rejoin(self._pending)
        if any(map(_JUMPED_TO.fullmatch, self._pending - block.rejoined)):
            block = Block(Site(0, *self._place, self._function), len(self.blocks))
            self.blocks.append(block)
        block.take(row, called, self._place)

    def _look_behind_calls(self, row: str, called: str | None) -> None:
        """Find out what becomes of the result of an atomic operation, and of a checked index."""
        if self._exchange and (used := _uses_result(row, called)) is not None:
            self._exchange.flags |= 0 if used else self._unused
            self._exchange = None
        if called and called.startswith(BLOCK_HOOK):
            return
        if self._index is None:
            return
        if called is None:
            self._index.in_frame |= _OF_FRAME.search(row) is not None
            if named := _OF_NAME.search(row):
                self._indexed.append((self._index.check, named[1] or named[2]))
        elif self._index.is_decided(called, self._column):
            self._index = None

    def _header_flags(self, first: str, second: str | None) -> int:
        """The flags of the calls in a file: those in a header belong to the line that called it."""
        path = "/".join(filter(None, (first, second)))
        if RUNTIME in path and not LIBRARIES.search(path):
            return layout.IS_HEADER
        is_users = self._file_name(first, second) in self.sources
        if is_users:
            return 0
        is_ours = RUNTIME in path and "/include/" in path
        return layout.IS_HEADER | layout.IS_LIBRARY | (0 if is_ours else layout.IS_FOREIGN)

    def _file_name(self, first: str, second: str | None) -> str:
        """The name as a #line directive gave it; compilers may have split off its folder."""
        if second is None:
            return first
        joined = f"{first.rstrip('/')}/{second}"
        return joined if joined in self.sources else second


def _uses_result(row: str, called: str | None) -> bool | None:
    """Whether an instruction uses the result of the call before it; None if later ones may."""
    if called is not None:
        return False
    match = _RESULT.search(row)
    if match is None:
        return None
    behind, (mnemonic, first, *_) = row[match.end() :], row.split()
    if "%" in match[0]:  # the target comes last
        return "," in behind or not mnemonic.startswith(("mov", "lea"))
    written = first.rstrip(",") == match[0] and not mnemonic.startswith(_READERS)
    return not written or match[0] in behind


def numbered(row: str, site: Site, argument: int) -> str:
    """A call of a hook with the number of its site as an argument, from 0."""
    if "call" in row:
        return f"\tmovl\t${site.number}, %{('edi', 'esi')[argument]}\n{row}"
    high, low = divmod(site.number, 1 << 16)  # on ARM
    return f"\tmov\tw{argument}, #{low}\n\tmovk\tw{argument}, #{high}, lsl #16\n{row}"
