"""The roofline: the most that a GPU's memory and its arithmetic allow"""

from collections.abc import Iterator
from typing import NamedTuple

from cudalab.output.page import Heading, Part, commands, drawing, table, text
from cudalab.predict import gpus
from cudalab.predict.gpus import Gpu

DRAWN = "rtx3060"
INTENSITIES = [2.0**power for power in range(-3, 9)]  # flop/byte, from left to right
STEPS_PER_DOUBLING = 4
ROWS = 9


class Kernel(NamedTuple):
    """A computation, its operations and the bytes that it has to move."""

    title: str
    flops: float
    bytes: float

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes


N = 2048
KERNELS = {
    "a": Kernel("x[i] = a * x[i] + y[i]", 2, 12),
    "b": Kernel("sum of n floats; product of matrices without tiles", 2, 8),
    "c": Kernel("product of matrices, tiles of 16 x 16", 2, 8 / 16),
    "d": Kernel("product of matrices, tiles of 128 x 128", 2, 8 / 128),
    "e": Kernel(f"product of {N} x {N} matrices, each read once", 2 * N**3, 3 * 4 * N**2),
}


def roof_gflops(gpu: Gpu, intensity: float) -> float:
    """The lower of both limits."""
    return min(gpu.float_gflops, intensity * gpu.dram_gb_per_s)


def ridge(gpu: Gpu) -> float:
    """The intensity at which both limits are equal."""
    return gpu.float_gflops / gpu.dram_gb_per_s


def picture(gpu: Gpu) -> Iterator[str]:
    """The roof, each row half of the one above, each letter a kernel at its limit."""
    first = INTENSITIES[0]
    columns = [first * 2 ** (i / STEPS_PER_DOUBLING) for i in range(4 * len(INTENSITIES))]
    peak = gpu.float_gflops
    for row in range(ROWS):
        low, high = peak / 2 ** (row + 0.5), peak / 2 ** (row - 0.5)
        line = ["#" if low < roof_gflops(gpu, each) <= high else " " for each in columns]
        for letter, kernel in KERNELS.items():
            if low < roof_gflops(gpu, kernel.intensity) <= high:
                at = min(range(len(columns)), key=lambda i: abs(columns[i] - kernel.intensity))
                line[at] = letter
        yield f"{peak / 2**row:>8,.0f} |{''.join(line)}"
    yield " " * 9 + "+" + "-" * len(columns)
    texts = [f"{each:g}" if each >= 1 else f"1/{1 / each:g}" for each in INTENSITIES]
    yield " " * 10 + "".join(f"{one:<4}" for one in texts) + " flop/byte"


def page() -> Iterator[Part]:
    """The two limits, a drawing, GPUs, and what a roofline leaves out."""
    yield text(
        """
        A kernel can be no faster than its GPU moves its bytes, and no faster than its GPU does its
        arithmetic. Which of the two limits it depends on its intensity: the operations that it does
        for each byte. Below the ridge, memory is the limit, and the cure is to move fewer bytes;
        above it, arithmetic is.
        """
    )
    gpu = gpus.load(DRAWN)
    yield Heading(f"GFLOP/s at most on an {gpu.name}; the axes double")
    yield drawing(picture(gpu))
    yield table(
        ("", "computation", "flop/byte", "at most, GFLOP/s"),
        [
            (letter, one.title, f"{one.intensity:.3g}", f"{roof_gflops(gpu, one.intensity):,.0f}")
            for letter, one in KERNELS.items()
        ],
    )
    yield Heading("The ridge moves from GPU to GPU")
    yield table(
        ("GPU", "GFLOP/s of float", "copy, GB/s", "ridge, flop/byte"),
        [
            (one.name, f"{one.float_gflops:,.0f}", f"{one.dram_gb_per_s:,.0f}", f"{ridge(one):.1f}")
            for one in map(gpus.load, gpus.names())
        ],
    )
    yield text(
        """
        The roof is a limit, not a prediction. Most kernels of a ladder lie below it, since
        something else comes first: sectors that are fetched and not used, bank conflicts, integer
        arithmetic for indices, warps that wait for a load or at a barrier, launches. `cudalab
        predict` adds a term for each of them, and says which one limits a rung.

        Predict first, then measure, then explain the difference: that is how engineers learn which
        of their ideas about a GPU are wrong.
        """
    )
    yield commands(
        "cudalab predict transpose --gpu rtx3060   # each rung's limit",
        "cudalab predict reduce --gpu t4           # where latency is the limit",
        "cudalab profile transpose                 # the lines behind it",
        "cudalab bench transpose --variants all    # where there is a GPU",
    )
