"""Run the programs of samples/programs and tests/programs, and store a hash of each output.

python -m tools.programs cpu     on the CPU device
python -m tools.programs cuda    compiled by nvcc, on the GPU

The files of docs/results/programs are compared by tools/generate.py.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import results
from tools.measure import COMMAND
from tools.results import ROOT

SAMPLES = ROOT / "samples"
OWN = ROOT / "tests" / "programs"
PRINTS = (
    "arrays",
    "assembly",
    "atomics",
    "cub",
    "errors",
    "forms",
    "grid_races",
    "groups",
    "intrinsics",
    "mathematics",
    "libcu",
    "numbers",
    "textures",
    "thrust",
    "trigonometry",
)  # of OWN
SEED = 1
# Larger inputs than the samples: several blocks, the last of them incomplete.
LARGER = {
    "bitonic": "65537",
    "compact": "200000",
    "histogram": "1000000",
    "matmul": "200",
    "radixsort": "1000000",
    "reduce": "1000000",
    "scan": "200000",
    "segscan": "200000",
    "softmax": "300x500",
    "solve": "100",
    "table": "100000",
    "transpose": "300x500",
}


def main(device: str, to: Path) -> None:
    """Run all programs and store the outcomes."""
    with ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as folder:
        all_runs = list(runs(Path(folder)))
        first = {name: (name, *rest) for name, *rest in reversed(all_runs)}
        list(pool.map(lambda run: outcome(device, *run), first.values()))  # compiles each once
        rows = list(pool.map(lambda run: outcome(device, *run), all_runs))
    stored = {**results.machine(device), "runs": rows}
    results.write(to / f"{results.slug(str(stored['device']))}.json", stored)
    for row in rows:
        print(row["status"], row["sha256"][:12], row["program"], row["input"])


def runs(folder: Path) -> Iterator[tuple[str, list[Path], str, Path | None]]:
    """Each program with each input: its name, its files, the input's name and the input."""
    described = tomllib.loads((SAMPLES / "programs" / "programs.toml").read_text("utf-8"))
    for name, each in described.items():
        files = [SAMPLES / "programs" / file for file in each["files"]]
        lab, dtype = each["lab"], each["dtype"]
        for path in sorted((SAMPLES / lab).glob(f"*.{dtype}.in.bin")):
            yield name, files, path.name.removesuffix(".in.bin"), path
        typed = [] if lab == "table" else ["--dtype", dtype]
        drawn = folder / f"{name}.in.bin"
        with drawn.open("wb") as file:
            command = [*COMMAND, "gen", lab, *typed, "--n", LARGER[lab], "--seed", SEED]
            subprocess.run(list(map(str, command)), stdout=file, check=True, cwd=ROOT)
        yield name, files, f"n = {LARGER[lab]}, seed {SEED}", drawn
    for name in PRINTS:
        yield name, [OWN / f"{name}.cu"], "nothing", None


def outcome(
    device: str, name: str, files: list[Path], label: str, stdin: Path | None
) -> results.Json:
    """Run one program: its exit status and a hash of its output."""
    data = stdin.read_bytes() if stdin else b""
    command = [*COMMAND, "run", "--device", device, *map(str, files)]
    done = subprocess.run(command, input=data, capture_output=True, check=False, cwd=ROOT)
    return {
        "program": name,
        "input": label,
        "input_sha256": hashlib.sha256(data).hexdigest(),
        "status": done.returncode,
        "bytes": len(done.stdout),
        "sha256": hashlib.sha256(done.stdout).hexdigest(),
    }


def table() -> str:
    """Whether whole programs write the same on all machines of docs/results/programs."""
    stored = results.read_all("programs")
    if not stored:
        return "No run is stored yet.\n"
    made = "; ".join(f"{one['device']} ({one['date']}, commit `{one['commit']}`)" for one in stored)
    runs = [{(run["program"], run["input"]): run for run in one["runs"]} for one in stored]
    runs[0] = {key: run for key, run in runs[0].items() if all(key in other for other in runs)}
    names = dict.fromkeys(program for program, _ in runs[0])
    columns = ["program", "inputs", "the same", "not the same", "output for the first, SHA-256"]
    return f"{made}\n\n" + results.table(columns, (program_row(name, runs) for name in names))


def program_row(name: str, runs: list[dict[tuple[str, str], results.Json]]) -> list[str]:
    """One program: the number of inputs on which all machines agree, and the other inputs."""
    own = {key: run for key, run in runs[0].items() if key[0] == name}

    def is_same(key: tuple[str, str]) -> bool:
        whats = ("input_sha256", "status", "sha256")
        return all(one[key][what] == runs[0][key][what] for one in runs for what in whats)

    others = [f"`{key[1]}`" for key in own if not is_same(key)]
    first = next(run for run in own.values() if run["bytes"])
    same = f"{len(own) - len(others)}"
    return [f"`{name}`", str(len(own)), same, ", ".join(others), f"`{first['sha256'][:16]}`"]


if __name__ == "__main__":
    if sys.argv[1:2] not in (["cpu"], ["cuda"]):
        sys.exit(str(__doc__))
    stored_in = sys.argv[2] if len(sys.argv) > 2 else results.FOLDER / "programs"
    main(sys.argv[1], Path(stored_in))
