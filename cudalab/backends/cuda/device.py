"""An NVIDIA GPU through PyCUDA.

Everything runs in order on the default stream of the device's primary context, which CuPy and other
users of the CUDA runtime share. Large copies pass through a few pinned bounce buffers, so that the
stream is read, or written, while the previous piece is being copied.
"""

from __future__ import annotations

import atexit
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cudalab.backends import GPU, limits
from cudalab.backends.base import Buffer, DeviceInfo, Dim, Kernel, Module
from cudalab.backends.cuda import driver, nvcc, streams
from cudalab.backends.cuda.memory import (
    DIRECT_BYTES,
    Allocation,
    Bounces,
    CudaBuffer,
    CudaMessage,
    own,
    wait,
)
from cudalab.backends.cuda.meter import CudaMeter
from cudalab.backends.cuda.modules import CudaKernel, CudaModule, compiled, pack
from cudalab.errors import CudalabError, DeviceMemoryError, KernelError, NoDeviceError
from cudalab.formats import Payload, as_bytes
from cudalab.language.source import Source, with_defines

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class CudaDevice:
    """The first GPU that CUDA_VISIBLE_DEVICES shows. One thread, the one that entered it."""

    name, facts = "cuda", GPU
    features: frozenset[str]
    possible_features = driver.POSSIBLE_FEATURES
    multiprocessors: int

    def __init__(self) -> None:
        """Find the device; it is used only inside the `with` block. NoDeviceError if none."""
        self._driver = driver.load()
        self._device = self._driver.Device(0)
        major, minor = self._device.compute_capability()
        self._capability = 10 * major + minor
        self._arch = f"sm_{self._capability}"
        self.features = driver.features_of(self._capability)
        self.multiprocessors = self._attribute("MULTIPROCESSOR_COUNT")
        self._context: Any = None
        self._dead = False  # a kernel crashed: every call of the context fails
        self._last_launched: str | None = None
        self._bounces = Bounces(self, self._driver)
        self._strays: list[Any] = []  # memory that other threads have dropped
        self._meter: CudaMeter | None = None
        self._stream: Any = None  # of launches; None: the default stream
        self.recording: streams.Recording | None = None  # of a graph

    @staticmethod
    def available() -> bool:
        """Whether there are a GPU and a PyCUDA that can use it."""
        return driver.unavailable_reason() is None

    def __enter__(self) -> Self:
        """Retain the primary context and make it current in this thread."""
        try:
            self._context = self._device.retain_primary_context()
            self._context.push()
        except self._driver.Error as error:
            raise NoDeviceError(
                f"{self._device.name()} cannot be used: {driver.words_of(error)}"
            ) from None
        atexit.register(self._leave)  # PyCUDA aborts a process that ends with a context pushed
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the device. Errors of the last launches are raised here at the latest."""
        try:
            if kind is None and not self._dead:
                self.synchronize()
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._context is None:
            return
        context, self._context = self._context, None
        atexit.unregister(self._leave)
        self._bounces.release()
        if self._meter is not None:
            self._meter.release()
            self._meter = None
        if self._dead:
            # Detached, PyCUDA knows that it is gone and frees none of its memory one by one,
            # which would print a warning for each piece.
            context.detach()
            self._strays.clear()
        else:
            self._strays.clear()
            context.pop()

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> CudaModule:
        """Load the module from the user's cache, else have PyCUDA compile it with nvcc."""
        # Cubins run on their own architecture only; "sm_90a" is a choice, "sm_80" a minimum.
        target = arch if arch and arch.endswith("a") else self._arch
        if target not in (self._arch, f"{self._arch}a"):
            raise NoDeviceError(f"{arch} is asked for, the device is {self._arch}")
        compiler = nvcc.find_nvcc(self._arch)
        text = with_defines(source.text, defines)
        key = nvcc.cache_key(compiler, text, target)
        with self.errors_in_words():
            cubin = nvcc.cached(key)
            if cubin is None:
                with nvcc.compiling(key):
                    cubin = nvcc.cached(key)  # another process may have compiled it meanwhile
                    if cubin is None:
                        module, cubin = compiled(compiler, text, target, source.label)
                        nvcc.store(key, cubin)
                        return CudaModule(source, module, self._driver)
            return CudaModule(source, self._driver.module_from_buffer(cubin), self._driver)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> CudaBuffer:
        """Uninitialised memory. DeviceMemoryError when it does not fit."""
        dims = shape if isinstance(shape, tuple) else (operator.index(shape),)
        dtype = np.dtype(dtype)
        nbytes = prod(dims) * dtype.itemsize
        if nbytes == 0:
            return CudaBuffer(dims, dtype, None, 0)
        with self.errors_in_words():
            self._strays.clear()
            try:
                memory = self._driver.mem_alloc(nbytes)
            except self._driver.MemoryError:
                free, total = self._driver.mem_get_info()
                raise DeviceMemoryError(
                    f"out of memory on {self._device.name()}: {nbytes:,} bytes are needed, "
                    f"{free:,} of {total:,} are free",
                    hint="`nvidia-smi` shows who else uses it; smaller inputs, or --device cpu",
                ) from None
        return CudaBuffer(dims, dtype, Allocation(memory, self._strays), int(memory))

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> CudaBuffer:
        """A copy of an array, or of bytes that are still to be read from a stream."""
        buffer = self.empty(data.shape, data.dtype)
        if isinstance(data, Payload):
            self._upload(buffer, data.readinto)
        elif buffer.nbytes:
            self._upload_array(buffer, np.asarray(data, order="C"))
        return buffer

    def _upload_array(self, buffer: CudaBuffer, array: np.ndarray[Any, Any]) -> None:
        if array.nbytes <= DIRECT_BYTES:
            with self.errors_in_words():
                self._driver.memcpy_htod(buffer.address, array)
            return
        source, position = as_bytes(array), 0

        def copy_next(view: memoryview) -> None:
            nonlocal position
            view[:] = source[position : position + len(view)]
            position += len(view)

        self._upload(buffer, copy_next)

    def _upload(self, buffer: CudaBuffer, fill: Callable[[memoryview], None]) -> None:
        """Copy to `buffer`, piece by piece, what `fill` writes into the memory passed to it."""
        if buffer.nbytes <= DIRECT_BYTES:
            staging = np.empty(buffer.nbytes, np.uint8)
            if buffer.nbytes:
                fill(as_bytes(staging))
                with self.errors_in_words():
                    self._driver.memcpy_htod(buffer.address, staging)
            return
        self._bounces.upload(buffer.address, buffer.nbytes, fill)

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """The buffer's content as a new array."""
        try:
            array = np.empty(buffer.shape, buffer.dtype)
        except MemoryError:
            raise CudalabError(f"out of host memory: {buffer.nbytes:,} bytes are needed") from None
        if buffer.nbytes > DIRECT_BYTES:
            target, position = as_bytes(array), 0
            for piece in self.chunks(buffer):
                target[position : position + len(piece)] = piece
                position += len(piece)
            return array
        self.synchronize()
        if buffer.nbytes:
            with self.errors_in_words():
                self._driver.memcpy_dtoh(array, own(buffer).address)
        return array

    def chunks(self, buffer: Buffer) -> Iterator[memoryview]:
        """The buffer's bytes in order, piece by piece; a piece is valid until the next is taken.

        Errors of kernels are raised before the first piece. No other copy may be made meanwhile.
        """
        if buffer.nbytes <= DIRECT_BYTES:
            array = self.to_host(buffer)
            if array.nbytes:
                yield as_bytes(array)
            return
        self.synchronize()
        yield from self._bounces.download(own(buffer).address, buffer.nbytes)

    def launch(
        self,
        kernel: Kernel,
        grid: Dim,
        block: Dim,
        *args: Buffer | np.generic,
        shared_bytes: int = 0,
    ) -> None:
        """Launch; arguments are buffers or NumPy scalars. TypeError names an argument that is
        neither.

        A grid with no blocks launches nothing. KernelError for a launch the device cannot make.
        """
        limits.check_arguments(kernel, args)
        types, values = pack(kernel, args)
        blocks, threads = limits.launch_shape(kernel.name, grid, block)
        if 0 in blocks:
            return
        if not isinstance(kernel, CudaKernel):
            raise TypeError(f"kernel {kernel.name} was not compiled for the CUDA device")
        function = kernel.prepared(types)
        if shared_bytes > kernel.shared_allowed:
            self._allow_shared(kernel, function, shared_bytes)
        self._join()
        try:
            if self._stream is None:
                function.prepared_call(blocks, threads, *values, shared_size=shared_bytes)
            else:
                function.prepared_async_call(
                    blocks, threads, self._stream, *values, shared_size=shared_bytes
                )
        except self._driver.Error as error:
            raise self._launch_failure(kernel, function, threads, error) from None
        self._last_launched = kernel.name

    def _allow_shared(self, kernel: CudaKernel, function: Any, shared_bytes: int) -> None:
        """Opt in to more than 48 KiB of shared memory a block."""
        attributes = self._driver.function_attribute
        static = function.get_attribute(attributes.SHARED_SIZE_BYTES)
        if static + shared_bytes > limits.SHARED_BYTES:
            limit = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
            name = self._device.name()
            limits.check_shared(kernel.name, name, limit, static=static, dynamic=shared_bytes)
            with self.errors_in_words():
                function.set_attribute(attributes.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
        kernel.shared_allowed = shared_bytes

    def _launch_failure(
        self, kernel: CudaKernel, function: Any, threads: tuple[int, int, int], error: Exception
    ) -> CudalabError:
        failure = self._failure(error)
        if self._dead:
            return failure
        attributes = self._driver.function_attribute
        limit = function.get_attribute(attributes.MAX_THREADS_PER_BLOCK)
        if prod(threads) > limit:
            registers = function.get_attribute(attributes.NUM_REGS)
            return KernelError(
                f"kernel {kernel.name} can run with at most {limit} threads a block, launched "
                f"with {prod(threads)}: it uses {registers} registers a thread",
                hint="fewer threads a block, or __launch_bounds__ on the kernel",
            )
        return KernelError(f"kernel {kernel.name} cannot be launched: {driver.words_of(error)}")

    def constant(self, module: Module, name: str) -> CudaBuffer:
        """The `__constant__` (or `__device__`) variable `name` as a buffer of bytes."""
        if not isinstance(module, CudaModule):
            raise TypeError(f"{module.source.label} was not compiled for the CUDA device")
        try:
            address, nbytes = module.module.get_global(name)
        except self._driver.LogicError:
            raise CudalabError(
                f"{module.source.label} has no __constant__ or __device__ variable {name}"
            ) from None
        return CudaBuffer((nbytes,), np.dtype(np.uint8), module.module, address)

    def copy(self, source: Buffer | np.ndarray[Any, Any], target: Buffer) -> None:
        """Copy `source` over `target` (equal nbytes), in the order of launches."""
        if source.nbytes != target.nbytes:
            raise CudalabError(
                f"cannot copy {source.nbytes:,} bytes over a buffer of {target.nbytes:,}"
            )
        if target.nbytes == 0:
            return
        address = own(target).address
        self._join()
        with self.errors_in_words():
            if isinstance(source, np.ndarray):
                self._driver.memcpy_htod(address, np.asarray(source, order="C"))
            else:
                self._driver.memcpy_dtod_async(
                    address, own(source).address, target.nbytes, self._stream
                )

    def message(self, words: int) -> CudaMessage:
        """So many words of 4 bytes, zero at first."""
        with self.errors_in_words():
            return CudaMessage(self, self._driver, words)

    def stream(self) -> streams.CudaStream:
        """A stream beside the default one."""
        with self.errors_in_words():
            return streams.CudaStream(self, self._driver.Stream())

    def graph(self, launches: Callable[[], None]) -> streams.CudaGraph:
        """A graph of these launches, made when they are repeated."""
        return streams.CudaGraph(self, self._driver, launches)

    def change_stream(self, stream: Any) -> Any:
        """Launch in this stream of the driver from now on; returns the one before."""
        before, self._stream = self._stream, stream
        return before

    def _join(self) -> None:
        """In a graph, let what follows outside of streams wait for them."""
        if self.recording is not None and self._stream is self.recording.stream:
            self.recording.join()

    def synchronize(self) -> None:
        """Wait for everything launched; errors of those launches are raised here at the latest."""
        with self.errors_in_words():
            event = self._driver.Event(self._driver.event_flags.DISABLE_TIMING)
            event.record()
            wait(event)
            self._driver.Context.synchronize()  # also prints what kernels have printed

    @contextmanager
    def errors_in_words(self) -> Iterator[None]:
        """Turn the driver's errors inside the block into a CudalabError."""
        try:
            yield
        except self._driver.Error as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> CudalabError:
        """The error to raise for a driver error; a kernel has crashed if waiting fails as well."""
        if self._context is None:
            return CudalabError("the CUDA device was used outside its `with` block")
        try:
            self._driver.Context.synchronize()
        except self._driver.Error as crash:
            self._dead = True
            return KernelError(
                f"the GPU stopped: {driver.words_of(crash)}; "
                f"the last kernel launched was {self._last_launched or '(none)'}",
                hint="run it with --device cpu, which tells the place of an invalid access",
            )
        return CudalabError(f"CUDA: {error}")

    def _attribute(self, name: str) -> int:
        return int(self._device.get_attribute(getattr(self._driver.device_attribute, name)))

    def info(self) -> DeviceInfo:
        """The properties that the driver reports."""
        ask = self._attribute
        block = ask("MAX_BLOCK_DIM_X"), ask("MAX_BLOCK_DIM_Y"), ask("MAX_BLOCK_DIM_Z")
        grid = ask("MAX_GRID_DIM_X"), ask("MAX_GRID_DIM_Y"), ask("MAX_GRID_DIM_Z")
        memory_khz, bus_bits = ask("MEMORY_CLOCK_RATE"), ask("GLOBAL_MEMORY_BUS_WIDTH")
        version = self._driver.get_driver_version()
        return DeviceInfo(
            name=self._device.name(),
            cores=self.multiprocessors,
            warp_size=ask("WARP_SIZE"),
            capability=divmod(self._capability, 10),
            memory_bytes=self._device.total_memory(),
            constant_bytes=ask("TOTAL_CONSTANT_MEMORY"),
            shared_bytes=ask("MAX_SHARED_MEMORY_PER_BLOCK"),
            shared_optin_bytes=ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            shared_core_bytes=ask("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            registers_per_block=ask("MAX_REGISTERS_PER_BLOCK"),
            max_threads=ask("MAX_THREADS_PER_BLOCK"),
            max_block=block,
            max_grid=grid,
            max_threads_per_core=ask("MAX_THREADS_PER_MULTIPROCESSOR"),
            max_blocks_per_core=ask("MAX_BLOCKS_PER_MULTIPROCESSOR"),
            l2_bytes=ask("L2_CACHE_SIZE"),
            clock_mhz=ask("CLOCK_RATE") // 1000,
            memory_clock_mhz=memory_khz // 1000,
            memory_bus_bits=bus_bits,
            # Two transfers a clock: double data rate.
            dram_gbs=round(2 * memory_khz * bus_bits / 8e6, 1),
            driver=f"{driver.kernel_module()}CUDA {version // 1000}.{version % 1000 // 10}",
            pycuda="CUDA {}.{}".format(*self._driver.get_version()),
            compiler=f"nvcc {nvcc.described(self._arch)}",
        )

    def meter(self) -> CudaMeter:
        """The meter, which is the same while the device is open."""
        if self._meter is None:
            with self.errors_in_words():
                l2_bytes = self._attribute("L2_CACHE_SIZE")
            self._meter = CudaMeter(self, self._driver, l2_bytes)
        return self._meter
