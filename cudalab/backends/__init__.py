"""Devices that run kernels: `cuda` (PyCUDA) and `cpu` (the same .cu on the host).

`DEVICES` lists them. A new device is a folder in this package and a line in that list.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from cudalab.backends.base import Device


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What commands and launch plans ask of a kind of device, in the place of its name."""

    on_host: bool  # this process runs the kernels: their code must be examined and confined
    driver: bool  # a GPU's driver is behind it: processes take turns, features differ by machine
    nvcc: bool  # nvcc compiles for it, and NVIDIA's tools and libraries work on its memory
    instrumented: bool  # it counts accesses and finds mistakes
    gpu_times: bool  # its times are a GPU's; others are labelled
    clock: str  # whose clock times its launches: "device" or "host"
    many_threads: bool  # thousands run at once, and hide how long memory takes to answer


GPU = Facts(
    on_host=False,
    driver=True,
    nvcc=True,
    instrumented=False,
    gpu_times=True,
    clock="device",
    many_threads=True,
)
HOST = Facts(
    on_host=True,
    driver=False,
    nvcc=False,
    instrumented=True,
    gpu_times=False,
    clock="host",
    many_threads=False,
)


class DeviceClass(Protocol):
    """The interface of a device's class before a device is opened."""

    facts: Facts
    possible_features: frozenset[str]  # features that a device of the class may have

    def __call__(self, *args: Any) -> Device: ...

    def available(self) -> bool:
        """Whether this machine has such a device."""
        ...


class Kind(NamedTuple):
    """A kind of device. Its module is not imported before `load`."""

    place: str  # its class, as module:name
    facts: Facts
    defaults_of: str = ""  # the device whose default variants and sizes it has; empty: itself
    package: str = ""  # a Python package without which "auto" need not look for it

    def load(self) -> DeviceClass:
        """The device's class."""
        module, _, name = self.place.partition(":")
        device_class: DeviceClass = getattr(import_module(module), name)
        return device_class

    def available(self) -> bool:
        """Whether this machine has such a device."""
        if self.package and find_spec(self.package) is None:
            return False
        return self.load().available()


# In the order in which "auto" tries them.
DEVICES = {
    "cuda": Kind("cudalab.backends.cuda.device:CudaDevice", GPU, package="pycuda"),
    "cpu": Kind("cudalab.backends.cpu.device:CpuDevice", HOST),
}


def open_device(name: str, threads: int | None = None) -> Device:
    """Open a device of `DEVICES`, or "auto": the GPU if there is one, else the CPU.

    `threads` is the number of OS threads of a device on the host, whose class takes it; None takes
    every core.
    NoDeviceError when the device, or what it needs, is not there.
    """
    kind = DEVICES[choose_device(name)]
    return kind.load()(threads) if kind.facts.on_host else kind.load()()


def choose_device(name: str = "auto") -> str:
    """The name of the device to open; "auto" is the first one that this machine has."""
    if name != "auto":
        return name
    return next(each for each, kind in DEVICES.items() if kind.available())


def able_devices(features: Iterable[str]) -> list[str]:
    """The kinds of devices that may have all of `features`; only an opened device knows."""
    needed = set(features)
    return [name for name, kind in DEVICES.items() if needed <= kind.load().possible_features]


def facts(name: str) -> Facts:
    """What is known of the device called `name`."""
    return DEVICES[name].facts


def defaults_of(name: str) -> str:
    """The device whose default variants and sizes the device `name` has."""
    kind = DEVICES.get(name)
    return (kind and kind.defaults_of) or name


# For whole programs, which need no PyCUDA on a GPU -----------------------------------------------


def device_for(name: str) -> str:
    """The device called `name`; of "auto" a GPU where there is one, for nvcc needs no PyCUDA."""
    able = (each for each, kind in DEVICES.items() if not kind.facts.driver or has_gpu())
    return next(able) if name == "auto" else name


def host_device() -> str:
    """The device that compiles programs for the host."""
    return next(name for name, kind in DEVICES.items() if kind.facts.on_host)


def gpu_device() -> str:
    """The kind of device that a GPU is."""
    return next(name for name, kind in DEVICES.items() if kind.facts.driver)


def host_features() -> frozenset[str]:
    """The features of that device, which it has on every machine."""
    return DEVICES[host_device()].load().possible_features


def has_gpu() -> bool:
    """Whether the system has an NVIDIA GPU that this process may use."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        return False
    if any(name[6:].isdigit() for name in os.listdir("/dev") if name.startswith("nvidia")):  # noqa: PTH208 - quick
        return True
    return os.path.exists("/dev/dxg") and os.path.exists("/usr/lib/wsl/lib/libcuda.so")  # noqa: PTH110 - quick
