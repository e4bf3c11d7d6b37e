"""Measure kernels of the CPU device as loops over threads, with fibers, and with PoCL.

python -m tools.studies loops         measure, and write docs/results/loops
python -m tools.generate              writes the tables of docs/performance/cpu.md

CPU time of one OS thread, the median of five runs. Measured are launches of a variant, in which an
item is an element of the input, in matmul an fma; and the small kernels of loops.cu, which PoCL,
the Debian package pocl-opencl-icd, runs from loops.cl. All answers must have the same bytes.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from cudalab import labs, runner
from cudalab.backends.base import Dim
from cudalab.backends.cpu.device import CpuDevice
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source
from cudalab.system.machine import processor_name
from tools import results
from tools.results import table
from tools.studies.opencl import Pocl

# Variants with barriers or warp operations, and sizes.
FOLDER = Path(__file__).parent
VARIANTS = {
    "reduce/sequential": 4_000_000,
    "reduce/warp_shuffle": 4_000_000,
    "reduce/single_pass": 4_000_000,
    "scan/hillis_steele": 1_000_000,
    "scan/blelloch": 1_000_000,
    "histogram/shared_atomic": 4_000_000,
    "bitonic/shared": 100_000,
    "transpose/tiled": 2000,
    "matmul/naive": 512,
    "matmul/tiled": 512,
    "radixsort/digit_4bit": 300_000,
}
RUNS = 5
LENGTH = 40_000 * 256  # of the small kernels' arrays


class Small(NamedTuple):
    """A kernel of loops.cu and loops.cl, and how it is launched."""

    what: str  # it does, and what its time is counted by
    grid: Dim
    block: Dim
    argument: int
    items: int
    goal: float  # ns an item


KERNELS = {
    "add": Small("vector add, a thread", 40_000, 256, LENGTH, LENGTH, 0.6),
    "meet": Small("barrier and shared access, a thread", 256, 256, 100, 100 * 256**2, 0.4),
    "reduce": Small("tree reduction, an item", 2**14, 256, 2**22, 2**22, 5),
    "multiply_tiles": Small("tiled matmul, an fma", (32, 32), (16, 16), 512, 512**3, 0.06),
    "multiply": Small("naive matmul, an fma", (32, 32), (16, 16), 512, 512**3, 0.25),
    "shuffle": Small("warp shuffle, a lane and step", 256, 256, 20, 100 * 256**2, 1),
}


@dataclass(kw_only=True)
class Measured:
    """One variant or kernel, run one way."""

    ns: float
    compile_s: float = 0
    answer: bytes


def items(lab: Lab, n: int) -> int:
    """The number of fused multiply-adds of a product, or of the input's elements."""
    return {"matmul": n**3, "softmax": n * n, "transpose": n * n}.get(lab.name, n)


def time_of(run: Callable[[], None], items: int) -> float:
    """The CPU time of a run for each item, in ns; the median of several."""
    ns = []
    for _ in range(RUNS):
        start = time.process_time_ns()
        run()
        ns.append(time.process_time_ns() - start)
    return median(ns) / items


def measure(lab: Lab, variant: Variant, n: int, *, loops: bool) -> Measured:
    """Compile and run a variant."""
    case = lab.complete({axis: values[0] for axis, values in variant.applies.items()})
    with tempfile.TemporaryFile() as file:
        file.writelines(lab.generate(case, n, lab.distributions[0], 1))
        file.seek(0)
        device = CpuDevice(1, loops=loops)
        before = os.times()
        inputs = lab.read(InputStream(file.fileno()), case)
        step = runner.prepare(lab, variant, device, inputs, case)
        after = os.times()
        step()
        answer = device.to_host(step.out).tobytes()
        ns = time_of(step, items(lab, n))
    compile_s = after.children_user + after.children_system
    compile_s -= before.children_user + before.children_system
    return Measured(ns=ns, compile_s=compile_s, answer=answer)


def of_variant(name: str) -> results.Json:
    """A variant with fibers and as loops."""
    lab, n = labs.get(name.partition("/")[0]), VARIANTS[name]
    variant = registry.find(lab, name.partition("/")[2])
    fibers, loops = (measure(lab, variant, n, loops=each) for each in (False, True))
    _compare(name, fibers, loops)
    return {
        "name": name,
        "n": n,
        "fibers_ns": round(fibers.ns, 3),
        "loops_ns": round(loops.ns, 3),
        "fibers_compile_s": round(fibers.compile_s, 2),
        "loops_compile_s": round(loops.compile_s, 2),
    }


