"""Compare programs of others with what their repositories compute without a GPU, on as many cores.

python -m tools.world.speed SOURCES [--only WORD]    stores docs/results/world/speed.json
python -m tools.generate                             writes the tables of docs/performance/cpu.md

PolyBench-GPU prints how long its kernels take, how long one thread of the host takes for the same,
and how many elements differ. Rodinia's programs are there in OpenMP, too: both versions are built
with -O3 and run by turns, on the inputs of their `run` files, or on such as are drawn here; their
time is that of the whole program. SOURCES has a folder for each set, as for tools.world.
"""

import argparse
import os
import random
import re
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import median

from cudalab.errors import CudalabError
from cudalab.program.build import executable
from tools import results
from tools.results import Json
from tools.world.programs import programs

TABLE = Path(__file__).with_name("speed.toml")
STORED = results.FOLDER / "world" / "speed.json"
TURNS = 3
LONG_S = 20  # a program that takes longer runs once
LIMIT_S = 240
SMALLER = {  # PolyBench's programs of 2048 x 2048 elements that take minutes
    "CORR": ("-DM=1024", "-DN=1024"),
    "COVAR": ("-DM=1024", "-DN=1024"),
    "GRAMSCHM": ("-DN=1024", "-DNI=1024", "-DNJ=1024"),
}
_TIMES = re.compile(r"(GPU|CPU) Time in seconds:\s*([\d.]+)")
_DIFFERING = re.compile(r"(?:Percent|misses): (\d+)")


def main() -> None:
    """Parse the command line, measure, and store."""
    parser = argparse.ArgumentParser(prog="python -m tools.world.speed")
    parser.add_argument("sources", type=Path)
    parser.add_argument("--only", default="", help="a part of the set and the program's name")
    given = parser.parse_args()
    before: Json = results.read(STORED) if STORED.exists() else {"rows": [], "load": 0}
    rows = {(row["set"], row["program"]): row for row in before["rows"]}
    for row in [*polybench(given.sources, given.only), *rodinia(given.sources, given.only)]:
        rows[row["set"], row["program"]] = row
    load = max(round(os.getloadavg()[0], 1), before["load"] if given.only else 0)
    head = {**results.machine("cpu"), "load": load}
    results.write_rows(STORED, head, [rows[key] for key in sorted(rows)])


def polybench(sources: Path, only: str) -> Iterator[Json]:
    """The programs that time the host, too: each in turns, by what they print."""
    for program in programs():
        name = program.folder.rpartition("/")[2]
        if program.set != "polybench-gpu" or only not in f"{program.set} {name}":
            continue
        row = {"set": program.set, "program": name}
        folder = sources / program.set / program.folder
        options = ["-O3", "-DPOLYBENCH_TIME"]
        options += [each for each in program.options if "DATASET" not in each]
        options += SMALLER.get(name, ())
        try:
            binary = executable([str(folder / each) for each in program.files], "cpu", options)
        except CudalabError as error:
            yield {**row, "problem": _first(error, folder)}
            continue
        row |= _by_turns(partial(_printed, binary, folder))
        yield _shown({**row, "smaller": " ".join(SMALLER.get(name, ()))})


