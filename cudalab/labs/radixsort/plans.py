"""The launch plans of radixsort: which kernels run, in what order, on which memory.

`keys` is the input, T its element type; n < 2^31. If PAIRS is 1, the values follow the keys, as
in[n] to in[2n - 1], and likewise in `out`; a T then holds the 4 bytes of a value.
"""

from functools import partial

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, Step, blocks_for, in_order
from cudalab.labs.radixsort import buckets, parts


def dispatch_split(job: Job) -> Step:
    """One pass a bit, least significant first; s is the exclusive scan of the bits.

    scan_bits(const T *keys, unsigned *s, unsigned *block_sums, unsigned n, int bit)
        writes s[i] within each block of ITEMS_PER_BLOCK items, and block totals to block_sums
    scan_blocks(unsigned *data, unsigned *block_sums, unsigned n)
        the same in place, for the block sums of the level above
    add_block_sums(unsigned *data, const unsigned *block_sums, unsigned n)
        data[i] += block_sums[i / ITEMS_PER_BLOCK]
    split(const T *in, T *out, const unsigned *s, unsigned n, int bit)
        moves zeros to i - s[i], ones to (number of zeros) + s[i]
    The three scan kernels run in blocks of SCAN_THREADS threads, one block for each ITEMS_PER_BLOCK
    items; split in blocks of THREADS_PER_BLOCK threads, one thread per key.
    """
    device, keys = job.device, parts.input_of(job)
    n = job.params["n"]
    threads, scan_threads = job.define("THREADS_PER_BLOCK"), job.define("SCAN_THREADS")
    scan_blocks = blocks_for(n, job.define("ITEMS_PER_BLOCK"))
    scan_bits, split = job.kernels["scan_bits"], job.kernels["split"]
    levels = parts.scan_levels(job, n)
    s, block_sums = levels[:2]
    ping, pong = parts.two_buffers(job)
    passes = 8 * keys.dtype.itemsize

    def run() -> None:
        source, target = keys, ping
        for bit in range(passes):
            args = (np.uint32(n), np.int32(bit))
            device.launch(scan_bits, scan_blocks, scan_threads, source, s, block_sums, *args)
            parts.add_scanned_sums(job, levels, 0, n)
            device.launch(split, blocks_for(n, threads), threads, source, target, s, *args)
            source, target = target, pong if target is ping else ping

    return Step(run, parts.last_of(ping, pong, passes))


def dispatch_digits(job: Job) -> Step:
    """One pass a digit of RADIX_BITS bits, least significant first: count, scan, scatter.

    count_digits(const T *keys, unsigned *counts, unsigned n, int shift)
        counts[digit * num_tiles + tile], digit = (ordered bits of key >> shift) % 2^RADIX_BITS
    scan_blocks, add_block_sums: as in the plan `split`, over the counts, with the same
        SCAN_THREADS and ITEMS_PER_BLOCK
    scatter(const T *in, T *out, const unsigned *offsets, unsigned n, int shift)
        stable; offsets[digit * num_tiles + tile] is where the tile's first such key goes; dynamic
        shared memory for a chunk (none without a define KEYS_PER_THREAD)
    A tile is TILE_ITEMS keys. A block of THREADS_PER_BLOCK threads handles TILES_PER_BLOCK tiles
    (1 if the header does not say), one chunk at a time. A chunk is KEYS_PER_THREAD * 4 / sizeof(T)
    keys, or PAIRS_PER_THREAD keys and values, for each thread.
    """
    device, keys = job.device, parts.input_of(job)
    n = job.params["n"]
    threads, tile = job.define("THREADS_PER_BLOCK"), job.define("TILE_ITEMS")
    digit_bits = parts.radix_bits(job)
    tiles = blocks_for(n, tile)
    blocks = blocks_for(tiles, job.define("TILES_PER_BLOCK", 1))
    count, scatter = job.kernels["count_digits"], job.kernels["scatter"]
    staging = parts.tile_of(job)[1] if "KEYS_PER_THREAD" in job.defines else 0
    num_counts = tiles << digit_bits
    levels = parts.scan_levels(job, num_counts)
    ping, pong = parts.two_buffers(job)
    passes = parts.passes_of(job)

    def run() -> None:
        source, target = keys, ping
        for digit in range(passes):
            args = (np.uint32(n), np.int32(digit * digit_bits))
            device.launch(count, blocks, threads, source, levels[0], *args)
            parts.scan_level(job, levels, 0, num_counts)
            buffers = source, target, levels[0]
            device.launch(scatter, blocks, threads, *buffers, *args, shared_bytes=staging)
            source, target = target, pong if target is ping else ping

    return Step(run, parts.last_of(ping, pong, passes))


