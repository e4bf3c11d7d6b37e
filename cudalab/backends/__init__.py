"""Devices that run kernels: `cuda` (PyCUDA) and `cpu` (the same .cu on the host)."""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.backends.base import Backend

DEVICES = ("cuda", "cpu")


def open_backend(device: str, threads: int | None = None) -> Backend:
    """Open a device: "cuda", "cpu", or "auto" for the GPU where there is one, else the CPU.

    `threads` is the number of OS threads of the CPU device; None takes every core.
    NoDeviceError when the device, or what it needs, is not there.
    """
    if device == "auto":
        device = choose_device()
    if device == "cuda":
        from cudalab.backends.cuda import CudaBackend  # noqa: PLC0415 - imports PyCUDA

        return CudaBackend()
    from cudalab.backends.cpu import CpuBackend  # noqa: PLC0415 - not needed beside a GPU

    return CpuBackend(threads)


def begin_to_open_gpu() -> None:
    """Have the driver create the GPU's context in a thread: 0.2 s, while Python imports NumPy.

    The backend finds what there is then, and says what is missing. A process that forks its work
    must not call this: CUDA does not work in its child.
    """
    if find_spec("pycuda") is not None:
        threading.Thread(target=_retain_primary_context, name="open the GPU").start()


def _retain_primary_context() -> None:
    """Until the process ends. Does nothing where there is no driver or no device."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    with suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def choose_device() -> str:
    """What "auto" means on this machine: "cuda" when a GPU and PyCUDA are there, else "cpu"."""
    from cudalab.backends.cuda import device_available  # noqa: PLC0415 - asks the driver

    return "cuda" if device_available() else "cpu"
