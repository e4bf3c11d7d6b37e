"""A device that only records launches: the launch plan for any size, at once and on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cudalab.backends import HOST, base, limits
from cudalab.backends.trace import LaunchTrace
from cudalab.errors import CudalabError
from cudalab.formats import Payload
from cudalab.language.source import Source, parameter_names

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@dataclass(frozen=True)
class RecordedBuffer:
    """The shape of a buffer, without memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes that it would have."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True)
class RecordedKernel:
    """A kernel's name, and those of its parameters."""

    name: str
    parameters: list[str]

    @property
    def num_params(self) -> int:
        """How many arguments a launch has."""
        return len(self.parameters)


class RecordedModule(base.CompiledModule):
    """The kernels of a file, which nobody compiles."""

    def find(self, name: str) -> base.Kernel:
        """Describe the kernel."""
        return RecordedKernel(name, parameter_names(self.source.text)[name])


@dataclass
class Recorder:
    """Takes launches and runs none. Whoever reads an answer gets a CudalabError."""

    name: str
    features: frozenset[str]
    multiprocessors: int
    launches: list[LaunchTrace] = field(default_factory=list)
    facts = HOST  # default variants and the like are those of the device that is counted on

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> base.Module:
        """Look for the kernels of the source."""
        del defines, arch
        return RecordedModule(source)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> base.Buffer:
        """Describe a buffer."""
        shape = (shape,) if isinstance(shape, int) else shape
        return RecordedBuffer(shape, np.dtype(dtype))

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> base.Buffer:
        """Describe a buffer for the data."""
        return self.empty(data.shape, data.dtype)

    def to_host(self, buffer: base.Buffer) -> np.ndarray[Any, Any]:
        """Refuse."""
        del buffer
        raise CudalabError(
            "the launch plan reads a result back: its launches at this size are only recorded"
        )

    def chunks(self, buffer: base.Buffer) -> Iterator[memoryview]:
        """Refuse."""
        self.to_host(buffer)
        yield from ()

    def launch(
        self,
        kernel: base.Kernel,
        grid: base.Dim,
        block: base.Dim,
        *args: base.Buffer | np.generic,
        shared_bytes: int = 0,
    ) -> None:
        """Record a launch."""
        limits.check_arguments(kernel, args)
        names = kernel.parameters if isinstance(kernel, RecordedKernel) else []
        first: dict[int, tuple[str, int]] = {}  # a buffer has the name of its first parameter
        for name, arg in zip(names, args, strict=True):
            if isinstance(arg, RecordedBuffer):
                first.setdefault(id(arg), (name, arg.nbytes))
        x, y, z = limits.dim3(grid)
        if x * y * z:
            self.launches.append(
                LaunchTrace(
                    kernel=kernel.name,
                    grid=(x, y, z),
                    block=limits.dim3(block),
                    blocks=x * y * z,
                    blocks_traced=0,
                    warps_traced=0,
                    accesses=(),
                    shared_bytes=shared_bytes,
                    buffers=dict(first.values()),
                )
            )

    def constant(self, module: base.Module, name: str) -> base.Buffer:
        """Describe a variable of the largest size that constants have."""
        del module, name
        return self.empty(1 << 16, np.uint8)

    def copy(self, source: base.Buffer | np.ndarray[Any, Any], target: base.Buffer) -> None:
        """Copy nothing."""

    def synchronize(self) -> None:
        """Wait for nothing."""

    def info(self) -> base.DeviceInfo:
        """A device without properties."""
        return base.DeviceInfo(name="recorder", cores=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Nothing to release."""
