"""A .cu file in two builds, for check mode: one for speed, and one with hooks."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab.backends.cpu import device, kernel_runtime, layout
from cudalab.backends.cpu.check import rows
from cudalab.backends.cpu.layout import KernelEntry, Symbol, TallyRow
from cudalab.errors import CudalabError
from cudalab.language import kernel_file
from cudalab.language import source as sources
from cudalab.language.source import Source
from cudalab.system import elf

if TYPE_CHECKING:
    import numpy as np

# Names of variables that are not the file's own, in C++'s encoding.
_OTHERS = re.compile(
    r"_Z(?:TV)?[ZNKL]*(?:T(?!V)|G|St|7cudalab|4cuda|3cub|6thrust|9__gnu_cxx)|_[^Z]|.*\."
)
_WAITS = re.compile(r"\b(?:volatile|__ldcv|__nanosleep|atomicCAS|atomicExch)\b")


class CheckBuffer(device.CpuBuffer):
    """A buffer between two guard zones, known to the instrument by a number."""

    def __init__(self, array: np.ndarray[Any, Any], region: int) -> None:
        super().__init__(array)
        self.region = region


class CheckModule(device.CpuModule):
    """A .cu file in both builds."""

    def __init__(
        self,
        source: Source,
        defines: Mapping[str, str | int],
        fast: ctypes.CDLL,
        checked: Path,
        runtime: ctypes.CDLL,
    ) -> None:
        """Load the instrumented build, and register its contents with the instrument."""
        super().__init__(source, fast)
        self.checked = ctypes.CDLL(str(checked))
        code = sources.blank_comments(source.text)
        self.looks = b""  # what is known of its sites
        self.may_wait = _WAITS.search(code) is not None
        self.parameters = sources.parameter_names(source.text)
        file = kernel_file.read(sources.with_defines(source.text, defines))
        self.tables = rows.Tables(checked, self.checked, runtime, file.dynamic)
        self.variables = [
            _Variable(
                name,
                Symbol.in_dll(fast, f"cudalab_symbol_{name}"),
                Symbol.in_dll(self.checked, f"cudalab_symbol_{name}"),
                runtime,
                is_constant=is_constant,
            )
            for name, is_constant in file.variables.items()
        ]
        ours = dict(_apart(fast))
        for name, symbol in _apart(self.checked):
            last = elf.demangled(name)
            self.variables.append(
                _Variable(last, ours.get(name), symbol, runtime, is_constant=False)
            )
        for name, symbol in _apart(self.checked, fixed=True):
            fixed = _Variable(elf.demangled(name), None, symbol, runtime, is_constant=False)
            self.variables = [each for each in self.variables if each.checked != fixed.checked]
            self.variables.append(fixed)

    def begin_anew(self) -> None:
        """Give all variables the values that they had when the module was loaded."""
        for variable in self.variables:
            variable.begin_anew()

    def find(self, name: str) -> CheckKernel:
        """The kernel in both builds."""
        return CheckKernel(super().find(name), self)


class CheckKernel(device.CpuKernel):
    """A kernel in both builds."""

    def __init__(self, fast: device.CpuKernel, module: CheckModule) -> None:
        """Look up the instrumented kernel as well."""
        name = fast.name
        super().__init__(name, fast.handle.contents)
        self.module = module
        self.checked = ctypes.pointer(KernelEntry.in_dll(module.checked, f"cudalab_kernel_{name}"))
        self.parameters = module.parameters.get(name, [])
        self.was_traced = False


_variables: dict[int, int] = {}  # address -> region
_first_values: dict[int, bytes] = {}  # likewise


class _Variable:
    """A `__device__` or `__constant__` variable, which each build has in its own memory."""

    def __init__(
        self,
        name: str,
        ours: Symbol | None,
        theirs: Symbol,
        runtime: ctypes.CDLL,
        *,
        is_constant: bool,
    ) -> None:
        """Register the instrumented build's memory, `theirs`; `ours` is that of the fast build."""
        self.name = name
        self.checked, self.num_bytes = theirs.address, theirs.bytes
        self.fast = ours.address if ours and ours.bytes == theirs.bytes else None
        if self.checked not in _variables:  # libraries and their variables stay loaded
            space = rows.SPACES.index("constant" if is_constant else "global")
            region = runtime.cudalab_check_add(self.checked, self.num_bytes, 0, space, 1)
            runtime.cudalab_check_written(region)
            _first_values[self.checked] = ctypes.string_at(self.checked, self.num_bytes)
            _variables[self.checked] = region
        self.region = _variables[self.checked]

    def begin_anew(self) -> None:
        """Give it its first value again, in both builds; what never changes cannot be written."""
        first = _first_values[self.checked]
        if ctypes.string_at(self.checked, self.num_bytes) != first:
            ctypes.memmove(self.checked, first, self.num_bytes)
        self.to_fast()

    def to_checked(self) -> None:
        """Copy the fast build's value to the instrumented build."""
        if self.fast:
            ctypes.memmove(self.checked, self.fast, self.num_bytes)

    def to_fast(self) -> None:
        """Copy the instrumented build's value to the fast build."""
        if self.fast:
            ctypes.memmove(self.fast, self.checked, self.num_bytes)


