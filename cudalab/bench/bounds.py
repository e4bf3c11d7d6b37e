"""How much work a lab is: for rates, for bounds below which no time can be true, and sizes.

One place for what bench must know of each lab: elements, bytes and operations of the algorithmic
minimum, how many operations each variant's own algorithm needs at least, the sizes that are
measured when none is named, and the times that the course's own hand-outs print.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cudalab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cudalab.backends.base import DeviceInfo
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, HostInputs, Size

Params = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """What any program that solves the lab must do at least."""

    items: int  # what elements/s counts
    read_bytes: int  # of the input
    write_bytes: int  # of the answer
    flops: int = 0  # floating-point operations, where they and not the bytes are the limit

    @property
    def bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.write_bytes


def of(lab: str, inputs: HostInputs, case: Case, answer_bytes: int) -> Work:
    """The work of one computation. Every input byte is read, every byte of the answer written."""
    read = sum(data.nbytes for data in inputs.arrays.values())
    items = _ITEMS.get(lab, _n)(inputs.params, case)
    flops = _FLOPS[lab](inputs.params, case) if lab in _FLOPS else 0
    return Work(items, read, answer_bytes, flops)


def _n(params: Params, case: Case) -> int:
    del case
    return int(params["n"])


def _reduced(params: Params, case: Case) -> int:
    n = int(params["n"]) if "n" in params else int(params["rows"]) * int(params["cols"])
    return n * (2 if case.get("op") == "dot" else 1)


_ITEMS: Mapping[str, Callable[[Params, Case], int]] = {
    "matmul": lambda params, _: int(params["m"]) * int(params["n"]),
    "reduce": _reduced,
    "transpose": lambda params, _: int(params["rows"]) * int(params["cols"]),
}


def _product(params: Params, case: Case) -> int:
    """A multiplication and an addition for each step along k of each element of C."""
    del case
    return 2 * int(params["m"]) * int(params["n"]) * int(params["k"])


def _factors(params: Params, case: Case) -> int:
    """LU factors, 2/3 n^3, and the substitutions, 2 n^2."""
    del case
    n = int(params["n"])
    return 2 * n**3 // 3 + 2 * n * n


_FLOPS: Mapping[str, Callable[[Params, Case], int]] = {"matmul": _product, "solve": _factors}


# Bounds ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """What a device can do at the very most."""

    dram_gbs: float
    l2_bytes: int
    l2_gbs: float
    flops: float  # float32, a second, on the ordinary units
    tensor_flops: float


@dataclass(frozen=True)
class Bound:
    """No time below this one can be true."""

    ms: float
    reason: str


# Lanes for float32 of a multiprocessor, by compute capability; the most there are, where unknown.
FP32_LANES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
MOST_FP32_LANES = 128
# A multiprocessor takes 64 bytes a clock from L2 up to compute capability 9.0; twice that covers
# what is not documented.
L2_BYTES_PER_CLOCK = 128
# Dense half-precision tensor cores are 8 to 16 times as fast as the ordinary units; sparsity
# doubles that. A product at float32 accuracy needs at least one of their operations.
TENSOR_SPEEDUP = 32
# Of a core of any CPU of today: two loads of 64 bytes a clock, two fused operations on 16 lanes.
CPU_CLOCK_HZ = 6e9
CPU_BYTES_PER_CLOCK = 128
CPU_FLOPS_PER_CLOCK = 64


def peaks(info: DeviceInfo) -> Peaks:
    """The peaks of a device from its own numbers."""
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
    lanes = FP32_LANES.get(info.capability, MOST_FP32_LANES)
    flops = 2 * lanes * clocks
    return Peaks(
        dram_gbs=info.dram_gbs or 0.0,
        l2_bytes=info.l2_bytes or 0,
        l2_gbs=L2_BYTES_PER_CLOCK * clocks / 1e9,
        flops=flops,
        tensor_flops=TENSOR_SPEEDUP * flops,
    )


def bound(work: Work, flops: int, limits: Peaks, *, hot: bool, tensor_cores: bool) -> Bound:
    """The least time: input from memory, answer to memory beyond L2, operations on their units.

    Input that fits L2, or that may still be there from the run before (`hot`), may come from L2.
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
            if peak > 0  # a driver may not tell
        ),
        key=lambda one: one.ms,
    )


