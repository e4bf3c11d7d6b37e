"""What the threads of every device must do together, in blocks and in warps."""

from __future__ import annotations

import numpy as np
import pytest
from contract import load, random_ints, run

from cudalab.errors import KernelError


@pytest.fixture(scope="module")
def blocks(device):
    return load(device, "blocks.cu")


@pytest.fixture(scope="module")
def warps(device):
    return load(device, "warps.cu")


# Blocks -------------------------------------------------------------------------------------------


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


# Warps --------------------------------------------------------------------------------------------


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
