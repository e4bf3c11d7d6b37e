"""Devices that run kernels: `cuda` (PyCUDA) and `cpu` (the same .cu on the host).

`DEVICES` is the list of them: a new one is its folder here and its line there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudalab.backends.base import Device


class DeviceClass(Protocol):
    """What can be asked of a device's class before one is opened."""

    possible_features: frozenset[str]  # that a device of the class may have

    def __call__(self, *args: Any) -> Device: ...

    def available(self) -> bool:
        """Whether this machine has one."""
        ...


class Kind(NamedTuple):
    """A device that can be opened; nothing of it is imported before `load`."""

    place: str  # of its class: module:name
    emulated: bool = False  # the host runs the kernels; its class then takes a number of threads
    defaults_of: str = ""  # the device whose default variants and sizes it takes: itself if empty

    def load(self) -> DeviceClass:
        """The device's class."""
        module, _, name = self.place.partition(":")
        found: DeviceClass = getattr(import_module(module), name)
        return found


# In the order in which "auto" tries them.
DEVICES = {
    "cuda": Kind("cudalab.backends.cuda.device:CudaDevice"),
    "cpu": Kind("cudalab.backends.cpu.device:CpuDevice", emulated=True),
}


def open_device(name: str, threads: int | None = None) -> Device:
    """Open a device of `DEVICES`, or "auto": the GPU where there is one, else the CPU.

    `threads` is the number of OS threads of a device on the host; None takes every core.
    NoDeviceError when the device, or what it needs, is not there.
    """
    kind = DEVICES[choose_device(name)]
    return kind.load()(threads) if kind.emulated else kind.load()()


def choose_device(name: str = "auto") -> str:
    """The device called `name`; of "auto" the first that this machine has."""
    if name != "auto":
        return name
    return next(each for each, kind in DEVICES.items() if kind.load().available())


def able_devices(features: Iterable[str]) -> list[str]:
    """The devices that may have all of `features`; an opened one says whether it has."""
    needed = set(features)
    return [name for name, kind in DEVICES.items() if needed <= kind.load().possible_features]


def emulated(name: str) -> bool:
    """Whether the host runs the kernels of the device called `name`."""
    return DEVICES[name].emulated


def defaults_of(name: str) -> str:
    """The device whose default variants and sizes the one called `name` takes."""
    kind = DEVICES.get(name)
    return (kind and kind.defaults_of) or name
