"""Measure what the volatile tail of a reduction takes on the CPU device, beside other tails.

python -m tools.studies volatile_tail    stores docs/results/volatile-tail/cpu.json
python -m tools.generate                 writes the table of docs/performance/cpu.md

CPU time of all threads for the reduction of 4 million numbers; the least of several runs.
"""

import subprocess
from pathlib import Path

from cudalab.program.build import executable
from tools import results
from tools.results import table

STORED = results.FOLDER / "volatile-tail" / "cpu.json"
TAILS = (
    "`__syncwarp()`",
    "shuffles",
    "volatile shared memory, in a function",
    "volatile shared memory, in a template",
    "the same, launched through a pointer",
)
RUNS = 5


def main() -> None:
    """Run the program, and store what each of its kernels takes."""
    binary = executable([str(Path(__file__).with_name("volatile_tail.cu"))], "cpu")
    runs = [
        [float(each) for each in subprocess.check_output([binary]).split()] for _ in range(RUNS)
    ]
    least = map(min, zip(*runs, strict=True))
    rows = [{"tail": tail, "ms": ms} for tail, ms in zip(TAILS, least, strict=True)]
    print(*rows, sep="\n")
    results.write_timed(STORED, rows)


def measured() -> str:
    """The table for docs/performance/cpu.md."""
    stored = results.read(STORED)
    first = stored["rows"][0]["ms"]
    rows = [[row["tail"], f"{row['ms']:.2f}", f"{row['ms'] / first:.2f}"] for row in stored["rows"]]
    return results.timed_on(stored) + table(
        ["the last 64 numbers by", "CPU time, ms", "times"], rows, numbers=2
    )
