"""The limits of launches, and the labels of a device's numbers."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from cudalab.backends import limits
from cudalab.backends.base import DeviceInfo
from cudalab.errors import KernelError
from cudalab.output.labels import LABELS, labelled


@pytest.mark.parametrize(
    ("grid", "block", "expected"),
    [
        (1, 1024, ((1, 1, 1), (1024, 1, 1))),
        ((7, 65_535), (4, 4, 64), ((7, 65_535, 1), (4, 4, 64))),
        (0, 32, ((0, 1, 1), (32, 1, 1))),
        (2**31 - 1, 1, ((2**31 - 1, 1, 1), (1, 1, 1))),
    ],
)
def test_a_launch_in_three_dimensions(grid, block, expected):
    assert limits.launch_shape("k", grid, block) == expected


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 1025, "kernel k: a block of 1025 x 1 x 1 threads: 1 to 1024 are allowed"),
        (1, (1, 1, 65), "kernel k: a block of 1 x 1 x 65 threads"),
        (1, 0, "kernel k: a block of 0 x 1 x 1 threads"),
        (1, (-2, -2), "kernel k: a block of -2 x -2 x 1 threads"),
        (-1, 32, "kernel k: a grid of -1 x 1 x 1 blocks: 0 or more are allowed"),
        ((1, 65_536), 32, "kernel k: a grid of 1 x 65536 x 1 blocks"),
    ],
)
def test_what_no_device_launches(grid, block, message):
    with pytest.raises(KernelError) as caught:
        limits.launch_shape("k", grid, block)
    assert caught.value.message.startswith(message)


def test_shared_memory_up_to_the_device_s_limit():
    limits.check_shared("k", "the device", 1000, static=400, dynamic=600)
    with pytest.raises(KernelError) as caught:
        limits.check_shared("k", "the device", 1000, static=400, dynamic=601)
    assert caught.value.message == (
        "kernel k needs 1,001 bytes of shared memory a block (400 static, 601 dynamic): "
        "the device has 1,000"
    )


def test_every_number_of_a_device_has_a_label():
    assert set(LABELS) == {field.name for field in fields(DeviceInfo)}


def test_what_a_device_does_not_have_is_left_out():
    info = DeviceInfo(name="One", cores=2, capability=(9, 0), max_block=(1024, 1024, 64))
    assert labelled(asdict(info)) == {
        "name": "One",
        "compute capability": "9.0",
        "max block dimensions": "1024 x 1024 x 64",
        "warp size": 32,
        "multiprocessors": 2,
    }
