"""What each kernel of a variant does at a size: counted there, or grown from two smaller sizes."""

import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import NamedTuple

from cudalab import runner
from cudalab.backends import host_device, host_features
from cudalab.backends.base import Device, WrappedDevice
from cudalab.backends.cpu.check import CheckDevice
from cudalab.backends.trace import LaunchTrace
from cudalab.errors import CudalabError
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, HostInputs, Size
from cudalab.language import source
from cudalab.microscope.subject import generated
from cudalab.predict.instructions import Key
from cudalab.predict.recorder import Recorder

SAMPLE = 16  # blocks of a launch to trace
MAX_TRACED = 512  # blocks of all launches: of many launches, each has a smaller sample
BUDGET_S = 10.0  # for tracing a variant; on a slow machine, the last launches have no sample
KILL_AFTER_S = 30.0  # for one launch
MANY = 8  # blocks, of which one does not read half of a buffer unless it draws its work
SMALL_BYTES = 1 << 17  # of buffers that any block may read
SECTOR_BYTES = 32
_ATOMIC = re.compile(r"\batomic(?:Add|Inc)\b")
NEAR = 0.12  # a power of the size this near to a half is taken for that


class Row(NamedTuple):
    """One access of the source."""

    key: Key
    buffer: str
    bytes: int  # of a lane


@dataclass(kw_only=True)
class Cost:
    """What the requests of one access cost, in all blocks of all launches."""

    requests: float = 0.0
    sectors: float = 0.0
    lines: float = 0.0
    partial: float = 0.0
    wavefronts: float = 0.0


@dataclass
class KernelCounts:
    """One kernel: its launches, and what all of them together count."""

    launches: list[LaunchTrace] = field(default_factory=list)
    rows: dict[Row, Cost] = field(default_factory=lambda: defaultdict(Cost))
    barriers: dict[Key, float] = field(default_factory=lambda: defaultdict(float))  # by warps

    @property
    def blocks(self) -> int:
        return sum(launch.blocks for launch in self.launches)


Counts = dict[str, KernelCounts]  # by the kernel's name


@dataclass
class Generated:
    """The inputs of one lab and case by their size, each made when it is first needed."""

    lab: Lab
    case: Case
    dist: str
    seed: int
    _: KW_ONLY
    folder: Path
    made: dict[Size, HostInputs] = field(default_factory=dict)

    def of(self, size: Size) -> HostInputs:
        if size not in self.made:
            own = Path(tempfile.mkdtemp(dir=self.folder))
            data = generated(self.lab, self.case, size, self.dist, self.seed, own)
            self.made[size] = data.inputs
        return self.made[size]


@dataclass
class Subject:
    """A variant, with as many blocks as its launch plan chooses for a GPU."""

    lab: Lab
    variant: Variant
    case: Case
    multiprocessors: int  # of the GPU
    _: KW_ONLY
    depends: bool = False  # the launch plan has asked for the multiprocessors

    def on(self, device: Device) -> Device:
        """The device as the launch plan sees it."""
        return _AsGpu(device, self)


class _AsGpu(WrappedDevice):
    """A device that seems to have a GPU's multiprocessors, and notes whether that matters."""

    def __init__(self, device: Device, subject: Subject) -> None:
        super().__init__(device)
        self._subject = subject

    @property
    def multiprocessors(self) -> int:
        """The number that launch plans fit their blocks to."""
        self._subject.depends = True
        return self._subject.multiprocessors


