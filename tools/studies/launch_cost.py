"""Measure what a launch takes on the CPU device, and the change of memory's rights in it.

python -m tools.studies launch_cost    stores docs/results/launch-cost/cpu.json
python -m tools.generate               writes the table of docs/performance/cpu.md

CPU time of one OS thread; a size's figures are those of the least of several runs.
"""

import subprocess
from pathlib import Path

from cudalab.program.build import executable
from tools import results
from tools.results import table

STORED = results.FOLDER / "launch-cost" / "cpu.json"
SIZES_MB = (1, 2, 16, 64)
RUNS = 5


def main() -> None:
    """Run the program with each size, and store what it takes."""
    binary = executable([str(Path(__file__).with_name("launch_cost.cu"))], "cpu")
    rows = []
    for size in SIZES_MB:
        runs = [
            [float(each) for each in subprocess.check_output([binary, str(size)]).split()]
            for _ in range(RUNS)
        ]
        launch, in_loop, rights = map(min, zip(*runs, strict=True))
        rows.append({"mb": size, "launch_us": launch, "in_loop_us": in_loop, "rights_us": rights})
        print(rows[-1], flush=True)
    results.write_timed(STORED, rows)


def measured() -> str:
    """The table for docs/performance/cpu.md."""
    stored = results.read(STORED)
    rows = [
        [str(row["mb"]), *(f"{row[key]:.1f}" for key in ("launch_us", "in_loop_us", "rights_us"))]
        for row in stored["rows"]
    ]
    columns = ["device memory, MB", "a launch, µs", "in such a loop, µs", "rights alone, µs"]
    return results.timed_on(stored) + table(columns, rows, numbers=4)
