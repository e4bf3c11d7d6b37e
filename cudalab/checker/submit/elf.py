"""What a compiled library asks of the system: read from its own tables, not from its source.

A kernel that is compiled for the host could hold any host code. On a GPU it could not, so two
things are refused: functions that no kernel can call, and code that runs when the file is loaded.
Only tables are read here; a library that does not parse is refused too.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DYNAMIC, _LOAD = 2, 1  # kinds of segments
_PLTRELSZ, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _JMPREL = 2, 4, 5, 6, 7, 8, 23  # tags
_INIT_ARRAYSZ, _FINI_ARRAYSZ, _PREINIT_ARRAYSZ, _GNU_HASH = 27, 28, 33, 0x6FFFFEF5
_RESOLVERS = (37, 1032)  # relocations that run code while loading, of x86-64 and of 64-bit ARM
COMPILERS_OWN = 1  # entry of .init_array, and of .fini_array, that start files bring

# What a kernel may call: functions that CUDA has on the device, and what compilers turn into calls.
_LIBM = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10
    exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma
    llrint llround log log10 log1p log2 logb lrint lround modf nearbyint nextafter pow
    remainder remquo rint round roundeven scalbln scalbn sin sincos sinh sqrt tan tanh
    tgamma trunc y0 y1 yn
    """.split()  # noqa: SIM905 - a list of strings is no easier to read
)
_ALLOWED = re.compile(
    r"cudalab_\w+ | _ZNK?7cudalab\w+"
    r"| mem(?:cpy|set|move|cmp) | str(?:len|cmp) | malloc | calloc | free"
    r"| (?:v|f|vf)?printf | puts | putchar | fflush | stdout | stderr | abort | __assert_fail"
    r"| __(?:mem\w+|\w*printf)_chk | __stack_chk_fail | __cxa_(?:finalize|guard_\w+)"
    r"| __gmon_start__ | _ITM_\w+ | __tls_get_addr | _Zn[wa]m | _Zd[la]Pvm? | __errno_location"
    r"| __(?:u?(?:div|mod)|mul|pow|extend|trunc|fix|float)\w*[dtsx][ifc]\w*  # the compiler's own",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Library:
    """A shared library's demands."""

    imports: tuple[str, ...]
    constructors: int  # functions that run when it is loaded
    destructors: int  # and when it is unloaded, or the process ends

    def foreign(self) -> list[str]:
        """Imported functions that no kernel can call."""
        return [name for name in self.imports if not allowed(name)]


def allowed(name: str) -> bool:
    """Whether a kernel may call the function."""
    plain = name.removeprefix("__").removesuffix("_finite")
    in_libm = plain in _LIBM or (plain[-1:] in ("f", "l") and plain[:-1] in _LIBM)
    return in_libm or _ALLOWED.fullmatch(name) is not None


def read(data: bytes) -> Library:
    """Parse a 64-bit little-endian library. ValueError when it is none."""
    try:
        return _read(data)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"no library that can be understood: {error}") from None


def _read(data: bytes) -> Library:
    file = _File(data)
    destructors = file.dynamic.get(_FINI_ARRAYSZ, 0) // 8
    return Library(tuple(sorted(set(file.imports()))), file.constructors(), destructors)


class _File:
    """The tables of a library."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no 64-bit little-endian library")
        self.data = data
        (headers,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = [
            struct.unpack_from("<IIQQQQQQ", data, headers + i * size) for i in range(count)
        ]
        self.dynamic: dict[int, int] = {}
        for segment in self.segments:
            if segment[0] == _DYNAMIC:
                for at in range(segment[2], segment[2] + segment[5], 16):
                    tag, value = struct.unpack_from("<qQ", data, at)
                    self.dynamic.setdefault(tag, value)

    def place(self, tag: int) -> int:
        """Where the table that the tag names stands in the file."""
        address = self.dynamic[tag]
        for kind, _, offset, start, _, in_file, _, _ in self.segments:
            if kind == _LOAD and start <= address < start + in_file:
                return int(offset + address - start)
        raise ValueError("an address that is not in the file")

    def imports(self) -> Iterator[str]:
        """The names of what is not defined in here."""
        strings, symbols = self.place(_STRTAB), self.place(_SYMTAB)
        # The first table counts all symbols; the second lists those that are defined, behind the
        # others. Both have the number in their second word.
        table = self.place(_HASH if _HASH in self.dynamic else _GNU_HASH)
        (count,) = struct.unpack_from("<I", self.data, table + 4)
        for at in range(symbols + 24, symbols + 24 * count, 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, at)
            if section == 0 and name:
                end = self.data.index(b"\0", strings + name)
                yield self.data[strings + name : end].decode()

    def constructors(self) -> int:
        """Functions that the loader calls: listed ones, and those that choose an address."""
        found = sum(self.dynamic.get(tag, 0) // 8 for tag in (_INIT_ARRAYSZ, _PREINIT_ARRAYSZ))
        for table, length in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
            if table in self.dynamic:
                start = self.place(table)
                for at in range(start, start + self.dynamic.get(length, 0), 24):
                    (info,) = struct.unpack_from("<Q", self.data, at + 8)
                    found += (info & 0xFFFFFFFF) in _RESOLVERS
        return found
