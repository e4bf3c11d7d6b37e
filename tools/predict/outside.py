"""Kernels that nobody here wrote: predicted, beside the times that their author has published.

The folder holds the sources of siboehm/SGEMM_CUDA, which are no part of this repository. Its README
has the rates of an RTX A6000 for matrices of order 4096; the runner's tiles for that GPU are those
of KERNELS.
"""

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cudalab.backends.cpu.check import CheckDevice
from cudalab.backends.trace import LaunchTrace
from cudalab.bench.results import commit
from cudalab.language import source
from cudalab.predict import counts, gpus, ladder
from cudalab.predict.code import compiled
from tools import results
from tools.predict.stored import FOLDER

PATH = FOLDER / "sgemm.json"
GPU = "a6000"
ORDER = 4096
COUNTED = 512  # is the order that is counted, and half of it
ALPHA, BETA = 0.5, 3.0  # of the published times


class Kernel(NamedTuple):
    """A kernel of the collection, as its runner launches it."""

    number: int
    technique: str
    call: str
    tile: tuple[int, int]  # of C, by blockIdx.x and blockIdx.y
    block: tuple[int, ...]


KERNELS = (
    Kernel(1, "a thread for each element", "sgemm_naive", (32, 32), (32, 32)),
    Kernel(2, "coalesced", "sgemm_global_mem_coalesce<32>", (32, 32), (1024,)),
    Kernel(3, "tiles in shared memory", "sgemm_shared_mem_block<32>", (32, 32), (1024,)),
    Kernel(4, "8 elements in a thread", "sgemm1DBlocktiling<64, 64, 8, 8>", (64, 64), (512,)),
    Kernel(5, "8 x 8", "sgemm2DBlocktiling<128, 128, 8, 8, 8>", (128, 128), (256,)),
    Kernel(6, "vectors", "sgemmVectorize<128, 128, 8, 8, 8>", (128, 128), (256,)),
    Kernel(7, "another layout", "sgemmResolveBankConflicts<128, 128, 8, 8, 8>", (128, 128), (256,)),
    Kernel(8, "padding", "sgemmResolveBankExtraCol<128, 128, 8, 8, 8>", (128, 128), (256,)),
    Kernel(9, "tuned tiles", "sgemmAutotuned<128, 128, 16, 8, 8>", (128, 128), (256,)),
    Kernel(10, "tiles of warps", "sgemmWarptiling<128, 128, 16, 64, 64, 4, 8, 4, 128>", (128, 128),
           (128,)),
    Kernel(11, "two buffers", "sgemmDoubleBuffering<128, 256, 16, 128, 32, 1, 8, 8, 256>",
           (256, 128), (256,)),
)  # fmt: skip

_BOUNDS = r"__launch_bounds__\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_KERNEL = re.compile(rf"__global__\s+void\s*({_BOUNDS})?")


def as_file(kernel: Kernel, text: str) -> str:
    """A kernel file with `text` in it, whose kernel `multiply` is that one."""
    own = _KERNEL.search(text)
    bounds = f"__launch_bounds__({np.prod(kernel.block)}) " if own and own[1] else ""
    body = re.sub(r"#include <.*>", "", _KERNEL.sub("__device__ __forceinline__ void ", text))
    shared = "" if "WARPSIZE =" in body else "constexpr int WARPSIZE = 32;"  # by all headers
    return (
        f"#include <cassert>\n{shared}\n{body}\n"
        f'extern "C" __global__ void {bounds}multiply(int m, int n, int k, float* A, float* B, '
        f"float* C) {{\n    {kernel.call}(m, n, k, {ALPHA}f, A, B, {BETA}f, C);\n}}\n"
    )


def traced(kernel: Kernel, loaded: source.Source, order: int) -> LaunchTrace:
    """One launch on the CPU device, with a sample of its blocks traced."""
    with CheckDevice(detect=False, count=True, blocks=counts.SAMPLE) as device:
        matrix = np.ones((order, order), np.float32)
        buffers = [device.to_device(matrix) for _ in "abc"]
        sizes = [np.int32(order)] * 3
        grid = tuple(-(-order // edge) for edge in kernel.tile)
        multiply = device.compile(loaded, {})["multiply"]
        device.launch(multiply, grid, kernel.block, *sizes, *buffers)
        device.synchronize()
        return device.traces[0]


def at_full_size(kernel: Kernel, trace: LaunchTrace) -> LaunchTrace:
    """The launch of the published times."""
    x, y = (-(-ORDER // edge) for edge in kernel.tile)
    buffers = dict.fromkeys(trace.buffers, 4 * ORDER**2)
    return replace(trace, grid=(x, y, 1), blocks=x * y, blocks_traced=0, buffers=buffers)


def predicted_ms(kernel: Kernel, path: Path) -> float:
    """The time of a kernel in the file."""
    loaded = source.load(path, path.name)
    small, large = (traced(kernel, loaded, order) for order in (COUNTED // 2, COUNTED))
    launches = [at_full_size(kernel, large)]
    first, last = counts.counted([small]), counts.counted([large])
    grown = counts.grown(first, last, 2, ORDER / COUNTED, launches)
    gpu = gpus.load(GPU)
    about = {"variant": kernel.call, "order": kernel.number, "summary": ""}
    codes = compiled(loaded, {}, gpu.architecture)
    return ladder.rung(grown, codes, gpu, about).ms or 0.0


def published(readme: str) -> dict[int, float]:
    """GFLOP/s by the kernel's number, from the README's table."""
    return {
        int(number): float(rate)
        for number, rate in re.findall(r"\| (\d+): [^|]*\| *`([\d.]+)`", readme)
    }


def predict(folder: Path) -> None:
    """Predict all kernels of the folder, and store the rates beside the published ones."""
    rates = published((folder / "README.md").read_text(encoding="utf-8"))
    rows = []
    for kernel in KERNELS:
        (header,) = (folder / "src" / "kernels").glob(f"{kernel.number}_*.cuh")
        with tempfile.TemporaryDirectory() as name:
            path = Path(name, f"{kernel.number}.cu")
            path.write_text(as_file(kernel, header.read_text(encoding="utf-8")), encoding="utf-8")
            ms = predicted_ms(kernel, path)
        rate = 2e-6 * ORDER**3 / ms
        rows.append(
            {
                "kernel": kernel.number,
                "technique": kernel.technique,
                "published_gflops": rates[kernel.number],
                "predicted_gflops": round(rate, 1),
            }
        )
        print(rows[-1])
    head = {"gpu": GPU, "order": ORDER, "date": results.today(), "commit": commit()}
    results.write_rows(PATH, head, rows)
