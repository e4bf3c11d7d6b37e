"""Scans of arrays of any size: first the blocks, then the sums of the blocks, level by level."""

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, blocks_for


def scan_levels(job: Job, items: int) -> list[Buffer]:
    """The array to scan, then the block sums of each level up to a single one."""
    per_block = job.define("ITEMS_PER_BLOCK", at_least=2)
    sizes = [items]
    while len(sizes) == 1 or sizes[-1] > 1:
        sizes.append(blocks_for(sizes[-1], per_block))
    return [job.device.empty(size, np.uint32) for size in sizes]


def scan_level(job: Job, levels: list[Buffer], level: int, items: int) -> None:
    """Scan the `items` items of `levels[level]` in place."""
    blocks, threads = blocks_for(items, job.define("ITEMS_PER_BLOCK")), job.define("SCAN_THREADS")
    data, sums = levels[level : level + 2]
    job.device.launch(job.kernels["scan_blocks"], blocks, threads, data, sums, np.uint32(items))
    add_scanned_sums(job, levels, level, items)


def add_scanned_sums(job: Job, levels: list[Buffer], level: int, items: int) -> None:
    """Turn a level whose blocks are scanned into one scan: scan the block sums, add them back."""
    blocks, threads = blocks_for(items, job.define("ITEMS_PER_BLOCK")), job.define("SCAN_THREADS")
    if blocks > 1:
        data, sums = levels[level : level + 2]
        scan_level(job, levels, level + 1, blocks)
        add = job.kernels["add_block_sums"]
        job.device.launch(add, blocks, threads, data, sums, np.uint32(items))
