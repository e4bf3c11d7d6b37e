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


if __name__ == "__main__":
    if sys.argv[1:2] not in (["cpu"], ["cuda"]):
        sys.exit(str(__doc__))
    stored_in = sys.argv[2] if len(sys.argv) > 2 else results.FOLDER / "programs"
    main(sys.argv[1], Path(stored_in))
