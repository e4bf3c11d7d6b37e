"""Check mode of the CPU device: the same kernels, with every access and branch observed.

    with CheckDevice(detect=False, count=True, blocks=8) as device:
        answer = runner.run(lab, variant, device, inputs, case)
        device.traces  # one LaunchTrace for each launch, in order
    with CheckDevice(detect=True, count=False, kill_after=30) as device:
        answer = runner.run(...)
        device.findings

A kernel is compiled twice: for speed, as always, and instrumented. Blocks that are traced run in
the instrumented build, one after another on one OS thread, the lanes of each warp in step; all
others run in the fast build. Blocks start in the order of their index either way, so results are
the same and a block may wait for an earlier one.
"""

from __future__ import annotations

import ctypes
import random
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.backends.base import Buffer, Dim, Kernel
from cudalab.backends.cpu import kernel_runtime, kernels, layout
from cudalab.backends.cpu.check import rows
from cudalab.backends.cpu.check.module import (
    CheckBuffer,
    CheckKernel,
    CheckModule,
    Progress,
    launch,
    load_runtime,
)
from cudalab.backends.cpu.compiler import toolchain
from cudalab.backends.cpu.device import CpuBuffer, CpuDevice, CpuKernel
from cudalab.backends.cpu.meter import CpuMeter
from cudalab.backends.trace import Finding, LaunchTrace, Looks, Place, merge_findings
from cudalab.errors import CudalabError, KernelError, TimeLimitError
from cudalab.formats import Payload
from cudalab.language import kernel_file
from cudalab.language.source import Source
from cudalab.system.processes import MAX_WAIT

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    LocalAccess = tuple[str, int, str]  # file, line, "load", "store" or "spill"
    WhereLocal = Callable[[Source, Mapping[str, str | int]], frozenset[LocalAccess] | None]

GUARD_BYTES = 64 << 10  # around each buffer, so that a small overrun hits no other one
PROBES = 2  # blocks to trace before deciding how many more; the first one is slow
EVERY = 4  # launch behind the first ones is traced
SHARE = 0.5  # of the remaining budget for one launch, as more may follow
MAX_TURN_MS = 100  # until Python reacts to Ctrl-C
GRACE_S = 2.0  # for a cancelled launch to stop
PATIENCE = 1 + MAX_WAIT  # the clock's time may be so many times the processor's


