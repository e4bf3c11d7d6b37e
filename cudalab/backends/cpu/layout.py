"""The structures of the runtime as Python sees them, and whether they lie in memory as it says.

What the threads of a kernel have done is counted alike in every build of it: barriers and atomic
operations do not depend on how a kernel is compiled, nor, with few exceptions, on the order in
which its threads run. So two builds of a kernel must agree in them.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

from cudalab.backends.trace import Tallies
from cudalab.errors import ToolchainError

# Flags of a site; check_sites.h has the same.
IS_BLOCK, IS_HEADER, IS_BRANCH, IS_END, IS_LIBRARY = 1, 2, 4, 8, 16
IS_JOIN, IS_IN_WAIT, IS_READER, RESULT_UNUSED, IS_LOCAL, NO_CALL = 32, 64, 128, 256, 512, 1024
IS_BLIND, IS_ACCESS, ADDS_ONE, IN_FRAME, IS_FIXED = 2048, 4096, 8192, 16384, 131072
IS_FOREIGN, IS_WHOLE = 262144, 524288
LOADS_LOCAL, STORES_LOCAL = 32768, 65536

U32, U64, I64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
COUNTED = ("barriers", "warp_barriers", "updates", "swaps", "asked")
Mirror = type[ctypes.Structure]


class KernelEntry(ctypes.Structure):
    """cudalab::Kernel of runtime.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("thread", ctypes.c_void_p),
        ("block", ctypes.c_void_p),
        ("num_params", ctypes.c_uint),
        ("param_sizes", ctypes.POINTER(ctypes.c_ubyte)),
        ("arg_bytes", ctypes.c_void_p),
        ("flat", ctypes.c_bool),
        ("loops", ctypes.c_void_p),
        ("by_whole_warps", ctypes.c_bool),
        ("alike", ctypes.c_bool),
    )


