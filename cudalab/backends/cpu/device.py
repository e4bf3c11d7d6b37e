"""The CPU device: the same .cu files, compiled by the host's C++ compiler.

A kernel file becomes a shared library, whose grids runtime/grids/runtime.cpp runs. Python only
starts launches and waits for them in short turns, so that Ctrl-C is heard.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from cudalab.backends import HOST, base, limits, trace
from cudalab.backends.cpu import kernel_runtime, kernels, layout
from cudalab.backends.cpu.compiler import toolchain
from cudalab.backends.cpu.meter import CpuMeter
from cudalab.errors import CudalabError, DeviceMemoryError, KernelCompileError, KernelError
from cudalab.formats import Payload, as_bytes
from cudalab.language.source import Source
from cudalab.system import elf, machine

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


ALIGNMENT = 256  # bytes, as cudaMalloc aligns
SURE_BYTES = 1 << 20  # so few that nobody looks whether they are free
LOOPS = "CUDALAB_LOOPS"  # in the environment, "0": the threads of all kernels are fibers
KERNEL = "cudalab_kernel_"  # begins the names of the kernels' entries in a library


class CpuBuffer:
    """Host memory that kernels work on."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        """Wrap a C-contiguous array."""
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.nbytes = array.nbytes
        self.address = array.ctypes.data


class CpuKernel:
    """A kernel of a loaded library."""

    def __init__(self, name: str, handle: layout.KernelEntry) -> None:
        """Read the parameters' sizes from the library's own table."""
        self.name = name
        self.handle = ctypes.pointer(handle)
        self.num_params = int(handle.num_params)
        self.param_sizes = [handle.param_sizes[i] & 127 for i in range(self.num_params)]
        self.is_pointer = [bool(handle.param_sizes[i] & 128) for i in range(self.num_params)]
        self.has_loops = not handle.thread
        self.is_flat = bool(handle.flat)
        self.by_whole_warps = bool(handle.by_whole_warps)
        self.reason = ""  # why it has no loops over threads
        self.with_fibers: Callable[[], AbstractContextManager[CpuKernel]] = lambda: nullcontext(
            self
        )

    @property
    def how(self) -> str:
        """How it runs, and why so."""
        if self.reason:
            return kernels.described(self.reason)
        return kernels.LOOPS if self.has_loops else "fibers"


class CpuModule(base.CompiledModule):
    """A compiled .cu file, loaded into this process."""

    def __init__(
        self,
        source: Source,
        library: ctypes.CDLL,
        with_fibers: Callable[[], ctypes.CDLL] | None = None,
    ) -> None:
        """Take the library, and what compiles one in which all kernels have fibers."""
        super().__init__(source)
        self.library = library
        self.with_fibers = with_fibers or (lambda: library)

    def find(self, name: str) -> CpuKernel:
        if not elf.is_extern_c(name, Path(self.library._name)):  # noqa: SLF001 - ctypes' only way
            raise CudalabError(
                f'{self.source.label}: kernel {name} is not extern "C": a GPU does not find it',
                hint=f'begin it with extern "C" __global__ void {name}(',
            )
        entry = f"{KERNEL}{name}"
        kernel = CpuKernel(name, layout.KernelEntry.in_dll(self.library, entry))
        kernel.reason = "" if kernel.has_loops else self.reasons().get(name, "")
        kernel.with_fibers = partial(self._with_fibers, entry)
        return kernel

    @contextmanager
    def _with_fibers(self, entry: str) -> Iterator[CpuKernel]:
        """The kernel with fibers, which meanwhile has the variables of the other library."""
        library = self.with_fibers()
        self._copy_variables(self.library, library)
        yield CpuKernel(entry.removeprefix(KERNEL), layout.KernelEntry.in_dll(library, entry))
        self._copy_variables(library, self.library)

    def _copy_variables(self, source: ctypes.CDLL, target: ctypes.CDLL) -> None:
        from cudalab.language import kernel_file  # noqa: PLC0415 - few launches need it

        for name in kernel_file.read(self.source.text).variables:
            symbol, copy = (
                layout.Symbol.in_dll(each, f"cudalab_symbol_{name}") for each in (source, target)
            )
            ctypes.memmove(copy.address, symbol.address, symbol.bytes)

    def reasons(self) -> dict[str, str]:
        """Why the threads of kernels are fibers and not loops, by kernel."""
        with suppress(ValueError):
            text = ctypes.c_char.in_dll(self.library, kernels.FIBERS)
            lines = ctypes.string_at(ctypes.addressof(text)).decode(errors="replace").splitlines()
            return dict(line.split("\t", 1) for line in lines)
        return {}


class CpuDevice:
    """Runs kernels on the host's cores."""

    name, facts = "cpu", HOST
    features: frozenset[str] = frozenset(
        {"sm_75", "sm_80", "sm_90", "shared_96kb", "shared_160kb", "shared_224kb"}
    )
    possible_features = features
    # An H100's and an H200's, on every machine: the same launches, so the same sums of floats, and
    # counts of accesses that can be compared with a GPU's.
    multiprocessors = 132

    def __init__(self, threads: int | None = None, *, loops: bool | None = None) -> None:
        """Use `threads` OS threads; None takes every core this process may use.

        With `loops`, the threads of as many kernels as possible are loops; else all are fibers.
        None means loops, unless the environment has CUDALAB_LOOPS=0.
        """
        self.threads = threads or machine.usable_cores()
        self.loops = os.environ.get(LOOPS) != "0" if loops is None else loops
        self.tallies: trace.Tallies = {}
        self._runtime: ctypes.CDLL | None = None

    @staticmethod
    def available() -> bool:
        """True: every machine is a host."""
        return True

    def __enter__(self) -> Self:
        """Fail early if there is no compiler."""
        toolchain.find_compiler()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release nothing: the OS threads wait for the next launch."""

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> CpuModule:
        """Compile, or load from the cache. `arch` is for GPUs."""
        del arch
        self._load_runtime()

        def load(*, loops: bool) -> ctypes.CDLL:
            return load_library(lambda: self.build(source, defines, loops=loops))

        return CpuModule(source, load(loops=self.loops), lambda: load(loops=False))

    def build(
        self, source: Source, defines: Mapping[str, str | int], *, loops: bool | None = None
    ) -> Path:
        """Compile, or find in the cache, but do not load: no code of the source runs."""

        def check(library: Path) -> None:
            from cudalab.language import nvcc_rules  # noqa: PLC0415 - for new kernels only

            nvcc_rules.check(source, defines, library)

        loops = self.loops if loops is None else loops
        try:
            return kernels.library(source, defines, check, loops=loops)
        except KernelCompileError:
            from cudalab.language import nvcc_rules  # noqa: PLC0415 - for what does not compile

            nvcc_rules.check_heads(source, defines)  # a clearer reason than the compiler's
            raise

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> CpuBuffer:
        """Uninitialised memory, aligned to 256 bytes."""
        dtype = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        needed = count * dtype.itemsize
        raw = None
        with suppress(MemoryError):
            if needed < SURE_BYTES or needed <= machine.available_memory():
                raw = np.empty(needed + ALIGNMENT, np.uint8)
        if raw is None:
            raise DeviceMemoryError(
                f"out of memory: {needed:,} bytes more are needed, "
                f"about {machine.available_memory():,} are free",
                hint="a smaller n, or a machine with more memory",
            )
        start = -raw.ctypes.data % ALIGNMENT
        return CpuBuffer(raw[start : start + needed].view(dtype).reshape(shape))

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> CpuBuffer:
        """Copy an array, or read a stream straight into the buffer."""
        buffer = self.empty(data.shape, data.dtype)
        if isinstance(data, Payload):
            if data.nbytes:
                data.readinto(as_bytes(buffer.array))
        else:
            buffer.array[...] = data
        return buffer

    def to_host(self, buffer: base.Buffer) -> np.ndarray[Any, Any]:
        """Copy the buffer's content."""
        return _own(buffer).array.copy()

    def chunks(self, buffer: base.Buffer) -> Iterator[memoryview]:
        """The whole buffer as one piece."""
        yield as_bytes(_own(buffer).array)

    def launch(
        self,
        kernel: base.Kernel,
        grid: base.Dim,
        block: base.Dim,
        *args: base.Buffer | np.generic,
        shared_bytes: int = 0,
    ) -> None:
        """Run the grid to its end."""
        limits.check_arguments(kernel, args)
        if not isinstance(kernel, CpuKernel):
            raise TypeError(f"{kernel.name} is not a kernel of the CPU device")
        blocks, threads = limits.launch_shape(kernel.name, grid, block)
        limits.check_shared(
            kernel.name, "the CPU device", limits.MAX_SHARED_BYTES, static=0, dynamic=shared_bytes
        )
        if 0 in blocks:
            return
        fits = not kernel.has_loops or kernels.fits_loops(
            blocks, threads, flat=kernel.is_flat, whole_warps=kernel.by_whole_warps
        )
        values = (ctypes.c_uint64 * len(args))()
        pointers = (ctypes.c_void_p * len(args))()
        for i, arg in enumerate(args):
            pointers[i] = ctypes.addressof(values) + 8 * i
            values[i] = _argument(kernel, i, arg)
        try:
            with nullcontext(kernel) if fits else kernel.with_fibers() as fitting:
                self._run(fitting, blocks, threads, pointers)
        except KeyboardInterrupt:
            # A block that never ends runs until the process ends, and needs its memory until then.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object((args, values, pointers)))
            raise

    def constant(self, module: base.Module, name: str) -> CpuBuffer:
        """The variable's own memory, as bytes."""
        if not isinstance(module, CpuModule):
            raise TypeError(f"{module.source.label} is not a module of the CPU device")
        try:
            symbol = layout.Symbol.in_dll(module.library, f"cudalab_symbol_{name}")
        except ValueError:
            raise CudalabError(
                f"{module.source.label} has no __constant__ or __device__ variable {name}"
            ) from None
        memory = (ctypes.c_uint8 * symbol.bytes).from_address(symbol.address)
        return CpuBuffer(np.frombuffer(memory, np.uint8))

    def copy(self, source: base.Buffer | np.ndarray[Any, Any], target: base.Buffer) -> None:
        """Copy bytes; sizes must agree."""
        array = source if isinstance(source, np.ndarray) else _own(source).array
        if array.nbytes != target.nbytes:
            raise ValueError(f"copy of {array.nbytes} bytes into {target.nbytes}")
        bytes_of_target = _own(target).array.reshape(-1).view(np.uint8)
        bytes_of_target.view(array.dtype).reshape(array.shape)[...] = array

    def synchronize(self) -> None:
        """Do nothing: every launch has ended already."""

    def info(self) -> base.DeviceInfo:
        """The host's properties in a GPU's terms."""
        host_compiler = toolchain.find_compiler()
        return base.DeviceInfo(
            name=machine.processor_name(),
            cores=machine.usable_cores(),
            threads=self.threads,
            memory_bytes=machine.total_memory(),
            shared_bytes=limits.SHARED_BYTES,
            shared_optin_bytes=limits.MAX_SHARED_BYTES,
            max_threads=limits.MAX_THREADS,
            max_block=limits.MAX_BLOCK,
            max_grid=limits.MAX_GRID,
            compiler=f"{host_compiler.name}: {host_compiler.version()}",
        )

    def meter(self) -> CpuMeter:
        """The meter, which uses the host's clock."""
        return CpuMeter(self)

    def _load_runtime(self) -> ctypes.CDLL:
        if self._runtime is None:
            runtime = load_library(kernel_runtime.runtime_library)
            layout.check(runtime, layout.OF_RUNTIME)
            runtime.cudalab_error.restype = ctypes.c_char_p
            runtime.cudalab_tally.restype = ctypes.POINTER(layout.TallyRow)
            self._runtime = runtime
            start_pool(runtime, self.threads)
        return self._runtime

    def _run(
        self,
        kernel: CpuKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        pointers: ctypes.Array[ctypes.c_void_p],
    ) -> None:
        runtime = self._load_runtime()
        sizes = ctypes.c_uint * 3
        runtime.cudalab_launch(kernel.handle, sizes(*grid), sizes(*block), pointers)
        try:
            while (state := runtime.cudalab_wait(100)) == 0:
                pass  # a signal handler runs here
        except BaseException:
            runtime.cudalab_cancel()
            runtime.cudalab_wait(1000)  # a block that never ends dies with the process
            raise
        if state < 0 and runtime.cudalab_crashed():
            self._crash_again(kernel, sizes(*grid), sizes(*block), pointers)
        if state < 0:
            message = runtime.cudalab_error().decode(errors="replace")
            raise KernelError(
                message, hint=next((hint for part, hint in _HINTS.items() if part in message), None)
            )
        layout.add_tally(self.tallies, kernel.name, runtime.cudalab_tally().contents)

    def _crash_again(self, kernel: CpuKernel, *launch: Any) -> NoReturn:
        """Run the block that has crashed as loops with fibers: they know which thread they are.

        The process ends by the signal of the crash.
        """
        runtime = self._load_runtime()
        with suppress(CudalabError), kernel.with_fibers() as fibers:
            runtime.cudalab_crash_again(fibers.handle, *launch)
        runtime.cudalab_crash_again(None, *launch)
        raise AssertionError("a process that has crashed goes on")


