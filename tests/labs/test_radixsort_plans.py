"""The radix sorts that decide on the device what to do: that each path is taken, and is right."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from lab_inputs import target

from cudalab import labs, runner
from cudalab.backends import facts
from cudalab.backends.cpu.device import CpuDevice
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.labs.keys import draw
from cudalab.labs.radixsort.buckets import (
    GROUP_BITS,
    MAX_TOP_BITS,
    WORDS_BEFORE_BINS,
    max_top_bits,
    top_bits_of,
)
from cudalab.labs.radixsort.lab import MAX_SPLIT, MAX_SPLIT_PAIRS, MIN_SPLIT_PAIRS
from cudalab.language.source import kernels_dir

LAB = labs.get("radixsort")
BUCKET_ITEMS = 9216
# Buckets of 256 keys: two splits from 58,255 keys on, and several loads of each thread that counts.
SMALL_BUCKETS = {"BUCKET_KEYS_PER_THREAD": 1, "BUCKET_THREADS": 256, "COUNT_BLOCKS": 4}
N = 150_001


class Without:
    """A device that leaves out the launches of some kernels, and knows those of all others.

    Without sweeps, the launch that may sweep after slots finds other keys.
    """

    def __init__(self, device, *starts):
        self._device, self._starts = device, starts
        self.launched = set()

    def __getattr__(self, name):
        return getattr(self._device, name)

    def launch(self, kernel, *args, **options):
        if kernel.name.startswith(self._starts):
            return
        self.launched.add(kernel.name)
        if kernel.name == "finish_slots" and "sweep" in self._starts:
            blocks, threads, state, keys, *rest = args
            other = self._device.empty(keys.shape, keys.dtype)
            self._device.copy(np.full(keys.nbytes, 0x5A, np.uint8), other)
            args = blocks, threads, state, other, *rest
        self._device.launch(kernel, *args, **options)


ONE_BLOCK = "one_block"
SLOTS = "bucket_slots"
FIRST = "most_significant_first"
BY_SAMPLE = "sampled_buckets"
HEAVY = "most_significant_first_heavy"
STABLE = "most_significant_first_stable"  # sorts pairs


def sort(device, variant, keys, defines=None, *, times=None, loops=False):
    """What is wrong with the answers, if anything: two of them, but on a slow device.

    Where many blocks run, `loops` take a third of the time.
    """
    times = times or (1 if facts(device.name).on_host else 2)
    pairs = variant == STABLE
    variant = registry.find(LAB, variant)
    variant = replace(variant, defines=variant.defines | (defines or {}))
    if variant.missing(device.features):
        pytest.skip(f"needs {', '.join(variant.missing(device.features))}")
    case = LAB.complete({"dtype": keys.dtype.name, "layout": "pairs" if pairs else "keys"})
    inputs = HostInputs({"keys": keys}, {"n": len(keys)})
    if pairs:
        values = np.arange(len(keys), dtype=np.uint32).view(keys.dtype)
        inputs = HostInputs({"keys and values": np.stack([keys, values])}, {"n": len(keys)})
    with pytest.MonkeyPatch.context() as patch:
        # As shipped, the sort of pairs has blocks for many buckets.
        if (loops or (pairs and not defines)) and facts(device.name).on_host:
            patch.setattr(getattr(device, "_device", device), "loops", CpuDevice().loops)
        step = runner.prepare(LAB, variant, device, inputs, case, watch=runner.Stopwatch())
    for _ in range(times):
        device.copy(np.full(step.out.nbytes, 0xA5, np.uint8), step.out)
        step()
        found = LAB.compare(device.to_host(step.out), inputs, case)
        if found is not None:
            return found
    return None


def without_sweeps(device, keys, defines=None, variant=HEAVY):
    """The verdict on the answer of the buckets alone."""
    return sort(Without(device, "sweep", "sort_left"), variant, keys, defines, times=1)


def way_of(device, keys, defines, variant=HEAVY):
    """In which way keys are sorted, without an error: by a kernel that no other way launches."""
    wrapped = Without(device, "no kernel")
    assert sort(wrapped, variant, keys, defines) is None
    ways = "merge_heavy_values", "sort_buckets", "sweep", "sweep_all"
    return next(kernel for kernel in ways if kernel in wrapped.launched)


def keys_of(n, dist, dtype="uint32"):
    return draw(np.dtype(dtype), n, dist, n + 1)


def full_bins(n, in_a_bin=1):
    """40 keys around each of many values: buckets fit, but the bins in them are full."""
    values = np.linspace(0, 2**32 - 1 - in_a_bin, n // 40, dtype=np.uint32)
    order = keys_of(n, "uniform").argsort()
    return values[order % len(values)] + order.astype(np.uint32) // len(values) % in_a_bin


both = pytest.mark.parametrize("variant", [HEAVY, STABLE])
counted = pytest.mark.parametrize("variant", [FIRST, HEAVY, STABLE])
short = pytest.mark.parametrize("variant", [SLOTS, HEAVY])
by_sample = pytest.mark.parametrize("variant", [BY_SAMPLE, HEAVY])


@both
@pytest.mark.parametrize("dist", ["uniform", "sorted", "reversed"])
@pytest.mark.parametrize(
    ("n", "dtype", "defines"),
    [
        (1, "uint32", {}),
        (1025, "uint32", {}),
        (70_001, "uint32", {}),
        (70_001, "float32", {}),
        (N, "uint32", SMALL_BUCKETS),
    ],
)
def test_buckets_sort_spread_out_keys_alone(device, variant, dist, n, dtype, defines):
    assert without_sweeps(device, keys_of(n, dist, dtype), defines, variant) is None


@pytest.mark.parametrize("variant", [SLOTS, FIRST, BY_SAMPLE])
@pytest.mark.parametrize("dist", ["uniform", "sorted", "reversed"])
@pytest.mark.parametrize("n", [1, 1025, 70_001])
def test_buckets_of_the_lower_rungs_sort_spread_out_keys_alone(device, variant, dist, n):
    """Of any number, in two splits: but for slots, which take one."""
    assert without_sweeps(device, keys_of(n, dist), {}, variant) is None


@pytest.mark.parametrize("n", [1, 511, BUCKET_ITEMS - 1, BUCKET_ITEMS])
def test_one_block_sorts_spread_out_keys_alone(device, n):
    for dist in ("uniform", "sorted", "reversed", "equal"):
        keys = keys_of(n, dist)
        assert sort(Without(device, "sweep_all_left"), ONE_BLOCK, keys, times=1) is None, dist


def test_sweeps_sort_what_one_block_leaves(device):
    """Again and again: the word that says so is cleared."""
    crowd = keys_of(BUCKET_ITEMS, "uniform") % np.uint32(1000)
    assert sort(Without(device, "sweep_all_left"), ONE_BLOCK, crowd, times=1) is not None
    for keys in (crowd, crowd.astype(np.float32), keys_of(BUCKET_ITEMS + 1, "uniform")):
        assert sort(device, ONE_BLOCK, keys, times=3) is None


def values_of(count, n):
    """That many different keys, which differ in their top bits."""
    values = np.arange(count, dtype=np.uint32) << np.uint32(33 - count.bit_length())
    return values[keys_of(n, "uniform") % np.uint32(count)] + np.uint32(12_345)


FITTING = {"": {}, "small buckets": SMALL_BUCKETS}


@pytest.mark.parametrize("defines", FITTING.values(), ids=FITTING)
@pytest.mark.parametrize("count", [2, 3, 16, 100])
@both
def test_buckets_of_equal_keys_are_copied(device, variant, count, defines):
    """Large ones by the blocks behind those of the buckets, others by a block."""
    n = N if defines else 70_001
    assert without_sweeps(device, values_of(count, n), defines, variant) is None


@pytest.mark.parametrize("variant", [SLOTS, FIRST])
@pytest.mark.parametrize("count", [2, 3, 16, 100])
def test_buckets_of_equal_keys_are_copied_on_the_lower_rungs(device, variant, count):
    assert without_sweeps(device, values_of(count, 70_001), {}, variant) is None


@both
@pytest.mark.parametrize("defines", FITTING.values(), ids=FITTING)
def test_bins_of_equal_keys_fit(device, variant, defines):
    keys = full_bins(N if defines else 70_001)
    assert without_sweeps(device, keys, defines, variant) is None


@both
def test_a_bucket_that_begins_with_equal_keys(device, variant):
    """Whole rows of a block are alike, the bucket is not."""
    values = np.linspace(0, 2**32 - 1, 30, dtype=np.uint32)
    keys = np.concatenate([np.repeat(values, 2000), np.repeat(values + np.uint32(1 << 17), 2)])
    assert without_sweeps(device, keys, variant=variant) is None


@counted
@pytest.mark.parametrize("at", [0, 1, N // 2, N - 2, N - 1])
def test_one_other_key_in_a_large_bucket(device, variant, at):
    """Nearly all threads see equal keys: the copy must find the one that is not."""
    keys = values_of(16, N)
    keys[at] ^= 2 if at < N // 2 else 1  # larger or smaller: out of order where it stands
    assert without_sweeps(device, keys, SMALL_BUCKETS, variant) is not None
    assert sort(device, variant, keys, SMALL_BUCKETS) is None


@short
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("at", [0, 1, 4095, 4096, 30_000, 69_999, 70_000])
@pytest.mark.parametrize("bit", [1, 2])
def test_one_other_key_in_a_bucket_larger_than_its_slot(device, variant, count, at, bit):
    """In the slot, or among those that it has no room for; first of its tile or not."""
    keys = values_of(count, 70_001)
    keys[at] ^= bit
    assert without_sweeps(device, keys, {}, variant) is None


def many_values(count, n, top=0):
    """That many values with the same bits at the top, about equally many of each."""
    values = np.arange(count, dtype=np.uint32) * np.uint32(77_777) + np.uint32(top << 24)
    return values[keys_of(n, "uniform") % np.uint32(count)]


@short
@pytest.mark.parametrize("top", [0, 0x5A, 0x80, 0xFF])
@pytest.mark.parametrize("count", [2, 7, 8, 9, 40])
def test_values_of_a_bucket_larger_than_its_slot_are_counted(device, variant, count, top):
    """Up to eight of them; the keys of other buckets are sorted."""
    crowd = many_values(count, 30_000, top)
    for keys in (crowd, np.concatenate([keys_of(40_000, "uniform"), crowd])):
        spread = len(keys) > len(crowd)  # then a few more values fall into the bucket
        fits = count <= 8 and not spread
        assert (without_sweeps(device, keys, {}, variant) is None) == fits, len(keys)
        assert sort(device, variant, keys) is None
        assert sort(device, variant, keys.view(np.float32)) is None


@short
def test_counted_values_among_sorted_buckets(device, variant):
    """Large buckets of eight values between buckets that fit, in any order of arrival."""
    keys = keys_of(60_000, "uniform")
    keys = keys[keys >> 29 & 1 == 0]
    crowds = [many_values(8, 20_000, top) for top in (0x20, 0x60, 0xE0)]
    keys = np.random.default_rng(2).permutation(np.concatenate([keys, *crowds]))
    assert without_sweeps(device, keys, {}, variant) is None
    assert sort(device, variant, keys, times=2) is None


@short
@pytest.mark.parametrize("more", [-1, 0, 1, 4096])
def test_a_slot_that_is_full(device, variant, more):
    """Different keys: as many as fit, or more."""
    keys = np.arange(BUCKET_ITEMS + more, dtype=np.uint32) * np.uint32(2500) + np.uint32(5 << 29)
    keys = np.concatenate([keys_of(60_000, "uniform") | np.uint32(1 << 31 | 1 << 30), keys])
    keys = np.random.default_rng(1).permutation(keys)
    assert (without_sweeps(device, keys, {}, variant) is None) == (more <= 0)
    assert sort(device, variant, keys) is None


def test_more_keys_than_one_split_divides_are_swept_over(device):
    """Slots of 256 keys: 2^8 of them take 58,254."""
    wrapped = Without(device, "no kernel")
    for n, kernel in [(58_254, "sort_slots"), (58_255, "sweep_all")]:
        wrapped.launched.clear()
        assert sort(wrapped, SLOTS, keys_of(n, "uniform"), SMALL_BUCKETS) is None
        assert kernel in wrapped.launched


@counted
@pytest.mark.parametrize("defines", FITTING.values(), ids=FITTING)
@pytest.mark.parametrize("shape", ["low bits", "hot"])
def test_sweeps_sort_what_does_not_fit(device, variant, shape, defines):
    """All keys in one bucket; spread-out keys of which half are one value."""
    keys = keys_of(N if defines else 70_001, "uniform")
    if shape == "low bits":
        keys %= np.uint32(1 << 16)
    elif shape == "hot":
        keys[::2] = keys[1] + np.uint32(1)
    assert without_sweeps(device, keys, defines, variant) is not None
    assert sort(device, variant, keys, defines) is None


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("defines", [{}, SMALL_BUCKETS])
def test_a_bucket_that_is_full(device, defines, more):
    """As many pairs as a block can sort in each of eight buckets, or one more or less."""
    used = registry.find(LAB, STABLE).defines | defines
    items = int(used["BUCKET_THREADS"]) * int(used["BUCKET_KEYS_PER_THREAD"]) + more
    low = np.random.default_rng(4).integers(0, 1 << 19, 8 * items, dtype=np.uint32)
    keys = low | np.arange(8, dtype=np.uint32).repeat(items) * np.uint32(9 << 25)
    keys = np.random.default_rng(5).permutation(keys)
    assert (without_sweeps(device, keys, defines, STABLE) is None) == (more <= 0)
    assert sort(device, STABLE, keys, defines) is None


@counted
def test_equal_keys_are_not_split_in_vain(device, variant):
    keys = keys_of(N, "equal")
    assert without_sweeps(device, keys, SMALL_BUCKETS, variant) is not None
    assert sort(device, variant, keys, SMALL_BUCKETS) is None


@pytest.mark.parametrize(
    ("in_a_bin", "defines"), [(2, {}), (2, SMALL_BUCKETS), (40, SMALL_BUCKETS)]
)
def test_a_bucket_with_full_bins_is_swept_over_by_itself(device, in_a_bin, defines):
    keys = full_bins(N if defines else 70_001, in_a_bin)
    assert without_sweeps(device, keys, defines, STABLE) is None


def test_all_bits_of_a_bucket_s_keys_are_swept_over(device):
    """Three different bits, at the ends of the digits, in bins that are full."""
    keys = keys_of(70_001, "uniform") & np.uint32(0xFFF8_0000 | 1 << 13 | 1 << 12 | 1)
    assert without_sweeps(device, keys, variant=STABLE) is None


@pytest.mark.parametrize(
    ("variant", "defines"),
    [(HEAVY, {}), (SLOTS, {}), (HEAVY, SMALL_BUCKETS), (FIRST, SMALL_BUCKETS)],
)
def test_sweeps_sort_what_has_full_bins(device, variant, defines):
    n, room = (N, 256) if defines else (70_001, BUCKET_ITEMS)
    keys = full_bins(n, 2)
    assert np.bincount(keys >> np.uint32(32 - top_bits_of(n, room))).max() <= room
    assert without_sweeps(device, keys, defines, variant) is not None
    assert sort(device, variant, keys, defines) is None


@counted
def test_a_tile_of_many_small_groups(device, variant):
    """The lower 128 groups are full, the others have one key in each of their 16 buckets."""
    starts = np.arange(1 << 12, dtype=np.uint32) << np.uint32(20)
    keys = np.concatenate([np.repeat(starts[:2048], 250), starts[2048:]])
    keys |= keys_of(len(keys), "uniform") >> np.uint32(12)
    keys = np.random.default_rng(1).permutation(keys)
    assert top_bits_of(len(keys), 256) == 12
    assert without_sweeps(device, keys, SMALL_BUCKETS, variant) is None


@pytest.mark.parametrize("tile", [512, 4096])
@pytest.mark.parametrize("shape", ["uniform", "one segment", "ends of tiles"])
def test_segments_have_tiles_of_their_own(device, tile, shape):
    """Sixteen segments: of about a tile, all keys in one, and of whole tiles or one key more."""
    n = 70_001
    keys = keys_of(n, "uniform")
    if shape == "one segment":
        keys = keys % np.uint32(1 << 28) | np.uint32(5 << 28)
    elif shape == "ends of tiles":
        sizes = [tile * (1 + s // 4) + s % 2 for s in range(16)]
        top = np.repeat(np.arange(16, dtype=np.uint32), sizes)[:n] << np.uint32(28)
        keys = np.random.default_rng(1).permutation(keys[: len(top)] >> np.uint32(4) | top)
    defines = SMALL_BUCKETS | {"PAIRS_PER_THREAD": tile // 256, "THREADS_PER_BLOCK": 256}
    assert sort(device, STABLE, keys, defines) is None


SAMPLED = SMALL_BUCKETS | {"MIN_SAMPLED": 1, "SAMPLE_BLOCKS": 16}


def any_of(n, count, lowest=0, dtype="uint32"):
    """Keys from `lowest` on, of so many values."""
    keys = keys_of(n, "uniform") % np.uint32(count)
    return (keys + np.uint32(lowest % 2**32)).view(dtype)


UNEVEN = {
    "unit": keys_of(N, "bounded", "float32"),
    "negative": -keys_of(N, "bounded", "float32"),
    "one magnitude": keys_of(N, "bounded", "float32") * np.float32(0.6) + np.float32(100),
    "normal": np.random.default_rng(1).normal(size=N).astype(np.float32),
    "exponential": np.random.default_rng(1).exponential(size=N).astype(np.float32),
    "bounded": keys_of(N, "bounded", "int32"),
    "around zero": any_of(N, 1_000_000, -500_000, "int32"),
    "around zero, few values": any_of(N, 1000, -500, "int32"),
    "the lowest": any_of(N, 100_000),
    "the highest": any_of(N, 100_000, -100_000),
    "below 2^29": any_of(N, 1 << 29),
}
WITHIN_A_CELL = {"one magnitude", "around zero, few values", "the lowest", "the highest"}


@by_sample
@pytest.mark.parametrize("shape", UNEVEN)
def test_buckets_follow_a_sample(device, variant, shape):
    """Only cells that follow the range of the sample are narrow enough for keys of a small one."""
    keys = UNEVEN[shape]
    if variant == BY_SAMPLE and shape in WITHIN_A_CELL:
        assert without_sweeps(device, keys, SAMPLED, variant) is not None
        assert sort(device, variant, keys, SAMPLED) is None
    else:
        assert without_sweeps(device, keys, SAMPLED, variant) is None


class Sampled(Without):
    """A device that keeps what the sample decides."""

    def __init__(self, device):
        super().__init__(device, "no kernel")

    def launch(self, kernel, grid, block, *args, **options):
        super().launch(kernel, grid, block, *args, **options)
        if kernel.name == "sample_keys":
            self.decision = int(self._device.to_host(args[1]).view(np.uint32)[0])


TOP_BITS, RANGE, CELLS = range(3)  # the first of enum Plan
DECISIONS = {
    "uniform": (keys_of(N, "uniform"), TOP_BITS),
    "bounded": (UNEVEN["bounded"], RANGE),
    "around zero": (UNEVEN["around zero"], RANGE),
    "far from zero": (any_of(N, 3_000_000, 2**32 - 3_000_001), RANGE),
    "one other": (np.append(any_of(N - 1, 1_000_000, 10_000_000), np.uint32(0)), RANGE),
    "few values": (any_of(N, 5000, 3 * 2**16 - 2500), CELLS),
    "unit": (UNEVEN["unit"], CELLS),
    "normal": (UNEVEN["normal"], CELLS),
    "two heaps": (np.concatenate([any_of(N, 100_000), any_of(N, 100_000, 2_900_000)]), CELLS),
}


@pytest.mark.parametrize("shape", DECISIONS)
def test_an_even_range_is_divided_without_cells(device, shape):
    keys, decision = DECISIONS[shape]
    wrapped = Sampled(device)
    assert sort(wrapped, HEAVY, keys, SAMPLED) is None
    assert wrapped.decision == decision
    assert "sort_buckets" in wrapped.launched


@by_sample
@pytest.mark.parametrize("shape", ["uniform", "sorted", "reversed"])
def test_a_sample_of_spread_out_keys_leaves_them_to_their_top_bits(device, variant, shape):
    keys = keys_of(N, shape)
    assert without_sweeps(device, keys, SAMPLED, variant) is None


ADVERSARIAL = {
    "equal": keys_of(N, "equal"),
    "half-equal": keys_of(N, "half-equal"),
    "few": keys_of(N, "few"),
    "top-byte": keys_of(N, "top-byte"),
    "one top byte": keys_of(N, "uniform") & np.uint32(0xFFFFFF) | np.uint32(0x7F << 24),
    "bounded": keys_of(N, "bounded"),
    "entropy-0.544": keys_of(N, "entropy-0.544"),
    "entropy-0.201": keys_of(N, "entropy-0.201"),
    "the ends": keys_of(N, "uniform") % np.uint32(2) * np.uint32(2**32 - 1),
    "one other": np.append(np.full(N - 1, 2**31, np.uint32), np.uint32(2**31 - 1)),
    "runs": np.repeat(keys_of(N // 600 + 1, "uniform"), 600)[:N],
    "sawtooth": np.arange(N, dtype=np.uint32) % np.uint32(1000) * np.uint32(4_294_967),
}


@pytest.mark.parametrize("shape", ADVERSARIAL)
@pytest.mark.parametrize(
    ("variant", "defines"),
    [(SLOTS, {}), (FIRST, SMALL_BUCKETS), (BY_SAMPLE, SMALL_BUCKETS)],
    ids=[SLOTS, FIRST, BY_SAMPLE],
)
def test_keys_that_crowd_are_sorted_on_every_rung(device, variant, defines, shape):
    assert sort(device, variant, ADVERSARIAL[shape], defines) is None


@pytest.mark.parametrize("n", [466_033, 932_068])
def test_a_sample_cuts_no_more_buckets_than_can_be_counted(device, n):
    """Of 32 keys each: those with more are sorted digit by digit."""
    defines = {"BUCKET_KEYS_PER_THREAD": 1, "BUCKET_THREADS": 32}
    keys = keys_of(n, "uniform")
    assert sort(device, BY_SAMPLE, keys, defines, times=1, loops=True) is None


LIMITS = [1, 2, 255, 256, 257, 16_383, 16_384, 16_385, 32_769, 233_016, 233_017]


@pytest.mark.parametrize("variant", [FIRST, BY_SAMPLE])
@pytest.mark.parametrize("n", LIMITS)
def test_sizes_around_every_limit(device, n, variant):
    """A bucket, a tile, two tiles, and where buckets by one bit more begin."""
    assert top_bits_of(233_016, 256) + 1 == top_bits_of(233_017, 256)
    assert sort(device, variant, keys_of(n, "uniform"), SMALL_BUCKETS) is None


@pytest.mark.parametrize("variant", [FIRST, HEAVY])
def test_keys_for_more_buckets_than_can_be_counted_are_swept_over(device, variant):
    """Buckets of 32 keys."""
    features = SimpleNamespace(device=SimpleNamespace(features=frozenset({"shared_96kb"})))
    assert max_top_bits(features) == 14
    more = "shared_160kb" in device.features
    defines = {"BUCKET_KEYS_PER_THREAD": 1, "BUCKET_THREADS": 32}
    wrapped = Without(device, "no kernel")
    for n, is_split in [(466_033, True), (466_034, more), *([(932_068, False)] if more else [])]:
        wrapped.launched.clear()
        assert sort(wrapped, variant, keys_of(n, "uniform"), defines, times=1) is None
        assert ("sort_buckets" in wrapped.launched) == is_split


@pytest.mark.parametrize("shape", ["top-byte", "65,536 values"])
def test_keys_of_two_digits_are_swept_over_in_one_launch(device, shape):
    keys = any_of(N, 1 << 16) if shape[0] == "6" else keys_of(N, shape)
    assert way_of(device, keys, SAMPLED) == "sweep_all"


def heavy(n, values, share):
    """Random keys, a share of which have one of these values."""
    keys, draws = keys_of(n, "uniform"), np.random.default_rng(n)
    places = draws.permutation(n)[: round(share * n)]
    keys[places] = draws.choice(np.asarray(values, np.uint32), len(places))
    return keys


SAME_SLOT = [k for k in range(3000) if (k ^ k >> 15) * 2654435761 % 2**32 >> 22 == 0]  # of 2^10
CROWDED = {
    "equal": keys_of(N, "equal"),
    "few": keys_of(N, "few"),
    "half-equal": keys_of(N, "half-equal"),
    "entropy-0.201": keys_of(N, "entropy-0.201"),
    "the least": heavy(N, [0], 0.7),
    "the greatest": heavy(N, [2**32 - 1], 0.7),
    "the ends": heavy(N, [0, 2**32 - 1], 0.9),
    "neighbours": heavy(N, [76, 77, 78], 0.6),
    "of one slot": heavy(N, SAME_SLOT[:2], 0.98),
    "60 values": heavy(N, np.arange(60) * 71_582_788, 0.8),
    "a single other key": heavy(N, [9], 1 - 1 / N),
    "floats": heavy(N, [0, 2**31, 0x7FC00001, 0xFF800000], 0.7).view(np.float32),
    "int32": heavy(N, [0, 2**31, 2**31 - 1], 0.7).view(np.int32),
    "a whole number of tiles": heavy(1 << 17, [1, 1 << 31], 0.6),
}


@pytest.mark.parametrize("shape", CROWDED)
def test_heavy_values_are_counted(device, shape):
    assert way_of(device, CROWDED[shape], SAMPLED) == "merge_heavy_values"


class Misled(Without):
    """A device on which the sample is of other keys than the rest."""

    def __init__(self, device, sampled):
        super().__init__(device, "no kernel")
        self._sampled = sampled

    def launch(self, kernel, grid, block, *args, **options):
        if kernel.name != "sample_keys":
            super().launch(kernel, grid, block, *args, **options)
            return
        keys = self._device.to_host(args[0])
        self._device.copy(self._sampled, args[0])
        super().launch(kernel, grid, block, *args, **options)
        self._device.copy(keys, args[0])


@pytest.mark.parametrize("values", [[], [7], [7, 8]])
def test_a_sample_that_misleads_about_heavy_values(device, values):
    """What the sample took for heavy is counted, and right, be it none of the keys or all."""
    keys = heavy(N, values, 1) if values else keys_of(N, "uniform")
    wrapped = Misled(device, heavy(N, [7], 0.5))
    assert sort(wrapped, HEAVY, keys, SAMPLED) is None
    assert "merge_heavy_values" in wrapped.launched


@by_sample
@pytest.mark.parametrize("shape", ["uniform", "half-equal", "entropy-0.544", "bounded", "top-byte"])
@pytest.mark.parametrize("sampled", ["uniform", "half-equal", "bounded"])
def test_any_sample_leaves_any_keys_sorted(device, variant, sampled, shape):
    wrapped = Misled(device, keys_of(N, sampled))
    assert sort(wrapped, variant, keys_of(N, shape), SAMPLED) is None


@by_sample
@pytest.mark.parametrize("at", [0, 123_456, N - 1])
@pytest.mark.parametrize("key", [0, 5_000_000, 2**32 - 1])
def test_a_key_beyond_the_sample_has_a_bucket(device, variant, at, key):
    keys = keys_of(N, "bounded") + np.uint32(10_000_000)
    keys[at] = key
    assert without_sweeps(device, keys, SAMPLED, variant) is None


@by_sample
@pytest.mark.parametrize("key", [0, 2**32 - 1])
def test_many_keys_beyond_the_sample(device, variant, key):
    """More than a bucket takes, in a part of the array where the sample has none of them."""
    keys = keys_of(N, "bounded") + np.uint32(10_000_000)
    keys[:1000] = key ^ np.arange(1000, dtype=np.uint32)
    assert sort(device, variant, keys, SAMPLED) is None


def test_uneven_keys_are_swept_over_by_launches(device):
    """The sample alone tells so: digits are counted where buckets would be."""
    wrapped = Without(device, "count_all_digits")
    assert sort(wrapped, HEAVY, keys_of(N, "entropy-0.544"), SAMPLED) is None
    assert "sweep" in wrapped.launched


@pytest.mark.parametrize("shape", ["half-equal", "entropy-0.544"])
def test_buckets_that_do_not_fit_are_swept_over_by_launches(device, shape):
    """The sample knows nothing, the count tells."""
    wrapped = Misled(device, keys_of(N, "uniform"))
    assert sort(wrapped, HEAVY, keys_of(N, shape), SAMPLED) is None
    assert "sweep" in wrapped.launched
    assert "sort_buckets" not in wrapped.launched


@pytest.mark.parametrize(
    ("variant", "defines"),
    [(SLOTS, {}), (FIRST, SMALL_BUCKETS), (BY_SAMPLE, SAMPLED), (HEAVY, SAMPLED)],
    ids=[SLOTS, FIRST, BY_SAMPLE, HEAVY],
)
def test_all_ways_in_turns(device, variant, defines):
    """They share memory: none takes what another has left for its own."""
    shapes = "top-byte", "entropy-0.544", "few", "equal", "uniform", "half-equal"
    ways = [keys_of(N, shape) for shape in shapes]
    variant = registry.find(LAB, variant)
    if variant.missing(device.features):
        pytest.skip(f"needs {', '.join(variant.missing(device.features))}")
    variant = replace(variant, defines=variant.defines | defines)
    buffers = []

    class Watched(Without):
        def to_device(self, data):
            buffers.append(self._device.to_device(data))
            return buffers[-1]

    inputs, watch = HostInputs({"keys": ways[0]}, {"n": N}), runner.Stopwatch()
    wrapped = Watched(device, "no kernel")
    step = runner.prepare(LAB, variant, wrapped, inputs, LAB.complete({}), watch=watch)
    for turn in ways * 2 + ways[::-1]:
        device.copy(turn, buffers[0])
        step()
        np.testing.assert_array_equal(device.to_host(step.out), np.sort(turn))


@pytest.mark.parametrize(
    "variant", ["single_launch", ONE_BLOCK, SLOTS, FIRST, BY_SAMPLE, HEAVY, STABLE]
)
@pytest.mark.parametrize("mask", [0xFF, 0xFF00, 0xFF00FF, 0xFF00FF00, 0xFFFFFF, 0xFFFFFF00])
def test_digits_that_all_keys_share(device, variant, mask):
    """One, two and three sweeps: the last one writes the answer."""
    keys = keys_of(50_001, "uniform") & np.uint32(mask)
    assert sort(device, variant, keys) is None


@pytest.mark.parametrize("variant", ["single_launch", ONE_BLOCK, SLOTS, FIRST, HEAVY, STABLE])
@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 8193])
def test_equal_keys_are_copied(device, variant, n):
    assert sort(device, variant, np.full(n, -1.5, np.float32)) is None


def chosen(device, n, **case):
    return LAB.choose(HostInputs({}, {"n": n}), LAB.complete(case), target(device))


def default(**case):
    features = frozenset({"shared_96kb"})
    return registry.default(LAB, LAB.complete(case), "cuda", features)


def test_too_many_keys_to_split_are_swept_over():
    assert top_bits_of(MAX_SPLIT, BUCKET_ITEMS) == 15
    assert top_bits_of(MAX_SPLIT + 1, BUCKET_ITEMS) == 16
    assert chosen("cuda", 1) is None
    assert chosen("cuda", MAX_SPLIT) is None
    assert chosen("cuda", MAX_SPLIT + 1) == ("onesweep",)
    assert chosen("cpu", MAX_SPLIT + 1) is None
    assert default().name == HEAVY


def test_few_pairs_and_too_many_are_swept_over():
    assert top_bits_of(MAX_SPLIT_PAIRS, BUCKET_ITEMS // 2) == 15
    assert top_bits_of(MAX_SPLIT_PAIRS + 1, BUCKET_ITEMS // 2) == 16
    for n in (MIN_SPLIT_PAIRS, MAX_SPLIT_PAIRS):
        assert chosen("cuda", n, layout="pairs") is None
    for n in (1, MIN_SPLIT_PAIRS - 1, MAX_SPLIT_PAIRS + 1):
        assert chosen("cuda", n, layout="pairs") == ("onesweep",)
        assert chosen("cpu", n, layout="pairs") is None
    assert default(layout="pairs").name == STABLE


def test_host_and_kernels_agree_on_bits():
    parts = kernels_dir() / "radixsort" / "parts"
    assert f"unsigned GROUP_BITS = {GROUP_BITS}," in (parts / "top_bits.cuh").read_text()
    assert f"int MAX_TOP_BITS = {MAX_TOP_BITS};" in (parts / "buckets.cuh").read_text()
    assert f"WORDS_BEFORE = {WORDS_BEFORE_BINS};" in (parts / "sort_bucket.cuh").read_text()


def test_splits_leave_buckets_room():
    for n in [2**power + more for power in range(28) for more in (-1, 0, 1)][3:]:
        top_bits = top_bits_of(n, BUCKET_ITEMS)
        assert n / 2**top_bits <= 8 / 9 * BUCKET_ITEMS
        assert 2 <= top_bits <= 15
        assert top_bits != 9  # two bins a group: less than a scan takes at a time
