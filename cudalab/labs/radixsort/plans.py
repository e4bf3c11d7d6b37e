"""The launch plans of radixsort: which kernels run, in what order, on which memory.

`keys` is the input, T its element type; n < 2^31. With PAIRS 1 the values follow the keys, in[n]
to in[2n - 1], and so in `out`; a T is a value's 4 bytes then.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cudalab.backends.base import message
from cudalab.labs.base import Job, Step, blocks_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cudalab.backends.base import Buffer, Message
    from cudalab.labs.inputs import Case

VALUE_BYTES = 4  # of a pair; its key has as many
GROUP_BITS = 8  # by which a long array is split first
GROUPS = 1 << GROUP_BITS
MOST_TOP_BITS = 15
CELLS = 1 << 12  # of a sample
SLOTS = 1 << 10  # for the heavy values that it has found
# What it has told to do, where that is not to make buckets.
BY_FEW_SWEEPS, BY_SWEEPS, BY_HEAVY_VALUES, BY_LATE_SWEEPS = 2, 3, 4, 5
FIRST_RUN = 1 << 30  # of sweeps by launches; those in one launch count from 1 in the same statuses
COUNTER_BYTES = 64 << 10  # with which a block counts all digits of its keys
COUNTER_BYTES_OF_SWEEPS = 32 << 10  # where it goes on to sweep


def dispatch_split(job: Job) -> Step:
    """One pass a bit, least significant first; s is the exclusive scan of the bits.

    scan_bits(const T *keys, unsigned *s, unsigned *block_sums, unsigned n, int bit)
        s[i] within each block of ITEMS_PER_BLOCK items, block totals to block_sums
    scan_blocks(unsigned *data, unsigned *block_sums, unsigned n)
        the same in place, for the block sums of the level above
    add_block_sums(unsigned *data, const unsigned *block_sums, unsigned n)
        data[i] += block_sums[i / ITEMS_PER_BLOCK]
    split(const T *in, T *out, const unsigned *s, unsigned n, int bit)
        zeros to i - s[i], ones to (number of zeros) + s[i]
    The three scan kernels run in blocks of SCAN_THREADS threads, one block for each
    ITEMS_PER_BLOCK items; split in blocks of THREADS_PER_BLOCK threads, one thread a key.
    """
    device, keys = job.device, _keys(job)
    n = job.params["n"]
    threads, scan_threads = job.define("THREADS_PER_BLOCK"), job.define("SCAN_THREADS")
    scan_blocks = blocks_for(n, job.define("ITEMS_PER_BLOCK"))
    scan_bits, split = job.kernels["scan_bits"], job.kernels["split"]
    levels = _scan_levels(job, n)
    s, block_sums = levels[:2]
    ping, pong = _two_buffers(job)
    passes = 8 * keys.dtype.itemsize

    def run() -> None:
        source, target = keys, ping
        for bit in range(passes):
            args = (np.uint32(n), np.int32(bit))
            device.launch(scan_bits, scan_blocks, scan_threads, source, s, block_sums, *args)
            _add_scanned_sums(job, levels, 0, n)
            device.launch(split, blocks_for(n, threads), threads, source, target, s, *args)
            source, target = target, pong if target is ping else ping

    return Step(run, _last_of(ping, pong, passes))


def dispatch_digits(job: Job) -> Step:
    """One pass a digit of RADIX_BITS bits, least significant first: count, scan, scatter.

    count_digits(const T *keys, unsigned *counts, unsigned n, int shift)
        counts[digit * num_tiles + tile], digit = (ordered bits of key >> shift) % 2^RADIX_BITS
    scan_blocks, add_block_sums: as in the plan `split`, over the counts, with the same
        SCAN_THREADS and ITEMS_PER_BLOCK
    scatter(const T *in, T *out, const unsigned *offsets, unsigned n, int shift)
        stable: offsets[digit * num_tiles + tile] is where the tile's first such key goes;
        a chunk in dynamic shared memory, as below (nothing without a define KEYS_PER_THREAD)
    A tile is TILE_ITEMS keys; a block of THREADS_PER_BLOCK threads handles TILES_PER_BLOCK
    of them (1 where the header does not say), a chunk at a time: KEYS_PER_THREAD * 4 /
    sizeof(T) keys or PAIRS_PER_THREAD keys and values for each thread.
    """
    device, keys = job.device, _keys(job)
    n = job.params["n"]
    threads, tile = job.define("THREADS_PER_BLOCK"), job.define("TILE_ITEMS")
    radix_bits = _radix_bits(job)
    tiles = blocks_for(n, tile)
    blocks = blocks_for(tiles, job.define("TILES_PER_BLOCK", 1))
    count, scatter = job.kernels["count_digits"], job.kernels["scatter"]
    staging = _tile(job)[1] if "KEYS_PER_THREAD" in job.defines else 0
    num_counts = tiles << radix_bits
    levels = _scan_levels(job, num_counts)
    ping, pong = _two_buffers(job)
    passes = _passes(job)

    def run() -> None:
        source, target = keys, ping
        for digit in range(passes):
            args = (np.uint32(n), np.int32(digit * radix_bits))
            device.launch(count, blocks, threads, source, levels[0], *args)
            _scan_level(job, levels, 0, num_counts)
            buffers = source, target, levels[0]
            device.launch(scatter, blocks, threads, *buffers, *args, shared_bytes=staging)
            source, target = target, pong if target is ping else ping

    return Step(run, _last_of(ping, pong, passes))


def dispatch_onesweep(job: Job) -> Step:
    """All digits are counted in one read; then a pass a digit reads and writes the keys once.

    Word is unsigned long long; there are passes = 8 * sizeof(T) / RADIX_BITS digits.

    clear_words(Word *words, unsigned n)
        zeros, once, before the first run
    count_all_digits(const T *keys, unsigned *counts, unsigned n)
        adds to counts[pass * 2^RADIX_BITS + digit]; at most COUNT_BLOCKS blocks; 64 KB of
        dynamic shared memory
    place_digits(unsigned *counts, unsigned *digit_starts)
        a block of 2^RADIX_BITS threads for each pass: the exclusive scan of its counts, which
        become zero again
    sweep(const T *in, T *out, const unsigned *digit_starts, Word *statuses, Word *ticket,
          unsigned n, int shift)
        stable; the pass is shift / RADIX_BITS; a block a tile, taken by ticket; a status for
        each tile and digit. Before the first launch statuses are zero, and the ticket has the
        number of the launch in its high half; from then on both are the kernel's own. A tile
        fits into the dynamic shared memory.
    A tile is KEYS_PER_THREAD * 4 / sizeof(T) keys or PAIRS_PER_THREAD keys and values for each
    of THREADS_PER_BLOCK threads.
    """
    ping, pong = _two_buffers(job)
    statuses = _statuses(job, blocks_for(job.params["n"], _tile(job)[0]))
    sort = _Sweeps(job, job.define("COUNT_BLOCKS"), statuses)
    run = partial(sort, _keys(job), ping, pong, job.params["n"])
    return Step(run, _last_of(ping, pong, _passes(job)))


def dispatch_single_launch(job: Job) -> Step:
    """A launch counts the digits and sweeps over the keys for each; Word as in `onesweep`.

    clear_words: as in the plan `onesweep`
    sweep_all(const T *in, T *spare, T *out, Progress *progress, Word *statuses, unsigned n)
        sorts by way of `spare`, in at most MOST_BLOCKS blocks; a status for each tile and
        digit. A tile fits into the dynamic shared memory, and so do 32 KB. Progress begins
        with 3 words, then 4-byte words: one for each pass and two for each digit. It and the
        statuses are zero before the first launch and the kernel's own from then on.
    A tile is KEYS_PER_THREAD * 4 / sizeof(T) keys or PAIRS_PER_THREAD keys and values for each
    of THREADS_PER_BLOCK threads.
    """
    spare, out = _two_buffers(job)
    statuses = _statuses(job, blocks_for(job.params["n"], _tile(job)[0]))
    return Step(_sweep_all(job, "sweep_all", "KEYS_PER_THREAD", spare, out, statuses), out)


def dispatch_most_significant_first(job: Job) -> Step:
    """Buckets by the top bits, one or two splits, a block a bucket; or as a sample tells.

    Bits is unsigned. `words` are zero before the first launch and the kernels' own from then
    on: 4 + 256 + 3 * 2^15 + 1, of which the first says whether buckets fit. So are the words of
    `cells`: 9 + 2 * 4096.

    clear_words: as in the plan `onesweep`
    sample_keys(const T *keys, Cells *cells, HeavyValues *heavy, unsigned *told, unsigned n,
                int top_bits, int bucket_bits)
        for at least LEAST_SAMPLED keys: SAMPLE_BLOCKS blocks of COUNT_THREADS threads say which
        keys make a bucket, at most 2^bucket_bits buckets; or that there are none: *told is 2,
        3 or 4 then, as below, and 0 or 1 otherwise
    count_buckets(const T *keys, unsigned *words, const Cells *cells, unsigned *digit_counts,
                  unsigned n, int top_bits, int sampled)
        at most COUNT_BLOCKS blocks of COUNT_THREADS threads; 2^top_bits words of shared memory;
        where the keys are sampled 2^bucket_bits, and no less than 64 KB. Where the sample has
        told 3, the digits are counted instead of buckets, as by count_all_digits; where buckets
        do not fit, *told becomes 5
    split_into_groups(const T *in, Bits *out, unsigned *words, const Cells *cells, unsigned n,
                      int top_bits, int sampled), split_groups(const Bits *in, Bits *out, ...)
        into at most 256 groups of buckets, and these into buckets; a block a tile of
        KEYS_PER_THREAD keys a thread, all in shared memory
    sort_buckets(const Bits *in, T *out, unsigned *words, const Cells *cells, int top_bits,
                 int bin_bits, int sampled)
        2^top_bits blocks for buckets, then COPY_BLOCKS for those of equal keys that are too
        large for a block; of BUCKET_THREADS threads; shared memory for BUCKET_KEYS_PER_THREAD
        keys a thread and 2^bin_bits bins of 2 bytes
    sweep_all(const unsigned *words, ...)
        as in the plan `single_launch`; returns at once where words[0] is not 0

    Where *told is 2, sweep_all follows at once. Where it is 3, place_digits and sweep as in the
    plan `onesweep`; where it is 5, count_all_digits comes first, in DIGIT_COUNT_BLOCKS blocks.
    Where it is 4, place_digits and sweep sort what is left by

    set_others_aside(const T *in, T *others, HeavyValues *heavy, unsigned *told, unsigned n)
        a block a tile of KEYS_PER_THREAD keys a thread, all in shared memory; counts the keys
        with heavy values, *told is the number of the others. `heavy` is 4 * 1026 + 2 * 1024 + 4
        words, zero before the first launch
    count_digits_of_others(const T *others, const HeavyValues *heavy, unsigned *counts)
        as count_all_digits
    place_heavy_values(const T *others, HeavyValues *heavy, unsigned num_others, unsigned n)
        a block of COUNT_THREADS threads finds where each value goes among the sorted others
    merge_heavy_values(const T *others, T *out, const HeavyValues *heavy, unsigned n)
        a block a tile

    Few keys, of which one split by top_bits makes buckets that a block can sort, are sorted by
    these alone; `words` are 1 + 2 * 256, zero before the first launch.

    split_into_slots(const T *in, Bits *slots, unsigned *words, unsigned n, int top_bits)
        a slot of BUCKET_THREADS * BUCKET_KEYS_PER_THREAD keys for each bucket; a tile is
        SHORT_KEYS_PER_THREAD keys a thread
    sort_slots(const Bits *slots, T *out, unsigned *words, int top_bits, int bin_bits)
        a block of BUCKET_THREADS threads for each bucket; shared memory as sort_buckets
    sweep_all_short(unsigned *words, ...)
        as in the plan `single_launch`; returns at once where words[0] is 0
    """
    device, keys, n = job.device, _keys(job), job.params["n"]
    threads, bucket_threads = job.define("THREADS_PER_BLOCK"), job.define("BUCKET_THREADS")
    bucket_items = bucket_threads * job.define("BUCKET_KEYS_PER_THREAD")
    top_bits = top_bits_of(n, bucket_items)
    if top_bits <= GROUP_BITS:
        return _sort_in_slots(job, top_bits, bucket_items)
    words, cells = _bucket_words(job), _cleared(job, blocks_for(9 + 2 * CELLS, 2))
    spare, out = _two_buffers(job)
    statuses = _statuses(job, blocks_for(n, _tile(job, "KEYS_PER_THREAD")[0]))
    sweep = _sweep_all(job, "sweep_all", "KEYS_PER_THREAD", spare, out, statuses, words)
    most_top_bits = _most_top_bits(job)
    if top_bits > most_top_bits:
        return Step(sweep, out)

    numbers = np.uint32(n), np.int32(top_bits)
    tile_bytes = 4 * threads * job.define("KEYS_PER_THREAD")
    tiles = blocks_for(4 * n, tile_bytes)
    sampled = n >= job.define("LEAST_SAMPLED", least=0)
    bucket_bits = min(top_bits + 1, most_top_bits) if sampled else top_bits
    flag = np.int32(sampled)
    by_launches = _Sweeps(job, job.define("DIGIT_COUNT_BLOCKS"), statuses)
    count_args = words, cells, by_launches.counts, *numbers, flag
    count_bytes = max(4 << bucket_bits, COUNTER_BYTES if sampled else 0)
    count = _count_buckets(job, count_bytes, *count_args)
    first_split, second_split = (
        partial(device.launch, job.kernels[name], tiles, threads, *args, shared_bytes=tile_bytes)
        for name, args in {
            "split_into_groups": (keys, out, words, cells, *numbers, flag),
            "split_groups": (out, spare, words, cells, *numbers, flag),
        }.items()
    )
    bin_bits = _bin_bits(job, top_bits)
    sort_args = spare, out, words, cells, np.int32(top_bits), np.int32(bin_bits), flag
    sort, sort_bytes = job.kernels["sort_buckets"], 4 * bucket_items + (2 << bin_bits)
    sort_blocks = _bucket_blocks(job, top_bits)

    def finish() -> None:
        second_split()
        device.launch(sort, sort_blocks, bucket_threads, *sort_args, shared_bytes=sort_bytes)
        sweep()

    def run() -> None:
        count()
        first_split()
        finish()

    if not sampled:
        return Step(run, out)

    heavy, told = _cleared(job, 3 * SLOTS + 6), message(device, 1)
    sample = partial(
        device.launch, job.kernels["sample_keys"],
        job.define("SAMPLE_BLOCKS"), job.define("COUNT_THREADS"),
        keys, cells, heavy, told.buffer, *numbers, np.int32(bucket_bits),
    )  # fmt: skip
    otherwise: dict[int, Callable[[], None]] = {
        BY_FEW_SWEEPS: sweep,
        BY_SWEEPS: partial(by_launches.sweep, keys, spare, out, n),
        BY_HEAVY_VALUES: _count_heavy_values(job, heavy, told, spare, out, by_launches),
        BY_LATE_SWEEPS: partial(by_launches, keys, spare, out, n),
    }

    run_as_told = _as_told(told, otherwise, sample, count, first_split, finish)
    return Step(run_as_told, out, reads_back=True)


def dispatch_most_significant_first_stable(job: Job) -> Step:
    """Pairs: two sweeps by the top bits, each its own way, a block a bucket; or all sweeps.

    `words` as in the plan `most_significant_first`; Word, statuses and ticket as in `onesweep`.

    clear_words, count_buckets, sweep_all: as in the plan `most_significant_first`
    split(const T *in, T *out, unsigned *words, Word *statuses, Word *ticket, unsigned n,
          int top_bits, int segment_bits)
        stable, by 8 bits within each of the segments that share segment_bits top bits: 0, then
        top_bits - 8; a block a tile of PAIRS_PER_THREAD pairs a thread, all in shared memory,
        and for each segment one more
    sort_buckets(const T *in, T *out, unsigned *words, unsigned n, int top_bits, int bin_bits)
        stable; a block a bucket of BUCKET_THREADS threads, then COPY_BLOCKS as above; shared
        memory for BUCKET_KEYS_PER_THREAD pairs a thread and 2^bin_bits bins of 2 bytes or,
        where these are less, 8 bytes a thread
    """
    device, pairs, n = job.device, _keys(job), job.params["n"]
    threads, bucket_threads = job.define("THREADS_PER_BLOCK"), job.define("BUCKET_THREADS")
    # More than half as many items as there are groups, or the second split would have no bits.
    least = blocks_for(GROUPS // 2 + 1, bucket_threads)
    bucket_items = bucket_threads * job.define("BUCKET_KEYS_PER_THREAD", least=least)
    # A place in a bucket takes no more bits than its pairs share.
    top_bits = max(top_bits_of(n, bucket_items), (bucket_items - 1).bit_length())
    tile_items, tile_bytes = _tile(job)
    words, ticket = _bucket_words(job), _cleared(job, 1)
    statuses = _statuses(job, n // tile_items + (1 << (top_bits - GROUP_BITS)))
    spare, out = _two_buffers(job)
    sweep = _sweep_all(job, "sweep_all", "", spare, out, statuses, words)
    if top_bits > _most_top_bits(job):
        return Step(sweep, out)

    split_args = words, statuses, ticket, np.uint32(n), np.int32(top_bits)
    splits = [(pairs, out, 0), (out, spare, top_bits - GROUP_BITS)]
    count = _count_buckets(job, 4 << top_bits, words, np.uint32(n), np.int32(top_bits))
    bin_bits = _bin_bits(job, top_bits)
    sort_args = spare, out, words, np.uint32(n), np.int32(top_bits), np.int32(bin_bits)
    sort_bytes = 8 * bucket_items + max(2 << bin_bits, 8 * bucket_threads)
    split, sort = job.kernels["split"], job.kernels["sort_buckets"]
    sort_blocks = _bucket_blocks(job, top_bits)

    def run() -> None:
        count()
        for source, target, segment_bits in splits:
            blocks = n // tile_items + (1 << segment_bits)
            args = source, target, *split_args, np.int32(segment_bits)
            device.launch(split, blocks, threads, *args, shared_bytes=tile_bytes)
        device.launch(sort, sort_blocks, bucket_threads, *sort_args, shared_bytes=sort_bytes)
        sweep()

    return Step(run, out)


def top_bits_of(n: int, bucket_items: int) -> int:
    """By how many bits n keys are split into buckets that fit: up to GROUP_BITS in one split.

    Buckets are at most eight ninths full on average, which leaves room for those of random keys to
    differ. Those of one split may be smaller: about a hundred of them keep a device busy.
    """
    least = (blocks_for(9 * n, 8 * bucket_items) - 1).bit_length()
    if least <= GROUP_BITS:
        return max(least, min(max(n.bit_length() - 10, 2), GROUP_BITS - 1))
    return max(least, GROUP_BITS + 2)  # a scan takes four bins at a time


def _most_top_bits(job: Job) -> int:
    """By how many bits keys can be split: a count of 2^15 buckets takes 128 KB of shared memory."""
    return MOST_TOP_BITS if "shared_160kb" in job.device.features else MOST_TOP_BITS - 1


def _bucket_words(job: Job) -> Buffer:
    """What the launches of `most_significant_first` tell each other."""
    return _cleared(job, blocks_for(4 + GROUPS + (3 << MOST_TOP_BITS) + 1, 2))


def _bucket_blocks(job: Job, top_bits: int) -> int:
    """A block for each bucket, and those that copy large ones."""
    copied = 16 * job.define("BUCKET_THREADS")
    return (1 << top_bits) + min(blocks_for(job.params["n"], copied), job.define("COPY_BLOCKS"))


def _bin_bits(job: Job, top_bits: int) -> int:
    """About a bin an item."""
    n: int = job.params["n"]
    return min(max((n >> top_bits).bit_length(), 8), job.define("MOST_BIN_BITS"))


def _count_buckets(job: Job, shared_bytes: int, *args: Buffer | np.generic) -> Callable[[], None]:
    """What launches the count of the keys of each bucket; `args` follow them."""
    threads = job.define("COUNT_THREADS")
    blocks = min(blocks_for(job.params["n"], 4 * threads), job.define("COUNT_BLOCKS"))

    def run() -> None:
        count, keys = job.kernels["count_buckets"], _keys(job)
        job.device.launch(count, blocks, threads, keys, *args, shared_bytes=shared_bytes)

    return run


def _sort_in_slots(job: Job, top_bits: int, bucket_items: int) -> Step:
    """Few keys: a split into slots that are as large as a block can sort, a block a slot."""
    device, keys, n = job.device, _keys(job), job.params["n"]
    rows, threads = "SHORT_KEYS_PER_THREAD", job.define("THREADS_PER_BLOCK")
    bucket_threads, bin_bits = job.define("BUCKET_THREADS"), _bin_bits(job, top_bits)
    tile_items, tile_bytes = _tile(job, rows)
    tiles = blocks_for(n, tile_items)
    words = _cleared(job, blocks_for(1 + (2 << GROUP_BITS), 2))
    slots = device.empty(bucket_items << top_bits, keys.dtype)  # at least as many as keys
    out = device.empty(n, keys.dtype)
    sweep = _sweep_all(job, "sweep_all_short", rows, slots, out, _statuses(job, tiles), words)
    split, sort = job.kernels["split_into_slots"], job.kernels["sort_slots"]
    split_args = keys, slots, words, np.uint32(n), np.int32(top_bits)
    sort_args = slots, out, words, np.int32(top_bits), np.int32(bin_bits)
    sort_bytes = 4 * bucket_items + (2 << bin_bits)

    def run() -> None:
        device.launch(split, tiles, threads, *split_args, shared_bytes=tile_bytes)
        device.launch(sort, 1 << top_bits, bucket_threads, *sort_args, shared_bytes=sort_bytes)
        sweep()

    return Step(run, out)


def _statuses(job: Job, tiles: int) -> Buffer:
    """A status for each tile and digit."""
    return _cleared(job, tiles << _radix_bits(job))


class _Sweeps:
    """The launches of the plan `onesweep`: the keys alternate between two buffers.

    The last sweep writes the second one, which may be the source, too.
    """

    def __init__(self, job: Job, count_blocks: int, statuses: Buffer) -> None:
        self._job, self._count_blocks, self._statuses = job, count_blocks, statuses
        self._threads, self._radix_bits = job.define("THREADS_PER_BLOCK"), _radix_bits(job)
        self._tile_items, self._tile_bytes = _tile(job)
        digits = _passes(job) << self._radix_bits
        self.counts = job.device.empty(digits, np.uint32)
        self._starts = job.device.empty(digits, np.uint32)
        self._ticket = job.device.empty(1, np.uint64)
        job.device.copy(np.array([FIRST_RUN << 32], np.uint64), self._ticket)
        job.device.copy(np.zeros(digits, np.uint32), self.counts)

    def __call__(self, source: Buffer, target: Buffer, next_target: Buffer, n: int) -> None:
        """Sort n keys."""
        kernel = self._job.kernels["count_all_digits"]
        blocks = min(
            blocks_for(n * _keys(self._job).dtype.itemsize, 16 * self._threads), self._count_blocks
        )
        args = source, self.counts, np.uint32(n)
        self._job.device.launch(kernel, blocks, self._threads, *args, shared_bytes=COUNTER_BYTES)
        self.sweep(source, target, next_target, n)

    def sweep(self, source: Buffer, target: Buffer, next_target: Buffer, n: int) -> None:
        """Sort n keys whose digits are in `counts`."""
        launch, kernels, passes = self._job.device.launch, self._job.kernels, _passes(self._job)
        radix, tiles = 1 << self._radix_bits, blocks_for(n, self._tile_items)
        launch(kernels["place_digits"], passes, radix, self.counts, self._starts)
        for digit in range(passes):
            args = self._starts, self._statuses, self._ticket
            numbers = np.uint32(n), np.int32(digit * self._radix_bits)
            launch(
                kernels["sweep"], tiles, self._threads, source, target, *args, *numbers,
                shared_bytes=self._tile_bytes,
            )  # fmt: skip
            source, target, next_target = target, next_target, target


def _as_told(
    told: Message, otherwise: Mapping[int, Callable[[], None]], *launches: Callable[[], None]
) -> Callable[[], None]:
    """A sort by buckets, unless the sample or the count that follows tells to do otherwise.

    Each is read while the device has what comes behind it, which returns at once where it is in
    vain.
    """
    sample, count, split, finish = launches

    def run() -> None:
        sample()
        told.send()
        count()
        (plan,) = told.read()
        if plan not in otherwise:
            told.send()
            split()
            (plan,) = told.read()
        otherwise.get(plan, finish)()

    return run


def _count_heavy_values(
    job: Job, heavy: Buffer, told: Message, spare: Buffer, out: Buffer, by_launches: _Sweeps
) -> Callable[[], None]:
    """What counts the heavy values and sorts the other keys by way of `spare`."""
    device, keys, n = job.device, _keys(job), np.uint32(job.params["n"])
    threads, count_threads = job.define("THREADS_PER_BLOCK"), job.define("COUNT_THREADS")
    tile_items, tile_bytes = _tile(job)
    tiles = blocks_for(int(n), tile_items)
    count_blocks = min(blocks_for(4 * int(n), 16 * threads), job.define("DIGIT_COUNT_BLOCKS"))
    aside, count, place, merge = (
        job.kernels[name]
        for name in (
            "set_others_aside", "count_digits_of_others", "place_heavy_values",
            "merge_heavy_values",
        )
    )  # fmt: skip

    aside_args = keys, spare, heavy, told.buffer, n
    count_args = spare, heavy, by_launches.counts

    def run() -> None:
        device.launch(aside, tiles, threads, *aside_args, shared_bytes=tile_bytes)
        told.send()
        device.launch(count, count_blocks, threads, *count_args, shared_bytes=COUNTER_BYTES)
        (others,) = told.read()
        if others > 0:
            by_launches.sweep(spare, out, spare, others)
        device.launch(place, 1, count_threads, spare, heavy, np.uint32(others), n)
        device.launch(merge, tiles, threads, spare, out, heavy, n)

    return run


def _sweep_all(
    job: Job, kernel: str, rows: str, spare: Buffer, out: Buffer, statuses: Buffer, *first: Buffer
) -> Callable[[], None]:
    """What launches `kernel`, whose tiles are `rows` keys of 4 bytes for each thread.

    `first`: its parameters before those of the plan `single_launch`.
    """
    device, keys, n = job.device, _keys(job), job.params["n"]
    threads, radix_bits = job.define("THREADS_PER_BLOCK"), _radix_bits(job)
    tile_items, tile_bytes = _tile(job, rows)
    tiles = blocks_for(n, tile_items)
    passes = _passes(job)
    progress = _cleared(job, 3 + blocks_for(passes * (1 + (2 << radix_bits)), 2))
    args = keys, spare, out, progress, statuses, np.uint32(n)
    blocks = min(tiles, job.define("MOST_BLOCKS"))
    shared_bytes = max(tile_bytes, COUNTER_BYTES_OF_SWEEPS)

    def run() -> None:
        device.launch(
            job.kernels[kernel], blocks, threads, *first, *args, shared_bytes=shared_bytes
        )

    return run


def _cleared(job: Job, words: int) -> Buffer:
    """That many words of 8 bytes, zero."""
    buffer, threads = job.device.empty(words, np.uint64), job.define("THREADS_PER_BLOCK")
    blocks = blocks_for(words, threads)
    job.device.launch(job.kernels["clear_words"], blocks, threads, buffer, np.uint32(words))
    return buffer


def _passes(job: Job) -> int:
    """The digits of a key."""
    return 8 * _keys(job).dtype.itemsize // _radix_bits(job)


def _radix_bits(job: Job) -> int:
    """The bits of a digit; more than 16 would be counted in more memory than there is."""
    return job.define("RADIX_BITS", most=16)


def _is_pairs(case: Case) -> bool:
    return case.get("layout") == "pairs"


def _keys(job: Job) -> Buffer:
    """The input: keys, or keys and values."""
    (keys,) = job.buffers.values()
    return keys


def _two_buffers(job: Job) -> tuple[Buffer, Buffer]:
    """Two arrays to sort between, so that the input stays as it is."""
    keys = _keys(job)
    return job.device.empty(keys.shape, keys.dtype), job.device.empty(keys.shape, keys.dtype)


def _tile(job: Job, keys_per_thread: str = "KEYS_PER_THREAD") -> tuple[int, int]:
    """How many items a block takes at once, and their bytes."""
    threads = job.define("THREADS_PER_BLOCK")
    if _is_pairs(job.case):
        items = threads * job.define("PAIRS_PER_THREAD")
        return items, 2 * VALUE_BYTES * items
    itemsize = _keys(job).dtype.itemsize
    size = 4 * threads * job.define(keys_per_thread, least=blocks_for(itemsize, 4 * threads))
    return size // itemsize, size


def _last_of(ping: Buffer, pong: Buffer, passes: int) -> Buffer:
    return ping if passes % 2 else pong


def _scan_levels(job: Job, items: int) -> list[Buffer]:
    """The array to scan, then the block sums of each level up to a single one."""
    per_block = job.define("ITEMS_PER_BLOCK", least=2)
    sizes = [items]
    while len(sizes) == 1 or sizes[-1] > 1:
        sizes.append(blocks_for(sizes[-1], per_block))
    return [job.device.empty(size, np.uint32) for size in sizes]


def _scan_level(job: Job, levels: list[Buffer], level: int, items: int) -> None:
    """Scan the `items` of `levels[level]` in place."""
    blocks, threads = blocks_for(items, job.define("ITEMS_PER_BLOCK")), job.define("SCAN_THREADS")
    data, sums = levels[level : level + 2]
    job.device.launch(job.kernels["scan_blocks"], blocks, threads, data, sums, np.uint32(items))
    _add_scanned_sums(job, levels, level, items)


def _add_scanned_sums(job: Job, levels: list[Buffer], level: int, items: int) -> None:
    """Turn a level whose blocks are scanned into one scan: scan the block sums, add them back."""
    blocks, threads = blocks_for(items, job.define("ITEMS_PER_BLOCK")), job.define("SCAN_THREADS")
    if blocks > 1:
        data, sums = levels[level : level + 2]
        _scan_level(job, levels, level + 1, blocks)
        add = job.kernels["add_block_sums"]
        job.device.launch(add, blocks, threads, data, sums, np.uint32(items))