def own_flops(variant: Variant, inputs: HostInputs) -> int:
    """Operations that the variant's algorithm cannot do without; 0 where bytes say more."""
    params = inputs.params
    if variant.lab == "matmul":
        # The product of a matrix and its transpose is symmetric: half of it would be enough.
        halves = 1 if "b" not in inputs.arrays else 2
        return _product(params, {}) * halves // 2
    if variant.lab == "solve":
        n = int(params["n"])
        direct = {"lu": 2 * n**3 // 3, "gauss_jordan": n**3}
        return direct.get(variant.dispatch, 2 * n * n)  # an iteration multiplies by A once
    return 0


# Sizes -------------------------------------------------------------------------------------------

# Large enough on a GPU that neither launches nor L2 decide; small enough on the CPU device, whose
# slowest variants are a thousand times slower, that a table takes seconds.
SIZES: Mapping[str, Mapping[str, Size]] = {
    "bitonic": {"cuda": 1 << 22, "cpu": 1 << 14},
    "histogram": {"cuda": 1 << 27, "cpu": 1 << 20},
    "matmul": {"cuda": 2048, "cpu": 256},
    "radixsort": {"cuda": 1 << 24, "cpu": 1 << 16},
    "reduce": {"cuda": 1 << 26, "cpu": 1 << 20},
    "scan": {"cuda": 1 << 25, "cpu": 1 << 18},
    "solve": {"cuda": 1024, "cpu": 128},
    "table": {"cuda": 1 << 24, "cpu": 1 << 20},
    "transpose": {"cuda": 8192, "cpu": 1024},
}
ANY_SIZE: Mapping[str, Size] = {"cuda": 1 << 24, "cpu": 1 << 16}


# A reduction of rows or columns reads a matrix: the size is its order.
MATRIX_SIZES: Mapping[str, Size] = {"cuda": 8192, "cpu": 1024}


def default_size(lab: str, case: Case, device: str) -> Size:
    """What is measured when no size is named."""
    if lab == "reduce" and case.get("along", "all") != "all":
        return MATRIX_SIZES[device]
    size = SIZES.get(lab, ANY_SIZE)[device]
    if lab == "matmul" and case.get("shape"):
        raise UsageError(
            "with --shape a size has several dimensions",
            hint="--n MxKxN, with --aat --n MxK",
        )
    return size


# The course --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CourseTime:
    """A time that the course's material prints, on the GPU of its day."""

    ms: tuple[float, ...]  # the hand-out's; then the lecture's, where it prints another
    size: str  # what it was measured on, where it says so

    def __str__(self) -> str:
        """As they are printed."""
        return " / ".join(f"{ms:g}" for ms in self.ms)


COURSE_MS: Mapping[tuple[str, str], CourseTime] = {
    ("matmul", "naive"): CourseTime((2484.06, 2578), "1024 x 1024"),
    ("matmul", "tiled"): CourseTime((133.47, 132), "1024 x 1024"),
    ("matmul", "aat_conflict"): CourseTime((551.73,), ""),
    ("matmul", "aat_padded"): CourseTime((120.59,), ""),
    ("reduce", "interleaved_modulo"): CourseTime((19.09,), ""),
    ("reduce", "interleaved_strided"): CourseTime((11.91,), ""),
    ("reduce", "sequential"): CourseTime((10.62,), ""),
    ("reduce", "first_add_on_load"): CourseTime((9.10,), ""),
    ("reduce", "unrolled_last_warp"): CourseTime((8.67,), ""),
}


def course_time(lab: str, variant: str, case: Case) -> CourseTime | None:
    """The printed time of the same computation, if there is one."""
    if lab == "reduce" and (case.get("op"), case.get("dtype")) != ("sum", "int32"):
        return None
    if lab == "matmul" and not variant.startswith("aat") and case.get("product") != "ab":
        return None
    return COURSE_MS.get((lab, variant))