class CheckDevice(CpuDevice):
    """The CPU device with an instrument attached: a context manager, same protocol as CpuDevice.

    A launch that cannot go on (a wild pointer, a deadlock, an endless loop) records its finding
    and raises KernelError; after any other finding the run goes on.
    """

    traces: list[LaunchTrace]  # appended after each launch (count=True)
    findings: list[Finding]  # equal findings are counted (detect=True)
    looks: Looks  # what was looked at, and what was not (detect=True)

    def __init__(
        self,
        *,
        detect: bool,
        count: bool,
        banks: int = 32,
        blocks: int | None = None,
        launches: int | None = None,
        seed: int | None = None,
        budget_s: float | None = None,
        kill_after: float | None = None,
        threads: int | None = None,
        local: WhereLocal | None = None,
    ) -> None:
        """Open the device and choose what is observed.

        With neither detect nor count, nothing is: threads run one after another, as loops do, and
        the variables of a module have their first values again.

        banks       32, or 16 for the half-warp rule of compute capability 1.x
        blocks      of each launch, how many are traced, spread over the grid with the first and the
                    last among them; None: as many as the budget allows, all without one. With
                    detect, all are
        launches    of each kernel, the first ones that are traced, and then every fourth; None:
                    all of them. With detect, all are
        seed        shuffles the order in which warps and lanes run, and that of blocks where none
                    may wait for another; None: in the order of their index
        budget_s    seconds that tracing may take in all: launches trace fewer blocks when it is
                    spent, a kernel that has not been traced yet at least its first
        kill_after  seconds that one launch may take before it counts as an endless loop
        threads     OS threads for the blocks that are not traced
        local       which accesses of a source are made in local memory, and so are counted
        """
        super().__init__(threads)
        self.detect, self.count, self.banks, self.seed = detect, count, banks, seed
        self.blocks, self.budget_s, self.kill_after = blocks, budget_s, kill_after
        self.launches, self.launched = launches, Counter[str]()
        self.traces, self.findings, self.looks = [], [], Looks()
        self.local, self.local_lines = local, set[Place]()  # those that have used local memory
        self.by_gcc = not toolchain.find_compiler().is_clang
        self.in_local_memory: frozenset[LocalAccess] | None = frozenset()  # None: nobody knows
        self._checker: ctypes.CDLL | None = None
        self.spent_s = 0.0  # on tracing so far
        self._launch: _Launch | None = None
        self._anew = set[Path]()  # libraries whose variables have their first values

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> CheckModule:
        """Compile both builds, or load them from the cache."""
        fast = super().compile(source, defines, arch).library
        checked = kernels.library(source, defines, observed=True)
        try:
            module = CheckModule(source, defines, fast, checked, self._load_checker())
        except OSError:  # a damaged cache entry: rebuild it and its runtime
            checked.unlink(missing_ok=True)
            kernel_runtime.check_runtime_library().unlink()
            checked = kernels.library(source, defines, observed=True)
            module = CheckModule(source, defines, fast, checked, self._load_checker())
        accesses: frozenset[LocalAccess] | None = frozenset()
        if self.local and kernel_file.read(source.text).local_arrays:
            accesses = self.local(source, defines)
        module.tables.count_local(accesses or ())
        if not (self.detect or self.count) and checked not in self._anew:
            module.begin_anew()
            self._anew.add(checked)
        known = self.in_local_memory
        self.in_local_memory = None if accesses is None or known is None else known | accesses
        return module

    def build(
        self, source: Source, defines: Mapping[str, str | int], *, loops: bool | None = None
    ) -> Path:
        """Compile both builds, or find them in the cache, and load neither."""
        kernels.library(source, defines, observed=True)
        return super().build(source, defines, loops=loops)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> CheckBuffer:
        """Uninitialised memory between two guard zones."""
        dtype = np.dtype(dtype)
        num_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        zones = super().empty(num_bytes + 2 * GUARD_BYTES, np.uint8).array
        array = zones[GUARD_BYTES : GUARD_BYTES + num_bytes].view(dtype).reshape(shape)
        checker = self._load_checker()
        region = checker.cudalab_check_add(
            array.ctypes.data, num_bytes, GUARD_BYTES, 0, self.detect
        )
        buffer = CheckBuffer(array, region)
        weakref.finalize(buffer, checker.cudalab_check_remove, region)
        return buffer

    def to_device(self, data: np.ndarray[Any, Any] | Payload) -> CpuBuffer:
        """Copy an array, or read a stream straight into the buffer."""
        buffer = super().to_device(data)
        self._written(buffer)
        return buffer

    def copy(self, source: Buffer | np.ndarray[Any, Any], target: Buffer) -> None:
        """Copy bytes, and which of them are uninitialised."""
        super().copy(source, target)
        if isinstance(source, CheckBuffer) and isinstance(target, CheckBuffer):
            self._load_checker().cudalab_check_copied(source.region, target.region)
        else:
            self._written(target)

    def meter(self) -> CpuMeter:
        """Refuse to measure: the instrument takes most of the time."""
        raise CudalabError("no time is measured in check mode: its instrument takes most of it")

    def launch(
        self,
        kernel: Kernel,
        grid: Dim,
        block: Dim,
        *args: Buffer | np.generic,
        shared_bytes: int = 0,
    ) -> None:
        """Run the grid to its end and record the observations."""
        self._launch = _Launch(self, kernel, args, shared_bytes)
        super().launch(kernel, grid, block, *args, shared_bytes=shared_bytes)

    def _run(
        self,
        kernel: CpuKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        pointers: ctypes.Array[ctypes.c_void_p],
    ) -> None:
        if self._launch is None:
            raise RuntimeError(f"{kernel.name} can only be run by launch()")
        self._launch.run(grid, block, pointers)

    def _written(self, buffer: Buffer) -> None:
        if isinstance(buffer, CheckBuffer):
            self._load_checker().cudalab_check_written(buffer.region)

    def _load_checker(self) -> ctypes.CDLL:
        if self._checker is None:
            self._checker = load_runtime()
        return self._checker


