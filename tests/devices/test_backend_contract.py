"""What every device must do: one suite, run on each of them (`pytest --device cpu|cuda|all`)."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import threading
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from cudalab.backends import facts, open_device
from cudalab.backends.base import C_TYPES, Device, message, overwrite
from cudalab.backends.meter import QueueMeter, open_meter
from cudalab.checker.submit.submission import copy_runtime
from cudalab.errors import (
    CudalabError,
    DeviceMemoryError,
    ExitCode,
    InputError,
    KernelCompileError,
    KernelError,
)
from cudalab.formats import InputStream
from cudalab.language import source
from cudalab.output.labels import labelled
from cudalab.system.cache import cache_dir

KERNELS = Path(__file__).parents[1] / "kernels"
DTYPES = ("uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")
LARGE = 20_000_003  # bytes: more than a device takes in one piece
FULL = 0xFFFFFFFF


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


def concatenate(pieces):
    return b"".join(bytes(piece) for piece in pieces)  # a piece lives until the next


@pytest.fixture(scope="module")
def launches(device):
    return load(device, "launches.cu", T="int", FACTOR=3)


@pytest.fixture(scope="module")
def blocks(device):
    return load(device, "blocks.cu")


@pytest.fixture(scope="module")
def warps(device):
    return load(device, "warps.cu")


@pytest.fixture(scope="module")
def atomics(device):
    return load(device, "atomics.cu")


@pytest.fixture(scope="module")
def arithmetic(device):
    return load(device, "arithmetic.cu")


# Buffers


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


# Launches


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


# Compiling


def test_compile_error(device):
    with pytest.raises(KernelCompileError) as caught:
        load(device, "rejected.cu")
    assert "rejected.cu:4:" in caught.value.message
    assert "undeclared_name" in caught.value.message
    assert caught.value.exit_code == ExitCode.COMPILE_ERROR == 5


@pytest.fixture
def own_cache(device_name, tmp_path, monkeypatch):
    """A cache without a compiled kernel; a host's runtime, which takes long, is there."""
    if facts(device_name).on_host:
        copy_runtime(tmp_path / "cache", check=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_dir.cache_clear()
    yield tmp_path / "cache"
    cache_dir.cache_clear()


def works(device, tmp_path):
    module = device.compile(source.load(tmp_path / "own.cu"), {"VALUE": 7})
    (out,) = run(device, module, "store", 1, 4, np.zeros(4, np.int32))
    return out.tolist() == [7] * 4


@pytest.fixture
def own_file(tmp_path):
    """A file that nobody has compiled before."""
    text = 'extern "C" __global__ void store(int *out) { out[threadIdx.x] = VALUE; }\n'
    (tmp_path / "own.cu").write_text(f"// {tmp_path}\n{text}")


@pytest.mark.usefixtures("own_cache", "own_file")
def test_second_compilation_starts_no_compiler(device_name, tmp_path, monkeypatch):
    with open_device(device_name) as device:
        assert works(device, tmp_path)

    def start(*_args, **_kwargs):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", start)
    with open_device(device_name) as device:
        assert works(device, tmp_path)


@pytest.mark.usefixtures("own_file")
def test_damaged_cache(device_name, tmp_path, own_cache):
    with open_device(device_name) as device:
        assert works(device, tmp_path)
    entries = [path for path in own_cache.rglob("*") if path.is_file()]
    assert entries
    for path in entries:  # replaced, not overwritten: the module may still be mapped
        half = path.with_name("half")
        half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        half.replace(path)
    with open_device(device_name) as device:
        assert works(device, tmp_path)


@pytest.mark.usefixtures("own_cache")
def test_changed_definitions_are_compiled(device_name, tmp_path):
    (tmp_path / "own.cu").write_text(
        'extern "C" __global__ void store(int *out) { out[0] = VALUE; }\n'
    )
    with open_device(device_name) as device:
        for value in (1, 2):
            module = device.compile(source.load(tmp_path / "own.cu"), {"VALUE": value})
            (out,) = run(device, module, "store", 1, 1, np.zeros(1, np.int32))
            assert out[0] == value


# Blocks


@pytest.mark.parametrize(
    ("threads", "n"), [(1, 1), (32, 32), (200, 77), (128, 33), (100, 100), (1024, 1000)]
)
def test_barrier_after_early_return(device, blocks, threads, n):
    array = random_ints((5, n))
    _, out = run(
        device, blocks, "scan_after_early_return", 5, threads, array, 0 * array, np.int32(n)
    )
    np.testing.assert_array_equal(out, np.cumsum(array, axis=1))


@pytest.mark.parametrize("threads", [1, 31, 32, 33, 100, 1024])
def test_static_shared_memory(device, blocks, threads):
    array = random_ints((50, threads))
    _, out = run(device, blocks, "reverse_static", 50, threads, array, 0 * array)
    np.testing.assert_array_equal(out, array[:, ::-1])


@pytest.mark.parametrize("n", [1, 1000, 12_288, 12_289, 15_360])
def test_dynamic_shared_memory(device, blocks, n):
    array = random_ints(n)
    _, out = run(
        device, blocks, "reverse_dynamic", 1, 96, array, 0 * array, np.int32(n), shared_bytes=4 * n
    )
    np.testing.assert_array_equal(out, array[::-1])


def test_shared_memory_of_the_file(device):
    module = load(device, "file_scope.cu")
    array = random_ints((3, 100))
    _, out = run(device, module, "reverse_block", 3, 100, array, 0 * array, shared_bytes=400)
    np.testing.assert_array_equal(out, array[:, ::-1])
    _, out = run(device, module, "reverse_words", 3, 100, array, 0 * array)
    np.testing.assert_array_equal(out, array[:, ::-1])


def test_too_much_shared_memory(device, blocks):
    buffer = device.empty(1, "i4")
    with pytest.raises(KernelError, match=r"reverse_dynamic.*shared memory"):
        device.launch(
            blocks["reverse_dynamic"], 1, 32, buffer, buffer, np.int32(0), shared_bytes=1 << 20
        )


@pytest.mark.parametrize("threads", [32, 50, 96, 333])
def test_voting_barriers(device, blocks, threads):
    array = random_ints((4, threads), 0, 2)
    array[1], array[2] = 0, 1
    _, out = run(
        device, blocks, "vote_at_barrier", 4, threads, array, np.zeros((4, threads, 3), np.int32)
    )
    expected = np.stack([array.sum(1), array.all(1), array.any(1)], axis=-1)
    np.testing.assert_array_equal(out, np.broadcast_to(expected[:, None, :], out.shape))


def test_barriers_in_templates(device, blocks):
    array = random_ints((8, 100))
    _, sums, halves = run(
        device,
        blocks,
        "sum_by_template",
        8,
        100,
        array,
        np.zeros((8, 100), np.int64),
        np.zeros((8, 100)),
    )
    total = np.broadcast_to(array.sum(1)[:, None], (8, 100))
    np.testing.assert_array_equal(sums, 6 * total)
    np.testing.assert_array_equal(halves, 0.5 * total)


@pytest.mark.parametrize("threads", [1, 64])
def test_blocks_that_wait_for_earlier_ones(device, blocks, threads):
    n = 5000
    array = random_ints(n, 0, 1000).astype(np.uint32)
    state = np.zeros(n, np.uint32)
    out = np.zeros((n, threads), np.uint32)
    _, out, _, ready = run(
        device, blocks, "chain_blocks", n, threads, array, out, state, state.copy()
    )
    expected = np.broadcast_to(np.cumsum(array, dtype=np.uint32)[:, None], out.shape)
    np.testing.assert_array_equal(out, expected)
    assert ready.all()


# Warps


def shuffled(array, width, lanes, ops):
    """For each op: the source of each thread by its rule, and whether that thread exists."""
    lane = np.arange(len(array)) % 32
    start = lane - lane % width
    source_lanes = [op(lane, start) for op in ops]
    first = np.arange(len(array)) - lane
    return [(first + chosen, first + chosen < lanes) for chosen in source_lanes]


@pytest.mark.parametrize("threads", [32, 64, 45, 7])
@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("by", [0, 1, 3, 7])
def test_shuffles(device, warps, threads, width, by):
    array = random_ints(threads)
    _, ints, doubles = run(
        device,
        warps,
        "shuffle",
        1,
        threads,
        array,
        np.zeros((threads, 4), np.int32),
        np.zeros((threads, 4)),
        np.int32(width),
        np.int32(by),
    )

    def up(lane, start):
        return np.where(lane - by < start, lane, lane - by)

    def down(lane, start):
        return np.where(lane + by >= start + width, lane, lane + by)

    def xor(lane, _start):
        return lane ^ by

    expected = shuffled(array, width, threads, [lambda _, start: start + by % width, up, down, xor])
    for column, (chosen, exists) in enumerate(expected):
        np.testing.assert_array_equal(ints[exists, column], array[chosen[exists]])
    expected[0] = shuffled(
        array, width, threads, [lambda lane, start: start + (lane + by) % width]
    )[0]
    for column, (chosen, exists) in enumerate(expected):
        np.testing.assert_array_equal(doubles[exists, column], array[chosen[exists]] + 0.25)


def by_warp(array):
    return [array[start : start + 32] for start in range(0, len(array), 32)]


def ballot(predicates):
    return sum(1 << lane for lane, predicate in enumerate(predicates) if predicate)


@pytest.mark.parametrize("threads", [32, 96, 45, 1])
def test_votes(device, warps, threads):
    array = random_ints(threads, 0, 4)
    array[:32] += 100 * (np.arange(min(threads, 32)) % 2)
    _, out = run(device, warps, "vote", 1, threads, array, np.zeros((threads, 6), np.uint32))
    expected = []
    for warp in by_warp(array):
        everyone = ballot(warp >= 0)
        alike = len(set((warp // 100).tolist())) == 1
        expected += [
            [
                ballot(warp & 1),
                (warp == 3).any(),
                (warp < 3).all(),
                ballot(warp == value),
                everyone if alike else 0,
                alike,
            ]
            for value in warp
        ]
    np.testing.assert_array_equal(out, np.array(expected, np.uint32))


def test_disjoint_masks(device, warps):
    array = random_ints(96)
    _, out = run(device, warps, "half_warps", 1, 96, array, np.zeros_like(array))
    for warp, got in zip(by_warp(array), by_warp(out), strict=True):
        np.testing.assert_array_equal(got[:16], np.full(16, warp[:16].sum()))
        np.testing.assert_array_equal(got[16:], warp[:15:-1] + 1000 * (warp[16:] & 1).sum())


@pytest.mark.parametrize("threads", [32, 64, 45, 1])
def test_synchronized_warps(device, warps, threads):
    array = random_ints(threads)
    _, out = run(
        device, warps, "rotate_in_warp", 1, threads, array, np.zeros_like(array), np.int32(5)
    )
    expected = np.concatenate([np.roll(warp, -5) for warp in by_warp(array)])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("threads", [32, 64, 45, 1])
def test_warp_reductions(device, threads):
    if device.name == "cuda" and "sm_80" not in device.features:
        pytest.skip("__reduce_*_sync needs compute capability 8.0")
    module = load(device, "warp_reductions.cu")
    array = random_ints(threads, -(2**31), 2**31)
    _, out = run(
        device, module, "reduce_warps", 1, threads, array, np.zeros((threads, 9), np.uint32)
    )
    for warp, got in zip(by_warp(array), by_warp(out), strict=True):
        words = warp.view(np.uint32)
        total = words.sum(dtype=np.uint32)
        expected = [
            total,
            total,
            words.min(),
            warp.min().view(np.uint32),
            words.max(),
            warp.max().view(np.uint32),
            np.bitwise_and.reduce(words),
            np.bitwise_or.reduce(words),
            np.bitwise_xor.reduce(words),
        ]
        np.testing.assert_array_equal(got, np.broadcast_to(np.array(expected), got.shape))


# Atomics

TOTALS = np.dtype(
    [
        *((name, "i4") for name in ("sum", "difference", "least", "greatest")),
        *((name, "u4") for name in ("usum", "uleast", "ugreatest", "conjunction")),
        *((name, "u4") for name in ("disjunction", "parity", "up", "down")),
        *((name, "u8") for name in ("wide_sum", "wide_least", "wide_greatest", "wide_parity")),
        *((name, "f4") for name in ("fsum", "fgreatest")),
        ("dsum", "f8"),
    ],
    align=True,
)


@pytest.mark.parametrize("memory", ["global", "shared"])
@pytest.mark.parametrize("n", [1, 100, 5000])
def test_atomic_totals(device, atomics, memory, n):
    array = random_ints(n, -(2**31), 2**31, seed=n)
    totals = device.to_device(np.zeros(TOTALS.itemsize, np.uint8))
    device.launch(atomics["clear_totals"], 1, 1, totals)
    grid = -(-n // 128) if memory == "global" else 1
    device.launch(
        atomics[f"total_in_{memory}_memory"],
        grid,
        128,
        device.to_device(array),
        totals,
        np.int32(n),
    )
    got = device.to_host(totals).view(TOTALS)[0]
    words = array.view(np.uint32)
    wide = words.astype(np.uint64) << np.uint64(20)
    down = 5
    for _ in range(n):
        down = down - 1 if 0 < down <= 12 else 12
    expected = {
        "sum": array.sum(dtype=np.int32),
        "difference": (-array).sum(dtype=np.int32),
        "least": array.min(),
        "greatest": array.max(),
        "usum": words.sum(dtype=np.uint32),
        "uleast": words.min(),
        "ugreatest": words.max(),
        "conjunction": np.bitwise_and.reduce(words),
        "disjunction": np.bitwise_or.reduce(words),
        "parity": np.bitwise_xor.reduce(words),
        "up": n % 10,
        "down": down,
        "wide_sum": wide.sum(),
        "wide_least": wide.min(),
        "wide_greatest": wide.max(),
        "wide_parity": np.bitwise_xor.reduce(wide),
        "fsum": (array & 7).sum(),
        "fgreatest": (array & 1023).max(),
        "dsum": 0.5 * (array & 7).sum(),
    }
    assert {name: got[name] for name in TOTALS.names} == expected


def test_atomics_return_what_was_there(device, atomics):
    n = 4096
    next_, tickets, token, wide_token, tokens, wide_tokens = run(
        device,
        atomics,
        "draw_tickets",
        n // 64,
        64,
        np.zeros(1, np.uint32),
        np.zeros(n, np.uint32),
        np.array([-1], np.int32),
        np.zeros(1, np.uint64),
        np.zeros(n, np.int32),
        np.zeros(n, np.uint64),
    )
    assert next_[0] == n
    np.testing.assert_array_equal(np.sort(tickets), np.arange(n))
    np.testing.assert_array_equal(np.sort([*tokens, token[0]]), np.arange(-1, n))
    handed_on = np.sort(np.concatenate([wide_tokens, wide_token]))
    np.testing.assert_array_equal(handed_on[1:], 2**32 + np.arange(n, dtype=np.uint64))
    assert handed_on[0] == 0


def test_lock_between_blocks(device, atomics):
    _, count = run(
        device, atomics, "count_under_lock", 200, 32, np.zeros(1, np.uint64), np.zeros(1, np.int32)
    )
    assert count[0] == 200


# Arithmetic


def test_vector_types(device):
    module = load(device, "vectors.cu")
    n = 40
    rng = np.random.default_rng(0)
    given = [
        rng.random((n, 4), np.float32),
        rng.integers(0, 2**32, (n, 4), np.uint32),
        rng.integers(0, 256, (n, 4), np.uint8),
        rng.integers(-5, 5, (n, 2), np.int32),
        rng.random((n, 2)),
    ]
    results = run(
        device, module, "swap_members", 1, n, *given, *(np.zeros_like(array) for array in given)
    )
    f, w, b, p, d = given
    expected = [f[:, ::-1], w[:, [1, 0, 3, 2]], b[:, [3, 0, 1, 2]], p[:, ::-1], d.copy()]
    expected[4][:, 0] += d[:, 1]
    for got, wanted in zip(results[5:], expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    (sizes,) = run(device, module, "store_sizes", 1, 1, np.zeros(10, np.int32))
    assert sizes.tolist() == [2, 8, 12, 4, 16, 16, 16, 4, 123, 321]
    array = random_ints(n)
    _, loaded = run(device, module, "load_through_cache", 1, n, array, np.zeros_like(array))
    np.testing.assert_array_equal(loaded, array)


def bits_reference(x, y):
    def signed(word):
        return word - 2**32 if word >= 2**31 else word

    both = x << 32 | y
    pair = y << 32 | x
    picks = [0x2416 >> 4 * byte & 7 for byte in range(4)]
    permuted = sum((pair >> 8 * pick & 255) << 8 * byte for byte, pick in enumerate(picks))
    shift = y & 31
    return [
        x.bit_count(),
        32 - x.bit_length(),
        (x & -x).bit_length(),
        int(f"{x:032b}"[::-1], 2),
        permuted,
        x * y >> 32,
        signed(x) * signed(y) >> 32 & FULL,
        pair << shift >> 32 & FULL,
        pair >> shift & FULL,
        both.bit_count(),
        64 - both.bit_length(),
        (both & -both).bit_length(),
        int(f"{both:064b}"[::-1], 2) >> 32,
        both * both >> 96,
        min(x, y),
        max(signed(x), signed(y)) & FULL,
    ]


def test_integer_intrinsics(device, arithmetic):
    corners = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, FULL, 0x80000001, 0xAAAAAAAA]
    rng = np.random.default_rng(0)
    xs = np.concatenate([np.repeat(corners, 10), rng.integers(0, 2**32, 156)]).astype(np.uint32)
    ys = np.concatenate([np.tile(corners, 10), rng.integers(0, 2**32, 156)]).astype(np.uint32)
    *_, out = run(
        device, arithmetic, "combine_bits", 1, 256, xs, ys, np.zeros((256, 16), np.uint32)
    )
    expected = [bits_reference(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
    np.testing.assert_array_equal(out, np.array(expected, np.uint32))


def test_exact_functions(device, arithmetic):
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.5, 1.5, -2.5, -0.5, 3.0], rng.uniform(-9, 9, 251)]).astype(np.float32)
    y = rng.uniform(0.1, 9, 256).astype(np.float32) * rng.choice([-1, 1], 256).astype(np.float32)
    *_, out = run(
        device, arithmetic, "compute_exactly", 1, 256, x, y, np.zeros((256, 16), np.float32)
    )
    # A product of two float32 is exact in float64; adding the third rounds twice, which shows
    # only where the float64 sum lies within 2^-53 of a float32 tie: not with these numbers.
    fma = (x.astype(np.float64) * y - x).astype(np.float32)
    expected = [
        np.sqrt(np.abs(x)),
        fma,
        np.floor(x),
        np.ceil(x),
        np.rint(x),
        np.trunc(x),
        np.minimum(x, y),
        np.maximum(x, y),
        np.copysign(x, y),
        x + y,
        x * y,
        x / y,
        1 / y,
        np.rint(x) + 0,
        np.trunc(x) + 0,
        -x,
    ]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


def test_close_functions(device, arithmetic):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.01, 8, (2, 256)).astype(np.float32)
    *_, out = run(
        device, arithmetic, "compute_closely", 1, 256, x, y, np.zeros((256, 16), np.float32)
    )
    a, b = x.astype(np.float64), y.astype(np.float64)
    expected = [
        1 / np.sqrt(a),
        np.exp(a),
        np.log(a),
        np.sin(a),
        np.cos(a),
        np.tanh(a),
        a**b,
        np.exp2(a),
        np.log2(a),
        np.arctan2(a, b),
        np.hypot(a, b),
        np.exp(a),
        a / b,
        np.clip(a - b, 0, 1),
        np.sqrt(a),
        np.exp(-a),
    ]
    # CUDA's documented bounds here are at most 4 units in the last place (2^-22 relative), but
    # 2 + floor(1.16 x) <= 11 units for __expf; sin, cos and log also have an absolute part near
    # their zeros, where a unit in the last place of 1 is the natural measure.
    relative = np.full(16, 4 * 2.0**-23)
    relative[11] = 11 * 2.0**-23
    error = np.abs(out - np.stack(expected, axis=1))
    bound = relative * np.maximum(np.abs(np.stack(expected, axis=1)), 1.0)
    bound[:, [0, 15]] = relative[0] * np.abs(np.stack(expected, axis=1))[:, [0, 15]]
    assert (error <= bound).all(), np.argwhere(error > bound)[:5]


# Measuring


@pytest.fixture
def meter(device):
    return open_meter(device)


@pytest.fixture
def queue(meter):
    """A meter that can hold launches back; a device without a queue has none."""
    if not isinstance(meter, QueueMeter):
        pytest.skip("a launch has ended when it returns: there is no queue to hold")
    return meter


def test_a_device_without_a_meter_says_so():
    class Bare:
        name = "bare"

    with pytest.raises(CudalabError) as caught:
        open_meter(Bare())
    assert caught.value.message == "nothing can be measured on the bare device: it has no meter"


def test_flush_changes_nothing(device, meter):
    array = random_ints(100_000)
    buffer = device.to_device(array)
    for _ in range(3):
        meter.flush()
    np.testing.assert_array_equal(device.to_host(buffer), array)


def test_held_launches_are_done_in_order(device, queue, launches):
    n = 1000
    one, two = device.to_device(random_ints(n)), device.empty(n, "i4")
    timer = queue.timer()
    for _ in range(3):  # a second hold waits for its own end, not for the first one's
        with queue.held() as hold:
            timer.start()
            device.launch(launches["scale"], 4, 256, one, two, np.uint32(n))
            device.launch(launches["scale"], 4, 256, two, two, np.uint32(n))
            timer.stop()
        device.synchronize()
        assert not hold.expired
        assert timer.ms > 0
        np.testing.assert_array_equal(device.to_host(two), 9 * random_ints(n))
        device.copy(np.zeros(n, np.int32), two)


def test_a_message_is_read_while_launches_go_on(device, launches):
    words, ones = message(device, 2), device.to_device(np.ones(2, np.int32))
    assert words.read() == [0, 0]
    for times in (1, 3):
        for _ in range(times):
            device.launch(launches["scale"], 1, 2, ones, ones, np.uint32(2))
        device.launch(launches["scale"], 1, 1, ones, words.buffer, np.uint32(1))
        words.send()
        device.launch(launches["scale"], 1, 2, ones, ones, np.uint32(2))
        assert words.read() == [int(device.to_host(ones)[0]), 0]


def test_flush_inside_a_hold(device, queue):
    with queue.held() as hold:
        queue.flush()
    device.synchronize()
    assert not hold.expired


def test_a_hold_cannot_hang(device, queue, launches):
    """Reading back in the middle waits for the device, which waits for the end: it gives up."""
    array = random_ints(1000)
    buffer = device.to_device(array)
    with queue.held() as hold:
        device.launch(launches["scale"], 4, 256, buffer, buffer, np.uint32(1000))
        np.testing.assert_array_equal(device.to_host(buffer), 3 * array)
        device.launch(launches["scale"], 4, 256, buffer, buffer, np.uint32(1000))
    np.testing.assert_array_equal(device.to_host(buffer), 9 * array)
    assert hold.expired


def test_more_launches_than_the_device_queues(device, queue, launches):
    buffer = device.to_device(np.ones(1, np.int32))
    count = 3000
    with queue.held():
        for _ in range(count):
            device.launch(launches["scale"], 1, 1, buffer, buffer, np.uint32(1))
    assert device.to_host(buffer)[0] == np.int32(np.uint32(pow(3, count, 2**32)))


def test_an_error_ends_a_hold(device, queue, launches):
    buffer = device.to_device(np.ones(1, np.int32))
    holds = []

    def fail_in_the_middle():
        with queue.held() as hold:
            holds.append(hold)
            device.launch(launches["scale"], 1, 1, buffer, buffer, np.uint32(1))
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail_in_the_middle()
    assert device.to_host(buffer)[0] == 3
    assert not holds[0].expired


def test_clock(device, queue):
    # At rest the clock is lower; no device runs at a tenth of what it declares, or at twice.
    assert 0.1 < queue.clock_mhz() / device.info().clock_mhz < 2


def test_bandwidth(device, meter):
    measured = meter.bandwidth()
    assert 0 < measured < 1e5
    assert measured < 1.05 * (device.info().dram_gbs or math.inf)


def test_the_device_is_free_again_after_measuring(device_name):
    with open_device(device_name) as opened:
        meter = open_meter(opened)
        meter.flush()
        if isinstance(meter, QueueMeter):
            with meter.held():
                pass
            meter.clock_mhz()
    with open_device(device_name) as opened:
        open_meter(opened).flush()
