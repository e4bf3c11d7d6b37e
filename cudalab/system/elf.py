"""The tables of a shared library: the symbols that it defines, and those that it imports.

A kernel's `__shared__` arrays are thread-local variables of the library (cudalab_cpu.h). Most of
them are inside functions, so only the symbol table names them. The library's imports, and the
number of functions that run when it is loaded, are in the tables that the loader reads.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_WRITABLE = 1  # a flag of a section
_SYMBOL_TABLE, _VARIABLE, _THREAD_LOCAL = 2, 1, 6
_MERGED = (2, 10)  # bindings: weak, and unique in the process
_IS_APART = re.compile(r"_ZZ|_Z\w*I\w+E$")  # in a function, or with template arguments
_RESOLVED = 10  # a kind of symbol whose address a function gives while loading
_DYNAMIC, _LOAD = 2, 1  # kinds of segments
_PLTRELSZ, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _JMPREL = 2, 4, 5, 6, 7, 8, 23  # tags
_INIT, _FINI = 12, 13
_INIT_ARRAYSZ, _FINI_ARRAYSZ, _PREINIT_ARRAYSZ, _GNU_HASH = 27, 28, 33, 0x6FFFFEF5
_RESOLVERS = (37, 1032)  # relocations that run code while loading, on x86-64 and on 64-bit ARM
# The end of the mangled name of a variable in a function: length, name, and a number if several
# have that name. The lookahead finds overlapping candidates; the length identifies the right one.
_LOCAL = re.compile(r"(?=E(\d+)(\w+)$)")


_NO_NAME = re.compile(r"[ST][0-9A-Z]*_|L[a-z]n?\d+E|_\d+")  # of C++'s encoding
_LENGTH = re.compile(r"\d+")  # of a name that follows


class Symbol(NamedTuple):
    """A function or variable that a library defines, including local ones."""

    name: str  # mangled
    is_thread_local: bool
    value: int
    num_bytes: int
    is_apart: bool  # a variable of a function, of a template, or inline
    is_fixed: bool  # a table of constants, or of functions: it never changes


@dataclass(frozen=True)
class SharedArray:
    """A `__shared__` variable."""

    name: str  # as in the source
    offset: int  # in the library's thread-local memory
    num_bytes: int
    _: KW_ONLY
    is_guard: bool = False  # not of the program: it says that a variable has been constructed
    is_own: bool = False  # not of the program: cudalab's


@dataclass(frozen=True)
class Demands:
    """The imports of a library, and the functions that run by themselves."""

    imports: tuple[str, ...]
    constructors: int  # functions that run when it is loaded
    destructors: int  # functions that run when it is unloaded or the process ends
    frame_bytes: int  # of the code that a linker puts around these functions


def shared_arrays(library: Path) -> list[SharedArray]:
    """The thread-local variables of a library, in the order of their addresses.

    OSError if the file is not a library.
    """
    arrays = [
        SharedArray(
            source_name(symbol.name),
            symbol.value,
            symbol.num_bytes,
            is_guard=symbol.name.startswith("_ZGV"),
            is_own=symbol.name.startswith("_ZN7cudalab"),
        )
        for symbol in symbols(library)
        if symbol.is_thread_local
    ]
    return sorted(arrays, key=lambda array: array.offset)


def symbols(library: Path) -> list[Symbol]:
    """The functions and variables of a library. OSError if the file is not a library."""
    try:
        return list(_Tables(library.read_bytes()).symbols())
    except (struct.error, ValueError, IndexError) as error:
        raise OSError(f"{library} is damaged: {error}") from None


def is_extern_c(name: str, library: Path) -> bool:
    """Whether a kernel's name is not mangled; True if its library does not say."""
    names: frozenset[str] = frozenset()
    with suppress(OSError):  # the format of another system
        names = _names(library, library.stat().st_mtime_ns)
    mangled = f"_Z{len(name)}{name}"
    return name in names or not any(each.startswith(mangled) for each in names)


@lru_cache(maxsize=8)
def _names(library: Path, changed_ns: int) -> frozenset[str]:
    """The names of its functions and variables: a library has many kernels."""
    del changed_ns
    return frozenset(symbol.name for symbol in symbols(library))


def demands(data: bytes) -> Demands:
    """The demands of the library with these bytes. ValueError if they are not a library."""
    try:
        tables = _Tables(data)
        return Demands(
            tuple(sorted(set(tables.imports()))),
            tables.constructors(),
            tables.dynamic.get(_FINI_ARRAYSZ, 0) // 8,
            tables.frame_bytes(),
        )
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"not a library that can be read: {error}") from None


def source_name(symbol: str) -> str:
    """`values` of _ZZ13reduce_blocksE6values, and of _ZL6values."""
    whole = re.fullmatch(r"_ZL?(\d+)(\w+)", symbol)
    for match in [*_LOCAL.finditer(symbol)][::-1] + ([whole] if whole else []):
        name, rest = match[2][: int(match[1])], match[2][int(match[1]) :]
        if len(name) == int(match[1]) and (not rest or rest[0] == "_"):
            return name
    return symbol


def last_name(mangled: str) -> str:
    """The last name of a mangled one: `total` of _ZN5outer5totalE, and of _ZZ1kPiE5total."""
    name, at, depth = mangled, 2, 0  # depth: of template arguments
    while mangled.startswith("_Z") and at < len(mangled):
        if skipped := _NO_NAME.match(mangled, at):
            at = skipped.end()
        elif length := _LENGTH.match(mangled, at):
            at = length.end() + int(length[0])
            name = name if depth else mangled[length.end() : at]
        else:
            depth = max(0, depth + {"I": 1, "E": -1}.get(mangled[at], 0))
            at += 1
    return name


