"""Measure kernels of the CPU device as loops over threads and with fibers.

python -m tools.loops         measure, and write docs/results/loops
python -m tools.generate      writes the table of docs/performance/cpu.md

CPU time of one OS thread, the median of five runs of all launches of a variant; an item is an
element of the input, in matmul an fma. The answers of both ways must have the same bytes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from cudalab import labs, runner
from cudalab.backends.cpu.device import CpuDevice
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.system.machine import processor_name
from tools import results
from tools.results import table

if TYPE_CHECKING:
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant

# Variants with barriers or warp operations, and sizes.
MEASURED = {
    "reduce/sequential": 4_000_000,
    "reduce/warp_shuffle": 4_000_000,
    "reduce/single_pass": 4_000_000,
    "scan/hillis_steele": 1_000_000,
    "scan/blelloch": 1_000_000,
    "histogram/shared_atomic": 4_000_000,
    "bitonic/shared": 100_000,
    "transpose/tiled": 2000,
    "matmul/tiled": 512,
    "radixsort/digit_4bit": 300_000,
}
RUNS = 5


@dataclass(kw_only=True)
class Measured:
    """One variant, run one way."""

    ns: float
    compile_s: float
    answer: bytes


def items(lab: Lab, n: int) -> int:
    """The number of fused multiply-adds of a product, or of the input's elements."""
    return {"matmul": n**3, "transpose": n * n}.get(lab.name, n)


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
        ns = []
        for _ in range(RUNS):
            start = time.process_time_ns()
            step()
            ns.append(time.process_time_ns() - start)
    compile_s = after.children_user + after.children_system
    compile_s -= before.children_user + before.children_system
    return Measured(ns=median(ns) / items(lab, n), compile_s=compile_s, answer=answer)


def compared() -> str:
    """The table of the stored measurements."""
    rows = []
    for document in results.read_all("loops"):
        for row in document["variants"]:
            fibers, loops = row["fibers_ns"], row["loops_ns"]
            compiled = f"{row['fibers_compile_s']:.2f} → {row['loops_compile_s']:.2f}"
            name, n, times = f"`{row['name']}`", f"{row['n']:,}", f"{fibers / loops:.1f}"
            rows.append([name, n, f"{fibers:.2f}", f"{loops:.2f}", times, compiled])
    head = ["variant", "n", "fibers, ns an item", "loops, ns an item", "times", "compile, CPU s"]
    return table(head, rows)


def main() -> int:
    """Measure all and store what was measured."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache  # everything is compiled anew
        lab, variant = labs.get("transpose"), registry.find(labs.get("transpose"), "naive")
        measure(lab, variant, 10, loops=False)  # compiles the runtime
        variants = []
        for name, n in MEASURED.items():
            lab = labs.get(name.partition("/")[0])
            variant = registry.find(lab, name.partition("/")[2])
            fibers, loops = (measure(lab, variant, n, loops=each) for each in (False, True))
            if fibers.answer != loops.answer:
                sys.stderr.write(f"{name}: other bytes\n")
                return 1
            variants.append(
                {
                    "name": name,
                    "n": n,
                    "fibers_ns": round(fibers.ns, 3),
                    "loops_ns": round(loops.ns, 3),
                    "fibers_compile_s": round(fibers.compile_s, 2),
                    "loops_compile_s": round(loops.compile_s, 2),
                }
            )
    document: results.Json = {
        "device": processor_name(),
        "compiler": CpuDevice(1).info().compiler,
        "runs": RUNS,
        "variants": variants,
    }
    results.write(results.FOLDER / "loops" / "cpu.json", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
