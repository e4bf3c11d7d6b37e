"""Modules that PyCUDA has loaded or compiled, their kernels, and the arguments of a launch."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.backends import base
from cudalab.backends.cuda import nvcc
from cudalab.backends.cuda.memory import CudaBuffer
from cudalab.errors import CudalabError, NoDeviceError

if TYPE_CHECKING:
    from cudalab.language.source import Source

# NumPy's characters of scalar types, which PyCUDA's prepared calls use as well.
SCALAR_TYPES = frozenset("?bBhHiIlLqQfd")
_COMPILE_FOLDER = re.compile(r"compilation of (.+)[/\\]kernel\.cu failed")


class CudaKernel:
    """A kernel of a loaded module, with one prepared function for each list of types."""

    def __init__(self, name: str, num_params: int, module: Any) -> None:
        self.name = name
        self.num_params = num_params
        self.shared_allowed = 0  # bytes of dynamic shared memory that are opted in
        self._get_function = module.get_function
        self._prepared: dict[str, Any] = {}

    def prepared(self, types: str) -> Any:
        """The function, ready to be called with arguments of `types`."""
        function = self._prepared.get(types)
        if function is None:
            function = self._get_function(self.name)
            function.prepare(types)
            self._prepared[types] = function
        return function


class CudaModule(base.CompiledModule):
    """A loaded cubin."""

    def __init__(self, source: Source, module: Any, driver: Any) -> None:
        super().__init__(source)
        self.module = module
        self._driver = driver

    def find(self, name: str) -> CudaKernel:
        kernel = CudaKernel(name, self.source.kernels[name], self.module)
        try:
            kernel.prepared("")
        except self._driver.LogicError:
            raise CudalabError(
                f"{self.source.label}: kernel {name} cannot be found in the compiled module",
                hint=f'declare it as extern "C" __global__ void {name}(...)',
            ) from None
        return kernel


def pack(kernel: base.Kernel, args: tuple[base.Buffer | np.generic, ...]) -> tuple[str, list[Any]]:
    """The types of a launch's arguments in PyCUDA's letters, and their values."""
    types, values = "", []
    for position, arg in enumerate(args):
        if isinstance(arg, CudaBuffer):
            types += "P"
            values.append(arg.address)
        elif isinstance(arg, np.generic) and arg.dtype.char in SCALAR_TYPES:
            types += arg.dtype.char
            values.append(arg.item())
        else:
            raise TypeError(
                f"argument {position} of kernel {kernel.name} is a {type(arg).__name__}: "
                "pass a buffer of the CUDA device or an integer, float or bool of NumPy"
            )
    return types, values


def compiled(compiler: Path, text: str, target: str, label: str) -> tuple[Any, bytes]:
    """Compile with PyCUDA's SourceModule; also return the cubin that it leaves in its cache."""
    with warnings.catch_warnings(record=True) as caught, TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        from pycuda.compiler import SourceModule  # noqa: PLC0415 - 40 ms that a cached cubin saves
        from pycuda.driver import CompileError  # noqa: PLC0415

        try:
            module = SourceModule(
                text,
                nvcc=str(compiler),
                options=list(nvcc.FLAGS),
                no_extern_c=True,
                arch=target,
                cache_dir=folder,
            )
        except CompileError as error:
            left_behind = _COMPILE_FOLDER.search(error.msg)
            if left_behind:
                shutil.rmtree(left_behind[1], ignore_errors=True)
            messages = f"{error.stdout or ''}\n{error.stderr or ''}"
            raise nvcc.rejection(label, messages) from None
        except OSError as error:
            raise NoDeviceError(f"{compiler} cannot be run: {error}") from None
        (cubin,) = Path(folder).glob("*.cubin")
        code = cubin.read_bytes()
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            _, _, output = str(warning.message).partition("said the following:\n")
            sys.stderr.write(nvcc.readable(output or str(warning.message)) + "\n")
    return module, code
