"""The launch plans of histogram: which kernels run, in what order, on which memory.

`data` has the elements, T is their type, NUM_BINS the number of classes; n < 2^31. FirstBad is
unsigned long long: index << 32 | value of the first element that is not a valid class, all ones if
there is none (for bytes, always).
"""

from functools import partial
from typing import Any

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.errors import InputError
from cudalab.labs.base import Job, Step, blocks_for, in_order

CLEAR_THREADS = 256
LOAD_BYTES = 16
NO_BAD_ELEMENT = 2**64 - 1


def dispatch_one_pass(job: Job) -> Step:
    """Blocks add to the counts.

    clear_counts(unsigned *counts, FirstBad *first_bad)
        sets counts to zero, first_bad to all ones; blocks of 256 threads, one thread per class
    count(const T *data, unsigned n, unsigned *counts, FirstBad *first_bad)
        adds to counts; sets first_bad to the minimum of index << 32 | value of invalid elements
    count runs in blocks of THREADS_PER_BLOCK threads, enough for ITEMS_PER_THREAD elements per
    thread, but at most MAX_BLOCKS if the header defines it. With RANGE_BINS the grid has a row of
    such blocks for each RANGE_BINS classes.
    """
    return _one_pass(job)


def dispatch_tickets(job: Job) -> Step:
    """Like `one_pass`, but blocks take tickets for what they count next.

    count(const T *data, unsigned n, unsigned *counts, FirstBad *first_bad, unsigned *ticket)
        *ticket is 0 before the first launch and must be 0 again after each
    If the header defines LONG_LOADS, count_long, which does the same, is launched where all blocks
    have at least LONG_BATCHES batches of LONG_LOADS * 16 bytes per thread.
    """
    name, loads = "count", job.define("LONG_LOADS", 0, at_least=0)
    if loads:
        batch = job.define("THREADS_PER_BLOCK") * loads * LOAD_BYTES
        long = job.define("LONG_BATCHES", at_least=0) * job.define("MAX_BLOCKS") * batch
        name = "count_long" if job.buffers["elements"].nbytes >= long else name
    return _one_pass(job, job.device.to_device(np.zeros(1, np.uint32)), name=name)


def dispatch_partials(job: Job) -> Step:
    """Every block counts on its own, then each class is summed over the blocks. Bytes only.

    count_partials(const T *data, unsigned n, unsigned *partials)
        sets partials[bin * num_partials + block]; a block counts THREADS_PER_BLOCK *
        WORDS_PER_THREAD words of four bytes
    merge_partials(const unsigned *partials, unsigned *counts, unsigned num_partials)
        counts[bin] = their sum over the blocks; a block of MERGE_THREADS threads per class
    """
    device, data = job.device, job.buffers["elements"]
    n, bins = job.params["n"], job.case["bins"]
    threads, merge_threads = job.define("THREADS_PER_BLOCK"), job.define("MERGE_THREADS")
    blocks = blocks_for(n, 4 * threads * job.define("WORDS_PER_THREAD"))
    counts = device.empty(bins, np.uint32)
    partials = device.empty(bins * blocks, np.uint32)
    count = job.launch("count_partials", blocks, threads, data, n, partials)
    merge = job.launch("merge_partials", bins, merge_threads, partials, counts, blocks)
    return Step(in_order(count, merge), counts)


def dispatch_runs(job: Job) -> Step:
    """Every thread counts a run of elements in its own table, then the tables are added.

    count_runs(const T *data, unsigned n, unsigned run_items, unsigned *tables,
               FirstBad *first_bad)
        thread r sets tables[r * NUM_BINS + bin] to the counts of the run_items elements from
        r * run_items on, and first_bad[r] to index << 32 | value of the first invalid one;
        blocks of THREADS_PER_BLOCK threads
    merge_tables(const unsigned *tables, unsigned *counts, unsigned num_runs)
        counts[bin] = the sum over all tables; blocks of MERGE_THREADS threads, one per class
    run_items is the smallest multiple of 16 that is at least MIN_RUN_ITEMS and needs at most
    MAX_RUNS runs.
    """
    device, data = job.device, job.buffers["elements"]
    n, bins = job.params["n"], job.case["bins"]
    threads, merge_threads = job.define("THREADS_PER_BLOCK"), job.define("MERGE_THREADS")
    run_items = max(blocks_for(n, job.define("MAX_RUNS")), job.define("MIN_RUN_ITEMS"))
    run_items = 16 * blocks_for(run_items, 16)
    runs = blocks_for(n, run_items)
    counts, first_bad = device.empty(bins, np.uint32), device.empty(runs, np.uint64)
    tables = device.empty(runs * bins, np.uint32)
    args = (data, n, run_items, tables, first_bad)
    count = job.launch("count_runs", blocks_for(runs, threads), threads, *args)
    merge_grid = blocks_for(bins, merge_threads)
    merge = job.launch("merge_tables", merge_grid, merge_threads, tables, counts, runs)
    return Step(in_order(count, merge), counts, check=partial(_check_elements, job, first_bad))


def _one_pass(job: Job, *more: Buffer, name: str = "count") -> Step:
    """The plan `one_pass` with a kernel that gets `more` after count's arguments."""
    device, data = job.device, job.buffers["elements"]
    n, bins = job.params["n"], job.case["bins"]
    threads = job.define("THREADS_PER_BLOCK")
    blocks = blocks_for(n, threads * job.define("ITEMS_PER_THREAD"))
    blocks = min(blocks, job.define("MAX_BLOCKS", blocks))
    grid = (blocks, blocks_for(bins, job.define("RANGE_BINS", bins)))
    counts, first_bad = device.empty(bins, np.uint32), device.empty(1, np.uint64)
    clear_grid = blocks_for(bins, CLEAR_THREADS)
    clear = job.launch("clear_counts", clear_grid, CLEAR_THREADS, counts, first_bad)
    count = job.launch(name, grid, threads, data, n, counts, first_bad, *more)
    return Step(in_order(clear, count), counts, check=partial(_check_elements, job, first_bad))


def _check_elements(job: Job, first_bad: Buffer) -> None:
    """Raise an InputError if a kernel met an invalid class; any byte has one."""
    if job.case["dtype"] == "uint8":
        return
    first = int(job.device.to_host(first_bad).min())
    if first != NO_BAD_ELEMENT:
        raise bad_element(job.params, first >> 32, first & 0xFFFFFFFF, job.case["bins"])


def bad_element(params: dict[str, Any], index: int, value: int, bins: int) -> InputError:
    """Make the error for an element that is not a valid class."""
    return InputError(
        f"{params.get('stream', 'stdin')}: element {index:,} (byte {4 + 4 * index:,}) is "
        f"{value:,}: not below the number of classes, {bins:,}",
        hint="--bins K sets the number of classes, --dtype uint8 reads bytes",
    )
