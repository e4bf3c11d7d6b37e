"""Count what atomic operations in shared memory cost on a GPU.

python -m tools.studies atomics cuda      on a machine with a GPU, ncu and cuobjdump
python -m tools.studies atomics add NCU.csv NAMES GPU DRIVER
                                  from what ncu and the program have written there, all groups
                                  of operations one after the other

One warp makes each operation of shared_atomics.cu on addresses that tell possible rules apart.
Stores docs/results/atomics/GPU.json: for each, the instruction and the wavefronts of atomics and of
the loads among them; tools/generate.py makes a table of docs/profile.md from it.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from cudalab.backends.cuda import nvcc
from cudalab.microscope import ncu
from tools import results
from tools.results import Json
from tools.studies import counters, sass

PROGRAM = Path(__file__).with_name("shared_atomics.cu")
COUNTER = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
# Wavefronts of the loads and stores around the operation: 1,024 words, 32 at a time.
AROUND = {"16": 32, "162": 32, "half": 32, "half2": 32, "u64": 64, "double": 64}
GROUPS = 5
# The columns of the table: addresses, and lanes where they are not 32.
SHOWN = {
    "on 1 address": "1",
    "on 2 addresses": "2",
    "on 8 addresses": "8",
    "on 32 addresses": "32",
    "on 32 addresses, two a bank": "32, two a bank",
    "on 32 addresses, one bank": "32, one bank",
    "on 8 addresses, one bank": "8, one bank",
    "on 6 addresses, two banks": "6, two banks",
    "on 17 addresses, half of the lanes on one": "17, one for 16 lanes",
    "on 1 address, 16 lanes of 32": "1, 16 lanes",
}
COLUMNS = ["operation", *SHOWN.values()]
_LAUNCH = re.compile(r"shared_atomic<(?:\w+::)?(?P<name>\w+), ?(?:\(bool\))?(?P<used>\w+)>")
_MANGLED = re.compile(r"shared_atomicI\d+(?P<name>[a-z0-9_]+)Lb(?P<used>[01])")
_HEADS = re.compile(r'^(?="ID")', re.MULTILINE)
_ATOMIC = ("ATOMS", "ATOM.E", "REDS")


def cuda() -> None:
    """Count on the GPU of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        program, log = Path(folder, "atomics"), Path(folder, "ncu.csv")
        words = [str(nvcc.find_nvcc()), "-std=c++17", "-O3", f"-arch={sass.ARCHITECTURE}"]
        subprocess.run([*words, "-o", str(program), str(PROGRAM)], check=True)
        metrics = ",".join(COUNTER.format(kind) for kind in ("atom", "ld", "st"))
        words = [
            *(str(ncu.find_ncu()), "--csv", "--page", "raw", "--print-units", "base"),
            *("--clock-control", "none", "--cache-control", "none", "--log-file", str(log)),
            *("--metrics", metrics, str(program)),
        ]
        counted: list[Json] = []
        for group in range(GROUPS):
            done = subprocess.run(
                [*words, str(group)], stdout=subprocess.PIPE, text=True, check=True
            )
            counted += rows(log.read_text(encoding="utf-8"), done.stdout)
        store(counted, results.machine("cuda"))


def rows(log: str, printed: str) -> Iterator[Json]:
    """What each launch has cost, without the loads and stores around the operation."""
    code = dict(instructions())
    names = [line for line in printed.splitlines() if line.startswith("on ")]
    parts = [counters.table(part) for part in _HEADS.split(log)[1:]]
    launches = [row for part in parts for row in part if row["ID"].isdigit()]
    for counts, pattern in zip(launches, names, strict=True):
        launch = _LAUNCH.search(counts["Kernel Name"])
        if launch is None:
            sys.exit(f"ncu names an unknown kernel: {counts['Kernel Name']}")
        name, used = launch["name"], launch["used"] in ("1", "true")
        around = AROUND.get(name.rpartition("_")[2], 32)
        costs = {kind: counters.number(counts[COUNTER.format(kind)]) for kind in ("atom", "ld")}
        yield {
            "operation": name,
            "used": used,
            "pattern": pattern,
            "instruction": code.get((name, used), ""),
            "wavefronts": costs["atom"],
            "loads": costs["ld"] - around,
        }


def instructions() -> Iterator[tuple[tuple[str, bool], str]]:
    """The atomic instruction of each kernel, by the operation and whether its result is used."""
    for kernel, code in sass.instructions(PROGRAM.read_text(encoding="utf-8")).items():
        found = _MANGLED.search(kernel)
        atomic = [line.split()[0] for line in code if line.startswith(_ATOMIC)]
        if found and atomic:
            yield (found["name"], found["used"] == "1"), atomic[0]


def store(counted: Iterable[Json], machine: Json) -> None:
    """Write the counts under the name of the GPU."""
    path = results.FOLDER / "atomics" / f"{results.slug(machine['device'])}.json"
    results.write_rows(path, machine, list(counted))


def tables() -> str:
    """Wavefronts by number of addresses; operations of the same cost in one row."""
    parts = []
    for stored in results.read_all("atomics"):
        by_kernel: dict[tuple[str, bool], dict[str, str]] = {}
        for row in stored["rows"]:
            cost = f"{row['wavefronts']}" + (f" + {row['loads']}" if row["loads"] else "")
            kernel = row["operation"], row["used"]
            by_kernel.setdefault(kernel, {"code": row["instruction"]})[row["pattern"]] = cost
        costs: dict[tuple[str, ...], dict[str, list[bool]]] = {}
        for (name, used), found in by_kernel.items():
            if found["code"]:
                key = tuple(found[m] for m in SHOWN)
                costs.setdefault(key, {}).setdefault(name, []).append(used)
        lines = [
            [", ".join(_operation(*one) for one in of.items()), *key] for key, of in costs.items()
        ]
        head = f"{stored['device']}, driver {stored['driver']}, {stored['date']}:\n\n"
        parts.append(head + results.table(COLUMNS, lines, numbers=len(SHOWN)))
    return "\n".join(parts) or "No counts are stored yet.\n"


def _operation(name: str, used: list[bool]) -> str:
    """An operation, and whether the row is about its result being used or not."""
    return f"`{name}`" + ("" if len(used) == 2 else " (used)" if used[0] else " (unused)")


def main(command: str = "", *paths: str) -> None:
    """One of the commands above."""
    if command == "cuda":
        cuda()
    elif command == "add" and len(paths) == 4:
        log, printed = (Path(path).read_text(encoding="utf-8") for path in paths[:2])
        about = {"device": paths[2], "driver": paths[3], "date": results.today()}
        store(rows(log, printed), about)
    else:
        sys.exit(__doc__)