def _apart(library: ctypes.CDLL, *, fixed: bool = False) -> Iterator[tuple[str, Symbol]]:
    """The variables that are static in a function, of a template, or inline; mangled names.

    With `fixed`, those that never change, wherever they are, and tables of virtual functions.
    """
    symbols = {symbol.name: symbol for symbol in elf.symbols(Path(library._name))}  # noqa: SLF001
    known = next((name for name in symbols if name.startswith("cudalab_kernel_")), None)
    if known is None:
        return
    base = ctypes.addressof(ctypes.c_char.in_dll(library, known)) - symbols[known].value
    for name, symbol in symbols.items():
        wanted = symbol.is_fixed if fixed else symbol.is_apart and not symbol.is_fixed
        if wanted and not _OTHERS.match(name):
            yield name, Symbol(base + symbol.value, symbol.num_bytes)


_ADDRESSES = ("rows", "steps", "ways", "branches", "barriers", "warp_ops", "findings", "module")
_loaded: dict[int, ctypes.CDLL] = {}  # handle -> the runtime, started
# Its thread is not in a forked child, which has to start it again.
os.register_at_fork(after_in_child=_loaded.clear)


def load_runtime() -> ctypes.CDLL:
    """The runtime of check mode, started once per process."""
    runtime = device.load_library(kernel_runtime.check_runtime_library)
    handle = runtime._handle  # noqa: SLF001 - ctypes has no public name for it
    if handle not in _loaded:
        layout.check(runtime, layout.OF_CHECK)
        for name in _ADDRESSES:
            getattr(runtime, f"cudalab_check_{name}").restype = ctypes.c_void_p
        runtime.cudalab_check_tally.restype = ctypes.POINTER(TallyRow)
        runtime.cudalab_check_error.restype = ctypes.c_char_p
        runtime.cudalab_check_progress.restype = ctypes.c_uint64
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        runtime.cudalab_check_module.argtypes = [pointer, size, pointer, size]
        runtime.cudalab_check_add.argtypes = [pointer, size, size, ctypes.c_uint, ctypes.c_int]
        error = runtime.cudalab_check_start()
        if error:
            raise CudalabError(f"cannot start check mode: {os.strerror(error)}")
        _loaded[handle] = runtime
    return _loaded[handle]


def launch(
    runtime: ctypes.CDLL, tables: rows.Tables, kernel: Any, args: Any, **options: Any
) -> Progress:
    """Start some blocks of an instrumented kernel; `options` are fields of layout.Options."""
    pointer = ctypes.c_void_p
    started = layout.Options(
        module=tables.handle,
        kernel=ctypes.cast(kernel, pointer),
        args=ctypes.cast(args, pointer),
        **options,
    )
    runtime.cudalab_check_launch(ctypes.byref(started))
    return Progress(runtime)


class Progress:
    """How far the launch that runs now has come, by the processor time that it has taken."""

    def __init__(self, runtime: ctypes.CDLL) -> None:
        """Begin to count, when the launch begins."""
        self._runtime = runtime
        self._steps = 0
        self.blocks = 0  # that have ended
        self._began_s = self._stepped_s = self._now_s = self._read()

    def _read(self) -> float:
        blocks, steps = ctypes.c_uint64(), ctypes.c_uint64()
        now_s = (
            self._runtime.cudalab_check_progress(ctypes.byref(blocks), ctypes.byref(steps)) / 1e9
        )
        self.blocks = blocks.value
        if steps.value != self._steps:
            self._steps, self._stepped_s = steps.value, now_s
        return float(now_s)

    def update(self) -> None:
        """Look how far it is."""
        self._now_s = self._read()

    @property
    def spent_s(self) -> float:
        """The processor time of the launch."""
        return self._now_s - self._began_s

    @property
    def stuck_s(self) -> float:
        """The processor time since a thread or block has ended, or a block has passed a barrier."""
        return self._now_s - max(self._stepped_s, self._began_s)
