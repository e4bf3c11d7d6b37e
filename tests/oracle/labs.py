"""The kernels of a file as those of a lab: `python -m tests.oracle.labs loops|fibers SEED...`.

A lab's kernels may decide by what they read from memory, which those of programs may not, so more
of them become loops over threads. It prints a line for each seed, as a program does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np

from cudalab.backends.cpu.device import CpuDevice
from cudalab.language.source import Source, find_kernels
from tests.oracle.grammar import Kernel

PLACES, TOTAL = 1024, 480
LANES_BELOW = """__device__ unsigned lanes_below(int, int n, int t) {
    return t / 32 < n / 32 ? ~0u : ~0u >> (32 - n % 32);
}
"""


def data_of(seed: int) -> np.ndarray:
    """What `fill` of texts/main.h puts into the 256 ints of `data`."""
    state, data = (seed * 2654435761 + 1) % 2**32, []
    for i in range(256):
        state = (state * 1664525 + 1013904223) % 2**32
        data.append(state >> 24 if i % 3 else state)
    return np.array(data, np.uint32).view(np.int32)


def hash_of(out: np.ndarray) -> int:
    """What `print` of texts/main.h makes of the results."""
    hashed = 14695981039346656037
    for word in out.view(np.uint32).tolist():
        hashed = (hashed ^ word) * 1099511628211 % 2**64
    return hashed


def text_of(kernel: Kernel) -> str:
    """The text of a kernel, which is the only one of its seed."""
    (text,) = kernel.texts
    head = (
        f'extern "C" __global__ void k{kernel.seed}(const int* data, int* out,'
        f" int {kernel.parameter}) {{ int* total = out + {TOTAL};"
    )
    return "\n".join([*kernel.functions, head + text[text.index("{") + 1 :]])


def main(way: str, *seeds: str) -> None:
    """Print the lines of these seeds."""
    kernels = [Kernel(int(seed), "cuda") for seed in seeds]
    text = "".join([LANES_BELOW, *map(text_of, kernels)])
    source = Source(Path("k.cu"), "k.cu", f'#line 1 "k.cu"\n{text}', kernels=find_kernels(text))
    with CpuDevice(1, loops=way == "loops") as device:
        module = device.compile(source, {})
        for each in kernels:
            data = device.to_device(data_of(each.seed))
            out = device.to_device(np.zeros(PLACES, np.int32))
            for grid, block, parameter in each.launched_with:
                device.launch(module[f"k{each.seed}"], grid, block, data, out, np.int32(parameter))
            click.echo(f"{each.seed} {hash_of(device.to_host(out)):016x} 0")


if __name__ == "__main__":
    main(*sys.argv[1:])
