"""Count what accesses to local memory cost on a GPU.

python -m tools.studies local_memory cuda     on a machine with a GPU, and ncu
python -m tools.studies local_memory add NCU.csv NAMES GPU DRIVER
                                  from what ncu and the program have written there

One warp of local_memory.cu stores to and loads from an array of its threads, at indices that tell
possible rules apart. Stores docs/results/local-memory/GPU.json: the sectors of each load and store,
which the instrument must count as well.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cudalab.backends.cuda import nvcc
from cudalab.microscope import ncu
from tools import results
from tools.results import Json
from tools.studies import counters

PROGRAM = Path(__file__).with_name("local_memory.cu")
FOLDER = results.FOLDER / "local-memory"
COUNTER = "l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum"


def cuda() -> None:
    """Count on the GPU of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        program, log = Path(folder, "local_memory"), Path(folder, "ncu.csv")
        compile_it = [str(nvcc.find_nvcc()), *nvcc.FLAGS, "-arch=native"]
        subprocess.run([*compile_it, "-o", str(program), str(PROGRAM)], check=True)
        words = [
            *(str(ncu.find_ncu()), "--csv", "--page", "raw", "--print-units", "base"),
            *("--clock-control", "none", "--cache-control", "none", "--log-file", str(log)),
            *("--metrics", ",".join(COUNTER.format(kind) for kind in ("ld", "st")), str(program)),
        ]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        store(log.read_text(encoding="utf-8"), done.stdout, results.machine("cuda"))


def rows(log: str, printed: str) -> Iterator[Json]:
    """The sectors of each launch's store and load."""
    names = [line.split(": ") for line in printed.splitlines() if ": " in line and "==" not in line]
    launches = [row for row in counters.table(log[log.index('"ID"') :]) if row["ID"].isdigit()]
    for counts, (width, pattern) in zip(launches, names, strict=True):
        sectors = {kind: counters.number(counts[COUNTER.format(kind)]) for kind in ("ld", "st")}
        yield {
            "bytes": int(width.split()[0]),
            "pattern": pattern,
            "store_sectors": sectors["st"],
            "load_sectors": sectors["ld"],
        }


def store(log: str, printed: str, machine: Json) -> None:
    """Write the counts under the name of the GPU."""
    path = FOLDER / f"{results.slug(machine['device'])}.json"
    results.write_rows(path, machine, list(rows(log, printed)))


def main(command: str = "", *paths: str) -> None:
    """One of the commands above."""
    if command == "cuda":
        cuda()
    elif command == "add" and len(paths) == 4:
        log, printed = (Path(path).read_text(encoding="utf-8") for path in paths[:2])
        store(log, printed, {"device": paths[2], "driver": paths[3], "date": results.today()})
    else:
        sys.exit(__doc__)
