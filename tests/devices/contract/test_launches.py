"""What every device must do with a launch: arguments, grids, constants, prints."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from contract import DTYPES, load, random_ints, run

from cudalab.backends.base import C_TYPES
from cudalab.backends.meter import open_meter
from cudalab.errors import CudalabError


def test_scalars_of_every_type(device, launches):
    scalars = (
        np.bool_(True),
        np.int8(-128),
        np.uint8(255),
        np.int16(-32768),
        np.uint16(65535),
        np.int32(-(2**31)),
        np.uint32(2**32 - 1),
        np.int64(-(2**63)),
        np.uint64(2**64 - 1),
        np.float32(-0.1),
        np.float64(math.pi),
    )
    (out,) = run(device, launches, "store_scalars", 1, 1, np.zeros(11, np.int64), *scalars)
    assert out[:9].tolist() == [1, -128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2**63), -1]
    assert out[9].astype(np.int32).view(np.float32) == scalars[9]
    assert out[10].view(np.float64) == scalars[10]


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        (1, 1),
        (3, 33),
        ((5,), (7,)),
        ((4, 3), (8, 6)),
        ((2, 3, 4), (5, 3, 2)),
        ((1, 1, 5), (1, 1, 64)),
        (1, 1024),
        ((1, 300), (2, 512)),
    ],
)
def test_coordinates(device, launches, grid, block):
    def numpy_shape(dim):
        dims = (dim,) if isinstance(dim, int) else dim
        return tuple(reversed((*dims, 1, 1)[:3]))

    shape = (*numpy_shape(grid), *numpy_shape(block))
    expected = np.stack(np.indices(shape), axis=-1).reshape(-1, 6).astype(np.uint32)
    (out,) = run(device, launches, "store_coordinates", grid, block, np.zeros_like(expected))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_defines_reach_the_kernel(device, dtype):
    module = load(device, "launches.cu", T=C_TYPES[dtype], FACTOR=5)
    array = np.arange(50).astype(dtype)
    before, after = run(device, module, "scale", 2, 32, array, np.zeros_like(array), np.uint32(50))
    np.testing.assert_array_equal(after, 5 * array)
    np.testing.assert_array_equal(before, array)


def test_many_blocks(device, launches):
    n = 70_001 * 32 - 5
    array = random_ints(n)
    before, after = run(
        device, launches, "scale", 70_001, 32, array, np.zeros_like(array), np.uint32(n)
    )
    np.testing.assert_array_equal(after, 3 * array)
    np.testing.assert_array_equal(before, array)


@pytest.mark.parametrize("grid", [0, (0, 5), (5, 0, 2)])
def test_no_blocks(device, launches, grid):
    (count,) = run(device, launches, "count_blocks", grid, 32, np.zeros(1, np.uint32))
    assert count[0] == 0


def test_every_block_runs_once(device, launches):
    (count,) = run(device, launches, "count_blocks", (100, 20, 3), 40, np.zeros(1, np.uint32))
    assert count[0] == 6000


def test_empty_buffer_as_argument(device, launches):
    empty = np.zeros(0, np.int32)
    run(device, launches, "scale", 1, 32, empty, empty, np.uint32(0))
    run(device, launches, "do_nothing", 1, 32)


def test_wrong_number_of_arguments(device, launches):
    with pytest.raises(CudalabError, match="scale takes 3 parameters, launched with 1"):
        device.launch(launches["scale"], 1, 32, np.uint32(1))


@pytest.mark.parametrize("value", [7, 1.5, None, "text", [1]])
def test_wrong_type_of_argument(device, launches, value):
    buffer = device.empty(1, "i4")
    kind = type(value).__name__
    with pytest.raises(TypeError, match=f"argument 2 of kernel scale is a {kind}"):
        device.launch(launches["scale"], 1, 32, buffer, buffer, value)


def test_missing_kernel(launches):
    with pytest.raises(CudalabError, match=r"launches\.cu defines no kernel scan;.*do_nothing"):
        launches["scan"]


def test_kernel_knows_its_parameters(launches):
    assert launches["store_scalars"].name == "store_scalars"
    assert launches["store_scalars"].num_params == 12
    assert launches["do_nothing"].num_params == 0


@pytest.mark.parametrize("block", [1025, (32, 33), (1024, 2), (8, 8, 17)])
def test_too_many_threads(device, launches, block):
    with pytest.raises(CudalabError, match="1024"):
        device.launch(launches["do_nothing"], 1, block)
    device.launch(launches["do_nothing"], 1, 1)
    device.synchronize()


def test_timer(device, launches):
    n = 100_000
    array = device.to_device(random_ints(n))
    timer = open_meter(device).timer()
    timer.start()
    device.launch(launches["scale"], -(-n // 256), 256, array, array, np.uint32(n))
    timer.stop()
    assert 0 < timer.ms < 60_000
    assert math.isfinite(timer.ms)


def test_constants(device):
    module = load(device, "constants.cu")
    coefficients = np.array([1, -2, 0.5, 3], np.float32)
    target = device.constant(module, "coefficients")
    assert target.nbytes == 16
    device.copy(coefficients, target)
    device.copy(np.array([100], np.int32), device.constant(module, "offset"))
    device.copy(np.array([0], np.uint32), device.constant(module, "launches"))
    x = np.arange(8, dtype=np.float32)
    for _ in range(2):
        _, y = run(device, module, "evaluate", 1, 8, x, np.zeros_like(x))
        np.testing.assert_array_equal(y, 100 + np.polynomial.Polynomial(coefficients)(x))
    launched = device.to_host(device.constant(module, "launches"))
    assert launched.view(np.uint32)[0] == 2
    with pytest.raises(CudalabError, match="nothing_such"):
        device.constant(module, "nothing_such")


@pytest.mark.parametrize(("name", "value"), [("shared_bytes", 32), ("first_power", 1 << 20)])
def test_a_module_tells_the_host_what_its_variables_begin_with(device, name, value):
    module = load(device, "constants.cu")
    assert device.to_host(device.constant(module, name)).view(np.uint32)[0] == value


def test_printing(device, capfd):
    module = load(device, "printing.cu")
    device.launch(module["print_place"], 2, 2, np.float64(1.5))
    device.synchronize()
    ctypes.CDLL(None).fflush(None)  # C's own buffer of stdout
    printed = "".join(capfd.readouterr()).splitlines()
    assert sorted(printed) == [
        f"block {block} thread {thread}: value 1.500 50%" for block in (0, 1) for thread in (0, 1)
    ]