class _Launch:
    """One launch: runs each block in one of the builds, and collects the observations."""

    def __init__(
        self,
        device: CheckDevice,
        kernel: Kernel,
        args: Sequence[Buffer | np.generic],
        shared_bytes: int,
    ) -> None:
        if not isinstance(kernel, CheckKernel):
            raise TypeError(f"{kernel.name} is not a kernel of check mode")
        self.device, self.kernel, self.shared_bytes = device, kernel, shared_bytes
        self.module = kernel.module
        self.buffers: dict[int, tuple[str, int]] = {}  # name and bytes of an item by region
        self.buffer_bytes: dict[str, int] = {}
        names = kernel.parameters if len(kernel.parameters) == len(args) else [None] * len(args)
        for name, arg in zip(names, args, strict=True):
            if isinstance(arg, CheckBuffer) and arg.region not in self.buffers:
                self.buffers[arg.region] = (name or "a buffer", arg.dtype.itemsize)
                self.buffer_bytes[name or "a buffer"] = arg.nbytes
        for variable in self.module.variables:
            self.buffers[variable.region] = (variable.name, 0)
        self.checker = device._load_checker()  # noqa: SLF001 - one part of the device
        self.is_fresh, self.in_checked = True, False
        self.began = 0.0

    def run(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        pointers: ctypes.Array[ctypes.c_void_p],
    ) -> None:
        """Run all blocks, in order, and record the observations."""
        device = self.device
        self.grid, self.block, self.pointers = grid, block, pointers
        blocks = grid[0] * grid[1] * grid[2]
        self.began = time.monotonic()
        traced = 0
        device.launched[self.kernel.name] += 1
        try:
            everything = self._goal(blocks) == blocks and device.budget_s is None
            if device.detect or not device.count or everything:
                order = None
                if device.seed is not None and not self.module.may_wait:
                    shuffled = list(range(blocks))
                    random.Random(device.seed).shuffle(shuffled)  # noqa: S311 - no secret
                    order = (ctypes.c_uint64 * blocks)(*shuffled)
                self._run_checked(order, 0, blocks)
                traced = blocks
            else:
                traced = self._run_sample(blocks)
        finally:
            self._use(checked=False)
            self._record(blocks, traced)

    def _goal(self, blocks: int) -> int:
        """How many blocks to trace if time allows."""
        limit, first = self.device.blocks, self.device.launches
        number = self.device.launched[self.kernel.name]
        if first is not None and number > first and (number - first) % EVERY:
            return 0
        return blocks if limit is None else min(limit, blocks)

    def _run_sample(self, blocks: int) -> int:
        """Trace some blocks while the budget lasts, and run the others in the fast build."""
        goal = self._goal(blocks)
        chosen = spread(goal, blocks)
        done = traced = 0
        while chosen and not (self.kernel.was_traced and self._left_s() <= 0):
            index = chosen.pop(0)
            self._run_fast(done, index)
            began = time.monotonic()
            self._run_checked(None, index, 1)
            seconds = time.monotonic() - began
            self.kernel.was_traced = True
            done, traced = index + 1, traced + 1
            if traced == PROBES:  # its time determines how many more fit into the budget
                affordable = traced + self._left_s() * SHARE / max(seconds, 1e-6)
                if affordable < goal:
                    chosen = [i for i in spread(int(affordable), blocks) if i >= done]
        self._run_fast(done, blocks)
        return traced

    def _left_s(self) -> float:
        """The remaining budget in seconds."""
        budget = self.device.budget_s
        return float("inf") if budget is None else budget - self.device.spent_s

    def _run_fast(self, first: int, end: int) -> None:
        if first >= end:
            return
        self._use(checked=False)
        runtime = self.device._load_runtime()  # noqa: SLF001 - one part of the device
        sizes, number = ctypes.c_uint * 3, ctypes.c_uint64
        runtime.cudalab_launch_blocks(
            self.kernel.handle,
            sizes(*self.grid),
            sizes(*self.block),
            self.pointers,
            number(first),
            number(end),
        )
        self._wait(runtime.cudalab_wait, runtime.cudalab_cancel, runtime.cudalab_error)

    def _run_checked(
        self, order: ctypes.Array[ctypes.c_uint64] | None, first: int, count: int
    ) -> None:
        self._use(checked=True)
        device = self.device
        began = time.monotonic()
        progress = launch(
            self.checker,
            self.module.tables,
            self.kernel.checked,
            self.pointers,
            grid=self.grid,
            block=self.block,
            blocks=ctypes.cast(order, ctypes.c_void_p) if order is not None else None,
            first_block=first,
            num_blocks=count,
            shared_bytes=self.shared_bytes,
            seed=0 if device.seed is None else device.seed + 1,
            detects=device.detect,
            counts=device.count,
            in_step=device.detect or device.count,
            banks=device.banks,
            fresh=self.is_fresh,
        )
        self.is_fresh = False
        try:
            self._wait(
                self.checker.cudalab_check_wait,
                self.checker.cudalab_check_stop,
                self.checker.cudalab_check_error,
                progress,
            )
        finally:
            device.spent_s += time.monotonic() - began

    def _wait(self, wait: Any, stop: Any, error: Any, progress: Progress | None = None) -> None:
        """Wait in short turns, and cancel a launch that takes too long.

        Under the instrument, which has one thread, the processor's time counts.
        """
        stopped_at = None
        try:
            while (state := wait(MAX_TURN_MS)) == 0:
                now = time.monotonic()
                if stopped_at is not None and now > stopped_at + GRACE_S:
                    raise TimeLimitError(
                        f"kernel {self.kernel.name} did not end within {self.device.kill_after:g} s"
                    )
                if stopped_at is None and self._is_late(now, progress):
                    stopped_at = now
                    stop()
        except KeyboardInterrupt:
            stop()
            wait(1000)
            raise
        if state < 0:
            raise KernelError(error().decode(errors="replace"))

    def _is_late(self, now: float, progress: Progress | None) -> bool:
        limit = self.device.kill_after
        if limit is None:
            return False
        if progress is None:
            return now > self.began + limit
        progress.update()
        return progress.spent_s > limit or now > self.began + PATIENCE * limit

    def _use(self, *, checked: bool) -> None:
        """Let the other build continue with the values of the module's variables."""
        if checked != self.in_checked:
            self.in_checked = checked
            for variable in self.module.variables:
                variable.to_checked() if checked else variable.to_fast()

    def _record(self, blocks: int, traced: int) -> None:
        if traced == blocks:
            tally = self.checker.cudalab_check_tally().contents
            layout.add_tally(self.device.tallies, self.kernel.name, tally)
        names = rows.Names(
            kernel=self.kernel.name,
            tables=self.module.tables,
            grid=self.grid,
            block=self.block,
            buffers=self.buffers,
        )
        if self.device.detect:
            merge_findings(self.device.findings, rows.findings(self.checker, names))
            self.module.looks, lines = rows.looks(
                self.checker, self.module.tables, self.module.looks, whole=traced == blocks
            )
            if lines:
                self.device.looks.add(lines)
        if self.device.count:
            launch = rows.trace(self.checker, names, blocks, traced)
            if self.device.local:
                self.device.local_lines |= self.module.tables.local_lines(self.checker)
            launch = replace(launch, shared_bytes=self.shared_bytes, buffers=self.buffer_bytes)
            self.device.traces.append(launch)


def spread(count: int, blocks: int) -> list[int]:
    """`count` block indices as far apart as possible, including the first and the last."""
    if count == 1:
        return [0]
    return sorted({round(i * (blocks - 1) / (count - 1)) for i in range(count)})
