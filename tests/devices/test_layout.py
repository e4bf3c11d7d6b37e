"""Python's mirrors of the runtime's structures, and what happens when one is out of date."""

from __future__ import annotations

import ctypes

import pytest

from cudalab.backends.cpu import kernel_runtime, layout
from cudalab.backends.cpu.check import module
from cudalab.backends.cpu.layout import OF_CHECK, OF_PROGRAMS, OF_RUNTIME, KernelEntry, Symbol
from cudalab.errors import ToolchainError
from cudalab.program.runtime import observed


@pytest.fixture(scope="module")
def runtime():
    return ctypes.CDLL(str(kernel_runtime.runtime_library()))


class Shorter(ctypes.Structure):
    """A symbol without its size."""

    _fields_ = (("address", ctypes.c_void_p),)


class Swapped(ctypes.Structure):
    """A symbol with its fields in another order and of the same size."""

    _fields_ = (("bytes", ctypes.c_uint32), ("rest", ctypes.c_uint32), ("address", ctypes.c_void_p))


class Numbered(ctypes.Structure):
    """A symbol whose address is a number."""

    _fields_ = (("address", ctypes.c_uint64), ("bytes", ctypes.c_size_t))


class Signed(ctypes.Structure):
    """A symbol whose size may be negative."""

    _fields_ = (("address", ctypes.c_void_p), ("bytes", ctypes.c_int64))


@pytest.mark.parametrize(
    ("mirrors", "says"),
    [
        ((KernelEntry, Shorter), "another Shorter than Python: the size is 16, not 8"),
        ((KernelEntry, Swapped), "the size of bytes is 8, not 4"),
        ((KernelEntry, Numbered), "address is a pointer, not an unsigned integer"),
        ((KernelEntry, Signed), "bytes is an unsigned integer, not a signed integer"),
        ((KernelEntry,), "structures that Python does not know"),
        ((*OF_RUNTIME, Symbol), "the size is None, not 16"),
    ],
)
def test_a_mirror_that_is_out_of_date_is_refused(runtime, mirrors, says):
    layout.check(runtime, OF_RUNTIME)
    with pytest.raises(ToolchainError, match=says):
        layout.check(runtime, mirrors)


def test_each_row_of_check_mode_is_compared():
    each_is_compared(module.load_runtime(), OF_CHECK)


@pytest.mark.xdist_group("run")  # whose worker compiles what observed programs are linked with
def test_each_structure_of_an_observed_program_is_compared():
    host = ctypes.CDLL(observed()[-1])
    for function, mirrors in OF_PROGRAMS.items():
        layout.check(host, mirrors, function)
        each_is_compared(host, mirrors, function)
    refuses = ctypes.c_void_p.in_dll(module.load_runtime(), "cudalab_program_refuses")
    assert not refuses.value, "kernels of labs would be refused in a program's way from now on"


def each_is_compared(runtime, mirrors, *function):
    """Each structure, with a field more, and each of its fields, with another type."""
    for position, mirror in enumerate(mirrors):
        fields = [*mirror._fields_]
        changes = [([*fields, ("more", ctypes.c_uint64)], "the size is")]
        for at, (name, kind) in enumerate(fields):
            other = [*fields[:at], (name, of_another_type(kind)), *fields[at + 1 :]]
            changes.append((other, f"{name} is an? .*, not an? "))
        for changed, says in changes:
            other = type(mirror.__name__, (ctypes.Structure,), {"_fields_": changed})
            with pytest.raises(ToolchainError, match=f"another {mirror.__name__} .*: {says}"):
                layout.check(runtime, (*mirrors[:position], other), *function)


def of_another_type(kind):
    """A type that lies in memory as another one does, but is a number, or one with a sign."""
    if issubclass(kind, ctypes.Array):
        return of_another_type(kind._type_) * kind._length_
    if issubclass(kind, ctypes.Structure):
        return ctypes.c_uint64 * (ctypes.sizeof(kind) // 8)
    unsigned = {1: ctypes.c_ubyte, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[ctypes.sizeof(kind)]
    signed = {1: ctypes.c_byte, 4: ctypes.c_int32, 8: ctypes.c_int64}[ctypes.sizeof(kind)]
    return signed if kind is unsigned else unsigned
