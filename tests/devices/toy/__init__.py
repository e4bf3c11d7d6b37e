"""A device in NumPy: no compiler, but the kernels of the contract by name, a whole grid at once.

It shares nothing with the CPU device. What it can do is what `backends/base.py` asks of any device.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cudalab.backends import limits
from cudalab.backends.base import CompiledModule, DeviceInfo
from cudalab.errors import CudalabError, DeviceMemoryError, NoDeviceError
from cudalab.formats import Payload
from cudalab.language.source import parameter_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import DTypeLike

    from cudalab.backends.base import Buffer, Dim, Kernel, Module
    from cudalab.language.source import Source

MEMORY = 1 << 30
ALIGNMENT = 256
VARIABLES = {
    "coefficients": np.zeros(4, np.float32),
    "offset": np.zeros(1, np.int32),
    "launches": np.zeros(1, np.uint32),
    "shared_bytes": np.array([32], np.uint32),
    "first_power": np.array([1 << 20], np.uint32),
}


class NoKernelError(NoDeviceError):
    """The toy has no such kernel."""


def store_scalars(_module, _grid, _block, out, *scalars):
    out[:9] = [np.array([scalar]).astype(np.int64)[0] for scalar in scalars[:9]]
    out[9], out[10] = scalars[9].view(np.int32), scalars[10].view(np.int64)


def store_coordinates(_module, grid, block, out):
    out[...] = np.stack(np.indices((*grid[::-1], *block[::-1])), -1).reshape(out.shape)


def scale(module, grid, block, array, out, n):
    count = min(int(n), grid[0] * block[0])
    out[:count] = array[:count] * array.dtype.type(module.defines["FACTOR"])


def count_blocks(_module, grid, _block, count):
    count += np.uint32(grid[0] * grid[1] * grid[2])


def do_nothing(_module, _grid, _block):
    pass


def evaluate(module, _grid, block, x, y):
    polynomial = np.polynomial.Polynomial(module.variables["coefficients"])
    y[: block[0]] = polynomial(x[: block[0]]) + module.variables["offset"]
    module.variables["launches"] += np.uint32(1)


KERNELS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (store_scalars, store_coordinates, scale, count_blocks, do_nothing, evaluate)
}


class ToyBuffer:
    """An array in aligned memory."""

    def __init__(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        if self.nbytes > MEMORY:
            raise DeviceMemoryError(f"out of memory: the toy has {MEMORY:,} bytes")
        raw = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self.array = raw[start : start + self.nbytes].view(self.dtype).reshape(shape)
        self.shape, self.address = self.array.shape, self.array.ctypes.data


class ToyKernel:
    """A function of this file, and how many parameters the .cu file gives it."""

    def __init__(self, module: ToyModule, name: str, num_params: int) -> None:
        if name not in KERNELS:
            raise NoKernelError(f"{name} is no kernel of the toy device, which has no compiler")
        self.name, self.num_params, self.module = name, num_params, module


class ToyModule(CompiledModule):
    """The kernels of a file that the toy has, and its own copy of the variables."""

    def __init__(self, source: Source, defines: Mapping[str, str | int]) -> None:
        super().__init__(source)
        self.defines = defines
        self.variables = {name: value.copy() for name, value in VARIABLES.items()}

    def find(self, name: str) -> ToyKernel:
        return ToyKernel(self, name, len(parameter_names(self.source.text)[name]))


class ToyMeter:
    """Measures by the host's clock."""

    class Timer:
        def start(self) -> None:
            self._began = time.perf_counter()

        def stop(self) -> None:
            self.ms = 1e3 * (time.perf_counter() - self._began)

    def timer(self) -> Timer:
        return self.Timer()

    def flush(self) -> None:
        pass

    def fill(self, buffer: ToyBuffer, value: int) -> None:
        buffer.array.reshape(-1).view(np.uint8)[...] = value

    def bandwidth(self) -> float:
        array, began = np.zeros(1 << 24, np.uint8), time.perf_counter()
        array.copy()
        return 2 * array.nbytes / (time.perf_counter() - began) / 1e9


class ToyDevice:
    """Computes with NumPy."""

    name = "toy"
    features = possible_features = frozenset[str]()
    multiprocessors = 1

    def __init__(self, _threads: int | None = None) -> None:
        pass

    @staticmethod
    def available() -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> Module:
        del arch
        if not KERNELS.keys() & set(source.kernels):
            raise NoKernelError(f"{source.label}: the toy device has no compiler")
        return ToyModule(source, defines)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> ToyBuffer:
        return ToyBuffer(shape, dtype)

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> ToyBuffer:
        buffer = ToyBuffer(data.shape, data.dtype)
        buffer.array[...] = data.array() if isinstance(data, Payload) else data
        return buffer

    def to_host(self, buffer: Any) -> np.ndarray[Any, Any]:
        return buffer.array.copy()

    def chunks(self, buffer: Any) -> Iterator[memoryview]:
        yield buffer.array.reshape(-1).view(np.uint8).data

    def launch(
        self, kernel: Kernel, grid: Dim, block: Dim, *args: Buffer | np.generic, shared_bytes=0
    ) -> None:
        limits.check_arguments(kernel, args)
        blocks, threads = limits.launch_shape(kernel.name, grid, block)
        limits.check_shared(kernel.name, "the toy", 0, static=0, dynamic=shared_bytes)
        values = [getattr(arg, "array", arg) for arg in args]
        if 0 not in blocks:
            KERNELS[kernel.name](kernel.module, blocks, threads, *values)

    def constant(self, module: ToyModule, name: str) -> ToyBuffer:
        if name not in module.variables:
            raise CudalabError(f"{module.source.label} has no variable {name}")
        buffer = ToyBuffer(0, np.uint8)
        buffer.array = module.variables[name].view(np.uint8)
        buffer.shape, buffer.nbytes = buffer.array.shape, buffer.array.nbytes
        return buffer

    def copy(self, source: Any, target: Any) -> None:
        array = np.ascontiguousarray(getattr(source, "array", source))
        target.array.reshape(-1).view(np.uint8)[...] = array.reshape(-1).view(np.uint8)

    def synchronize(self) -> None:
        pass

    def info(self) -> DeviceInfo:
        return DeviceInfo(
            name="NumPy",
            cores=1,
            threads=1,
            memory_bytes=MEMORY,
            shared_bytes=0,
            shared_optin_bytes=0,
            max_threads=limits.MAX_THREADS,
            max_block=limits.MAX_BLOCK,
            max_grid=limits.MAX_GRID,
            compiler="none",
            driver="none",
        )

    def meter(self) -> ToyMeter:
        return ToyMeter()


class TimelessDevice(ToyDevice):
    """The same without a meter."""

    name = "timeless"
    meter = None
