"""Memory of a GPU, host memory that a GPU can access, and the copies between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cudalab.formats import as_bytes

if TYPE_CHECKING:
    from cudalab.backends.base import Buffer

# Pinning costs about 0.7 ms per MiB, a copy from pageable memory 0.1: only reuse pays for it.
BOUNCE_BYTES = 4 << 20
NUM_BOUNCES = 4
DIRECT_BYTES = NUM_BOUNCES * BOUNCE_BYTES  # up to here pageable memory is faster


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


class InWords(Protocol):
    """The part of a device that reports errors."""

    def errors_in_words(self) -> AbstractContextManager[None]:
        """Turn the driver's errors inside the block into a CudalabError."""
        ...


class CudaMessage:
    """Pinned words of the host that kernels write, and the event after which it may read them."""

    def __init__(self, device: InWords, driver: Any, words: int) -> None:
        """Begin with zeros."""
        self._device = device
        self._words, self.buffer = shared_words(driver, words)
        self._written = driver.Event(driver.event_flags.DISABLE_TIMING)

    def send(self) -> None:
        """Mark the point at which all launches that write the words have ended."""
        with self._device.errors_in_words():
            self._written.record()

    def read(self) -> list[int]:
        """The words, when all that was launched before `send` has ended."""
        with self._device.errors_in_words():
            wait(self._written)
        return [int(word) for word in self._words]


class _Bounce:
    """A pinned buffer and the event after which it may be used again."""

    def __init__(self, memory: np.ndarray[Any, Any], event: Any) -> None:
        self.view = as_bytes(memory)
        self.done = event


class Bounces:
    """Pinned buffers, through which large copies pass piece by piece."""

    def __init__(self, device: InWords, driver: Any) -> None:
        """Make them when the first copy needs them."""
        self._device, self._driver = device, driver
        self._bounces: list[_Bounce] = []

    def upload(self, address: int, nbytes: int, fill: Callable[[memoryview], None]) -> None:
        """Copy to the device what `fill` writes into the memory passed to it."""
        bounces = self._pinned()
        for number, start in enumerate(range(0, nbytes, BOUNCE_BYTES)):
            bounce = bounces[number % NUM_BOUNCES]
            view = bounce.view[: nbytes - start]
            with self._device.errors_in_words():
                wait(bounce.done)
            fill(view)
            with self._device.errors_in_words():
                self._driver.memcpy_htod_async(address + start, view)
                bounce.done.record()

    def download(self, address: int, nbytes: int) -> Iterator[memoryview]:
        """The device's bytes, piece by piece; a piece is valid until the next is taken."""
        bounces = self._pinned()

        def fetch(number: int) -> None:
            start = number * BOUNCE_BYTES
            if start < nbytes:
                bounce = bounces[number % NUM_BOUNCES]
                with self._device.errors_in_words():
                    view = bounce.view[: nbytes - start]
                    self._driver.memcpy_dtoh_async(view, address + start)
                    bounce.done.record()

        for number in range(NUM_BOUNCES):
            fetch(number)
        for number in range(-(-nbytes // BOUNCE_BYTES)):
            bounce = bounces[number % NUM_BOUNCES]
            with self._device.errors_in_words():
                wait(bounce.done)
            yield bounce.view[: nbytes - number * BOUNCE_BYTES]
            fetch(number + NUM_BOUNCES)

    def release(self) -> None:
        """Give the memory back."""
        self._bounces.clear()

    def _pinned(self) -> list[_Bounce]:
        """The bounce buffers, made when the first large copy needs them."""
        if not self._bounces:
            with self._device.errors_in_words():
                memory = self._driver.pagelocked_empty(DIRECT_BYTES, np.uint8)
                flags = self._driver.event_flags.DISABLE_TIMING
                self._bounces = [
                    _Bounce(memory[start : start + BOUNCE_BYTES], self._driver.Event(flags))
                    for start in range(0, DIRECT_BYTES, BOUNCE_BYTES)
                ]
                for bounce in self._bounces:
                    bounce.done.record()
        return self._bounces