def dispatch_onesweep(job: Job) -> Step:
    """One read counts all digits; then one pass per digit reads and writes the keys once.

    Word is unsigned long long; there are passes = 8 * sizeof(T) / RADIX_BITS digits.

    clear_words(Word *words, unsigned n)
        writes zeros, once, before the first run
    count_all_digits(const T *keys, unsigned *counts, unsigned n)
        adds to counts[pass * 2^RADIX_BITS + digit]; at most COUNT_BLOCKS blocks; 64 KB of dynamic
        shared memory
    place_digits(unsigned *counts, unsigned *digit_starts)
        a block of 2^RADIX_BITS threads for each pass writes the exclusive scan of its counts, and
        sets them to zero
    sweep(const T *in, T *out, const unsigned *digit_starts, Word *statuses, Word *ticket,
          unsigned n, int shift)
        stable; the pass is shift / RADIX_BITS; one block per tile, which it takes by ticket; one
        status for each tile and digit; dynamic shared memory for a tile. Before the first launch
        statuses are zero, and the ticket has the number of the launch in its high half; from then
        on only the kernel changes them.
    A tile is KEYS_PER_THREAD * 4 / sizeof(T) keys or PAIRS_PER_THREAD keys and values for each
    of THREADS_PER_BLOCK threads.
    """
    ping, pong = parts.two_buffers(job)
    statuses = _tile_statuses(job)
    sort = parts.Sweeps(job, job.define("COUNT_BLOCKS"), statuses)
    run = partial(sort, parts.input_of(job), ping, pong, job.params["n"])
    return Step(run, parts.last_of(ping, pong, parts.passes_of(job)))


def dispatch_single_launch(job: Job) -> Step:
    """One launch counts the digits and sweeps over the keys for each; Word as in `onesweep`.

    clear_words: as in the plan `onesweep`
    sweep_all(const T *in, T *spare, T *out, Progress *progress, Word *statuses, unsigned n)
        sorts by way of `spare`, in at most MAX_BLOCKS blocks; one status for each tile and digit;
        dynamic shared memory for a tile, at least 32 KB. The constant `progress_bytes` is the size
        of Progress. It and the statuses are zero before the first launch; from then on only the
        kernel changes them.
    A tile is KEYS_PER_THREAD * 4 / sizeof(T) keys or PAIRS_PER_THREAD keys and values for each
    of THREADS_PER_BLOCK threads.
    """
    spare, out = parts.two_buffers(job)
    statuses = _tile_statuses(job)
    return Step(parts.sweep_all(job, spare, out, statuses), out)


