"""The interface of devices that run a lab's kernels.

A device is a context manager: leaving it releases the device on every path. Everything a lab
does with a device goes through the few methods of `Device`; a lab never knows which one it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from cudalab.backends import Facts
from cudalab.errors import CudalabError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from cudalab.formats import Payload
    from cudalab.language.source import Source

# The element type of a lab's case arrives in the kernel as -D T=<C type>.
C_TYPES = {
    "uint8": "unsigned char",
    "int32": "int",
    "uint32": "unsigned",  # one word, so that T(0) is an expression
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}

Dim = int | tuple[int, ...]


class Buffer(Protocol):
    """Memory on the device, aligned to 256 bytes, C order. Freed with the last reference."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def address(self) -> int: ...  # for libraries that work on the same memory


class Kernel(Protocol):
    """One `extern "C" __global__` function of a compiled module, with its number of parameters."""

    @property
    def name(self) -> str: ...
    @property
    def num_params(self) -> int: ...


class Module(Protocol):
    """A compiled .cu file."""

    @property
    def source(self) -> Source: ...

    def __getitem__(self, name: str) -> Kernel:
        """The kernel called `name`; CudalabError listing the module's kernels if there is none."""
        ...


@dataclass(frozen=True, kw_only=True)
class DeviceInfo:
    """The properties of a device; None or empty if they do not apply or are not known.

    `output/labels.py` has the labels that users see.
    """

    name: str
    cores: int  # multiprocessors of a GPU
    threads: int | None = None  # OS threads that run kernels on a host
    warp_size: int = 32
    capability: tuple[int, int] | None = None  # compute capability
    memory_bytes: int | None = None
    constant_bytes: int | None = None
    shared_bytes: int | None = None  # for a block without opting in to more
    shared_optin_bytes: int | None = None  # for a block with opting in
    shared_core_bytes: int | None = None
    registers_per_block: int | None = None
    max_threads: int | None = None  # in a block
    max_block: tuple[int, int, int] | None = None
    max_grid: tuple[int, int, int] | None = None
    max_threads_per_core: int | None = None
    max_blocks_per_core: int | None = None
    l2_bytes: int | None = None
    clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    memory_bus_bits: int | None = None
    dram_gbs: float | None = None  # the memory's peak
    driver: str = ""
    pycuda: str = ""  # the CUDA version that it was built for
    compiler: str = ""


class Message(Protocol):
    """A few words that kernels write and the host reads while the device continues."""

    @property
    def buffer(self) -> Buffer:
        """The words, for kernels: memory that both can reach, slow for the device."""
        ...

    def send(self) -> None:
        """Send the words once the launches made so far have ended."""
        ...

    def read(self) -> list[int]:
        """The words. Waits only for what was launched before `send`.

        Launches that are held must not wait for a message from one of them.
        """
        ...


@runtime_checkable
class Device(Protocol):
    """A device. Launches are in order; `to_host` waits for what was launched."""

    @property
    def name(self) -> str: ...  # its key in `DEVICES`
    @property
    def facts(self) -> Facts: ...
    @property
    def features(self) -> frozenset[str]: ...  # what a variant's `requires` may name here
    @property
    def multiprocessors(self) -> int: ...  # launch plans fit their blocks to them

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> Module:
        """Compile, or load from the user's cache. KernelCompileError carries the messages.

        `arch` is the compute capability that a variant asks for, such as "sm_90a" (None: the
        device's own); a device that has no such thing ignores it.
        """
        ...

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Buffer:
        """Uninitialised memory. DeviceMemoryError when it does not fit."""
        ...

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> Buffer:
        """Copy an array to the device, or bytes that are still to be read from a stream."""
        ...

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """The buffer's content as an array that nothing else will write."""
        ...

    def chunks(self, buffer: Buffer) -> Iterator[memoryview]:
        """The buffer's bytes in order, piece by piece; a piece is valid until the next is taken."""
        ...

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

        A grid with no blocks launches nothing.
        """
        ...

    def constant(self, module: Module, name: str) -> Buffer:
        """The `__constant__` (or `__device__`) variable `name` as a buffer of bytes."""
        ...

    def copy(self, source: Buffer | np.ndarray[Any, Any], target: Buffer) -> None:
        """Copy `source` over `target` (equal nbytes), in the order of launches."""
        ...

    def synchronize(self) -> None:
        """Wait for all launches; their errors are raised here at the latest."""
        ...

    def info(self) -> DeviceInfo:
        """The device's properties."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...


# What only some devices can do: `message`, `stream`, `graph` and `meter.open_meter` ask for it.


@runtime_checkable
class Messages(Protocol):
    """A device whose kernels write to the host while others run."""

    def message(self, words: int) -> Message:
        """So many words of 4 bytes, zero at first."""
        ...


@runtime_checkable
class Streams(Protocol):
    """A device with several orders of launches."""

    def stream(self) -> AbstractContextManager[None]:
        """One more order."""
        ...


@runtime_checkable
class Graphs(Protocol):
    """A device that can record launches, and then repeat them with less work for the host."""

    def graph(self, launches: Callable[[], None]) -> Callable[[], None]:
        """One call in place of these launches."""
        ...


