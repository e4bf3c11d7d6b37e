"""NVIDIA's driver, asked directly: what it says needs no PyCUDA and creates no context."""

import ctypes
from typing import Any, NamedTuple

from cudalab.errors import NoDeviceError

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class Release(NamedTuple):
    """A version of CUDA, such as 12.4."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class Gpu(NamedTuple):
    """The GPU that the CUDA device would be."""

    name: str
    arch: str  # such as sm_75


def library() -> Any:
    """The driver's library. OSError if it cannot be loaded."""
    return ctypes.CDLL(LIBRARY)


def release() -> Release | None:
    """The newest CUDA that the driver knows; None without a driver. Does not initialise it."""
    version = ctypes.c_int()
    try:
        if library().cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return Release(version.value // 1000, version.value % 1000 // 10)


def first_gpu() -> Gpu:
    """The first GPU that is visible. NoDeviceError with the driver's reason if there is none.

    It initialises the driver: a process that forks its work must not call this.
    """
    driver, device, text = library(), ctypes.c_int(), ctypes.create_string_buffer(256)
    major, minor = ctypes.c_int(), ctypes.c_int()
    status = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or driver.cuDeviceGetName(text, len(text), device)
        or driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
        or driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
    )
    if status:
        raise NoDeviceError(reason(driver, status))
    return Gpu(text.value.decode(errors="replace"), f"sm_{major.value}{minor.value}")


def reason(driver: Any, status: int) -> str:
    """The driver's words for an error."""
    text = ctypes.c_char_p()
    driver.cuGetErrorString(status, ctypes.byref(text))
    return (text.value or b"unknown error").decode(errors="replace") + f" (error {status})"
