"""Launches of the kernels of solve, with arguments by name."""

import numpy as np

from cudalab.backends.base import Buffer, Dim
from cudalab.labs.base import Job, blocks_for

THREADS = 256  # for the kernels that all variants share


def launch(
    job: Job,
    kernel: str,
    grid: Dim,
    block: Dim,
    shared_bytes: int = 0,
    /,
    **named: Buffer | np.generic | int,
) -> None:
    """Launch a kernel with named `arguments`."""
    job.device.launch(
        job.kernels[kernel], grid, block, *arguments(**named), shared_bytes=shared_bytes
    )


def arguments(**named: Buffer | np.generic | int) -> tuple[Buffer | np.generic, ...]:
    """A kernel's arguments, in the order of its parameters and with their names.

    Only the order counts: a student's file may use other names. Integers become `unsigned`.
    """
    return tuple(np.uint32(value) if isinstance(value, int) else value for value in named.values())


def warp_blocks(rows: int) -> int:
    """Number of blocks that have one warp per row."""
    return blocks_for(rows, THREADS // 32)