def of_kernel(name: str) -> results.Json:
    """A small kernel with fibers, as loops and, where there is PoCL, with that."""
    small = KERNELS[name]
    draw = np.random.default_rng(1)
    a, b = (draw.random(LENGTH, np.float32) for _ in range(2))

    def on_device(*, loops: bool) -> Measured:
        device = CpuDevice(1, loops=loops)
        kernel = device.compile(source.load(FOLDER / "loops.cu"), {})[name]
        out = device.to_device(np.zeros_like(a))
        arguments = device.to_device(a), device.to_device(b), out, np.int32(small.argument)

        def run() -> None:
            device.launch(kernel, small.grid, small.block, *arguments)

        run()
        return Measured(ns=time_of(run, small.items), answer=device.to_host(out).tobytes())

    def with_pocl() -> Measured | None:
        try:
            device = Pocl()
        except ImportError:
            return None
        arguments = a, b, np.zeros_like(a), np.int32(small.argument)
        path = FOLDER / "loops.cl"
        prepared = device.prepare(path, name, small.grid, small.block, *arguments)
        if prepared is None:
            return None
        run, result = prepared
        run()
        return Measured(ns=time_of(run, small.items), answer=result().tobytes())

    fibers, loops, pocl = on_device(loops=False), on_device(loops=True), with_pocl()
    _compare(name, fibers, loops, *filter(None, [pocl]))
    return {
        "name": name,
        "fibers_ns": round(fibers.ns, 3),
        "loops_ns": round(loops.ns, 3),
        "pocl_ns": pocl and round(pocl.ns, 3),
    }


def _compare(name: str, first: Measured, *others: Measured) -> None:
    if any(each.answer != first.answer for each in others):
        sys.exit(f"{name}: other bytes")


def compared() -> str:
    """The table of the stored measurements of variants."""
    rows = []
    for document in results.read_all("loops"):
        for row in document["variants"]:
            fibers, loops = row["fibers_ns"], row["loops_ns"]
            compiled = f"{row['fibers_compile_s']:.2f} → {row['loops_compile_s']:.2f}"
            name, n, times = f"`{row['name']}`", f"{row['n']:,}", f"{fibers / loops:.1f}"
            rows.append([name, n, f"{fibers:.2f}", f"{loops:.2f}", times, compiled])
    head = ["variant", "n", "fibers, ns an item", "loops, ns an item", "times", "compile, CPU s"]
    return table(head, rows)


def beside_pocl() -> str:
    """The table of the stored measurements of small kernels."""
    text = ""
    for document in results.read_all("loops"):
        with_pocl = bool(document["pocl"])
        head = ["ns", "fibers", "loops", *[f"PoCL {document['pocl']}"] * with_pocl, "goal"]
        rows = []
        for row in document["kernels"]:
            small = KERNELS[row["name"]]
            cells = [small.what, f"{row['fibers_ns']:.2f}", f"{row['loops_ns']:.3f}"]
            if with_pocl:
                cells.append(f"{row['pocl_ns']:.2f}" if row["pocl_ns"] else "-")
            rows.append([*cells, f"≤ {small.goal}"])
        text += table(head, rows)
    return text


def pocl_version() -> str:
    """The version of PoCL; nothing, and a word why, if there is none."""
    try:
        return Pocl().version
    except ImportError as error:
        sys.stderr.write(f"no column of PoCL: {error}\n")
        return ""


def main(*words: str) -> None:
    """Measure all, each in a process of its own, and store what was measured."""
    if words:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache  # everything is compiled anew
        with ProcessPoolExecutor(
            max_workers=1, max_tasks_per_child=1, mp_context=get_context("spawn")
        ) as alone:
            alone.submit(of_kernel, "add").result()  # compiles the runtime, and loops.cu
            document: results.Json = {
                "device": processor_name(),
                "compiler": CpuDevice(1).info().compiler,
                "pocl": alone.submit(pocl_version).result(),
                "runs": RUNS,
                "kernels": list(alone.map(of_kernel, KERNELS)),
                "variants": list(alone.map(of_variant, VARIANTS)),
            }
    results.write(results.FOLDER / "loops" / "cpu.json", document)
