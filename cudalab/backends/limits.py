"""CUDA's limits of grids, blocks and shared memory, and the errors beyond them."""

from functools import lru_cache

from cudalab.backends.base import Dim, dim3
from cudalab.errors import KernelError

MAX_THREADS = 1024  # in a block
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65_535, 65_535)
SHARED_BYTES = 48 << 10  # for a block without opting in to more
MAX_SHARED_BYTES = 227 << 10  # for a block, on the GPUs with the most

Dim3 = tuple[int, int, int]


@lru_cache(maxsize=4096)
def launch_shape(kernel: str, grid: Dim, block: Dim) -> tuple[Dim3, Dim3]:
    """Grid and block in three dimensions. KernelError if no device can launch them."""
    blocks, threads = dim3(grid), dim3(block)
    count = threads[0] * threads[1] * threads[2]
    if (
        not 1 <= count <= MAX_THREADS
        or min(threads) < 1
        or any(n > limit for n, limit in zip(threads, MAX_BLOCK, strict=True))
    ):
        raise KernelError(
            f"kernel {kernel}: a block of {_shown(threads)} threads: "
            f"1 to {MAX_THREADS} are allowed, at most {_shown(MAX_BLOCK)}"
        )
    if any(n < 0 or n > limit for n, limit in zip(blocks, MAX_GRID, strict=True)):
        raise KernelError(
            f"kernel {kernel}: a grid of {_shown(blocks)} blocks: "
            f"0 or more are allowed, at most {_shown(MAX_GRID)}"
        )
    return blocks, threads


def check_shared(kernel: str, device: str, limit: int, *, static: int, dynamic: int) -> None:
    """Raise KernelError if a block needs more shared memory than the device `device` has."""
    if static + dynamic > limit:
        raise KernelError(
            f"kernel {kernel} needs {static + dynamic:,} bytes of shared memory a block "
            f"({static:,} static, {dynamic:,} dynamic): {device} has {limit:,}",
            hint="a smaller tile, or fewer threads a block",
        )


def _shown(dims: Dim3) -> str:
    return " x ".join(map(str, dims))