def dispatch_one_block(job: Job) -> Step:
    """An array that a block can sort is sorted in one, others as in the plan `single_launch`.

    A block can sort BUCKET_THREADS * BUCKET_KEYS_PER_THREAD keys.

    sort_block(const T *in, T *out, unsigned *failed, unsigned n, int bin_bits)
        one block of BUCKET_THREADS threads; dynamic shared memory for as many keys as it can sort,
        four more, and 2^bin_bits bins of 2 bytes, at most 2^MAX_BIN_BITS
    sweep_all_left(unsigned *failed, ...)
        the other parameters, tiles and blocks as for `sweep_all`; returns at once if *failed is 0,
        and leaves it 0
    clear_words, sweep_all: as in the plan `single_launch`
    """
    n, bucket_items = job.params["n"], buckets.bucket_items_of(job)
    if not 0 < n <= bucket_items:
        return dispatch_single_launch(job)
    spare, out = parts.two_buffers(job)
    failed, bin_bits = parts.cleared(job, 1), buckets.bin_bits_of(job, 0)
    sort = job.launch(
        "sort_block", 1, job.define("BUCKET_THREADS"),
        parts.input_of(job), out, failed, n, np.int32(bin_bits),
        shared_bytes=buckets.bucket_bytes(job, bin_bits),
    )  # fmt: skip
    sweep = parts.sweep_all(job, spare, out, _tile_statuses(job), failed, kernel="sweep_all_left")
    return Step(in_order(sort, sweep), out)


def dispatch_bucket_slots(job: Job) -> Step:
    """Short arrays are split into a slot per bucket, which a block sorts; longer ones take sweeps.

    Bits is unsigned. A slot is BUCKET_THREADS * BUCKET_KEYS_PER_THREAD keys. `slots_bytes` is the
    size of Slots, which are zero before the first launch; from then on only the kernels change
    them.

    split_into_slots(const T *in, Bits *slots, Slots *state, unsigned n, int top_bits)
        one block per tile of SHORT_KEYS_PER_THREAD keys per thread, all in dynamic shared memory
    sort_slots(const Bits *slots, T *out, Slots *state, int top_bits, int bin_bits)
        one block of BUCKET_THREADS threads per bucket; dynamic shared memory for a slot,
        four keys more, and 2^bin_bits bins of 2 bytes, at most 2^MAX_BIN_BITS
    finish_slots(Slots *state, ...)
        writes the keys that were counted instead of sorted, or sorts by sweeps; the other
        parameters, tiles and blocks as for `sweep_all` in the plan `single_launch`
    clear_words, sweep_all: as in the plan `single_launch`, for more keys than one split can divide
    """
    top_bits = buckets.top_bits_of(job.params["n"], buckets.bucket_items_of(job))
    return (
        buckets.sort_in_slots(job, top_bits)
        if top_bits <= buckets.GROUP_BITS
        else dispatch_single_launch(job)
    )


def dispatch_most_significant_first(job: Job) -> Step:
    """Buckets by the top bits: a count, two splits and a block for each bucket; or sweeps.

    Bits is unsigned. `buckets_bytes` is the size of Buckets, which are zero before the first
    launch; from then on only the kernels change them.

    count_buckets(const T *keys, Buckets *buckets, unsigned n, int top_bits)
        at most COUNT_BLOCKS blocks of COUNT_THREADS threads; one word of dynamic shared memory for
        each of the 2^top_bits buckets
    split_into_groups(const T *in, Bits *out, Buckets *buckets, unsigned n, int top_bits)
    split_groups(const Bits *in, Bits *out, Buckets *buckets, unsigned n, int top_bits)
        split by the top 8 bits, then into buckets; one block per tile of KEYS_PER_THREAD keys per
        thread, all in dynamic shared memory
    sort_buckets(const Bits *in, T *out, Buckets *buckets, int top_bits, int bin_bits)
        2^top_bits blocks, one per bucket, then up to COPY_BLOCKS blocks that copy the buckets of
        equal keys that are too large for a block; all of BUCKET_THREADS threads; dynamic shared
        memory for BUCKET_KEYS_PER_THREAD keys per thread, four more, and 2^bin_bits bins of 2 bytes
    sweep_all(const Buckets *buckets, ...)
        the other parameters as in the plan `single_launch`; returns at once if the buckets have
        sorted the keys
    clear_words: as in the plan `onesweep`
    """
    arrays = spare, out = parts.two_buffers(job)
    state, statuses = parts.shared_state(job, "buckets"), _tile_statuses(job)
    sweep = parts.sweep_all(job, spare, out, statuses, state)
    # By how many bits to split keys: more than GROUP_BITS, or the second split would have none.
    top_bits = max(
        buckets.top_bits_of(job.params["n"], buckets.bucket_items_of(job)), buckets.MIN_TWO_SPLITS
    )
    if top_bits > buckets.max_top_bits(job):
        return Step(sweep, out)
    launches = buckets.Buckets(job, top_bits, arrays, state)
    return Step(in_order(*launches.all, sweep), out)


