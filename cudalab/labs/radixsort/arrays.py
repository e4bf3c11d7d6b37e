"""The arrays of a sort: how many items a block takes, what the launches share."""

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, blocks_for
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
