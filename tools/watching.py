"""Measure how much processor time a watcher needs from a save to its verdict.

python -m tools.watching [LAB...]       the labs' CPU defaults and first rungs; all labs by default

Each version differs from the one before, so it is compiled; n is up to 4,096. The time is that of
all processes: the watcher's, its worker's, the compiler's. The first version, which also starts
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cudalab import labs
from cudalab.labs import registry
from cudalab.watch import judging
from cudalab.watch.resident import Desk

VERSIONS = 5
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, and print a table."""
    print("| lab | kernel | tests | CPU s, median of 5 | least |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name in sys.argv[1:] or labs.names():
        lab = labs.get(name)
        case = lab.complete({})
        rungs = [rung for rung in registry.variants(lab) if rung.computes(case)]
        kernels = {rung.name: rung.path for rung in (rungs[0], registry.default(lab, case, "cpu"))}
        for kernel, path in kernels.items():
            times, tests = measured(name, path)
            median, least = statistics.median(times), min(times)
            print(f"| {name} | `{kernel}` | {tests} | {median:.2f} | {least:.2f} |", flush=True)


def measured(name: str, path: Path) -> tuple[list[float], int]:
    """The processor time of each version but the first, and the number of tests."""
    lab, text, times, tests = labs.get(name), path.read_text(encoding="utf-8"), [], 0
    with tempfile.TemporaryDirectory() as folder, Desk() as desk:
        version = Path(folder, "my.cu")
        for number in range(VERSIONS + 1):
            change = f"\n__device__ int version_{time.time_ns()}_{number} = {number};\n"
            version.write_text(text + change, encoding="utf-8")
            before = processor_s()
            one = judging.kernel(lab, version, "my.cu", {}, desk)
            times.append(processor_s() - before)
            if not one.report.passed:
                sys.exit(f"{name} {path.stem}: it does not pass: {one.report.stages}")
            tests = len(one.report.tests)
    return times[1:], tests


def processor_s() -> float:
    """The processor time of this process, its descendants and all of them that have ended."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for name in filter(str.isdecimal, (path.name for path in Path("/proc").iterdir())):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(name))
        used[int(name)] = sum(map(int, fields[11:15])) / TICKS
    total, left = 0.0, [os.getpid()]
    while left:
        one = left.pop()
        total += used.get(one, 0.0)
        left += children.get(one, [])
    return total


if __name__ == "__main__":
    main()