def dispatch_sampled_buckets(job: Job) -> Step:
    """Buckets by the top bits, as many for a value of these as a sample has keys with it.

    `sampled_bytes` is the size of Sampled, which is zero before the first launch; from then on only
    the kernels change it. There are 2^bucket_bits buckets, of which the last may be empty.

    sample_keys(const T *keys, Sampled *state, unsigned n)
        SAMPLE_BLOCKS blocks of COUNT_THREADS threads count a sample of 4 keys per thread
    cut_cells(Sampled *state, unsigned n, unsigned samples, int bucket_bits)
        one block of COUNT_THREADS threads decides which keys make a bucket
    count_buckets(const T *keys, Sampled *state, unsigned n, int bucket_bits)
        at most COUNT_BLOCKS blocks of COUNT_THREADS threads
    place_buckets(Sampled *state, unsigned n, int bucket_bits)
        one block of COUNT_THREADS threads; both with a word of dynamic shared memory per bucket
    split_into_groups(const T *in, T *out, Sampled *state, unsigned n, int bucket_bits)
    split_groups(const T *in, T *out, Sampled *state, unsigned n, int bucket_bits)
        one block per tile of KEYS_PER_THREAD keys per thread, all in dynamic shared memory
    sort_buckets(const T *in, T *out, Sampled *state, int bin_bits)
        one block of BUCKET_THREADS threads per bucket; dynamic shared memory as in the plan
        `most_significant_first`
    sort_left_buckets(T *spare, T *out, const Sampled *state, int bucket_bits)
        COUNT_BLOCKS blocks of THREADS_PER_BLOCK threads sort the buckets that are too large, with
        CHUNK_KEYS_PER_THREAD keys per thread in dynamic shared memory
    clear_words: as in the plan `onesweep`
    """
    launch, kernels, keys, n = job.device.launch, job.kernels, parts.input_of(job), job.params["n"]
    threads, bucket_threads = job.define("THREADS_PER_BLOCK"), job.define("BUCKET_THREADS")
    counters, blocks = job.define("COUNT_THREADS"), job.define("COUNT_BLOCKS")
    sample_blocks, chunk = job.define("SAMPLE_BLOCKS"), job.define("CHUNK_KEYS_PER_THREAD")
    spare, out = parts.two_buffers(job)
    state = parts.shared_state(job, "sampled")
    top_bits = buckets.top_bits_of(n, buckets.bucket_items_of(job))
    bits = min(max(top_bits + 1, buckets.MIN_SAMPLED_BITS), buckets.max_top_bits(job))
    bin_bits = buckets.bin_bits_of(job, bits)
    tile_items, tile_bytes = parts.tile_of(job)
    tiles, sort_bytes = (
        blocks_for(n, tile_items),
        buckets.bucket_bytes(job, bin_bits),
    )
    items, shift = np.uint32(n), np.int32(bits)
    samples = np.uint32(4 * sample_blocks * counters)
    count = buckets.count_buckets(job, 4 << bits, state, items, shift)

    def run() -> None:
        launch(kernels["sample_keys"], sample_blocks, counters, keys, state, items)
        launch(kernels["cut_cells"], 1, counters, state, items, samples, shift)
        count()
        place = kernels["place_buckets"]
        launch(place, 1, counters, state, items, shift, shared_bytes=4 << bits)
        for name, source, target in (("into_groups", keys, out), ("groups", out, spare)):
            args = source, target, state, items, shift
            launch(kernels[f"split_{name}"], tiles, threads, *args, shared_bytes=tile_bytes)
        sort, left = kernels["sort_buckets"], kernels["sort_left_buckets"]
        sort_args = spare, out, state, np.int32(bin_bits)
        launch(sort, 1 << bits, bucket_threads, *sort_args, shared_bytes=sort_bytes)
        launch(left, blocks, threads, spare, out, state, shift, shared_bytes=4 * chunk * threads)

    return Step(run, out)


