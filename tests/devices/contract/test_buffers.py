"""What every device must do with memory: copies, pipes, fills, refusals."""

from __future__ import annotations

import os
import threading
from dataclasses import asdict

import numpy as np
import pytest
from contract import DTYPES, load, random_ints, run

from cudalab.backends.base import Device, overwrite
from cudalab.backends.meter import open_meter
from cudalab.errors import CudalabError, DeviceMemoryError, InputError
from cudalab.formats import InputStream
from cudalab.output.labels import labelled

LARGE = 20_000_003  # bytes: more than a device takes in one piece


def concatenate(pieces):
    return b"".join(bytes(piece) for piece in pieces)  # a piece lives until the next


def test_protocol(device, device_name):
    assert isinstance(device, Device)
    assert device.name == device_name
    assert isinstance(device.features, frozenset)
    info = device.info()
    assert info.name
    assert info.cores > 0
    table = labelled(asdict(info))
    assert len(table) > 10
    assert all(isinstance(value, str | int | float) for value in table.values())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (1,), (1000,), (0, 7), (7, 0), (31, 33), (3, 4, 5)])
def test_round_trip(device, shape, dtype):
    array = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    buffer = device.to_device(array)
    assert (buffer.shape, buffer.dtype, buffer.nbytes) == (shape, array.dtype, array.nbytes)
    back = device.to_host(buffer)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    assert concatenate(device.chunks(buffer)) == array.tobytes()


def test_large_round_trip(device):
    array = np.random.default_rng(0).integers(0, 256, LARGE).astype(np.uint8)
    buffer = device.to_device(array)
    np.testing.assert_array_equal(device.to_host(buffer), array)
    assert concatenate(device.chunks(buffer)) == array.tobytes()


def test_strided_arrays(device):
    array = np.arange(60, dtype=np.int32).reshape(6, 10)
    for view in (array.T, array[::2, ::-3], array[:, 3]):
        np.testing.assert_array_equal(device.to_host(device.to_device(view)), view)


def test_shape_of_one_number(device):
    assert device.empty(5, np.float32).shape == (5,)
    assert device.empty((2, 3), "float64").nbytes == 48


def test_upload_is_a_copy(device):
    array = np.arange(10, dtype=np.int32)
    buffer = device.to_device(array)
    array[:] = -1
    np.testing.assert_array_equal(device.to_host(buffer), np.arange(10))


def test_answers_stay_as_they_are(device, launches):
    """What to_host returned is not what a later launch writes to."""
    source_, target = device.to_device(np.arange(100, dtype=np.int32)), device.empty(100, "i4")
    device.launch(launches["scale"], 1, 128, source_, target, np.uint32(100))
    first = device.to_host(target)
    device.launch(launches["scale"], 1, 128, target, target, np.uint32(100))
    second = device.to_host(target)
    np.testing.assert_array_equal(first, 3 * np.arange(100))
    np.testing.assert_array_equal(second, 9 * np.arange(100))


def feed(data, sizes):
    """A pipe into which `data` is written in pieces of `sizes`, round and round."""
    reading, writing = os.pipe()

    def write():
        position, turn = 0, 0
        while position < len(data):
            position += os.write(writing, data[position : position + sizes[turn % len(sizes)]])
            turn += 1
        os.close(writing)

    thread = threading.Thread(target=write)
    thread.start()
    return reading, thread


@pytest.mark.parametrize(
    ("nbytes", "sizes"), [(0, [1]), (4, [1]), (4000, [1, 2, 3, 997]), (LARGE // 4 * 4, [99_991])]
)
def test_upload_from_a_pipe(device, nbytes, sizes):
    data = np.random.default_rng(0).integers(0, 256, nbytes).astype(np.uint8).tobytes()
    reading, thread = feed(data, sizes)
    try:
        payload = InputStream(reading).payload("keys", np.uint32, nbytes // 4)
        buffer = device.to_device(payload)
    finally:
        os.close(reading)
        thread.join()
    assert (buffer.shape, buffer.dtype) == ((nbytes // 4,), np.uint32)
    assert device.to_host(buffer).tobytes() == data


@pytest.mark.parametrize("nbytes", [0, 3999, LARGE - 1])
def test_truncated_upload(device, nbytes):
    reading, thread = feed(bytes(nbytes), [65_537])
    announced = max(4000, LARGE) if nbytes > 4000 else 4000
    try:
        payload = InputStream(reading).payload("keys", np.uint8, announced)
        with pytest.raises(InputError, match=f"ends at byte {nbytes}, expected byte {announced}"):
            device.to_device(payload)
    finally:
        os.close(reading)
        thread.join()


def test_upload_of_a_matrix(device, tmp_path):
    matrix = np.arange(12, dtype=np.float64).reshape(3, 4)
    (tmp_path / "in.bin").write_bytes(matrix.tobytes())
    with (tmp_path / "in.bin").open("rb") as file:
        payload = InputStream(file.fileno()).payload("A", np.float64, 3, 4)
        np.testing.assert_array_equal(device.to_host(device.to_device(payload)), matrix)


def test_copy(device):
    array = np.arange(1000, dtype=np.float32)
    first, second = device.empty(1000, "f4"), device.empty((10, 100), "f4")
    device.copy(array, first)
    device.copy(first, second)
    array[:] = 0
    np.testing.assert_array_equal(device.to_host(second).ravel(), np.arange(1000))
    device.copy(device.empty(0, "u1"), device.empty(0, "u1"))
    with pytest.raises((CudalabError, ValueError)):
        device.copy(first, device.empty(999, "f4"))


def fill_by_meter(device, buffer, value):
    open_meter(device).fill(buffer, value)


@pytest.mark.parametrize("fill", [overwrite, fill_by_meter])
def test_fill(device, fill):
    buffer = device.to_device(np.zeros(1001, np.int32))
    fill(device, buffer, 0xA5)
    assert (device.to_host(buffer).view(np.uint8) == 0xA5).all()
    fill(device, device.empty(0, "u1"), 1)


def test_headers_of_cuda(device):
    array = random_ints(256)
    _, sums, halves = run(
        device,
        load(device, "headers.cu"),
        *("sums", 2, 128, array, np.zeros(2, np.int32), np.zeros(256, np.float32)),
    )
    np.testing.assert_array_equal(sums, array.reshape(2, 128).sum(axis=1))
    thirds = (array.astype(np.float32) / np.float32(3)).astype(np.float16)
    np.testing.assert_array_equal(halves, np.where(array < 0, np.inf, thirds))


def test_asynchronous_copies(device):
    module = load(device, "async_copies.cu")
    array, blank = random_ints(4 * 150), np.zeros(192, np.int32)
    more = (blank, blank, np.int32(150))
    _, _, after = run(device, module, "before_and_after", 3, 64, array, *more)
    np.testing.assert_array_equal(after[:150], array[::4] + array[3::4])
    np.testing.assert_array_equal(after[150:], 0)
    array = np.arange(96, dtype=np.int32)
    _, out = run(device, module, "groups", 1, 32, array, np.zeros(32, np.int32))
    first = np.arange(31, -1, -1)
    np.testing.assert_array_equal(out, first + 1000 * (first + 32) + 1_000_000 * (first + 64))


def test_out_of_memory(device):
    with pytest.raises(DeviceMemoryError):
        device.empty(1 << 50, np.uint8)
    np.testing.assert_array_equal(device.to_host(device.to_device(np.arange(3))), np.arange(3))
