"""What the tests of the devices' contract share: kernels, launches and data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cudalab.language import source

KERNELS = Path(__file__).parent / "kernels"


DTYPES = ("uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")


def load(device, file, **defines):
    return device.compile(source.load(KERNELS / file, file), defines)


def run(device, module, kernel, grid, block, *args, shared_bytes=0):
    """Launch with arrays copied to the device; return what the arrays are afterwards."""
    passed = [device.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    device.launch(module[kernel], grid, block, *passed, shared_bytes=shared_bytes)
    return [
        device.to_host(sent)
        for sent, arg in zip(passed, args, strict=True)
        if isinstance(arg, np.ndarray)
    ]


def random_ints(shape, low=-1000, high=1000, seed=1):
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)