def dispatch_most_significant_first_heavy(job: Job) -> Step:
    """Buckets as a sample has cut them; heavy values are counted; short arrays go to slots.

    `sample_bytes` and `heavy_bytes` are the sizes of Sample, which begins with Cells, and of
    HeavyValues. Both are zero before the first launch; from then on only the kernels change them.

    sample_keys(const T *keys, Sample *sample, HeavyValues *heavy, unsigned *message, unsigned n,
                int top_bits, int bucket_bits)
        for MIN_SAMPLED keys or more: SAMPLE_BLOCKS blocks of COUNT_THREADS threads decide which
        keys make a bucket, with at most 2^bucket_bits buckets; *message is the plan: one of the
        constants below, or any other number for buckets
    count_buckets, split_into_groups, split_groups, sort_buckets: as there, with a parameter
        `const Cells *cells` after `buckets`, and `int sampled` as the last one: whether cells have
        been written. The shared memory of the count has 2^bucket_bits words. The count takes a
        Sample in place of Cells and after it `unsigned *digit_counts`. If the plan is by_sweeps, it
        counts digits instead of buckets, as count_all_digits does; if buckets do not fit, *message
        becomes by_late_sweeps
    clear_words, sweep_all: as there
    split_into_slots, sort_slots, finish_slots: as in the plan `bucket_slots`, for short arrays

    by_few_sweeps: sweep_all follows at once
    by_sweeps: place_digits and sweep follow, as in the plan `onesweep`
    by_late_sweeps: count_all_digits in DIGIT_COUNT_BLOCKS blocks, then these two
    by_heavy_values: the next two, place_digits and sweep for the others, and the last two
        set_others_aside(const T *in, T *others, HeavyValues *heavy, unsigned *message, unsigned n)
            one block per tile, all in shared memory, counts the keys with heavy values; *message
            becomes the number of the others
        count_digits_of_others(const T *others, const HeavyValues *heavy, unsigned *counts)
            as count_all_digits
        place_heavy_values(const T *others, HeavyValues *heavy, unsigned num_others, unsigned n)
            a block of COUNT_THREADS threads finds where each value goes among the sorted others
        merge_heavy_values(const T *others, T *out, const HeavyValues *heavy, unsigned n)
            one block per tile
    """
    top_bits = buckets.top_bits_of(job.params["n"], buckets.bucket_items_of(job))
    if top_bits <= buckets.GROUP_BITS:
        return buckets.sort_in_slots(job, top_bits)
    arrays = spare, out = parts.two_buffers(job)
    state, statuses = parts.shared_state(job, "buckets"), _tile_statuses(job)
    sweep = parts.sweep_all(job, spare, out, statuses, state)
    if top_bits > buckets.max_top_bits(job):
        return Step(sweep, out)
    sweeps = parts.Sweeps(job, job.define("DIGIT_COUNT_BLOCKS"), statuses)
    cells = parts.shared_state(job, "sample")
    launches = buckets.Buckets(job, top_bits, arrays, state, cells, sweeps.counts)
    if launches.sampled:
        sort = buckets.sort_as_decided(job, arrays, launches, cells, sweep, sweeps)
        return Step(sort, out, reads_back=True)
    return Step(in_order(*launches.all, sweep), out)


