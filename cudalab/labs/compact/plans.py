"""The launch plans of compact: which kernels run, in what order, on which memory.

`items` is the input, ITEM its element type; n < 2^31. An item is kept if it is not 0. If p of the i
items before one are kept, it goes to place p, or becomes a zero in place n - 1 - (i - p).
"""

import numpy as np

from cudalab.labs.base import Job, Step, blocks_for, in_order
from cudalab.labs.scans import look_back_memory, scanned


def dispatch_flags(job: Job) -> Step:
    """Mark the items, scan the marks, move the items.

    mark_kept(const ITEM *in, unsigned *flags, unsigned n)
        flags[i] = 1 if item i is kept, else 0
    move_items(const ITEM *in, const unsigned *kept_before, ITEM *out, unsigned n)
        kept_before[i]: how many items before item i are kept
    A thread for each item, in blocks of THREADS_PER_BLOCK. Between the two, the kernels of the scan
    lab's plan `recursive`, for T = unsigned.
    """
    device, items, n = job.device, job.buffers["items"], job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    grid, out = blocks_for(n, threads), device.empty(n, items.dtype)
    flags = device.empty(n, np.uint32)
    places = scanned(job, flags, n)
    mark = job.launch("mark_kept", grid, threads, items, flags, n)
    move = job.launch("move_items", grid, threads, items, places.out, out, n)
    return Step(in_order(mark, places.run, move), out)


def dispatch_counts(job: Job) -> Step:
    """Count what each block keeps, scan the counts, move the items.

    count_kept(const ITEM *in, unsigned *counts, unsigned n)
        counts[b]: how many items of block b are kept
    move_kept(const ITEM *in, const unsigned *kept_before, ITEM *out, unsigned n)
        kept_before[b]: how many items before block b are kept
    Blocks of THREADS_PER_BLOCK threads, one per THREADS_PER_BLOCK * ITEMS_PER_THREAD items. Between
    the two, the kernels of the scan lab's plan `recursive`, for T = unsigned.
    """
    device, items, n = job.device, job.buffers["items"], job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    grid = blocks_for(n, threads * job.define("ITEMS_PER_THREAD"))
    out, counts = device.empty(n, items.dtype), device.empty(grid, np.uint32)
    before = scanned(job, counts, grid)
    count = job.launch("count_kept", grid, threads, items, counts, n)
    move = job.launch("move_kept", grid, threads, items, before.out, out, n)
    return Step(in_order(count, before.run, move), out)


def dispatch_look_back(job: Job) -> Step:
    """One launch; blocks pass on through status words how many items they keep.

    compact_tiles(const ITEM *in, ITEM *out, unsigned long long *words,
                  unsigned long long *ticket, unsigned n)
        blocks take tiles by *ticket; words and *ticket are those of the scan lab's plan
        `look_back`, for values of 4 bytes
    A tile is ITEMS_PER_THREAD items for each of the THREADS_PER_BLOCK threads of its block.
    """
    items, n, threads = job.buffers["items"], job.params["n"], job.define("THREADS_PER_BLOCK")
    tiles = blocks_for(n, threads * job.define("ITEMS_PER_THREAD"))
    out = job.device.empty(n, items.dtype)
    memory = look_back_memory(job, tiles, words_each=1)
    return Step(job.launch("compact_tiles", tiles, threads, items, out, *memory, n), out)
