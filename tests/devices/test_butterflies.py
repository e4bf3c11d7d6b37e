"""Lanes that read before any lane of their warp writes: the answers of NumPy, which also does."""

from pathlib import Path

import numpy as np
import pytest

from cudalab.backends.cpu.device import CpuDevice
from cudalab.language.source import load

LANES = np.arange(32)
FILE = Path(__file__).parent.parent / "kernels" / "butterflies.cu"


def across(s):
    for distance in (16, 8, 4, 2, 1):
        s = s + s[:, LANES ^ distance]
    return s


def from_below(s):
    return np.cumsum(s, axis=1)


def around(s):
    return np.roll(s, -1, axis=1) - np.roll(s, 1, axis=1)


def from_above(s):
    for distance in (8, 1):
        s = np.concatenate([s[:, :-distance] + s[:, distance:], s[:, -distance:]], axis=1)
    return s


def backwards(s):
    return np.concatenate([s[:, :-1] + s[:, 1:], s[:, -1:]], axis=1)


def in_branches(s):
    changed = np.where(LANES % 2, s[:, LANES ^ 2] - s, s)
    changed = np.where(s > 0, changed, s)
    products = np.where(LANES % 2, changed, s * changed[:, LANES ^ 4])
    return np.where(s > 0, products, s)


def in_functions(s):
    s = s + s[:, LANES ^ 8]
    return s + s[:, LANES ^ 1]


def of_structures(s):
    places = np.arange(s.size).reshape(s.shape)
    b = places - places[:, LANES ^ 16]
    return s + s[:, LANES ^ 16] + b[:, LANES ^ 3]


def tail(s):
    s = s.copy()
    s[0] = (s[0] + s[1]).sum()
    return s + LANES


@pytest.mark.parametrize("with_loops", [True, False], ids=["loops", "fibers"])
def test_lanes_of_a_warp_read_before_any_of_them_writes(with_loops):
    file = load(FILE, FILE.name)
    inputs = np.random.default_rng(3).integers(-99, 99, (3, 32)).astype(np.int32)
    with CpuDevice(2, loops=with_loops) as device:
        module = device.compile(file, {})
        for name in file.kernels:
            assert module[name].how == (
                "loops over the threads of a block" if with_loops else "fibers"
            ), name
            out = device.to_device(np.zeros_like(inputs))
            device.launch(module[name], 1, 96, device.to_device(inputs), out)
            device.synchronize()
            np.testing.assert_array_equal(
                device.to_host(out), globals()[name](inputs), err_msg=name
            )
