"""The processor's time that a check takes, of the grader and of all that it starts.

python -m tools.checks [LAB...]   all labs, or these; keeps the others

Hands in each lab's first kernel as a student's file and has it judged with all stages: by a third
of the public list and by all of it. The runtime and the reference kernel are compiled before.
Processor time hardly depends on what else the machine does, unless that shares its cores.

Stores docs/results/checks/cpu.json; tools/generate.py makes the table of docs/checking.md from it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab import labs
from cudalab.labs import registry
from cudalab.language import source
from tools import results

if TYPE_CHECKING:
    from collections.abc import Iterator

STORED = results.FOLDER / "checks" / "cpu.json"
LISTS = {"quick": ("--quick",), "whole": ()}
GOAL = {"quick": 2.0, "whole": 6.0}  # s


def main(names: list[str]) -> None:
    """Measure and store, a lab at a time."""
    rows = {row["lab"]: row for row in results.read(STORED)["labs"]} if STORED.exists() else {}
    for name in names or labs.names():
        lab = labs.get(name)
        skeleton = lab.teaching.skeleton
        variant = registry.find(
            lab, skeleton.variant if skeleton else registry.variants(lab)[0].name
        )
        row: results.Json = {"lab": name, "variant": variant.name}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "my.cu")
            path.write_text(source.whole(source.load(variant.path)), encoding="utf-8")
            processor_seconds(name, path, "--quick")  # makes what all checks share
            for kind, words in LISTS.items():
                row[kind] = round(processor_seconds(name, path, *words), 2)
        print(*row.values(), flush=True)
        rows[name] = row
        load = round(os.getloadavg()[1], 1)
        machine = {**results.machine("cpu"), "load": load}
        results.write_rows(STORED, machine, [rows[key] for key in sorted(rows)], "labs")


def processor_seconds(lab: str, path: Path, *words: str) -> float:
    """What a check has used: of all processes, since each of them is waited for."""
    command = [sys.executable, "-m", "cudalab", "check", lab, "--kernel", str(path), *words]
    before = used()
    done = subprocess.run(
        [*command, "--device", "cpu", "--seed", "1"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return used() - before


def used() -> float:
    """The processor's time of this process's children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def table() -> str:
    """The seconds of each lab, for docs/checking.md."""
    run = results.read(STORED)
    where = (
        f"Processor seconds of a whole check on {run['device']}, {run['date']}, commit "
        f"`{run['commit']}`; the machine had a load of {run['load']:g}. Goals: "
        f"{GOAL['quick']:g} and {GOAL['whole']:g}.\n"
    )
    heads = ["lab", "kernel", "`--quick`", "all public tests"]
    return f"{where}\n{results.table(heads, lines(run), numbers=2)}"


def lines(run: results.Json) -> Iterator[list[str]]:
    """The rows of the table."""
    for row in run["labs"]:
        yield [
            f"`{row['lab']}`",
            f"`{row['variant']}`",
            f"{row['quick']:.1f}",
            f"{row['whole']:.1f}",
        ]


if __name__ == "__main__":
    main(sys.argv[1:])
