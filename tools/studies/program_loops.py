"""Measure whole programs with loops over threads and with fibers, and compare what they print.

python -m tools.studies program_loops          the programs of samples/programs and tests/programs
python -m tools.studies program_loops FOLDER   and NVIDIA's samples that `cudalab run` passes, in a
                                               copy of NVIDIA/cuda-samples
python -m tools.generate                       writes the table of docs/performance/cpu.md

CPU time on one OS thread, stopped after LIMIT_S seconds. That of the kernels is the process's, less
what it takes without its kernels.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import BinaryIO

from cudalab.backends import host_device
from cudalab.checker.submit.program import JudgedRun
from cudalab.errors import CudalabError
from cudalab.program import ways
from cudalab.program.build import executable
from tools import programs, results
from tools.results import table

LIMIT_S = 60
TIMES = 3  # at most, for a program whose seed is the second in which it starts
MEASURABLE_S = 0.05  # of kernels, and half of the host's: less is lost in the rest of the program
TABLES_OF_TIMES = frozenset({"cudaGraphsPerfScaling"})  # are all that these print
STORED = results.FOLDER / "program-loops" / "cpu.json"
_SOURCES = re.compile(r"add_executable\(\s*\S+\s+([^)]*)\)")
_MEETING = re.compile(r"\b__(?:sync|shfl|ballot|any_sync|all_sync|reduce)|\bsync\(|\.shfl")
_OF_TIME = re.compile(
    rb"time|\b[mu]?s\b|sec\b|seconds|flop|bandwidth|throughput|clocks|elapsed|speed", re.IGNORECASE
)


@dataclass(kw_only=True)
class Program:
    """A program, where it runs, and its input."""

    name: str
    origin: str
    files: list[str]
    folder: Path = results.ROOT
    options: tuple[str, ...] = ()
    stdin: Path | None = None


@dataclass(kw_only=True)
class Row:
    """One program both ways."""

    program: str
    origin: str
    kernels: int
    loops: int
    alone: int  # kernels whose threads run one after another, without fibers
    meets: bool  # its own text has barriers or warp operations
    same: bool
    host_s: float  # without kernels
    fibers_s: float
    loops_s: float
    stopped: bool  # with fibers


def own(folder: Path) -> Iterator[Program]:
    """The programs of this repository, with their largest inputs, which are put into `folder`."""
    last = {name: (files, stdin) for name, files, _, stdin in programs.runs(folder)}
    for name, (files, stdin) in last.items():
        yield Program(name=name, origin="cudalab", files=[*map(str, files)], stdin=stdin)


def samples(folder: Path) -> Iterator[Program]:
    """NVIDIA's samples that pass."""
    for document in results.read_all("samples"):
        for each in document["programs"]:
            at = folder / "Samples" / each["folder"] / each["program"]
            if each["verdict"] != "passed" or not at.is_dir():
                continue
            described = (at / "CMakeLists.txt").read_text()
            named = " ".join(_SOURCES.findall(described)).split()
            files = [name for name in named if name.endswith((".cu", ".cpp", ".c"))]
            options = [f"-I{folder / 'Common'}"]
            options += ["-Xcompiler=-fopenmp"] if "OpenMP" in described else []
            origin = document["source"]
            yield Program(
                name=each["program"],
                origin=origin,
                files=[str(at / name) for name in files if (at / name).exists()],
                folder=at,
                options=tuple(options),
            )


def built(program: Program) -> Path | None:
    """The program's executable; None if it does not compile."""
    try:
        return executable(program.files, host_device(), program.options)
    except CudalabError as error:
        print(f"{program.name}: {error}", file=sys.stderr)
        return None


def _input(program: Program) -> BinaryIO:
    return (program.stdin or Path(os.devnull)).open("rb")


def run(binary: Path, program: Program, **ways: str) -> tuple[object, float]:
    """What a run prints, without times, with its exit status; and its CPU time."""
    environment = {**os.environ, **ways, "CUDALAB_THREADS": "1"}
    limited = ["sh", "-c", f'ulimit -t {LIMIT_S}; exec "$0"', str(binary)]
    with tempfile.TemporaryFile() as printed, _input(program) as stdin:
        started = subprocess.Popen(
            limited,
            stdin=stdin,
            stdout=printed,
            stderr=subprocess.DEVNULL,
            cwd=program.folder,
            env=environment,
        )
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        lines = [
            re.sub(rb"[-+0-9.e\s]+", b"#", line)
            if _OF_TIME.search(line) or program.name in TABLES_OF_TIMES
            else line
            for line in printed.read().splitlines()
        ]
    return (started.returncode, lines), used.ru_utime


