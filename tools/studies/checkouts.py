"""Compare the speed of another checkout's CPU device with this one's, by turns.

python -m tools.studies checkouts FOLDER [WORD...]   FOLDER is the other checkout; words choose rows
python -m tools.generate                             writes the table of docs/performance/cpu.md

Each variant and each program of samples/programs runs in turns with one package and the other, as
the machine may have other work; a row has the least CPU time of all turns, on one OS thread, and
the turns' ratios. The other checkout's commit is that of its folder, or $CUDALAB_OTHER_COMMIT. With
words, the rows that have one of them in their names get further turns.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import exp, inf, log
from pathlib import Path
from statistics import median

from cudalab.backends.cpu.device import CpuDevice
from cudalab.bench.results import commit
from tools import programs, results
from tools.results import table
from tools.studies.tiers import variants

Timed = Callable[["Checkout"], float]

STORED = results.FOLDER / "checkouts" / "cpu.json"
TURNS = 5
SIZES = {"matmul": 192, "solve": 96, "softmax": 192, "transpose": 512}
LENGTH = 100_000  # of other labs
SLOWER = 1.05  # rows beyond are shown
_BUILD = (
    "import sys; from cudalab.program.build import executable as e; print(e(sys.argv[1:], 'cpu'))"
)


class Checkout:
    """A package in a folder, and the process that times its variants."""

    def __init__(self, folder: Path) -> None:
        """Start the process."""
        self.environment = {**os.environ, "PYTHONPATH": str(folder), "CUDALAB_THREADS": "1"}
        worker = Path(__file__).with_name("timed.py")
        self.process = subprocess.Popen(
            [sys.executable, worker], env=self.environment, cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.built: dict[str, str] = {}

    def variant_ms(self, name: str) -> float:
        """The least CPU time of a run of "LAB VARIANT N". ValueError: it does not run."""
        to, back = self.process.stdin, self.process.stdout
        if to is None or back is None:
            raise ValueError(name)
        to.write(name + "\n")
        to.flush()
        return float(back.readline())

    def program_ms(self, name: str, files: Sequence[Path], stdin: Path) -> float:
        """The CPU time of a run of a program. ValueError: it does not run."""
        if name not in self.built:
            built = subprocess.run([sys.executable, "-c", _BUILD, *files], env=self.environment,
                                   capture_output=True, text=True, check=False)  # fmt: skip
            self.built[name] = built.stdout.strip()
        if not self.built[name]:
            raise ValueError(name)
        before = _children_s()
        with stdin.open("rb") as data:
            done = subprocess.run([self.built[name]], env=self.environment, stdin=data,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  check=False)  # fmt: skip
        if done.returncode:
            raise ValueError(name)
        return 1000 * (_children_s() - before)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows(folder: Path) -> Iterator[tuple[str, Timed]]:
    """What is timed; `folder` keeps the programs' inputs."""
    for lab, variant in variants():
        if not variant.missing(CpuDevice.features):
            words = f"{lab.name} {variant.name} {SIZES.get(lab.name, LENGTH)}"
            yield f"{lab.name}/{variant.name}", partial(Checkout.variant_ms, name=words)
    last = {name: (files, path) for name, files, _, path in programs.runs(folder) if path}
    for name, (files, path) in last.items():
        timed = partial(Checkout.program_ms, name=name, files=files, stdin=path)
        yield f"program {name}", timed


def compare(other: Checkout, own: Checkout, timed: Timed) -> list[tuple[float, float]]:
    """The times of both in each turn, in ms. ValueError if a checkout does not run the row."""
    turns = []
    for turn in range(TURNS):
        first, second = (other, own) if turn % 2 else (own, other)
        times = {first: timed(first), second: timed(second)}
        turns.append((times[other], times[own]))
    return turns


def compared() -> str:
    """The table of the stored comparison."""
    if not STORED.exists():
        return ""
    document = results.read(STORED)
    ratios = {each["name"]: median(each["ratios"]) for each in document["rows"]}
    mean = exp(sum(map(log, ratios.values())) / len(ratios))
    slower = [each for each in document["rows"] if ratios[each["name"]] > SLOWER]
    faster = sum(1 for ratio in ratios.values() if ratio < 1 / SLOWER)
    shown = [
        [f"`{each['name']}`", f"{each['other_ms']:.3g}", f"{each['own_ms']:.3g}",
         f"{ratios[each['name']]:.2f}"]
        for each in sorted(slower, key=lambda each: -ratios[each["name"]])
    ]  # fmt: skip
    return (
        f"{document['device']}, {document['date']}: commit `{document['other']}` and commit"
        f" `{document['own']}` by turns, {len(ratios)} variants and programs that both run,"
        f" {len(document['left_out'])} that only one runs. The ratio of a row is the median of its"
        " turns'; their geometric mean is"
        f" {mean:.3f}; {faster} rows are more than 5 % faster, {len(slower)} more than 5 %"
        " slower:\n\n"
        + table(["variant or program", "before, ms", "after, ms", "times"], shown, numbers=3)
    )


def main(folder: str, *words: str) -> int:
    """Compare, and store what is found."""
    head: results.Json = {
        **results.machine("cpu"),
        "other": os.environ.get("CUDALAB_OTHER_COMMIT") or _commit(folder),
        "own": commit(),
    }
    before = _stored(head) if words else {"rows": [], "left_out": []}
    found = {each["name"]: each for each in before["rows"]}
    left_out = {*before["left_out"]}
    other, own = Checkout(Path(folder).resolve()), Checkout(results.ROOT)
    with tempfile.TemporaryDirectory() as inputs:
        for name, timed in rows(Path(inputs)):
            if words and not any(word in name for word in words):
                continue
            try:
                times = compare(other, own, timed)
            except ValueError as error:
                left_out.add(name)
                print(f"{name}: {error}")
                continue
            known = found.get(name, {"other_ms": inf, "own_ms": inf, "ratios": []})
            ratios = [round(after / before, 3) for before, after in times]
            found[name] = {
                "name": name,
                "other_ms": round(min(known["other_ms"], *(each for each, _ in times)), 6),
                "own_ms": round(min(known["own_ms"], *(each for _, each in times)), 6),
                "ratios": [*known["ratios"], *ratios],
            }
            print(f"{name}: {median(ratios):.3f}", flush=True)
    results.write_rows(STORED, {**head, "left_out": sorted(left_out)}, list(found.values()))
    return 0


def _stored(head: results.Json) -> results.Json:
    """What is stored of the same two commits and the same machine."""
    document = results.read(STORED)
    for key in ("device", "other", "own"):
        if document[key] != head[key]:
            raise ValueError(f"what is stored is of another {key}: {document[key]}")
    return document


def _commit(folder: str) -> str:
    command = ["git", "-C", folder, "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
