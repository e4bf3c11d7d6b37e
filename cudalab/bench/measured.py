"""A row of a table: its samples, the bound that no true time is below, and the verdict on its time.

Bounds follow from the work and from the peaks of a device.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import NamedTuple

from cudalab.backends.base import DeviceInfo
from cudalab.bench import stats
from cudalab.errors import CudalabError, ExitCode, KernelCompileError, KernelError
from cudalab.labs.teaching import Work

COLD, HOT = "cold", "hot"
WRONG = int(ExitCode.WRONG_ANSWER)
MIN_SAMPLES = 5  # for every row, regardless of the time limit
MAX_SAMPLES = 1000
FEW_SAMPLES = 10
THROTTLED = 0.85  # samples below this part of the highest measured clock are discarded
UNUSABLE = 1.0  # relative noise above which a median says nothing
NOISY = 0.05  # relative noise that is worth a warning
# The tolerance for times below their bound: events have a resolution of about half a microsecond,
# and a device may run slightly faster than its declared clock.
BOUND_SLACK = 0.97
BOUND_SLACK_MS = 0.001
# Float32 lanes of a multiprocessor by compute capability; others get the maximum.
FP32_LANES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
MAX_FP32_LANES = 128
# A multiprocessor reads 64 bytes a clock from L2 up to compute capability 9.0. Twice that allows
# for undocumented rates.
L2_BYTES_PER_CLOCK = 128
# Dense half-precision tensor cores are 8 to 16 times as fast as the ordinary units; sparsity
# doubles that. A product at float32 accuracy needs at least one of their operations.
TENSOR_SPEEDUP = 32
# A core of any current CPU: two loads of 64 bytes a clock, two fused operations on 16 lanes.
CPU_CLOCK_HZ = 6e9
CPU_BYTES_PER_CLOCK = 128
CPU_FLOPS_PER_CLOCK = 64


class Status(StrEnum):
    """The status of a row. Only OK rows have a time."""

    OK = "ok"
    WRONG = "WRONG"  # the answer differs from the reference's, or the inputs were changed
    INVALID = "INVALID"  # a time that cannot be true
    FAILED = "FAILED"  # it does not compile, or crashed
    SKIPPED = "skipped"  # it does not apply to the device or to these inputs
    UNFINISHED = "unfinished"  # still being measured


class Sample(NamedTuple):
    """One timed computation."""

    round: int
    ms: float
    mhz: float | None = None  # the device's clock right after it


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """The maximum rates of a device."""

    dram_gbs: float
    l2_bytes: int
    l2_gbs: float
    flops: float  # float32, a second, on the ordinary units
    tensor_flops: float


@dataclass(frozen=True)
class Bound:
    """A time that no true measurement can be below."""

    ms: float
    reason: str


@dataclass
class Row:
    """The measurement of one candidate."""

    name: str
    _: KW_ONLY
    kind: str = "variant"
    device: str = "cuda"
    emulated: bool = False  # a kernel on the CPU device
    cache: str = COLD
    clock: str = "device"  # the clock that timed it: the device's or the host's
    status: Status = Status.UNFINISHED
    reason: str = ""
    exit_code: int = 0  # for this reason
    samples: list[Sample] = field(default_factory=list)
    discarded: list[int] = field(default_factory=list)  # indices of throttled samples
    bound: Bound | None = None
    summary: str = ""
    order: float = 0
    ladder: str = ""
    defines: dict[str, int | str] = field(default_factory=dict)
    course: str = ""  # the course's printed time
    precision: str = ""  # narrower than the lab's own: a lossy variant
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def comparable(self) -> bool:
        """Whether its time may be compared: a lossy variant computes less than the others."""
        return self.kind == "variant" and not self.precision

    def valid_samples(self) -> dict[int, float]:
        """The milliseconds of the samples that were not discarded, by round."""
        discarded = set(self.discarded)
        return {s.round: s.ms for i, s in enumerate(self.samples) if i not in discarded}

    def refuse(self, status: Status, reason: str, exit_code: int = 0) -> None:
        """Exclude the row from the comparison."""
        self.status, self.reason, self.exit_code = status, reason, exit_code


@dataclass(frozen=True)
class Plan:
    """How long to measure, and the facts on which the advice in warnings depends."""

    time_limit_s: float = 10.0  # for sampling all rows of a table together
    limit_chosen: bool = False  # whether the user chose it
    busy: tuple[str, ...] = ()  # other processes on the GPU


def refuse_for(row: Row, error: CudalabError) -> None:
    """Exclude a row: crashes and compiler errors are failures, other errors are not."""
    failed = isinstance(error, KernelError | KernelCompileError)
    status = Status.FAILED if failed else Status.SKIPPED
    row.refuse(status, error.message, int(error.exit_code) if failed else 0)


def finish(row: Row, best_mhz: float, plan: Plan) -> None:
    """Discard throttled samples, refuse impossible times, and warn about doubtful ones."""
    low = low_clocks(row.samples, best_mhz)
    row.discarded = low if len(row.samples) - len(low) >= MIN_SAMPLES else []
    if row.status is not Status.UNFINISHED or not row.samples:
        return
    middle = stats.median(list(row.valid_samples().values()))
    if middle <= 0:
        row.refuse(Status.INVALID, f"{middle:g} ms: nothing was timed", WRONG)
    elif row.bound and middle < BOUND_SLACK * row.bound.ms - BOUND_SLACK_MS:
        row.refuse(
            Status.INVALID,
            f"{middle:.4g} ms cannot be true: at least {row.bound.ms:.4g} ms for "
            f"{row.bound.reason}",
            WRONG,
        )
    else:
        row.status = Status.OK
        row.warnings = warnings(row, plan, low=bool(low))


def low_clocks(samples: Sequence[Sample], best_mhz: float) -> list[int]:
    """Indices of the samples that were taken at a low clock."""
    min_mhz = THROTTLED * best_mhz
    return [
        i for i, sample in enumerate(samples) if sample.mhz is not None and sample.mhz < min_mhz
    ]


def warnings(row: Row, plan: Plan, *, low: bool = False) -> list[str]:
    """Reasons to doubt the row's time, each with advice."""
    samples = list(row.valid_samples().values())
    result = []
    if low:
        result.append(
            f"the clock was below {100 * THROTTLED:.0f} % of the best in some samples: "
            + (
                "they are discarded"
                if row.discarded
                else "none is discarded, too few would be left"
            )
        )
    outliers = stats.outliers(samples)
    if stats.noise(samples) > UNUSABLE:
        result.append(f"unusable, measure again: {_advice(row, plan)}")
    elif outliers == [0] and samples[0] > stats.median(samples):
        if len(samples) < FEW_SAMPLES:  # it hardly affects the median of more
            result.append(f"the first sample was slow: {_advice(row, plan)}")
    elif len(outliers) > max(1, len(samples) // 20):
        result.append(f"many outliers: {_advice(row, plan)}")
    elif stats.noise(samples) > NOISY:
        result.append(f"noisy: {_advice(row, plan)}")
    return result


def _advice(row: Row, plan: Plan) -> str:
    if plan.busy:
        return f"end the other processes on the GPU ({', '.join(plan.busy)})"
    if row.emulated:
        return "other programs keep the processor busy"
    if not plan.limit_chosen and len(row.samples) < MAX_SAMPLES:
        return "a longer --time-limit takes more samples"
    if row.clock == "host":
        return "the host's clock includes all that the host does: close other programs"
    return "is another program using the GPU, or does its clock change?"


def peaks(info: DeviceInfo) -> Peaks:
    """The peaks of a device, derived from its properties."""
    if info.capability is None:  # a host
        clocks = info.cores * CPU_CLOCK_HZ
        flops = clocks * CPU_FLOPS_PER_CLOCK
        return Peaks(
            dram_gbs=clocks * CPU_BYTES_PER_CLOCK / 1e9,
            l2_bytes=0,
            l2_gbs=0.0,
            flops=flops,
            tensor_flops=flops,
        )
    clocks = info.cores * (info.clock_mhz or 0) * 1e6
    lanes = FP32_LANES.get(info.capability, MAX_FP32_LANES)
    flops = 2 * lanes * clocks
    return Peaks(
        dram_gbs=info.dram_gbs or 0.0,
        l2_bytes=info.l2_bytes or 0,
        l2_gbs=L2_BYTES_PER_CLOCK * clocks / 1e9,
        flops=flops,
        tensor_flops=TENSOR_SPEEDUP * flops,
    )


def bound(work: Work, flops: int, limits: Peaks, *, hot: bool, tensor_cores: bool) -> Bound:
    """The minimum time to read the input, write the answer beyond L2 and do all operations.

    Input that fits into L2, or may be there from the previous run (`hot`), may come from L2.
    """
    cached = min(work.read_bytes, limits.l2_bytes)
    if not hot and work.read_bytes > limits.l2_bytes:
        cached = 0
    memory_bytes = work.read_bytes - cached + max(work.write_bytes - limits.l2_bytes, 0)
    rate = limits.tensor_flops if tensor_cores else limits.flops
    units = "tensor cores" if tensor_cores else "the units for float32"
    parts = [
        (memory_bytes, 1e9 * limits.dram_gbs, "bytes at the memory's peak of", "GB/s", 1e9),
        (work.bytes, 1e9 * limits.l2_gbs, "bytes from L2 at no more than", "GB/s", 1e9),
        (flops, rate, f"operations on {units}, at most", "TFLOP/s", 1e12),
    ]
    return max(
        (
            Bound(1e3 * amount / peak, f"{amount:,} {text} {peak / factor:,.0f} {unit}")
            for amount, peak, text, unit, factor in parts
            if peak > 0  # a driver may not report it
        ),
        key=lambda one: one.ms,
    )