def measured(program: Program) -> Row | None:
    """A program both ways; None if it does not compile. One without loops has only one way."""
    binary = built(program)
    if binary is None:
        return None
    reasons = ways.stored(binary)
    in_loops = sum(not reason for reason in reasons.reasons.values())
    host_s = fibers_s = loops_s = 0.0
    stopped, same = False, True
    if in_loops:
        _, host_s = run(binary, program, **JudgedRun.WITHOUT_KERNELS.environment())
        for _ in range(TIMES):
            (fibers, fibers_s), (as_loops, loops_s) = (
                run(binary, program, CUDALAB_LOOPS=ways) for ways in "01"
            )
            stopped = fibers_s >= LIMIT_S - 0.5  # in loops it may end
            same = stopped or fibers == as_loops
            if same:
                break
    row = Row(
        program=program.name,
        origin=program.origin,
        kernels=len(reasons.reasons),
        loops=in_loops,
        alone=sum("one thread after another" in line for line in reasons.lines()),
        meets=_meets(program),
        same=same,
        host_s=round(host_s, 3),
        fibers_s=round(fibers_s, 3),
        loops_s=round(loops_s, 3),
        stopped=stopped,
    )
    print(row, flush=True)
    return row


def _meets(program: Program) -> bool:
    """Whether a source of a program, or a header beside one, has barriers or warp operations."""
    sources = {path.resolve() for name in program.files for path in Path(name).parent.iterdir()}
    if program.origin == "cudalab":  # whose folders have other programs, too
        sources = {Path(name).resolve() for name in program.files}
    kinds = {".cu", ".cuh", ".h", ".hpp", ".cpp"}
    return any(
        _MEETING.search(path.read_text(encoding="utf-8", errors="replace"))
        for path in sources
        if path.suffix in kinds
    )


def main(*folders: str) -> None:
    """Build all programs, run each both ways, and store the figures."""
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as pool:
        every = [*own(Path(temporary)), *(each for f in folders for each in samples(Path(f)))]
        rows = [asdict(row) for row in pool.map(measured, every) if row]
    head = {**results.machine(host_device()), "limit_s": LIMIT_S}
    results.write_rows(STORED, head, rows, "programs")


def times(row: results.Json) -> float:
    """How many times as fast the kernels of a program are in loops; at least so many if stopped."""
    fibers, as_loops = (row[key] - row["host_s"] for key in ("fibers_s", "loops_s"))
    return float(fibers / max(as_loops, 0.01))


def mean(rows: list[results.Json]) -> str:
    """The geometric mean of that, and of how many programs."""
    if not rows:
        return "-"
    return f"{exp(sum(log(times(row)) for row in rows) / len(rows)):.1f} ({len(rows)})"


def compared() -> str:
    """The tables for docs/performance/cpu.md."""
    stored = results.read(STORED)
    summary, rows = [], []
    for origin in dict.fromkeys(row["origin"] for row in stored["programs"]):
        every = [row for row in stored["programs"] if row["origin"] == origin and row["kernels"]]
        long = [
            row
            for row in every
            if row["fibers_s"] - row["host_s"] >= max(MEASURABLE_S, row["host_s"] / 2)
            and row["loops_s"] < stored["limit_s"] - 0.5
        ]
        keys = ("kernels", "loops", "alone")
        kernels, in_loops, alone = (sum(row[key] for row in every) for key in keys)
        summary.append(
            [
                origin,
                str(len(every)),
                str(sum(row["loops"] > 0 for row in every)),
                str(sum(row["same"] for row in every)),
                str(kernels),
                f"{in_loops} ({in_loops / kernels:.0%})",
                f"{alone} ({alone / kernels:.0%})",
                mean(long),
                mean([row for row in long if row["meets"]]),
            ]
        )
        rows += [
            [
                f"`{row['program']}`",
                f"{row['loops']} of {row['kernels']}",
                f"{row['host_s']:.2f}",
                f"{'≥ ' if row['stopped'] else ''}{row['fibers_s'] - row['host_s']:.2f}",
                f"{row['loops_s'] - row['host_s']:.2f}",
                f"{'≥ ' if row['stopped'] else ''}{times(row):.1f}",
            ]
            for row in long
        ]
    head = ["programs of", "with kernels", "with loops", "print the same", "kernels", "loops"]
    head += ["one thread after another", "times as fast (programs)", "of them with barriers"]
    columns = ["program", "in loops", "host, CPU s", "kernels, fibers", "kernels, loops", "times"]
    return f"{table(head, summary)}\n{table(columns, rows)}"
