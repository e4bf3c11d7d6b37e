"""The launch plans of bitonic: which kernels run, in what order, on which memory.

`keys` is a copy of the input, sorted in place; T its element type; n < 2^31.

The comparators of a step are numbered through the groups of the array, in order. A comparator that
reaches past n does nothing, as if the array were padded to a power of two with maximal keys.
"""

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, Step, blocks_for, padded, powers_of_two

MAX_STEPS = 4  # of a launch of the plan `passes`: 16 keys per thread


def dispatch_alternating(job: Job) -> Step:
    """A launch for each step; groups of `size` = 2, 4, 8, ... keys, alternately up and down.

    clean_alternating(T *keys, unsigned n, unsigned size, unsigned stride)
        comparator of key k and key k + stride of each group of 2 * stride keys, for
        stride = size / 2, ..., 2, 1; ascending where bit `size` of k equals that of n, and in
        the last merge, where size >= n; else descending
    Blocks of THREADS_PER_BLOCK threads, one thread per comparator.
    """
    keys = job.device.empty(job.params["n"], job.buffers["keys"].dtype)

    def run() -> None:
        job.device.copy(job.buffers["keys"], keys)
        for size in powers_of_two(2, padded(job.params["n"])):
            for stride in reversed(powers_of_two(1, size // 2)):
                _launch(job, "clean_alternating", keys, size, stride, group=2 * stride)

    return Step(run, keys)


def dispatch_steps(job: Job) -> Step:
    """A launch for each step of each merge; groups of 2, 4, 8, ... keys, until one holds all.

    begin_merge(T *keys, unsigned n, unsigned size)
        comparator of key k and key size - 1 - k of each group of `size` keys
    clean_halves(T *keys, unsigned n, unsigned stride)
        comparator of key k and key k + stride of each group of 2 * stride keys, for
        stride = size / 4, ..., 2, 1
    Blocks of THREADS_PER_BLOCK threads, one thread per comparator.
    """
    keys = job.device.empty(job.params["n"], job.buffers["keys"].dtype)

    def run() -> None:
        job.device.copy(job.buffers["keys"], keys)
        for size in powers_of_two(2, padded(job.params["n"])):
            _launch(job, "begin_merge", keys, size, group=size)
            for stride in reversed(powers_of_two(1, size // 4)):
                _launch(job, "clean_halves", keys, stride, group=2 * stride)

    return Step(run, keys)


def dispatch_blocks(job: Job) -> Step:
    """A block does all steps whose groups have at most ITEMS_PER_BLOCK keys in one launch.

    sort_blocks(T *keys, unsigned n)
        sorts every ITEMS_PER_BLOCK keys
    begin_merge, clean_halves: as in the plan `steps`, for larger groups
    merge_blocks(T *keys, unsigned n)
        applies the half-cleaners of strides ITEMS_PER_BLOCK / 2, ..., 2, 1 after those
    sort_blocks and merge_blocks have one block per ITEMS_PER_BLOCK keys; all blocks have
    THREADS_PER_BLOCK threads.
    """
    device, n = job.device, job.params["n"]
    items, threads = job.define("ITEMS_PER_BLOCK"), job.define("THREADS_PER_BLOCK")
    blocks = blocks_for(n, items)
    keys = device.empty(n, job.buffers["keys"].dtype)
    sort_blocks, merge_blocks = job.kernels["sort_blocks"], job.kernels["merge_blocks"]

    def run() -> None:
        device.copy(job.buffers["keys"], keys)
        device.launch(sort_blocks, blocks, threads, keys, np.uint32(n))
        for size in powers_of_two(2 * items, padded(job.params["n"])):
            _launch(job, "begin_merge", keys, size, group=size)
            for stride in reversed(powers_of_two(items, size // 4)):
                _launch(job, "clean_halves", keys, stride, group=2 * stride)
            device.launch(merge_blocks, blocks, threads, keys, np.uint32(n))

    return Step(run, keys)


def dispatch_passes(job: Job) -> Step:
    """As the plan `blocks`, with up to MAX_STEPS steps of larger groups in a launch.

    sort_blocks, merge_blocks: as there
    begin_merges(T *keys, unsigned n, unsigned size, unsigned steps)
        comparator of key k and key size - 1 - k of each group of `size` keys, then the
        half-cleaners of strides size / 4, ..., size >> steps
    clean_strides(T *keys, unsigned n, unsigned stride, unsigned steps)
        the half-cleaners of strides stride << steps - 1, ..., 2 * stride, stride
    A thread does the steps of 1 << steps keys; all blocks have THREADS_PER_BLOCK threads.
    """
    device, n = job.device, job.params["n"]
    items, threads = job.define("ITEMS_PER_BLOCK"), job.define("THREADS_PER_BLOCK")
    blocks = blocks_for(n, items)
    keys = device.empty(n, job.buffers["keys"].dtype)
    sort_blocks, merge_blocks = job.kernels["sort_blocks"], job.kernels["merge_blocks"]

    def run() -> None:
        device.copy(job.buffers["keys"], keys)
        device.launch(sort_blocks, blocks, threads, keys, np.uint32(n))
        for size in powers_of_two(2 * items, padded(n)):
            steps = min(MAX_STEPS, (size // items).bit_length() - 1)
            _launch(job, "begin_merges", keys, size, steps, group=size, steps=steps)
            stride = size >> steps  # of the step that was done last
            while stride > items:
                steps = min(MAX_STEPS, (stride // items).bit_length() - 1)
                group, stride = stride, stride >> steps
                _launch(job, "clean_strides", keys, stride, steps, group=group, steps=steps)
            device.launch(merge_blocks, blocks, threads, keys, np.uint32(n))

    return Step(run, keys)


def _launch(job: Job, kernel: str, keys: Buffer, *numbers: int, group: int, steps: int = 1) -> None:
    """Launch `steps` steps: a thread for 1 << steps keys of each group, even of a partial one."""
    n, threads = job.params["n"], job.define("THREADS_PER_BLOCK")
    blocks = blocks_for(blocks_for(n, group) * group >> steps, threads)
    args = [np.uint32(number) for number in (n, *numbers)]
    job.device.launch(job.kernels[kernel], blocks, threads, keys, *args)
