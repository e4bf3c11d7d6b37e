"""Runs OpenCL kernels on this machine's processor with PoCL, on one OS thread."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cudalab.backends.base import Dim

# PoCL reads these when it is loaded; compiled kernels stay in memory.
os.environ.update(POCL_MAX_PTHREAD_COUNT="1", POCL_KERNEL_CACHE="0", PYOPENCL_NO_CACHE="1")


class Pocl:
    """The processor as PoCL's device."""

    def __init__(self) -> None:
        """Find PoCL; ImportError with what to install if there is none."""
        missing = "PoCL is the package pyopencl and the Debian package pocl-opencl-icd"
        try:
            import pyopencl as cl  # noqa: PLC0415 - need not be installed
        except ImportError:
            raise ImportError(missing) from None
        try:
            platforms = cl.get_platforms()
        except cl.LogicError:  # no platform at all
            platforms = []
        ours = [each for each in platforms if "Portable Computing" in each.name]
        if not ours:
            raise ImportError(missing)
        self.version: str = ours[0].version.partition("PoCL ")[2].split()[0]  # such as 3.1+debian
        self._cl = cl
        self._context = cl.Context(ours[0].get_devices()[:1])
        self._queue = cl.CommandQueue(self._context)

    def prepare(
        self, path: Path, name: str, grid: Dim, block: Dim, *args: np.ndarray[Any, Any] | np.generic
    ) -> tuple[Callable[[], None], Callable[[], np.ndarray[Any, Any]]] | None:
        """What runs a kernel, and what reads its last array; None if the file has no such kernel.

        Blocks and grids are CUDA's.
        """
        cl, queue = self._cl, self._queue
        program = cl.Program(self._context, path.read_text(encoding="utf-8")).build()
        if name not in program.kernel_names.split(";"):
            return None
        blocks, threads = (each if isinstance(each, tuple) else (each,) for each in (grid, block))
        size = [b * t for b, t in zip(blocks, threads, strict=True)]
        arrays = [each for each in args if isinstance(each, np.ndarray)]
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = [cl.Buffer(self._context, flags, hostbuf=each) for each in arrays]
        kernel = cl.Kernel(program, name)
        kernel.set_args(*buffers, *args[len(arrays) :])

        def run() -> None:
            cl.enqueue_nd_range_kernel(queue, kernel, size, threads)
            queue.finish()

        def result() -> np.ndarray[Any, Any]:
            cl.enqueue_copy(queue, arrays[-1], buffers[-1])
            return arrays[-1]

        return run, result
