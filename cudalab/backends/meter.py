"""What a device must offer to be measured: a timer, cold caches, and what its memory can do.

A device has a meter where it has a method `meter`; `open_meter` asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cudalab.errors import CudalabError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from cudalab.backends.base import Buffer, Device


class Timer(Protocol):
    """Time between two points of the device's own order of work."""

    def start(self) -> None: ...
    def stop(self) -> None: ...

    @property
    def ms(self) -> float:
        """Milliseconds between start and stop; waits until the device has passed stop."""
        ...


class Hold(Protocol):
    """A stretch of launches that the device begins only when all of them are enqueued."""

    @property
    def expired(self) -> bool:
        """Whether the device waited too long and began before; known after `synchronize`."""
        ...


class Meter(Protocol):
    """Measures on one device."""

    def timer(self) -> Timer:
        """A stop-watch for launches."""
        ...

    def flush(self) -> None:
        """Drive everything that kernels have read or written out of the device's caches."""
        ...

    def fill(self, buffer: Buffer, value: int) -> None:
        """Set every byte of `buffer` to `value`, in the order of launches."""
        ...

    def bandwidth(self) -> float:
        """The device's own copy from memory to memory, measured: GB/s read plus written."""
        ...


@runtime_checkable
class QueueMeter(Meter, Protocol):
    """Measures on a device that works through a queue of launches, at a clock of its own."""

    def held(self) -> AbstractContextManager[Hold]:
        """Begin what is launched inside the block when the block ends.

        So the device never waits for the host in the middle. A block that waits for the device is
        let go after a while: `Hold.expired`.
        """
        ...

    def clock_mhz(self) -> float:
        """The clock of a multiprocessor under way, measured."""
        ...


def open_meter(device: Device) -> Meter:
    """The meter of a device. CudalabError for a device that has none."""
    make = getattr(device, "meter", None)
    if make is None:
        raise CudalabError(f"nothing can be measured on the {device.name} device: it has no meter")
    meter: Meter = make()
    return meter
