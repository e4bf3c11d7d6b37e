"""The interface for measuring on a device: timer, cold caches and memory bandwidth.

A device that is `Measurable` can be measured; `open_meter` asks it.
"""

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from cudalab.backends.base import Buffer, Device, layers
from cudalab.errors import CudalabError


class Timer(Protocol):
    """Measures the time between two points in the device's order of launches."""

    def start(self) -> None: ...
    def stop(self) -> None: ...

    @property
    def ms(self) -> float:
        """Milliseconds between start and stop; waits until the device has passed stop."""
        ...


class Hold(Protocol):
    """A series of launches that the device begins only when all of them are enqueued."""

    @property
    def expired(self) -> bool:
        """Whether the device gave up waiting and began early; known after `synchronize`."""
        ...


class Meter(Protocol):
    """Measures on one device."""

    def timer(self) -> Timer:
        """A timer for launches."""
        ...

    def flush(self) -> None:
        """Evict everything that kernels have read or written from the device's caches."""
        ...

    def fill(self, buffer: Buffer, value: int) -> None:
        """Set every byte of `buffer` to `value`, in the order of launches."""
        ...

    def bandwidth(self) -> float:
        """The measured bandwidth of a copy within the device's memory: GB/s read plus written."""
        ...


@runtime_checkable
class QueueMeter(Meter, Protocol):
    """Measures on a device that has a queue of launches and its own clock."""

    def held(self) -> AbstractContextManager[Hold]:
        """Delay all launches inside the block until the block ends.

        So the device never waits for the host in between. If the block itself waits for the device,
        the launches begin after a while: `Hold.expired`.
        """
        ...

    def clock_mhz(self) -> float:
        """The measured current clock of a multiprocessor."""
        ...


@runtime_checkable
class Measurable(Protocol):
    """A device that can be measured."""

    def meter(self) -> Meter:
        """What measures on it."""
        ...


def open_meter(device: Device) -> Meter:
    """The meter of a device. CudalabError if it has none."""
    able = next((one for one in layers(device) if isinstance(one, Measurable)), None)
    if able is None:
        raise CudalabError(f"nothing can be measured on the {device.name} device: it has no meter")
    return able.meter()
