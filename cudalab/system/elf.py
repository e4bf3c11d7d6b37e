"""The tables of a shared library: what it defines, what it asks of the system.

A kernel's `__shared__` arrays are thread-local variables of the library (cudalab_cpu.h), most of
them inside of functions, where only the symbol table names them. What a library imports, and how
many functions run when it is loaded, stands in the tables that the loader reads.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE, _THREAD_LOCAL = 2, 6
_DYNAMIC, _LOAD = 2, 1  # kinds of segments
_PLTRELSZ, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _JMPREL = 2, 4, 5, 6, 7, 8, 23  # tags
_INIT_ARRAYSZ, _FINI_ARRAYSZ, _PREINIT_ARRAYSZ, _GNU_HASH = 27, 28, 33, 0x6FFFFEF5
_RESOLVERS = (37, 1032)  # relocations that run code while loading, of x86-64 and of 64-bit ARM
# The end of the mangled name of what stands in a function: length, name, and a number if there are
# several of that name. The lookahead finds overlapping candidates; the length tells the right one.
_LOCAL = re.compile(r"(?=E(\d+)(\w+)$)")


class Symbol(NamedTuple):
    """A function or a variable that a library defines, local ones included."""

    name: str  # as the linker knows it
    is_thread_local: bool
    value: int
    num_bytes: int


@dataclass(frozen=True)
class SharedArray:
    """A `__shared__` variable."""

    name: str  # as the source says it
    offset: int  # in the library's thread-local memory
    num_bytes: int


@dataclass(frozen=True)
class Demands:
    """What a library asks of the system that loads it."""

    imports: tuple[str, ...]
    constructors: int  # functions that run when it is loaded
    destructors: int  # and when it is unloaded, or the process ends


def shared_arrays(library: Path) -> list[SharedArray]:
    """The thread-local variables of a library, in the order of their addresses.

    OSError for a file that is no library.
    """
    found = [
        SharedArray(source_name(symbol.name), symbol.value, symbol.num_bytes)
        for symbol in symbols(library)
        if symbol.is_thread_local
    ]
    return sorted(found, key=lambda array: array.offset)


def symbols(library: Path) -> list[Symbol]:
    """The functions and variables of a library. OSError for a file that is none."""
    try:
        return list(_Tables(library.read_bytes()).symbols())
    except (struct.error, ValueError, IndexError) as error:
        raise OSError(f"{library} is damaged: {error}") from None


def demands(data: bytes) -> Demands:
    """What the library with these bytes asks for. ValueError when they are none."""
    try:
        tables = _Tables(data)
        destructors = tables.dynamic.get(_FINI_ARRAYSZ, 0) // 8
        return Demands(tuple(sorted(set(tables.imports()))), tables.constructors(), destructors)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"no library that can be understood: {error}") from None


def source_name(symbol: str) -> str:
    """`values` of _ZZ13reduce_blocksE6values, and of _ZL6values."""
    whole = re.fullmatch(r"_ZL?(\d+)(\w+)", symbol)
    for match in [*_LOCAL.finditer(symbol)][::-1] + ([whole] if whole else []):
        name, rest = match[2][: int(match[1])], match[2][int(match[1]) :]
        if len(name) == int(match[1]) and (not rest or rest[0] == "_"):
            return name
    return symbol


class _Tables:
    """The tables of a 64-bit little-endian library."""

    def __init__(self, data: bytes) -> None:
        if data[: len(_MAGIC)] != _MAGIC:
            raise ValueError("no 64-bit little-endian library")
        self.data = data
        self.header = _HEADER.unpack_from(data)

    def symbols(self) -> Iterator[Symbol]:
        """What is defined in here, by the linker's own table."""
        sections_at, num_sections = self.header[5], self.header[11]
        sections = [
            _SECTION.unpack_from(self.data, sections_at + i * _SECTION.size)
            for i in range(num_sections)
        ]
        for _, kind, _, _, start, size, link, _, _, _ in sections:
            if kind != _SYMBOL_TABLE:
                continue
            names = sections[link][4]
            for at in range(start, start + size, _SYMBOL.size):
                name, info, _, section, value, num_bytes = _SYMBOL.unpack_from(self.data, at)
                if section and num_bytes:
                    thread_local = info & 15 == _THREAD_LOCAL
                    yield Symbol(self._string(names + name), thread_local, value, num_bytes)

    @cached_property
    def segments(self) -> list[tuple[int, ...]]:
        """What the loader maps into memory, and the table that it reads."""
        start, size, count = self.header[4], self.header[8], self.header[9]
        return [_SEGMENT.unpack_from(self.data, start + i * size) for i in range(count)]

    @cached_property
    def dynamic(self) -> dict[int, int]:
        """The loader's table: tags and their values."""
        found: dict[int, int] = {}
        for segment in self.segments:
            if segment[0] == _DYNAMIC:
                for at in range(segment[2], segment[2] + segment[5], 16):
                    tag, value = struct.unpack_from("<qQ", self.data, at)
                    found.setdefault(tag, value)
        return found

    def imports(self) -> Iterator[str]:
        """The names of what is not defined in here."""
        strings, symbols = self._place(_STRTAB), self._place(_SYMTAB)
        # The first table counts all symbols; the second lists those that are defined, behind the
        # others. Both have the number in their second word.
        table = self._place(_HASH if _HASH in self.dynamic else _GNU_HASH)
        (count,) = struct.unpack_from("<I", self.data, table + 4)
        for at in range(symbols + _SYMBOL.size, symbols + _SYMBOL.size * count, _SYMBOL.size):
            name, _, _, section, _, _ = _SYMBOL.unpack_from(self.data, at)
            if section == 0 and name:
                yield self._string(strings + name)

    def constructors(self) -> int:
        """Functions that the loader calls: listed ones, and those that choose an address."""
        found = sum(self.dynamic.get(tag, 0) // 8 for tag in (_INIT_ARRAYSZ, _PREINIT_ARRAYSZ))
        for table, length in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
            if table in self.dynamic:
                start = self._place(table)
                for at in range(start, start + self.dynamic.get(length, 0), 24):
                    (info,) = struct.unpack_from("<Q", self.data, at + 8)
                    found += (info & 0xFFFFFFFF) in _RESOLVERS
        return found

    def _place(self, tag: int) -> int:
        """Where the table that the tag names stands in the file."""
        address = self.dynamic[tag]
        for kind, _, offset, start, _, in_file, _, _ in self.segments:
            if kind == _LOAD and start <= address < start + in_file:
                return offset + address - start
        raise ValueError("an address that is not in the file")

    def _string(self, begin: int) -> str:
        return self.data[begin : self.data.index(b"\0", begin)].decode()
