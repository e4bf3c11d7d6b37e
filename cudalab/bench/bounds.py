"""Lower bounds of times, from the work and the peaks of a device: no time below is true."""

from dataclasses import dataclass

from cudalab.backends.base import DeviceInfo
from cudalab.labs.teaching import Work


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
