"""Sorts that begin with the most significant bits: keys go to buckets, a block sorts a bucket."""

from functools import partial

import numpy as np

from cudalab.backends.base import Buffer, Message
from cudalab.backends.base import message as message_to_host
from cudalab.labs.base import Job, Launch, Step, blocks_for, in_order
from cudalab.labs.radixsort import parts

# As in kernels/radixsort/parts/top_bits.cuh and buckets.cuh.
GROUP_BITS = 8  # by which a long array is split first
MAX_TOP_BITS = 15
MIN_TWO_SPLITS = GROUP_BITS + 2  # a scan takes four bins at a time
WORDS_BEFORE_BINS = 36  # as in kernels/radixsort/parts/sort_bucket.cuh
MIN_SAMPLED_BITS = 13  # twice as many buckets as there are cells in sampled_buckets.cu


def top_bits_of(n: int, bucket_items: int) -> int:
    """By how many bits to split n keys so that buckets fit; up to GROUP_BITS take one split.

    Buckets are at most eight ninths full on average, since buckets of random keys differ in size.
    The buckets of a single split may be smaller: about a hundred of them keep a device busy.
    """
    min_bits = (blocks_for(9 * n, 8 * bucket_items) - 1).bit_length()
    if min_bits <= GROUP_BITS:
        return max(min_bits, min(max(n.bit_length() - 10, 2), GROUP_BITS - 1))
    return max(min_bits, MIN_TWO_SPLITS)


def max_top_bits(job: Job) -> int:
    """By how many bits keys can be split: a count of 2^15 buckets takes 128 KB of shared memory."""
    return MAX_TOP_BITS if "shared_160kb" in job.device.features else MAX_TOP_BITS - 1


def bucket_items_of(job: Job) -> int:
    """How many keys a block can sort."""
    return job.define("BUCKET_THREADS") * job.define("BUCKET_KEYS_PER_THREAD")


def bin_bits_of(job: Job, top_bits: int) -> int:
    """By how many bits to sort a bucket into bins: about one bin for each of its items."""
    n: int = job.params["n"]
    return min(max((n >> top_bits).bit_length(), 8), job.define("MAX_BIN_BITS"))


def bucket_bytes(job: Job, bin_bits: int) -> int:
    """The dynamic shared memory of a block that sorts a bucket: keys, some words, bins."""
    return 4 * (bucket_items_of(job) + WORDS_BEFORE_BINS) + (2 << bin_bits)


def bucket_blocks(job: Job, top_bits: int) -> int:
    """The number of blocks that sort buckets, one each, and of those that copy large ones."""
    copied = 16 * job.define("BUCKET_THREADS")
    return (1 << top_bits) + min(blocks_for(job.params["n"], copied), job.define("COPY_BLOCKS"))


def count_buckets(job: Job, shared_bytes: int, *args: Buffer | np.generic) -> Launch:
    """Return the launch that counts the keys of each bucket; `args` follow the keys."""
    threads = job.define("COUNT_THREADS")
    blocks = min(blocks_for(job.params["n"], 4 * threads), job.define("COUNT_BLOCKS"))
    args = parts.input_of(job), *args
    return job.launch("count_buckets", blocks, threads, *args, shared_bytes=shared_bytes)


class Buckets:
    """The launches of the plan `most_significant_first` and of the one that looks at a sample.

    `cells` holds the decision made by the sample; `counts` receives the counts of digits if these
    are counted instead of buckets.
    """

    def __init__(
        self,
        job: Job,
        top_bits: int,
        arrays: tuple[Buffer, Buffer],
        buckets: Buffer,
        cells: Buffer | None = None,
        counts: Buffer | None = None,
    ) -> None:
        spare, out = arrays
        self._job = job
        self.sampled = cells is not None and job.params["n"] >= job.define(
            "MIN_SAMPLED", at_least=0
        )
        self._bucket_bits = min(top_bits + self.sampled, max_top_bits(job))
        self._numbers = np.uint32(job.params["n"]), np.int32(top_bits)
        state = (buckets,) if cells is None else (buckets, cells)
        flag = () if cells is None else (np.int32(self.sampled),)

        digit_bytes = parts.COUNTER_BYTES if counts is not None and self.sampled else 0
        count_args = *state, *(() if counts is None else (counts,)), *self._numbers, *flag
        self.count = count_buckets(job, max(4 << self._bucket_bits, digit_bytes), *count_args)
        split_args = *state, *self._numbers, *flag
        self.split_into_groups = self._split(
            "split_into_groups", parts.input_of(job), out, *split_args
        )
        self.split_groups = self._split("split_groups", out, spare, *split_args)
        bin_bits = bin_bits_of(job, top_bits)
        self.sort = job.launch(
            "sort_buckets", bucket_blocks(job, top_bits), job.define("BUCKET_THREADS"),
            spare, out, *state, np.int32(top_bits), np.int32(bin_bits), *flag,
            shared_bytes=bucket_bytes(job, bin_bits),
        )  # fmt: skip

    @property
    def all(self) -> tuple[Launch, ...]:
        """The launches that sort by buckets, in order."""
        return self.count, self.split_into_groups, self.split_groups, self.sort

    def _split(self, kernel: str, *args: Buffer | np.generic) -> Launch:
        job, threads = self._job, self._job.define("THREADS_PER_BLOCK")
        tile_items, tile_bytes = parts.tile_of(job)
        tiles = blocks_for(job.params["n"], tile_items)
        return job.launch(kernel, tiles, threads, *args, shared_bytes=tile_bytes)

    def sample(self, cells: Buffer, *args: Buffer) -> Launch:
        """Return the launch that looks at a sample and writes `cells`; `args` come after it."""
        job = self._job
        return job.launch(
            "sample_keys", job.define("SAMPLE_BLOCKS"), job.define("COUNT_THREADS"),
            parts.input_of(job), cells, *args, *self._numbers, np.int32(self._bucket_bits),
        )  # fmt: skip