def _printed(binary: Path, folder: Path) -> tuple[float, float, str]:
    """Both times that a program prints, and what is wrong with its answer, as it says."""
    done = subprocess.run(
        [binary], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    times = {name: float(value) for name, value in _TIMES.findall(done.stdout)}
    differing = _DIFFERING.search(done.stdout)
    wrong = "" if differing and differing[1] == "0" else "its own check fails"
    return times["GPU"], times["CPU"], wrong


def rodinia(sources: Path, only: str) -> Iterator[Json]:
    """The programs that are there in OpenMP, too."""
    with tempfile.TemporaryDirectory() as scratch:
        run_in = Path(scratch) / "a" / "b" / "c"  # some read ../../../data
        run_in.mkdir(parents=True)
        chosen = [
            each
            for each in tomllib.loads(TABLE.read_text("utf-8"))["rodinia"]
            if only in f"rodinia {each['name']}"
        ]
        if chosen:
            draw_inputs(run_in, sources / "rodinia")
        for each in chosen:
            yield _shown(
                {"set": "rodinia", "program": each["name"], **_both(each, sources, run_in)}
            )


def _both(program: Json, sources: Path, run_in: Path) -> Json:
    """A program of Rodinia in both versions."""
    name, top = program["name"], sources / "rodinia"
    folder = top / program.get("cuda_folder", f"cuda/{name}")
    options = ["-O3", "-DcudaThreadSynchronize=cudaDeviceSynchronize"]
    options += [each.replace("-I", f"-I{folder}/") for each in program.get("options", [])]
    try:
        ours = executable([str(folder / each) for each in program["cuda"]], "cpu", options)
    except CudalabError as error:
        return {"problem": _first(error, folder)}
    folder = top / program.get("openmp_folder", f"openmp/{name}")
    theirs = run_in / "openmp.out"
    files = [str(folder / each) for each in program["openmp"]]
    compiler = "gcc" if all(each.endswith(".c") for each in files) else "g++"
    build = [compiler, "-O3", "-fopenmp", "-w", "-fcommon", f"-I{folder}/common", *files, "-lm"]
    build += ["-DOPEN", "-o", str(theirs)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"problem": f"OpenMP: {done.stderr.splitlines()[-1][:150]}"}
    with_ours: list[str] = program["arguments"]
    with_theirs: list[str] = program.get("of_openmp", with_ours)

    def timed() -> tuple[float, float, str]:
        one, failed = _seconds(ours, with_ours, run_in)
        other, failed_too = _seconds(theirs, with_theirs, run_in)
        return one, other, failed or (failed_too and f"OpenMP: {failed_too}")

    return _by_turns(timed)


def _first(error: CudalabError, folder: Path) -> str:
    """What is wrong, in the first two lines of a message."""
    return " ".join(str(error).splitlines()[:2]).replace(f"{folder}/", "")[:150]


def _seconds(binary: Path, arguments: list[str], folder: Path) -> tuple[float, str]:
    """How long a program takes, and why it failed, if it did."""
    command = [str(binary), *(each.replace("IN/", "inputs/") for each in arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(os.cpu_count())}
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return LIMIT_S, f"takes more than {LIMIT_S} s"
    said = done.stderr.decode(errors="replace").splitlines()[:1]
    failed = f"status {done.returncode} {' '.join(said)}"[:150] if done.returncode else ""
    return time.monotonic() - started, failed


def _by_turns(timed: Callable[[], tuple[float, float, str]]) -> Json:
    """The medians of several turns, and of their ratios; what takes long has one turn."""
    turns: list[tuple[float, float]] = []
    while len(turns) < TURNS and sum(map(sum, turns)) < LONG_S:
        try:
            ours, theirs, wrong = timed()
        except subprocess.TimeoutExpired:
            return {"problem": f"takes more than {LIMIT_S} s"}
        if wrong:
            return {"problem": wrong}
        turns.append((ours, theirs))
    ours_s, others_s = (round(median(each), 4) for each in zip(*turns, strict=True))
    ratio = median(ours / max(theirs, 1e-6) for ours, theirs in turns)
    return {"ours_s": ours_s, "others_s": others_s, "times": round(ratio, 2), "turns": len(turns)}


def _shown(row: Json) -> Json:
    print(row, flush=True)
    return row


def draw_inputs(folder: Path, rodinia: Path) -> None:
    """Write the inputs that Rodinia's programs read: drawn, but for srad_v1's picture."""
    inputs = folder / "inputs"
    inputs.mkdir()
    draw = random.Random(1)  # noqa: S311

    def write(name: str, lines: Iterator[str]) -> None:
        (inputs / name).write_text("\n".join(lines) + "\n")

    for name, count in (("", 1024 * 1024), ("3D", 512 * 512 * 8)):
        write(f"temp{name}.txt", (f"{draw.uniform(320, 345):.4f}" for _ in range(count)))
        write(f"power{name}.txt", (f"{draw.uniform(0, 0.01):.6f}" for _ in range(count)))
    nodes = 1 << 20
    ends = [f"{6 * node} 6" for node in range(nodes)]
    edges = (f"{draw.randrange(nodes)} {draw.randrange(1, 10)}" for _ in range(6 * nodes))
    write("graph.txt", iter([str(nodes), *ends, "", "0", "", str(6 * nodes), *edges]))
    points = (
        " ".join([str(i), *(f"{draw.random():.3f}" for _ in range(34))]) for i in range(100_000)
    )
    write("points.txt", points)
    keys = list(range(1_000_000))
    draw.shuffle(keys)
    write("mil.txt", map(str, [len(keys), *keys]))
    write("command.txt", iter(["j 6000 3000", "k 10000"]))
    data = folder.parents[2] / "data" / "srad"
    data.mkdir(parents=True)
    image = rodinia / "cuda/srad/srad_v1/image_out.pgm"
    (data / "image.pgm").write_bytes(image.read_bytes())


def of_polybench() -> str:
    """The table of PolyBench-GPU for docs/performance/cpu.md."""
    return _table("polybench-gpu", "host, one thread, s")


def of_rodinia() -> str:
    """The table of Rodinia for docs/performance/cpu.md."""
    return _table("rodinia", "OpenMP, s")


def _table(name: str, other: str) -> str:
    if not STORED.exists():
        return "No run is stored yet.\n"
    stored = results.read(STORED)
    rows = [row for row in stored["rows"] if row["set"] == name]
    timed = sorted((row for row in rows if "times" in row), key=lambda row: -row["times"])
    if not timed:
        return "No run is stored yet.\n"
    mean = exp(sum(log(max(row["times"], 0.01)) for row in timed) / len(timed))
    keys = ("ours_s", "others_s", "times")
    lines = [
        [
            " ".join([f"`{row['program']}`", row.get("smaller", "")]).strip(),
            *(f"{row[key]:.3g}" for key in keys),
        ]
        for row in timed
    ]
    left = "; ".join(f"`{row['program']}` ({row['problem']})" for row in rows if "problem" in row)
    return (
        f"{stored['device']}, {stored['date']}, load up to {stored['load']}: "
        f"{len(timed)} programs, geometric mean {mean:.2f}"
        + (f"; without {left}" if left else "")
        + ".\n\n"
        + results.table(["program", "CPU device, s", other, "times"], lines, numbers=3)
    )


if __name__ == "__main__":
    main()
