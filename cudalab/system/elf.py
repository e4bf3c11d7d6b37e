"""The symbols of a shared library: which functions it has, and where its shared arrays lie.

A kernel's `__shared__` arrays are thread-local variables of the library (cudalab_cpu.h), most of
them inside of functions, where only the symbol table names them.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE, _THREAD_LOCAL = 2, 6
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
        return list(_symbols(library))
    except (struct.error, ValueError, IndexError) as error:
        raise OSError(f"{library} is damaged: {error}") from None


def _symbols(library: Path) -> Iterator[Symbol]:
    image = library.read_bytes()
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    _, _, _, _, _, sections_at, _, _, _, _, _, num_sections, _ = _HEADER.unpack_from(image)
    sections = [
        _SECTION.unpack_from(image, sections_at + i * _SECTION.size) for i in range(num_sections)
    ]
    for _, kind, _, _, start, size, link, _, _, _ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names_at = sections[link][4]
        for at in range(start, start + size, _SYMBOL.size):
            name_at, info, _, section, value, num_bytes = _SYMBOL.unpack_from(image, at)
            if section and num_bytes:
                begin = names_at + name_at
                name = image[begin : image.index(b"\0", begin)].decode()
                yield Symbol(name, info & 15 == _THREAD_LOCAL, value, num_bytes)


def source_name(symbol: str) -> str:
    """`values` of _ZZ13reduce_blocksE6values, and of _ZL6values."""
    whole = re.fullmatch(r"_ZL?(\d+)(\w+)", symbol)
    for match in [*_LOCAL.finditer(symbol)][::-1] + ([whole] if whole else []):
        name, rest = match[2][: int(match[1])], match[2][int(match[1]) :]
        if len(name) == int(match[1]) and (not rest or rest[0] == "_"):
            return name
    return symbol
