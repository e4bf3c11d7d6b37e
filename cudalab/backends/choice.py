"""Which device compiles a whole program. Unlike a lab's kernels, it needs no PyCUDA on a GPU."""

import os

from cudalab.backends import DEVICES


def device_for(name: str) -> str:
    """The device called `name`; of "auto" a GPU where there is one, for nvcc needs no PyCUDA."""
    able = (each for each, kind in DEVICES.items() if not kind.facts.driver or has_gpu())
    return next(able) if name == "auto" else name


def host_device() -> str:
    """The device that compiles programs for the host."""
    return next(name for name, kind in DEVICES.items() if kind.facts.on_host)


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