def demangled(mangled: str) -> str:
    """What a variable is called in reports: by its name, or as the table of a class."""
    name = last_name(mangled)
    return f"the virtual functions of {name}" if mangled.startswith("_ZTV") else name


def section(path: Path, name: str) -> bytes:
    """The bytes of a section of a program; none without it. OSError if the file is no program."""
    try:
        return _Tables(path.read_bytes()).section(name)
    except (struct.error, ValueError, IndexError) as error:
        raise OSError(f"{path} is no program: {error}") from None


class _Tables:
    """The tables of a 64-bit little-endian library."""

    def __init__(self, data: bytes) -> None:
        if data[: len(_MAGIC)] != _MAGIC:
            raise ValueError("not a 64-bit little-endian library")
        self.data = data
        self.header = _HEADER.unpack_from(data)

    @cached_property
    def sections(self) -> list[tuple[int, ...]]:
        """The linker's table of sections."""
        start, count = self.header[5], self.header[11]
        return [_SECTION.unpack_from(self.data, start + i * _SECTION.size) for i in range(count)]

    def section(self, name: str) -> bytes:
        """The bytes of a section; none without it."""
        names = self.sections[self.header[12]][4]
        for row in self.sections:
            if self._string(names + row[0]) == name:
                return self.data[row[4] : row[4] + row[5]]
        return b""

    def symbols(self) -> Iterator[Symbol]:
        """The symbols that the library defines, from the linker's table."""
        for _, kind, _, _, start, size, link, _, _, _ in self.sections:
            if kind != _SYMBOL_TABLE:
                continue
            names = self.sections[link][4]
            for at in range(start, start + size, _SYMBOL.size):
                name, info, _, section, value, num_bytes = _SYMBOL.unpack_from(self.data, at)
                if section and num_bytes:
                    text, of_type = self._string(names + name), info & 15
                    is_apart = info >> 4 in _MERGED or _IS_APART.match(text) is not None
                    yield Symbol(
                        text,
                        of_type == _THREAD_LOCAL,
                        value,
                        num_bytes,
                        of_type == _VARIABLE and is_apart,
                        of_type == _VARIABLE and self._is_fixed(section),
                    )

    def _is_fixed(self, number: int) -> bool:
        """Whether a section never changes once the library is loaded."""
        if number >= len(self.sections):
            return False
        name, _, flags, *_ = self.sections[number]
        text = self._string(self.sections[self.header[12]][4] + name)
        return not flags & _WRITABLE or text.startswith(".data.rel.ro")

    @cached_property
    def segments(self) -> list[tuple[int, ...]]:
        """The segments that the loader maps into memory, and the one with its table."""
        start, size, count = self.header[4], self.header[8], self.header[9]
        return [_SEGMENT.unpack_from(self.data, start + i * size) for i in range(count)]

    @cached_property
    def dynamic(self) -> dict[int, int]:
        """The loader's table: tags and their values."""
        values: dict[int, int] = {}
        for segment in self.segments:
            if segment[0] == _DYNAMIC:
                for at in range(segment[2], segment[2] + segment[5], 16):
                    tag, value = struct.unpack_from("<qQ", self.data, at)
                    if tag == 0:  # the end; of two equal tags the loader takes the second
                        break
                    values[tag] = value
        return values

    def imports(self) -> Iterator[str]:
        """The names of the undefined symbols."""
        strings = self._place(_STRTAB)
        for name, _, section in self._named():
            if section == 0 and name:
                yield self._string(strings + name)

    def _named(self) -> Iterator[tuple[int, int, int]]:
        """The loader's symbols: the place of the name, the kind, and the section."""
        symbols = self._place(_SYMTAB)
        # The first kind of table counts all symbols; the second lists the defined ones, which come
        # after the undefined ones. In both the number is the second word.
        table = self._place(_HASH if _HASH in self.dynamic else _GNU_HASH)
        (count,) = struct.unpack_from("<I", self.data, table + 4)
        for at in range(symbols + _SYMBOL.size, symbols + _SYMBOL.size * count, _SYMBOL.size):
            name, info, _, section, _, _ = _SYMBOL.unpack_from(self.data, at)
            yield name, info, section

    def constructors(self) -> int:
        """The number of functions that the loader calls: constructors and address resolvers."""
        count = sum(self.dynamic.get(tag, 0) // 8 for tag in (_INIT_ARRAYSZ, _PREINIT_ARRAYSZ))
        for table, length in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
            if table in self.dynamic:
                start = self._place(table)
                for at in range(start, start + self.dynamic.get(length, 0), 24):
                    (info,) = struct.unpack_from("<Q", self.data, at + 8)
                    count += (info & 0xFFFFFFFF) in _RESOLVERS
        return count + sum(info & 15 == _RESOLVED for _, info, _ in self._named())

    def frame_bytes(self) -> int:
        """The size of the sections with the functions that the loader calls first and last."""
        total = 0
        for address in (self.dynamic[tag] for tag in (_INIT, _FINI) if tag in self.dynamic):
            sizes = [one[5] for one in self.sections if one[3] <= address < one[3] + one[5]]
            if not sizes:
                raise ValueError("code in no section")
            total += sizes[0]
        return total

    def _place(self, tag: int) -> int:
        """The offset in the file of the table that `tag` names."""
        address = self.dynamic[tag]
        for kind, _, offset, start, _, in_file, _, _ in self.segments:
            if kind == _LOAD and start <= address < start + in_file:
                return offset + address - start
        raise ValueError("an address that is not in the file")

    def _string(self, begin: int) -> str:
        return self.data[begin : self.data.index(b"\0", begin)].decode()
