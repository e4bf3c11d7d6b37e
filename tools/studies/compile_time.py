"""Measure what whole programs take to compile for the CPU device, with an empty cache.

python -m tools.studies compile_time    stores docs/results/compile-time/cpu.json
python -m tools.generate                writes the table of docs/performance/cpu.md

CPU time of this process and of the compiler; the runtime, which is compiled once, is there before.
The programs of samples/programs are typical; those of tests/programs each use much of one library.
"""

import resource
import tempfile
import time
from pathlib import Path
from statistics import median

from cudalab.program.build import executable
from tools import results
from tools.results import table
from tools.studies.program_loops import own

STORED = results.FOLDER / "compile-time" / "cpu.json"


def main() -> None:
    """Compile each program, and store the figures."""
    with tempfile.TemporaryDirectory() as inputs:
        programs = [*own(Path(inputs))]
        executable(programs[0].files, "cpu")  # the runtime, if it is not there
        rows = []
        for program in programs:
            options = [f"-DCUDALAB_MEASURED={Path(inputs).name}"]  # no cached program has it
            before = _cpu_s()
            executable(program.files, "cpu", [*program.options, *options])
            folder = "/".join(Path(program.files[0]).relative_to(results.ROOT).parts[:2])
            taken = round(_cpu_s() - before, 2)
            rows.append({"folder": folder, "program": program.name, "cpu_s": taken})
            print(rows[-1], flush=True)
    results.write_timed(STORED, rows)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def measured() -> str:
    """The table for docs/performance/cpu.md."""
    stored = results.read(STORED)
    lines = []
    for folder in sorted({row["folder"] for row in stored["rows"]}):
        rows = [row for row in stored["rows"] if row["folder"] == folder]
        times = sorted((row["cpu_s"], f"`{row['program']}`") for row in rows)
        (least, quick), (most, slow) = times[0], times[-1]
        middle = median(time for time, _ in times)
        numbers = [f"{middle:.2f}", f"{least:.2f} {quick}", f"{most:.2f} {slow}"]
        lines.append([f"{folder}, {len(times)} programs", *numbers])
    return results.timed_on(stored, "; CPU s") + table(
        ["", "median", "least", "most"], lines, numbers=3
    )