class Symbol(ctypes.Structure):
    """cudalab::Symbol of runtime.h."""

    _fields_ = (("address", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


class TallyRow(ctypes.Structure):
    """cudalab::Tally of runtime.h."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in COUNTED)


# In check mode -----------------------------------------------------------------------------------


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Site(ctypes.Structure):
    """cudalab::Site of check_sites.h."""

    _fields_ = (
        ("return_address", U64),
        *_fields(U32, "file line flags branch_file branch_line floats doubles function head"),
    )


class SharedArrayRow(ctypes.Structure):
    """cudalab::SharedArray of check.cpp."""

    _fields_ = tuple(_fields(U64, "offset bytes is_guard is_own"))


class AccessRow(ctypes.Structure):
    """cudalab::AccessRow of check_count.h."""

    _fields_ = (
        *_fields(U32, "place region kind space bytes degree_max same_max unused"),
        *_fields(U64, "requests lanes sectors ideal_sectors wavefronts ideal_wavefronts"),
        *_fields(U64, "degree_sum same_sum lines partial"),
    )


class StepRow(ctypes.Structure):
    """cudalab::StepRow of check_count.h."""

    _fields_ = (
        *_fields(U32, "row interval requests wavefronts ideal sectors lanes unused"),
        ("address", U64 * 32),
    )


class WaysRow(ctypes.Structure):
    """cudalab::WaysRow of check_count.h."""

    _fields_ = (*_fields(U32, "site lanes"), ("successor", U32 * 32))


class BranchRow(ctypes.Structure):
    """cudalab::BranchRow of check_count.h."""

    _fields_ = tuple(_fields(U64, "executions divergent lanes_first lanes_second"))


class FindingRow(ctypes.Structure):
    """cudalab::FindingRow of check_detect.h."""

    _fields_ = (
        *_fields(U32, "kind place other_place thread other_thread access other_access"),
        *_fields(U32, "space region bytes missing has_index by"),
        *_fields(U64, "block other_block"),
        *_fields(I64, "offset beyond"),
        ("count", U64),
        ("detail", ctypes.c_char * 200),
    )


class Options(ctypes.Structure):
    """cudalab::Options of check.cpp."""

    _fields_ = (
        *_fields(ctypes.c_void_p, "module kernel args"),
        ("grid", U32 * 3),
        ("block", U32 * 3),
        ("blocks", ctypes.c_void_p),
        *_fields(U64, "first_block num_blocks shared_bytes seed"),
        *_fields(U32, "detects counts in_step banks fresh cooperative"),
    )


# In the order of cudalab_layout of runtime.cpp, and of check.cpp.
OF_RUNTIME = (KernelEntry, Symbol, TallyRow)
OF_CHECK = (
    *(*OF_RUNTIME, Site, SharedArrayRow, AccessRow, StepRow, WaysRow, BranchRow, FindingRow),
    Options,
)


# Of an observed program --------------------------------------------------------------------------


class ObservedLaunch(ctypes.Structure):
    """cudalab::ObservedLaunch of observe.cpp."""

    _fields_ = (
        ("kernel", ctypes.POINTER(KernelEntry)),
        ("args", ctypes.POINTER(ctypes.c_void_p)),
        ("grid", U32 * 3),
        ("block", U32 * 3),
        ("shared", ctypes.c_size_t),
        ("file", ctypes.c_char_p),
        *_fields(ctypes.c_int, "line cooperative"),
    )


class ObservedMemory(ctypes.Structure):
    """cudalab::ObservedMemory of observe.cpp."""

    _fields_ = (
        *_fields(ctypes.c_size_t, "begin bytes"),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_int),
        ("region", U32),
    )


class Party(ctypes.Structure):
    """cudalab::Party of tasks.h."""

    _fields_ = (
        *_fields(ctypes.c_char_p, "name file"),
        ("line", ctypes.c_int),
        *_fields(U32, "place kind is_kernel stream"),
        ("stream_file", ctypes.c_char_p),
        ("stream_line", ctypes.c_int),
        ("stream_number", U32),
    )


class Unordered(ctypes.Structure):
    """cudalab::Unordered of tasks.h."""

    _fields_ = (
        ("problem", U32),
        *_fields(Party, "earlier later"),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_int),
        ("region", U32),
        ("offset", U64),
    )


# The same of observe.cpp and of order.cpp, whose functions these are.
OF_PROGRAMS = {
    "cudalab_observe_layout": (ObservedLaunch, ObservedMemory),
    "cudalab_order_layout": (Party, Unordered),
}


# -------------------------------------------------------------------------------------------------


# What a field is; of an array, what its elements are: in the order of layout.h, with the codes that
# ctypes has for its simple types.
_TYPES = {
    "a structure": "",
    "a pointer": "PzZ",
    "a bool": "?",
    "a char": "c",
    "a floating-point number": "fdg",
    "a signed integer": "bhilq",
    "an unsigned integer": "BHILQ",
}


def check(
    runtime: ctypes.CDLL, mirrors: Sequence[Mirror], function: str = "cudalab_layout"
) -> None:
    """Compare the mirrors with what `function` of a runtime says, which has just been loaded.

    ToolchainError if a size, the place of a field or its type differs.
    """
    count, layout = ctypes.c_uint(), getattr(runtime, function)
    layout.restype = ctypes.POINTER(ctypes.c_uint)
    values = layout(ctypes.byref(count))
    theirs = iter(values[: count.value])
    types = dict(enumerate(_TYPES))
    for mirror in mirrors:
        compared: list[tuple[str, object, object]]
        compared = [("the size", ctypes.sizeof(mirror), next(theirs, None))]
        for name, kind, *_ in mirror._fields_:
            field = getattr(mirror, name)
            compared += [
                (f"the offset of {name}", field.offset, next(theirs, None)),
                (f"the size of {name}", field.size, next(theirs, None)),
                (name, _type(kind), types.get(next(theirs, -1))),
            ]
        for what, ours, there in compared:
            if there != ours:
                raise ToolchainError(
                    f"the CPU device's runtime has another {mirror.__name__} than Python: "
                    f"{what} is {there}, not {ours}"
                )
    if next(theirs, None) is not None:
        raise ToolchainError("the CPU device's runtime has structures that Python does not know")


def _type(kind: Any) -> str:
    while issubclass(kind, ctypes.Array):
        kind = kind._type_
    if issubclass(kind, ctypes.Structure):
        return "a structure"
    code = "P" if issubclass(kind, ctypes._Pointer) else kind._type_  # noqa: SLF001 - ctypes' only way
    return next(name for name, codes in _TYPES.items() if code in codes)


def add_tally(tallies: Tallies, kernel: str, row: TallyRow) -> None:
    """Add the tally of one launch."""
    if kernel not in tallies:
        tallies[kernel] = dict.fromkeys(("launches", *COUNTED), 0)
    known = tallies[kernel]
    known["launches"] += 1
    for name in COUNTED:
        known[name] += getattr(row, name)
