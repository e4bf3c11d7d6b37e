"""Measure how much processor time a watcher needs from a save to its verdict.

python -m tools.studies watching [LAB...]   CPU defaults and first rungs of all labs, or of these

Each version differs from the one before, so it is compiled; n is up to 4,096, for matrices 65. The
time is that of all processes: the watcher's, its worker's, the compiler's. The first version, which
also starts Python, does not count.

Stores docs/results/watching/cpu.json; tools/generate.py makes the table of docs/watch.md from it.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from cudalab import labs
from cudalab.labs import registry
from cudalab.watch import watching
from cudalab.watch.resident import Desk
from tools import results

STORED = results.FOLDER / "watching" / "cpu.json"
VERSIONS = 5
GOAL_S = 1.0
TICKS = os.sysconf("SC_CLK_TCK")


def main(*names: str) -> None:
    """Measure and store, a kernel at a time; other labs keep their rows."""
    rows = {(row["lab"], row["kernel"]): row for row in stored()}
    for name in names or labs.names():
        lab = labs.get(name)
        case = lab.complete({})
        rungs = [rung for rung in registry.variants(lab) if rung.computes(case)]
        kernels = {rung.name: rung.path for rung in (rungs[0], registry.default(lab, case, "cpu"))}
        for kernel, path in kernels.items():
            load = round(os.getloadavg()[0], 1)
            times, tests = measured(name, path)
            row = {"lab": name, "kernel": kernel, "tests": tests, "median": times[len(times) // 2]}
            row |= {"min": times[0], "load": load, **results.machine("cpu")}
            print(*row.values(), flush=True)
            rows[name, kernel] = row
            results.write_rows(STORED, {}, [rows[key] for key in sorted(rows)], "kernels")


def stored() -> list[results.Json]:
    """The rows that are stored."""
    rows: list[results.Json] = results.read(STORED)["kernels"] if STORED.exists() else []
    return rows


def table() -> str:
    """The seconds of each kernel, for docs/watch.md."""
    where = (
        f"Processor seconds from a save to its verdict: of {VERSIONS} versions the median and the "
        "minimum. The load is that of the machine when a row was begun: on more processes than "
        f"processors a second does less. Goal: {GOAL_S:g}.\n"
    )
    heads = ["lab", "kernel", "tests", "median", "min", "load", "machine", "commit"]
    return f"{where}\n{results.table(heads, map(line, stored()))}"


def line(row: results.Json) -> list[str]:
    """A row of the table."""
    names = [f"`{row['lab']}`", f"`{row['kernel']}`", str(row["tests"])]
    seconds = [f"{row['median']:.2f}", f"{row['min']:.2f}", f"{row['load']:g}"]
    return [*names, *seconds, row["device"], f"`{row['commit']}`"]


def measured(name: str, path: Path) -> tuple[list[float], int]:
    """The processor time of each version but the first, the shortest first; the number of tests."""
    lab, text, times, tests = labs.get(name), path.read_text(encoding="utf-8"), [], 0
    with tempfile.TemporaryDirectory() as folder, Desk() as desk:
        version = Path(folder, "my.cu")
        for number in range(VERSIONS + 1):
            change = f"\n__device__ int version_{time.time_ns()}_{number} = {number};\n"
            version.write_text(text + change, encoding="utf-8")
            before = processor_s()
            one = watching.judge_kernel(lab, version, "my.cu", {}, desk)
            times.append(processor_s() - before)
            if not one.report.passed or one.costs is None or one.costs.failed:
                sys.exit(f"{name} {path.stem}: not judged in full: {one.report.stages} {one.costs}")
            tests = len(one.report.tests)
    return sorted(round(seconds, 2) for seconds in times[1:]), tests


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
