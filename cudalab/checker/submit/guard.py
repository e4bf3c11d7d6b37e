"""A device whose buffers lie between guard zones and are first filled with garbage.

Writes outside a buffer show in the guard zones, and memory that the kernel failed to write does not
hold zeros that could pass for an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.backends import base
from cudalab.backends.limits import dim3
from cudalab.formats import Payload, as_bytes

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


ZONE = 1024  # bytes on each side: enough for the words of a block that is off by one
POISON, NAN = 0xA5, 0xFF  # fill integers, and floats: a NaN cannot vanish in a sum
HUGE = 0xFE  # fills floats in every second run: a NaN in such a run was computed
MAX_LAUNCHES = 200
COMPARED_BYTES = 1 << 18  # at a time: as many as a cache holds


@dataclass(kw_only=True)
class Guarded:
    """A buffer and the guard zones around it, parts of one allocation."""

    buffer: base.Buffer
    before: base.Buffer
    after: base.Buffer
    zone: np.ndarray[Any, np.dtype[np.uint8]]  # what each guard zone holds
    name: str


class GuardedDevice(base.WrappedDevice):
    """A device that guards the memory that it allocates, and lists the launches."""

    def __init__(
        self,
        device: base.Device,
        on_kernel: Callable[[dict[str, list[str]]], None] = lambda _: None,
    ) -> None:
        """Call `on_kernel` before each kernel's first launch, which may end the process.

        It is given `arguments`, and must not hold this device: the memory is freed when nobody
        needs it any more, so that the next input comes to the same addresses.
        """
        super().__init__(device)
        self._on_kernel = on_kernel
        self.buffers: list[Guarded] = []
        self.launches: list[tuple[str, tuple[int, int, int], tuple[int, int, int]]] = []
        self.arguments: dict[str, list[str]] = {}  # of each kernel: their types in C

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> base.Buffer:
        """Memory full of garbage, between two guard zones."""
        return self._new(shape, dtype, f"scratch memory {len(self.buffers)}").buffer

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> base.Buffer:
        """A copy of `data` between two guard zones."""
        array = data.array() if isinstance(data, Payload) else data
        result = self._new(array.shape, array.dtype, "an input")
        self._device.copy(np.ascontiguousarray(array), result.buffer)
        return result.buffer

    def launch(
        self,
        kernel: base.Kernel,
        grid: base.Dim,
        block: base.Dim,
        *args: base.Buffer | np.generic,
        shared_bytes: int = 0,
    ) -> None:
        """Launch, and add the launch to the list."""
        launch = (kernel.name, dim3(grid), dim3(block))
        if launch not in self.launches and len(self.launches) < MAX_LAUNCHES:
            self.launches.append(launch)
            is_new = kernel.name not in self.arguments
            self.arguments[kernel.name] = [
                base.C_TYPES.get(arg.dtype.name, arg.dtype.name)
                + ("" if isinstance(arg, np.generic) else " *")
                for arg in args
            ]
            if is_new:
                self._on_kernel(self.arguments)
        super().launch(kernel, grid, block, *args, shared_bytes=shared_bytes)

    def poison(self, buffer: base.Buffer, run: int) -> int:
        """Fill a buffer with a byte that differs between consecutive runs; return the byte."""
        fills = (NAN, HUGE) if buffer.dtype.kind == "f" else (POISON, POISON ^ 0xFF)
        fill = fills[run % 2]
        base.overwrite(self._device, buffer, fill)
        return fill

    def call(self, buffer: base.Buffer, name: str) -> None:
        """Set the name of a buffer in messages."""
        for one in self.buffers:
            if one.buffer is buffer:
                one.name = name

    def overruns(self) -> list[str]:
        """Messages about writes outside a buffer."""
        result = []
        for one in self.buffers:
            size = one.buffer.dtype.itemsize
            after = np.flatnonzero(self._device.to_host(one.after) != one.zone)
            before = np.flatnonzero(self._device.to_host(one.before) != one.zone)
            if len(after):
                distance = int(after[0]) // size
                count = one.buffer.nbytes // size
                result.append(
                    f"wrote past the end of {one.name}: element {count + distance:,} of {count:,}, "
                    f"which end at {count - 1:,}"
                )
            if len(before):
                distance = (ZONE - 1 - int(before[-1])) // size + 1
                result.append(f"wrote before {one.name}: element -{distance:,}")
        return result

    def _new(self, shape: int | tuple[int, ...], dtype: DTypeLike, name: str) -> Guarded:
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(int(d) for d in shape)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        raw = self._device.empty(2 * ZONE + nbytes, np.uint8)
        fill = NAN if dtype.kind == "f" else POISON
        base.overwrite(self._device, raw, fill)
        # Each buffer has other zones: a kernel may copy past the end of two. Floats are still NaNs.
        zone = np.tile(np.array([fill - len(self.buffers) % 16, fill], np.uint8), ZONE // 2)
        one = Guarded(
            buffer=window(raw, ZONE, shape, dtype),
            before=window(raw, 0, zone.shape, zone.dtype),
            after=window(raw, ZONE + nbytes, zone.shape, zone.dtype),
            zone=zone,
            name=name,
        )
        self._device.copy(zone, one.before)
        self._device.copy(zone, one.after)
        self.buffers.append(one)
        return one


def holds(device: base.Device, buffer: base.Buffer, array: np.ndarray[Any, Any]) -> bool:
    """Whether a buffer has the bytes of an array; piece by piece, so that it takes no memory."""
    theirs, at = np.frombuffer(as_bytes(np.ascontiguousarray(array)), np.uint8), 0
    for chunk in device.chunks(buffer):
        whole = np.frombuffer(chunk, np.uint8)
        for start in range(0, len(whole), COMPARED_BYTES):
            piece = whole[start : start + COMPARED_BYTES]
            if not np.array_equal(piece, theirs[at : at + len(piece)]):
                return False
            at += len(piece)
    return at == len(theirs)


def untouched(array: np.ndarray[Any, Any], fill: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The elements of a flat array whose bytes are all `fill`."""
    word = np.full(array.itemsize, fill, np.uint8).view(f"u{array.itemsize}")
    return np.asarray(array.view(word.dtype) == word)


def window(
    raw: base.Buffer, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> base.Buffer:
    """A part of a buffer of bytes, as a buffer that keeps the whole allocation alive."""
    memory: Any = raw
    if hasattr(memory, "array"):  # the CPU device's
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        part: base.Buffer = type(memory)(
            memory.array[start : start + nbytes].view(dtype).reshape(shape)
        )
        return part
    part_view: base.Buffer = type(memory)(shape, dtype, raw, raw.address + start)
    return part_view
