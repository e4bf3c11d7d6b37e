"""Launches of the kernels of solve, whose arguments are called by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cudalab.labs.base import blocks_for

if TYPE_CHECKING:
    from cudalab.backends.base import Buffer, Dim
    from cudalab.labs.base import Job

THREADS = 256  # of the kernels that all variants share


def launch(
    job: Job, kernel: str, grid: Dim, block: Dim, /, **named: Buffer | np.generic | int
) -> None:
    """Launch a kernel with the `arguments` that are named."""
    job.device.launch(job.kernels[kernel], grid, block, *arguments(**named))


def arguments(**named: Buffer | np.generic | int) -> tuple[Buffer | np.generic, ...]:
    """A kernel's arguments, in the order of its parameters and called as they are.

    Only the order counts: a file of one's own may call its parameters otherwise. Integers are
    passed as `unsigned`.
    """
    return tuple(np.uint32(value) if isinstance(value, int) else value for value in named.values())


def warp_blocks(rows: int) -> int:
    """Blocks for one warp a row."""
    return blocks_for(rows, THREADS // 32)
