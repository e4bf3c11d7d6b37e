"""Parts of launch plans that several labs need: scans of arrays, and the memory of a look-back."""

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, Step, blocks_for, passes

GROUP = 32  # nodes that look-back reads at once; see kernels/common/device/look_back.cuh


def scanned(job: Job, items: Buffer, n: int) -> Step:
    """The scan of n items by scan_blocks, scan_block_sums and add_block_sums.

    Their parameters and blocks: `dispatch_recursive` of cudalab/labs/scan/plans.py.
    """
    device, kernels = job.device, job.kernels
    items_each = job.define("ITEMS_PER_THREAD")
    threads = job.define("THREADS_PER_BLOCK", at_least=1 if items_each > 1 else 2)
    per_block = threads * items_each
    out = device.empty(n, items.dtype)
    sizes = passes(n, per_block)  # number of block sums at each level
    sums = [device.empty(size, items.dtype) for size in sizes]
    scan_blocks, scan_sums = kernels["scan_blocks"], kernels["scan_block_sums"]
    add_sums = kernels["add_block_sums"]

    def run() -> None:
        device.launch(scan_blocks, sizes[0], threads, items, out, sums[0], np.uint32(n))
        for level in range(1, len(sizes)):
            args = (sums[level - 1], sums[level], np.uint32(sizes[level - 1]))
            device.launch(scan_sums, sizes[level], threads, *args)
        for level in reversed(range(len(sizes) - 1)):
            data, size = (sums[level - 1], sizes[level - 1]) if level else (out, n)
            args = (data, sums[level], np.uint32(size))
            device.launch(add_sums, sizes[level], threads, *args)

    return Step(run, out)


def look_back_memory(job: Job, tiles: int, words_each: int) -> tuple[Buffer, Buffer]:
    """The words of all tiles, groups of tiles and groups of groups, and the ticket, all zero."""
    nodes = tiles + blocks_for(tiles, GROUP) + blocks_for(tiles, GROUP * GROUP)
    zeros = np.zeros(nodes * words_each, np.uint64)
    words, ticket = (job.device.empty(size, np.uint64) for size in (len(zeros), 1))
    job.device.copy(zeros, words)
    job.device.copy(zeros[:1], ticket)
    return words, ticket
