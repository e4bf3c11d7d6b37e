"""The processor's time that a check takes, of the grader and of all that it starts.

python -m tools.studies checks [LAB...]   all labs, or these; keeps the others

Hands in each lab's first kernel as a student's file and has it judged with all stages: by a third
of the public list and by all of it. The runtime and the reference kernel are compiled before.
There is no sandbox around it: of processes that end with their namespace, as those in bubblewrap
do, the system tells nobody what they have used. Python's modules are compiled, as pip leaves them.

Stores docs/results/checks/cpu.json; tools/generate.py makes the table of docs/checking.md from it.
"""

import compileall
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from cudalab import labs
from cudalab.checker.submit.skeleton import original
from cudalab.language import source
from tools import results

STORED = results.FOLDER / "checks" / "cpu.json"
LISTS = {"quick": ("--quick",), "whole": ()}
GOAL = {"quick": 2.0, "whole": 6.0}  # s


def main(*names: str) -> None:
    """Measure and store, a lab at a time."""
    compileall.compile_dir(Path(labs.__file__).parents[1], quiet=1)
    rows = {row["lab"]: row for row in results.read(STORED)["labs"]} if STORED.exists() else {}
    for name in names or labs.names():
        lab = labs.get(name)
        variant = original(lab)
        load = round(os.getloadavg()[0], 1)
        row: results.Json = {"lab": name, "variant": variant.name}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "my.cu")
            path.write_text(source.whole(source.load(variant.path)), encoding="utf-8")
            processor_seconds(name, path, "--quick")  # makes what all checks share
            for kind, words in LISTS.items():
                row[kind] = round(processor_seconds(name, path, *words), 2)
        row |= {"load": load, **results.machine("cpu")}
        print(*row.values(), flush=True)
        rows[name] = row
        results.write_rows(STORED, {}, [rows[key] for key in sorted(rows)], "labs")


def processor_seconds(lab: str, path: Path, *words: str) -> float:
    """What a check has used: of all processes, since each of them is waited for."""
    command = [sys.executable, "-m", "cudalab", "check", lab, "--kernel", str(path), *words]
    before = used()
    done = subprocess.run(
        [*command, "--device", "cpu", "--seed", "1", "--sandbox", "none"],
        capture_output=True,
        text=True,
        check=False,
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
    where = (
        "Processor seconds of a whole check, of all its processes, without a sandbox. The load is "
        "that of the machine when a row was begun: on more processes than processors a second does "
        f"less. Goals: {GOAL['quick']:g} and {GOAL['whole']:g}.\n"
    )
    rows = results.read(STORED)["labs"]
    heads = ["lab", "kernel", "`--quick`", "all public tests", "load", "machine", "commit"]
    return f"{where}\n{results.table(heads, map(line, rows))}"


def line(row: results.Json) -> list[str]:
    """A row of the table."""
    seconds = [f"{row[kind]:.1f}" for kind in LISTS]
    at = [f"{row['load']:g}", row["device"], f"`{row['commit']}`"]
    return [f"`{row['lab']}`", f"`{row['variant']}`", *seconds, *at]