def sort_in_slots(job: Job, top_bits: int) -> Step:
    """Sort a short array: split it into slots as large as a block can sort, one block per slot."""
    device, keys, n = job.device, parts.input_of(job), job.params["n"]
    rows, threads = "SHORT_KEYS_PER_THREAD", job.define("THREADS_PER_BLOCK")
    bucket_items, bin_bits = bucket_items_of(job), bin_bits_of(job, top_bits)
    tile_items, tile_bytes = parts.tile_of(job, rows)
    tiles = blocks_for(n, tile_items)
    state = parts.shared_state(job, "slots")
    slots = device.empty(bucket_items << top_bits, keys.dtype)  # at least n keys
    out = device.empty(n, keys.dtype)
    args = keys, slots, state, n, np.int32(top_bits)
    split = job.launch("split_into_slots", tiles, threads, *args, shared_bytes=tile_bytes)
    sort = job.launch(
        "sort_slots", 1 << top_bits, job.define("BUCKET_THREADS"),
        slots, out, state, np.int32(top_bits), np.int32(bin_bits),
        shared_bytes=bucket_bytes(job, bin_bits),
    )  # fmt: skip
    statuses = parts.statuses_of(job, tiles)
    finish = parts.sweep_all(job, slots, out, statuses, state, kernel="finish_slots", rows=rows)
    return Step(in_order(split, sort, finish), out)


def sort_as_decided(
    job: Job,
    arrays: tuple[Buffer, Buffer],
    launches: Buckets,
    cells: Buffer,
    sweep: Launch,
    by_launches: parts.Sweeps,
) -> Launch:
    """Return a sort by buckets, or by whatever else the sample or the count decides on.

    The host reads each decision while the device runs the next launch, which returns at once if the
    decision makes it unnecessary.
    """
    (spare, out), keys, n = arrays, parts.input_of(job), job.params["n"]
    heavy, message = parts.shared_state(job, "heavy"), message_to_host(job.device, 1)
    sample = launches.sample(cells, heavy, message.buffer)
    finish = in_order(launches.split_groups, launches.sort, sweep)
    instead: dict[int, Launch] = {
        parts.constant(job, "by_few_sweeps"): sweep,
        parts.constant(job, "by_sweeps"): partial(by_launches.sweep, keys, spare, out, n),
        parts.constant(job, "by_heavy_values"): _count_heavy_values(
            job, arrays, heavy, message, by_launches
        ),
        parts.constant(job, "by_late_sweeps"): partial(by_launches, keys, spare, out, n),
    }

    def run() -> None:
        sample()
        message.send()
        launches.count()
        (plan,) = message.read()
        if plan not in instead:
            message.send()
            launches.split_into_groups()
            (plan,) = message.read()
        instead.get(plan, finish)()

    return run


def _count_heavy_values(
    job: Job,
    arrays: tuple[Buffer, Buffer],
    heavy: Buffer,
    message: Message,
    by_launches: parts.Sweeps,
) -> Launch:
    """Return a sort that counts the heavy values and sorts the other keys in the spare array."""
    device, kernels, (spare, out) = job.device, job.kernels, arrays
    n, threads = np.uint32(job.params["n"]), job.define("THREADS_PER_BLOCK")
    tile_items, tile_bytes = parts.tile_of(job)
    tiles = blocks_for(int(n), tile_items)
    aside_args = parts.input_of(job), spare, heavy, message.buffer, n

    def run() -> None:
        device.launch(
            kernels["set_others_aside"], tiles, threads, *aside_args, shared_bytes=tile_bytes
        )
        message.send()
        by_launches.count("count_digits_of_others", int(n), spare, heavy, by_launches.counts)
        (others,) = message.read()
        if others > 0:
            by_launches.sweep(spare, out, spare, others)
        place_args = spare, heavy, np.uint32(others), n
        device.launch(kernels["place_heavy_values"], 1, job.define("COUNT_THREADS"), *place_args)
        device.launch(kernels["merge_heavy_values"], tiles, threads, spare, out, heavy, n)

    return run
