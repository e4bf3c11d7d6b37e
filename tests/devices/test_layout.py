"""Python's mirrors of the runtime's structures, and what happens when one is out of date."""

from __future__ import annotations

import ctypes

import pytest

from cudalab.backends.cpu import kernel_runtime, layout
from cudalab.backends.cpu.check import module
from cudalab.backends.cpu.layout import OF_CHECK, OF_RUNTIME, KernelEntry, Symbol
from cudalab.errors import ToolchainError


@pytest.fixture(scope="module")
def runtime():
    return ctypes.CDLL(str(kernel_runtime.runtime_library()))


class Shorter(ctypes.Structure):
    """A symbol without its size."""

    _fields_ = (("address", ctypes.c_void_p),)


class Swapped(ctypes.Structure):
    """A symbol with its fields in another order and of the same size."""

    _fields_ = (("bytes", ctypes.c_uint32), ("rest", ctypes.c_uint32), ("address", ctypes.c_void_p))


@pytest.mark.parametrize(
    ("mirrors", "says"),
    [
        ((KernelEntry, Shorter), "another Shorter than Python: the size is 16, not 8"),
        ((KernelEntry, Swapped), "the size of bytes is 8, not 4"),
        ((KernelEntry,), "structures that Python does not know"),
        ((*OF_RUNTIME, Symbol), "the size is None, not 16"),
    ],
)
def test_a_mirror_that_is_out_of_date_is_refused(runtime, mirrors, says):
    layout.check(runtime, OF_RUNTIME)
    with pytest.raises(ToolchainError, match=says):
        layout.check(runtime, mirrors)


def test_each_row_of_check_mode_is_compared():
    runtime = module.load_runtime()
    for position, mirror in enumerate(OF_CHECK):
        changed = type(mirror.__name__, (mirror,), {"_fields_": (("more", ctypes.c_uint64),)})
        planted = (*OF_CHECK[:position], changed)
        with pytest.raises(ToolchainError, match=f"another {mirror.__name__} than Python"):
            layout.check(runtime, planted)