def dispatch_most_significant_first_stable(job: Job) -> Step:
    """Pairs: two stable sweeps by the top bits and a block for each bucket; or sweeps for all bits.

    Buckets as in the plan `most_significant_first`; Word, statuses and ticket as in `onesweep`.

    clear_words, count_buckets, sweep_all: as in the plan `most_significant_first`
    split_into_segments(const T *in, T *out, Buckets *buckets, Word *statuses, Word *ticket,
                        unsigned n, int top_bits, int segment_bits = 0)
        stable, by FIRST_BITS top bits; one block per tile of PAIRS_PER_THREAD pairs per thread, all
        in shared memory, and one more
    split_segments(same arguments)
        the same by RADIX_BITS bits within each of the segments that share segment_bits = top_bits -
        RADIX_BITS top bits; one more block for each of them
    sort_buckets(const T *in, T *out, Buckets *buckets, unsigned n, int top_bits, int bin_bits)
        stable; one block of BUCKET_THREADS threads per bucket, then COPY_BLOCKS as above; shared
        memory for BUCKET_KEYS_PER_THREAD pairs per thread, 32 bytes, and 2^bin_bits bins of 2 bytes
        and 16 bytes more, or 8 bytes per thread if that is more
    """
    device, pairs, n = job.device, parts.input_of(job), job.params["n"]
    threads, bucket_threads = job.define("THREADS_PER_BLOCK"), job.define("BUCKET_THREADS")
    # More than half as many items as there are groups, or the second split would have no bits.
    min_keys = blocks_for((1 << buckets.GROUP_BITS - 1) + 1, bucket_threads)
    bucket_items = bucket_threads * job.define("BUCKET_KEYS_PER_THREAD", at_least=min_keys)
    # A place in a bucket takes no more bits than its pairs share.
    top_bits = max(buckets.top_bits_of(n, bucket_items), (bucket_items - 1).bit_length())
    tile_items, tile_bytes = parts.tile_of(job)
    state, ticket = parts.shared_state(job, "buckets"), parts.cleared(job, 1)
    segment_bits = top_bits - parts.radix_bits(job)
    statuses = parts.statuses_of(job, n // tile_items + (1 << segment_bits))
    spare, out = parts.two_buffers(job)
    sweep = parts.sweep_all(job, spare, out, statuses, state)
    if top_bits > buckets.max_top_bits(job):
        return Step(sweep, out)

    job.define("FIRST_BITS", at_least=segment_bits)
    split_args = state, statuses, ticket, np.uint32(n), np.int32(top_bits)
    splits = [
        (job.kernels["split_into_segments"], pairs, out, 0),
        (job.kernels["split_segments"], out, spare, segment_bits),
    ]
    count = buckets.count_buckets(job, 4 << top_bits, state, np.uint32(n), np.int32(top_bits))
    bin_bits = buckets.bin_bits_of(job, top_bits)
    sort_args = spare, out, state, np.uint32(n), np.int32(top_bits), np.int32(bin_bits)
    sort_bytes = 8 * bucket_items + 32 + max((2 << bin_bits) + 16, 8 * bucket_threads)
    sort = job.kernels["sort_buckets"]
    sort_blocks = buckets.bucket_blocks(job, top_bits)

    def run() -> None:
        count()
        for split, source, target, bits in splits:
            blocks = n // tile_items + (1 << bits)
            args = source, target, *split_args, np.int32(bits)
            device.launch(split, blocks, threads, *args, shared_bytes=tile_bytes)
        device.launch(sort, sort_blocks, bucket_threads, *sort_args, shared_bytes=sort_bytes)
        sweep()

    return Step(run, out)


def _tile_statuses(job: Job) -> Buffer:
    return parts.statuses_of(job, blocks_for(job.params["n"], parts.tile_of(job)[0]))
