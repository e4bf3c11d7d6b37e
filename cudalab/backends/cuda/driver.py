"""NVIDIA's driver, asked directly or through PyCUDA, and what GPUs can do. Imports are light."""

import ctypes
import threading
import warnings
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from cudalab.errors import NoDeviceError, install_command

LIBRARY = "libcuda.so.1"
FIRST_WHEEL = 13  # the first CUDA whose nvcc is a wheel; drivers before 580 do not run its code
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_CAPABILITIES = (70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)
# KiB of shared memory that a block may have, from 8.0 on; 99 for others.
_SHARED_KIB = {80: 163, 87: 163, 90: 227, 100: 227, 103: 227, 110: 227}
_NO_GPU_HINT = "`nvidia-smi` lists the GPUs; CUDA_VISIBLE_DEVICES may hide them; or --device cpu"


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


@cache
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


def kernel_module() -> str:
    """The version of the driver's kernel module, such as "580.95, ", where the system tells it."""
    try:
        return Path("/sys/module/nvidia/version").read_text(encoding="ascii").strip() + ", "
    except OSError:
        return ""


def extra() -> str:
    """The extra that brings what the CUDA device needs, for the driver of this machine."""
    newest = release()
    return "cuda12" if newest and newest.major < FIRST_WHEEL else "cuda"


def features_of(capability: int) -> frozenset[str]:
    """The features that `requires` may name on a device such as 90 (compute capability 9.0)."""
    features = {"inline_ptx", f"sm_{capability}"}
    features.update(f"sm_{known}" for known in _CAPABILITIES if known <= capability)
    if capability >= 70:
        features.add("tensor_cores")
    if capability >= 80:
        room = _SHARED_KIB.get(capability, 99)
        features.update(f"shared_{kib}kb" for kib in (96, 160, 224) if kib <= room)
    if capability >= 90:
        features.update(("bulk_copy", "clusters", f"sm_{capability}a"))
    return frozenset(features)


POSSIBLE_FEATURES = frozenset[str]().union(*map(features_of, _CAPABILITIES))


# Opening a GPU ---------------------------------------------------------------------------------


def unavailable_reason() -> str | None:
    """Why there is no usable GPU; None if there is one. Creates no context."""
    try:
        load()
    except NoDeviceError as error:
        return error.message
    return None


def load() -> Any:
    """PyCUDA's initialised driver interface. NoDeviceError says what is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each warning is also raised as an error
            from pycuda import driver  # noqa: PLC0415 - an extra that few machines need
    except ModuleNotFoundError as error:
        raise NoDeviceError(
            f"the CUDA device needs PyCUDA: {error}",
            hint=f"`{install_command(extra())}`; PyCUDA is built from source: "
            "`cudalab device --why` says what that takes",
        ) from None
    except ImportError as error:
        raise NoDeviceError(
            f"PyCUDA cannot be loaded: {error}",
            hint="it needs NVIDIA's driver (libcuda.so.1) and must be built for this Python: "
            "`cudalab device --why` says what is wrong",
        ) from None
    try:
        driver.init()
        if driver.Device.count() == 0:
            raise NoDeviceError("there is no CUDA device", hint=_NO_GPU_HINT)
    except driver.Error as error:
        raise NoDeviceError(f"there is no CUDA device: {words_of(error)}", _NO_GPU_HINT) from None
    return driver


def words_of(error: Exception) -> str:
    """The message of a driver error, without the name of the call."""
    return str(error).partition(" failed: ")[2] or str(error)


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
        driver = library()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
