"""Devices that run kernels: `cuda` (PyCUDA) and `cpu` (the same .cu on the host)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.backends.base import Device

DEVICES = ("cuda", "cpu")


def open_device(device: str, threads: int | None = None) -> Device:
    """Open a device: "cuda", "cpu", or "auto" for the GPU where there is one, else the CPU.

    `threads` is the number of OS threads of the CPU device; None takes every core.
    NoDeviceError when the device, or what it needs, is not there.
    """
    if device == "auto":
        device = choose_device()
    if device == "cuda":
        from cudalab.backends.cuda.device import CudaDevice  # noqa: PLC0415 - imports PyCUDA

        return CudaDevice()
    from cudalab.backends.cpu.device import CpuDevice  # noqa: PLC0415 - not needed beside a GPU

    return CpuDevice(threads)


def choose_device() -> str:
    """What "auto" means on this machine: "cuda" when a GPU and PyCUDA are there, else "cpu"."""
    from cudalab.backends.cuda.device import device_available  # noqa: PLC0415 - asks the driver

    return "cuda" if device_available() else "cpu"
