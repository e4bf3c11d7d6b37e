"""The bitonic lab: its network at every small size, the lecture's sequences, its data."""

from __future__ import annotations

import dataclasses
import hashlib
from itertools import product

import numpy as np
import pytest

from cudalab import labs, runner
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs

LAB = labs.get("bitonic")
VARIANTS = registry.variants(LAB)
# Small blocks, so that few keys reach the steps between blocks.
SMALL_BLOCKS = {
    "alternating": {},
    "global": {},
    "shared": {"THREADS_PER_BLOCK": 4, "ITEMS_PER_BLOCK": 8},
    "registers": {},
    "wide_passes": {},
}
BLOCK = 4096  # keys of those that take no other size


def case(dtype: str = "int32") -> dict[str, str]:
    return LAB.complete({"dtype": dtype})


def with_small_blocks(variant):
    defines = {**variant.defines, **SMALL_BLOCKS[variant.name]}
    return dataclasses.replace(variant, defines=defines)


def sort(device, variant, keys):
    inputs = HostInputs({"keys": keys}, {"n": len(keys)})
    chosen = case(keys.dtype.name)
    step = runner.prepare(LAB, variant, device, inputs, chosen, watch=runner.Stopwatch())
    step()
    return device.to_host(step.out)


def test_int32_is_the_default():
    assert LAB.complete({}) == {"dtype": "int32"}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("sequence", [[1, 3, 4, 7, 6, 5, 2], [5, 7, 6, 4, 2, 1, 3]])
def test_the_lecture_s_bitonic_sequences(device, variant, sequence):
    keys = np.array(sequence, np.int32)
    assert sort(device, variant, keys).tolist() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_all_zeros_and_ones(device, variant):
    """A network that sorts every sequence of zeros and ones sorts everything (0-1 principle)."""
    small = with_small_blocks(variant)
    for n in range(1, 8):
        for bits in product((0, 1), repeat=n):
            keys = np.array(bits, np.int32)
            assert sort(device, small, keys).tolist() == sorted(bits), bits


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_size_around_powers_of_two(device, variant):
    """Keys equal to the greatest must not change places with the padding that stands for it."""
    small = with_small_blocks(variant)
    for n in range(1, 131):
        keys = np.arange(n, 0, -1, dtype=np.int32)
        assert sort(device, small, keys).tolist() == list(range(1, n + 1)), n
        greatest = np.where(np.arange(n) % 3 == 0, 2**31 - 1, -n).astype(np.int32)
        np.testing.assert_array_equal(sort(device, small, greatest), np.sort(greatest))


@pytest.mark.parametrize("name", ["registers", "wide_passes"])
def test_sizes_around_whole_blocks_and_passes(device, name):
    """Merges of 1 to 5 wide steps, which take one pass or two, and what lies beyond the end."""
    variant = registry.find(LAB, name)
    for n in (BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 4 * BLOCK + 1, 17 * BLOCK - 5, 33 * BLOCK):
        greatest = np.where(np.arange(n) % 5 == 0, 2**31 - 1, -np.arange(n)).astype(np.int32)
        np.testing.assert_array_equal(sort(device, variant, greatest), np.sort(greatest), str(n))


@pytest.mark.parametrize("name", ["registers", "wide_passes"])
def test_a_block_s_network_sorts_zeros_and_ones(device, name):
    """Runs of ones at every place, and random ones: the 0-1 principle on whole blocks."""
    variant = registry.find(LAB, name)
    rng = np.random.default_rng(7)
    for ones in range(1, BLOCK, 455):
        keys = np.zeros(2 * BLOCK, np.int32)
        keys[rng.permutation(2 * BLOCK)[: 2 * ones]] = 1
        assert (np.diff(sort(device, variant, keys)) >= 0).all()
        assert sort(device, variant, np.roll(np.sort(keys), ones))[-2 * ones :].all()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_floats_are_sorted_by_their_bits(device, variant):
    bits = [0x7FC00001, 0x80000000, 0x00000000, 0xFFC00000, 0xFF800000, 0x7F800000, 0xBF800000]
    keys = np.array(bits, np.uint32).view(np.float32)
    ordered = [0xFFC00000, 0xFF800000, 0xBF800000, 0x80000000, 0x00000000, 0x7F800000, 0x7FC00001]
    assert sort(device, variant, keys).view(np.uint32).tolist() == ordered


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000])
def test_bitonic_data_go_up_and_down_once(n):
    stream = b"".join(LAB.generate(case(), n, "bitonic", 3))
    keys = np.frombuffer(stream[4:], np.int32)
    assert stream[:4] == np.int32(n).tobytes()
    assert len(keys) == n
    turns = np.diff(np.sign(np.diff(keys.astype(np.int64))))
    assert np.count_nonzero(turns) == (1 if n > 2 else 0)


@pytest.mark.parametrize(
    ("dist", "digest"),
    [
        # The same bytes as radixsort's: uniform words.
        ("uniform", "a968e4013722f6f371123b1571a29b24da0898153afcfe80c668670ae3c07460"),
        ("bitonic", "c82d4d56fa590825226a841a2a2ccc8ec2edb09d9ee742d74055020d2b4b67c4"),
    ],
)
def test_same_seed_same_bytes(dist, digest):
    stream = b"".join(LAB.generate(case(), 1000, dist, 42))
    assert hashlib.sha256(stream).hexdigest() == digest


def test_what_cannot_be_generated():
    for n, dist in ((10, "zipf"), ((2, 3), "bitonic"), ((2, 3), "uniform")):
        with pytest.raises(UsageError, match="bitonic has no data of size"):
            b"".join(LAB.generate(case(), n, dist, 0))