@runtime_checkable
class Builds(Protocol):
    """A device that can compile without loading what it has compiled."""

    def build(self, source: Source, defines: Mapping[str, str | int]) -> Path:
        """Compile into the cache, as what the path names."""
        ...


@runtime_checkable
class RunsSomehow(Protocol):
    """A kernel of a device that has several ways to run it."""

    how: str  # the way, and why


def way_of(kernel: Kernel) -> str:
    """How the device runs a kernel, if there is more than one way."""
    return kernel.how if isinstance(kernel, RunsSomehow) else ""


class WrappedDevice:
    """Passes everything on to a device, except what a subclass does differently."""

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def wrapped(self) -> Device:
        """The device that does the work."""
        return self._device

    @property
    def name(self) -> str:
        return self._device.name

    @property
    def facts(self) -> Facts:
        return self._device.facts

    @property
    def features(self) -> frozenset[str]:
        return self._device.features

    @property
    def multiprocessors(self) -> int:
        return self._device.multiprocessors

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> Module:
        return self._device.compile(source, defines, arch)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Buffer:
        return self._device.empty(shape, dtype)

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> Buffer:
        return self._device.to_device(data)

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        return self._device.to_host(buffer)

    def chunks(self, buffer: Buffer) -> Iterator[memoryview]:
        return self._device.chunks(buffer)

    def launch(
        self,
        kernel: Kernel,
        grid: Dim,
        block: Dim,
        *args: Buffer | np.generic,
        shared_bytes: int = 0,
    ) -> None:
        self._device.launch(kernel, grid, block, *args, shared_bytes=shared_bytes)

    def constant(self, module: Module, name: str) -> Buffer:
        return self._device.constant(module, name)

    def copy(self, source: Buffer | np.ndarray[Any, Any], target: Buffer) -> None:
        self._device.copy(source, target)

    def synchronize(self) -> None:
        self._device.synchronize()

    def info(self) -> DeviceInfo:
        return self._device.info()

    def __enter__(self) -> Self:
        self._device.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._device.__exit__(kind, *rest)


def layers(device: Device) -> Iterator[Device]:
    """A device and, if it passes things on, the devices below it, from the outermost."""
    yield device
    while isinstance(device, WrappedDevice):
        device = device.wrapped
        yield device


class OnlyBuilds(WrappedDevice):
    """A device that compiles and loads nothing: no code of a kernel file runs."""

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> Module:
        """Compile into the cache; the module's kernels cannot be launched."""
        del arch  # GPUs have no other way than to load
        build(self._device, source, defines)
        return CompiledModule(source)


def build(device: Device, source: Source, defines: Mapping[str, str | int]) -> Path | None:
    """Compile without loading; None on a device that cannot do the one without the other."""
    able = next((one for one in layers(device) if isinstance(one, Builds)), None)
    return able.build(source, defines) if able else None


class CopiedMessage:
    """A message on a device without memory that the host shares; sending copies the words."""

    def __init__(self, device: Device, words: int) -> None:
        """Begin with zeros."""
        self._device = device
        self._words = [0] * words
        self.buffer = device.empty(words, np.uint32)
        device.copy(np.zeros(words, np.uint32), self.buffer)

    def send(self) -> None:
        """Wait for all launches so far and copy the words."""
        self._words = [int(word) for word in self._device.to_host(self.buffer)]

    def read(self) -> list[int]:
        """The words as they were sent."""
        return self._words


def message(device: Device, words: int) -> Message:
    """So many words of 4 bytes, zero at first: the device's own kind of message, if it has one."""
    able = next((one for one in layers(device) if isinstance(one, Messages)), None)
    return able.message(words) if able else CopiedMessage(device, words)


def stream(device: Device) -> AbstractContextManager[None]:
    """A stream: launches inside its `with` block may run beside those of other streams.

    They begin when what was launched before outside of any stream has ended, and the next launch
    or copy outside waits for all streams. A device without streams runs everything in order.
    """
    able = next((one for one in layers(device) if isinstance(one, Streams)), None)
    return able.stream() if able else nullcontext()


def graph(device: Device, launches: Callable[[], None]) -> Callable[[], None]:
    """One call in place of the launches, and the copies between buffers, that `launches` makes.

    They are the same each time: the same kernels, grids and arguments, and nothing is read back. A
    device that records no graphs, or that wants to see each launch, makes them one by one.
    """
    return device.graph(launches) if isinstance(device, Graphs) else launches


def overwrite(device: Device, buffer: Buffer, value: int) -> None:
    """Set every byte of `buffer` to `value`, on any device."""
    device.copy(np.broadcast_to(np.uint8(value), buffer.nbytes), buffer)


class CompiledModule:
    """A module that looks for each kernel of its file once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> Kernel:
        """The kernel called `name`; CudalabError listing the module's kernels if there is none."""
        if name not in self._found:
            if name not in self.source.kernels:
                defined = ", ".join(self.source.kernels) or "none"
                raise CudalabError(
                    f"{self.source.label} defines no kernel {name}; it defines: {defined}",
                    hint='a kernel is extern "C" __global__ void and has the name the lab\'s plan '
                    "gives it",
                )
            self._found[name] = self.find(name)
        return self._found[name]

    def find(self, name: str) -> Kernel:
        """Find a kernel that the file defines. CudalabError if it is not extern "C"."""
        raise NotImplementedError
