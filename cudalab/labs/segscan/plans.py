"""The launch plans of segscan: which kernels run, in what order, on which memory.

`keys` and `items` are the input, both int; n < 2^31. A segment begins with item 0, and with each
item i whose key is not keys[i - 1]; sums are inclusive. A pair is a word of 8 bytes: bit 32 is 1 if
a segment begins with the item, the low half is the item; scanned, it is the sum.
"""

import numpy as np

from cudalab.labs.base import Job, Step, blocks_for, in_order
from cudalab.labs.scans import look_back_memory, scanned


def dispatch_pairs(job: Job) -> Step:
    """Make pairs, scan them, take the sums out of them.

    make_pairs(const int *keys, const int *items, unsigned long long *pairs, unsigned n)
    take_sums(const unsigned long long *pairs, int *out, unsigned n)
        out[i] = the low half of pairs[i]
    A thread for each item, in blocks of THREADS_PER_BLOCK. Between the two, the kernels of the scan
    lab's plan `recursive`, for T = unsigned long long.
    """
    device, items, n = job.device, job.buffers["items"], job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    grid, out = blocks_for(n, threads), device.empty(n, items.dtype)
    pairs = device.empty(n, np.uint64)
    sums = scanned(job, pairs, n)
    make = job.launch("make_pairs", grid, threads, job.buffers["keys"], items, pairs, n)
    take = job.launch("take_sums", grid, threads, sums.out, out, n)
    return Step(in_order(make, sums.run, take), out)


def dispatch_one_pass(job: Job) -> Step:
    """One launch; blocks pass on their sums through status words.

    scan_segments(const int *keys, const int *items, int *out, unsigned long long *words,
                  unsigned long long *ticket, unsigned n)
        blocks take tiles by *ticket; words and *ticket are those of the scan lab's plan
        `look_back`, STATUS_BYTES for each tile, group and super-group: 8 or 16
    A tile is ITEMS_PER_THREAD items for each of the THREADS_PER_BLOCK threads of its block.
    """
    keys, items, n = job.buffers["keys"], job.buffers["items"], job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    tiles = blocks_for(n, threads * job.define("ITEMS_PER_THREAD"))
    out = job.device.empty(n, items.dtype)
    memory = look_back_memory(job, tiles, job.define("STATUS_BYTES", at_least=8) // 8)
    return Step(job.launch("scan_segments", tiles, threads, keys, items, out, *memory, n), out)
