"""CUDA's limits of grids, blocks and shared memory, and the errors of launches beyond them."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from cudalab.backends.base import Dim, Kernel
from cudalab.errors import CudalabError, KernelError

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


def dim3(dim: Dim) -> tuple[int, int, int]:
    """Fill a grid or block up to three dimensions: 256 -> (256, 1, 1)."""
    sizes = (dim,) if isinstance(dim, int) else tuple(int(d) for d in dim)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid or block has 1 to 3 dimensions, got {sizes}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def check_arguments(kernel: Kernel, args: Sequence[object]) -> None:
    """Reject invalid arguments of a launch before the device gets them."""
    if len(args) != kernel.num_params:
        raise CudalabError(
            f"kernel {kernel.name} takes {kernel.num_params} parameters, launched with {len(args)}",
            hint="the lab's dispatch defines the kernel's parameters: see `cudalab show`",
        )
    for position, arg in enumerate(args):
        if not isinstance(arg, np.generic) and not hasattr(arg, "nbytes"):
            raise TypeError(
                f"argument {position} of kernel {kernel.name} is a {type(arg).__name__}: "
                "pass a buffer or a NumPy scalar such as np.int32(n)"
            )
