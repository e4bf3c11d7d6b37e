"""Creates the GPU's context before the device needs it. Imports nothing heavy."""

import ctypes
import threading
from contextlib import suppress
from importlib.util import find_spec


def begin_to_open_gpu() -> None:
    """Have the driver create the GPU's context in a thread: 0.2 s, while Python imports NumPy.

    The device finds what there is then, and says what is missing. A process that forks its work
    must not call this: CUDA does not work in its child.
    """
    if find_spec("pycuda") is not None:
        threading.Thread(target=_retain_primary_context, name="open the GPU").start()


def _retain_primary_context() -> None:
    """Retain the context until the process ends. Does nothing without a driver or a device."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    with suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
