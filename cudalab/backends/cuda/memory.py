"""Memory of a GPU, and host memory that a GPU can access."""

from __future__ import annotations

import threading
import time
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cudalab.backends.base import Buffer


class Allocation:
    """Memory of PyCUDA's that its own thread frees, whichever thread drops it.

    Python's collector runs in any thread, and PyCUDA cannot free memory of a context that is
    current in another: it would be lost. So it waits among `strays` for its own thread.
    """

    __slots__ = ("memory", "strays", "thread")

    def __init__(self, memory: Any, strays: list[Any]) -> None:
        """Own `memory`, which was allocated by this thread."""
        self.memory = memory
        self.strays = strays
        self.thread = threading.get_ident()

    def __del__(self) -> None:
        """Leave the memory to its thread if this is another."""
        if threading.get_ident() != self.thread:
            self.strays.append(self.memory)


class CudaBuffer:
    """Device memory; freed with the last reference. Without bytes there is no memory."""

    __slots__ = ("address", "dtype", "memory", "nbytes", "shape")

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], memory: Any, address: int
    ) -> None:
        """Describe `shape` elements of `dtype` at `address`, kept alive by `memory`."""
        self.shape = shape
        self.dtype = dtype
        self.nbytes = prod(shape) * dtype.itemsize
        self.memory = memory
        self.address = address


def own(buffer: Buffer) -> CudaBuffer:
    if not isinstance(buffer, CudaBuffer):
        raise TypeError(f"a {type(buffer).__name__} is not a buffer of the CUDA device")
    return buffer


def shared_words(driver: Any, words: int) -> tuple[np.ndarray[Any, Any], CudaBuffer]:
    """Pinned words of the host, zero, and the same memory for kernels."""
    flags = driver.host_alloc_flags.DEVICEMAP
    array = driver.pagelocked_zeros(words, np.uint32, mem_flags=flags)
    address = int(array.base.get_device_pointer())
    return array, CudaBuffer((words,), array.dtype, array, address)


def wait(event: Any) -> None:
    """Wait for an event in Python, so that Ctrl-C ends the wait for a kernel that hangs."""
    while not event.query():
        time.sleep(0)