def load_library(build: Callable[[], Path]) -> ctypes.CDLL:
    """Load the library that `build` finds in the cache or makes; a damaged one is made again."""
    path = build()
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        path.unlink(missing_ok=True)
        return ctypes.CDLL(str(build()))


def _own(buffer: base.Buffer) -> CpuBuffer:
    if not isinstance(buffer, CpuBuffer):
        raise TypeError(f"a {type(buffer).__name__} is not a buffer of the CPU device")
    return buffer


def _argument(kernel: CpuKernel, position: int, arg: base.Buffer | np.generic) -> int:
    """The bits of an argument, checked against the kernel's own parameter."""
    size = kernel.param_sizes[position]
    if isinstance(arg, np.generic):
        if kernel.is_pointer[position] or arg.nbytes != size:
            kind = "a pointer" if kernel.is_pointer[position] else f"{size} bytes"
            raise CudalabError(
                f"parameter {position} of kernel {kernel.name} is {kind}, "
                f"launched with {arg.dtype.name}",
                hint="the lab's dispatch defines the kernel's parameters",
            )
        return int.from_bytes(arg.tobytes(), "little")
    if not kernel.is_pointer[position]:
        raise CudalabError(
            f"parameter {position} of kernel {kernel.name} is {size} bytes and no pointer, "
            "launched with a buffer",
            hint="the lab's dispatch defines the kernel's parameters",
        )
    return _own(arg).address


# What a failed launch's message has, and what helps.
_HINTS = {
    "divergent barrier": (
        "all threads of a block must reach the same __syncthreads(): "
        "move it out of the branch that only some of them take"
    ),
    "deadlock": (
        "a thread waits for others that wait elsewhere: a warp operation needs every lane of "
        "its mask, __syncthreads() every thread of the block"
    ),
    "assertion `": "print what the assertion compares: printf works in kernels",
    "cannot be given a GPU's values": (
        "split the statement into simpler ones, with variables of plain types"
    ),
    "would have another value than on a GPU": "write the cast: (int)x",
    "not in the mask": ("the mask of a *_sync call must have the bit of every lane that calls it"),
}


_started: dict[int, int] = {}  # runtime library -> OS threads


def start_pool(runtime: ctypes.CDLL, threads: int) -> None:
    """Start the OS threads, once for each process and runtime."""
    handle = runtime._handle  # noqa: SLF001 - ctypes has no public name for it
    if handle in _started:
        return
    crash_fd = int(os.environ.get("CUDALAB_CRASH_FD", "2"))
    error = runtime.cudalab_start(threads, crash_fd)
    if error:
        raise CudalabError(f"cannot start {threads} OS threads: {os.strerror(error)}")
    _started[handle] = threads
