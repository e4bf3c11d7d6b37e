"""Sweeps over the keys, a digit at a time: each in a launch of its own, or all in one launch."""

from collections.abc import Callable

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, blocks_for
from cudalab.labs.radixsort import arrays

FIRST_RUN = 1 << 30  # of sweeps by launches; sweeps in one launch count the same statuses from 1
COUNTER_BYTES = 64 << 10  # in which a block counts all digits of its keys
COUNTER_BYTES_OF_SWEEPS = 32 << 10  # the same in a block that goes on to sweep


def statuses_of(job: Job, tiles: int) -> Buffer:
    """A status for each tile and digit."""
    return arrays.cleared(job, tiles << arrays.radix_bits(job))


class Sweeps:
    """The launches of the plan `onesweep`: the keys alternate between two arrays.

    The last sweep writes to the second array, which may also be the source.
    """

    def __init__(self, job: Job, count_blocks: int, statuses: Buffer) -> None:
        self._job, self._count_blocks, self._statuses = job, count_blocks, statuses
        self._threads, self._radix_bits = job.define("THREADS_PER_BLOCK"), arrays.radix_bits(job)
        self._tile_items, self._tile_bytes = arrays.tile_of(job)
        digits = arrays.passes_of(job) << self._radix_bits
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
        size = n * arrays.input_of(self._job).dtype.itemsize
        blocks = min(blocks_for(size, 16 * self._threads), self._count_blocks)
        self._job.device.launch(
            self._job.kernels[kernel], blocks, self._threads, *args, shared_bytes=COUNTER_BYTES
        )

    def sweep(self, source: Buffer, target: Buffer, next_target: Buffer, n: int) -> None:
        """Sort n keys whose digits are in `counts`."""
        launch, kernels, passes = (
            self._job.device.launch,
            self._job.kernels,
            arrays.passes_of(self._job),
        )
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
) -> Callable[[], None]:
    """Return the launch of `kernel`, whose tiles have `rows` keys of 4 bytes per thread.

    `first` are the kernel's parameters before those of the plan `single_launch`.
    """
    device, keys, n = job.device, arrays.input_of(job), job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    tile_items, tile_bytes = arrays.tile_of(job, rows)
    blocks = min(blocks_for(n, tile_items), job.define("MAX_BLOCKS"))
    args = keys, spare, out, arrays.shared_state(job, "progress"), statuses, np.uint32(n)
    shared_bytes = max(tile_bytes, COUNTER_BYTES_OF_SWEEPS)

    def run() -> None:
        device.launch(
            job.kernels[kernel], blocks, threads, *first, *args, shared_bytes=shared_bytes
        )

    return run
