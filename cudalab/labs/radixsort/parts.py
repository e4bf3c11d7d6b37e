"""Parts of several launch plans: arrays, scans, sweeps, and how many items a block takes."""

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, Launch, blocks_for, passes
from cudalab.labs.inputs import Case

VALUE_BYTES = 4  # in a pair, whose key has the same size
WORD_BYTES = 8  # of the words that clear_words clears


def is_pairs(case: Case) -> bool:
    """Whether values follow the keys."""
    return case.get("layout") == "pairs"


def input_of(job: Job) -> Buffer:
    """The keys, or the keys and values."""
    (keys,) = job.buffers.values()
    return keys


def two_buffers(job: Job) -> tuple[Buffer, Buffer]:
    """Two arrays to sort between, so that the input stays as it is."""
    keys = input_of(job)
    return job.device.empty(keys.shape, keys.dtype), job.device.empty(keys.shape, keys.dtype)


def last_of(ping: Buffer, pong: Buffer, passes: int) -> Buffer:
    """The array that the last pass writes, if the first one writes `ping`."""
    return ping if passes % 2 else pong


def radix_bits(job: Job) -> int:
    """The bits of a digit: at most 16, since counting more would take too much memory."""
    return job.define("RADIX_BITS", at_most=16)


def passes_of(job: Job) -> int:
    """How many digits a key has."""
    return 8 * input_of(job).dtype.itemsize // radix_bits(job)


def tile_of(job: Job, keys_per_thread: str = "KEYS_PER_THREAD") -> tuple[int, int]:
    """How many items a block takes at once, and their bytes."""
    threads = job.define("THREADS_PER_BLOCK")
    if is_pairs(job.case):
        items = threads * job.define("PAIRS_PER_THREAD")
        return items, 2 * VALUE_BYTES * items
    itemsize = input_of(job).dtype.itemsize
    size = 4 * threads * job.define(keys_per_thread, at_least=blocks_for(itemsize, 4 * threads))
    return size // itemsize, size


def cleared(job: Job, words: int) -> Buffer:
    """An array of that many 8-byte words, all zero."""
    buffer, threads = job.device.empty(words, np.uint64), job.define("THREADS_PER_BLOCK")
    blocks = blocks_for(words, threads)
    job.device.launch(job.kernels["clear_words"], blocks, threads, buffer, np.uint32(words))
    return buffer


def shared_state(job: Job, name: str) -> Buffer:
    """A struct that launches share, all zero; the kernels' constant `<name>_bytes` is its size."""
    return cleared(job, blocks_for(constant(job, f"{name}_bytes"), WORD_BYTES))


def constant(job: Job, name: str) -> int:
    """The value of an unsigned `__constant__` variable of the kernels."""
    (value,) = job.device.to_host(job.device.constant(job.kernels, name)).view(np.uint32)
    return int(value)


def scan_levels(job: Job, items: int) -> list[Buffer]:
    """The array to scan, then the block sums of each level up to a single one."""
    sizes = items, *passes(items, job.define("ITEMS_PER_BLOCK", at_least=2))
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


FIRST_RUN = 1 << 30  # of sweeps by launches; sweeps in one launch count the same statuses from 1
COUNTER_BYTES = 64 << 10  # in which a block counts all digits of its keys
COUNTER_BYTES_OF_SWEEPS = 32 << 10  # the same in a block that goes on to sweep


def statuses_of(job: Job, tiles: int) -> Buffer:
    """A status for each tile and digit."""
    return cleared(job, tiles << radix_bits(job))


class Sweeps:
    """The launches of the plan `onesweep`: the keys alternate between two arrays.

    The last sweep writes to the second array, which may also be the source.
    """

    def __init__(self, job: Job, count_blocks: int, statuses: Buffer) -> None:
        self._job, self._count_blocks, self._statuses = job, count_blocks, statuses
        self._threads, self._radix_bits = job.define("THREADS_PER_BLOCK"), radix_bits(job)
        self._tile_items, self._tile_bytes = tile_of(job)
        digits = passes_of(job) << self._radix_bits
        self.counts = job.device.empty(digits, np.uint32)
        self._starts = job.device.empty(digits, np.uint32)
        self._ticket = job.device.empty(1, np.uint64)
        job.device.copy(np.array([FIRST_RUN << 32], np.uint64), self._ticket)
        job.device.copy(np.zeros(digits, np.uint32), self.counts)

    def __call__(self, source: Buffer, target: Buffer, next_target: Buffer, n: int) -> None:
        """Sort n keys."""
        args = source, self.counts, np.uint32(n)
        self.count("count_all_digits", n, *args)
        self.sweep(source, target, next_target, n)

    def count(self, kernel: str, n: int, *args: Buffer | np.generic) -> None:
        """Launch `kernel`, which adds the counts of the digits of up to n keys to `counts`."""
        size = n * input_of(self._job).dtype.itemsize
        blocks = min(blocks_for(size, 16 * self._threads), self._count_blocks)
        self._job.device.launch(
            self._job.kernels[kernel], blocks, self._threads, *args, shared_bytes=COUNTER_BYTES
        )

    def sweep(self, source: Buffer, target: Buffer, next_target: Buffer, n: int) -> None:
        """Sort n keys whose digits are in `counts`."""
        launch, kernels, passes = self._job.device.launch, self._job.kernels, passes_of(self._job)
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


def sweep_all(
    job: Job,
    spare: Buffer,
    out: Buffer,
    statuses: Buffer,
    *first: Buffer,
    kernel: str = "sweep_all",
    rows: str = "KEYS_PER_THREAD",
) -> Launch:
    """Return the launch of `kernel`, whose tiles have `rows` keys of 4 bytes per thread.

    `first` are the kernel's parameters before those of the plan `single_launch`.
    """
    n, threads = job.params["n"], job.define("THREADS_PER_BLOCK")
    tile_items, tile_bytes = tile_of(job, rows)
    blocks = min(blocks_for(n, tile_items), job.define("MAX_BLOCKS"))
    args = *first, input_of(job), spare, out, shared_state(job, "progress"), statuses, n
    shared_bytes = max(tile_bytes, COUNTER_BYTES_OF_SWEEPS)
    return job.launch(kernel, blocks, threads, *args, shared_bytes=shared_bytes)