def traced(subject: Subject, inputs: HostInputs, blocks: int | None = SAMPLE) -> list[LaunchTrace]:
    """Run a variant once, with so many blocks of each launch traced at most; None: all."""
    budget_s = None
    if blocks is not None:
        budget_s, launches = BUDGET_S, num_launches(subject, inputs)
        blocks = max(1, min(blocks, MAX_TRACED // launches))
    with CheckDevice(
        detect=False, count=True, blocks=blocks, budget_s=budget_s, kill_after=KILL_AFTER_S
    ) as device:
        seen = subject.on(device)
        step = runner.prepare(subject.lab, subject.variant, seen, inputs, subject.case)
        if step.reads_back:
            raise CudalabError(
                f"{subject.variant.name} waits for results on the host between its launches: "
                "that time is not predicted"
            )
        step.run()
        device.synchronize()
        return device.traces


def draws_work(subject: Subject, inputs: HostInputs) -> bool:
    """Whether blocks draw their work, so that a sample of them says nothing about the others.

    On the CPU device blocks run one after another, so the first one would draw everything.
    """
    variant = subject.variant
    if not _ATOMIC.search(source.load(variant.path, variant.label).text):
        return False
    return any(
        access.sectors * SECTOR_BYTES > trace.buffers.get(access.buffer or "", 0) / 2
        for trace in traced(subject, inputs, blocks=1)
        if trace.blocks >= MANY and trace.blocks_traced
        for access in trace.accesses
        if access.space == "global" and access.kind == "load"
        if trace.buffers.get(access.buffer or "", 0) > SMALL_BYTES
    )


def recorded(subject: Subject, inputs: HostInputs) -> list[LaunchTrace]:
    """The launches at a size at which nothing runs."""
    device = Recorder(host_device(), host_features(), subject.multiprocessors)
    seen = subject.on(device)
    step = runner.prepare(subject.lab, subject.variant, seen, inputs, subject.case)
    device.launches.clear()
    step.run()
    return device.launches


def num_launches(subject: Subject, inputs: HostInputs) -> int:
    """How many launches a step has; 1 where only a run can tell."""
    with suppress(CudalabError):
        return max(1, len(recorded(subject, inputs)))
    return 1


def counted(traces: Sequence[LaunchTrace]) -> Counts:
    """The counts of the blocks that were traced, for all blocks."""
    result: Counts = {}
    for trace in traces:
        result.setdefault(trace.kernel, KernelCounts()).launches.append(trace)
    for kernel in result.values():
        sample = [trace for trace in kernel.launches if trace.blocks_traced]
        rest = kernel.blocks / max(1, sum(trace.blocks for trace in sample))
        for trace in sample:
            _add(kernel, trace, rest * trace.blocks / trace.blocks_traced)
    return result


def _add(kernel: KernelCounts, trace: LaunchTrace, factor: float) -> None:
    for access in trace.accesses:
        key = access.place.file, access.place.line, access.space, access.kind
        row = Row(key, access.buffer or "", access.bytes_per_lane)
        cost = kernel.rows[row]
        cost.requests += factor * access.requests
        cost.sectors += factor * access.sectors
        cost.lines += factor * access.lines
        cost.partial += factor * access.partial_sectors
        cost.wavefronts += factor * access.wavefronts
    warps = trace.warps_traced / trace.blocks_traced
    for place, executions in trace.barriers.items():
        kernel.barriers[place.file, place.line, "barrier", "block"] += factor * warps * executions
    for place, executions in trace.warp_operations.items():
        kernel.barriers[place.file, place.line, "barrier", "warp"] += factor * executions


def grown(
    small: Counts, large: Counts, ratio: float, further: float, launches: Sequence[LaunchTrace]
) -> Counts:
    """The counts of `launches`, at a size `further` times that of `large`.

    Each count grows as a power of the size, which those of `large`, at `ratio` times the size of
    `small`, show.
    """

    def power(a: float, b: float) -> float:
        if not a or not b:
            return b
        exponent = math.log(b / a) / math.log(ratio)
        near = round(2 * exponent) / 2
        return float(b * further ** (near if abs(near - exponent) < NEAR else exponent))

    result: Counts = {}
    for launch in launches:
        result.setdefault(launch.kernel, KernelCounts()).launches.append(launch)
    for name, kernel in result.items():
        if name not in large:
            raise CudalabError(f"the kernel {name} does not run at sizes that can be counted")
        before, last = small.get(name, KernelCounts()), large[name]
        for row, cost in last.rows.items():
            first = vars(before.rows[row])
            kernel.rows[row] = Cost(
                **{x: power(first[x], value) for x, value in vars(cost).items()}
            )
        for key, executions in last.barriers.items():
            kernel.barriers[key] = power(before.barriers[key], executions)
    return result
