"""The ladders of each lab, each measured where it belongs.

python -m tools.studies ladders run FOLDER [SECONDS]   measure what FOLDER lacks, on a GPU
python -m tools.studies ladders add BENCH.json...      store what `cudalab bench --json` has written
python -m tools.studies ladders since BENCH.json...    the same, beside the run of all ladders

The main ladders are those of `cudalab bench LAB --variants all --baseline cupy,cub`. Of the others,
those for another case or size are measured there: SIDES. The statistics of one run, of which no
file may be missing, are stored in docs/results/bench; tools/generate.py makes a table of
docs/performance/README.md and the tables of kernels/*/README.md from them. What was measured of
some labs since that run has a file with their names, with its own commit and date.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path

from cudalab import labs
from cudalab.bench.document import Document, Environment, Row, Table, load
from cudalab.labs import registry
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from tools import results
from tools.studies.compilation import fill_cache

SAMPLES = ("rounds", "samples_ms", "clocks_mhz", "discarded")  # a row's lists, one item per sample
COLUMNS = ["lab", "n", "first rung, ms", "fastest, ms", "times as fast", "reaches"]
COLUMNS += ["against CuPy", "against CUB"]


@dataclass(frozen=True)
class Side:
    """Ladders beside the main one, and the case and the size that they are for."""

    lab: str
    ladders: tuple[str, ...]
    case: Case = field(default_factory=dict)  # options that are not the lab's defaults
    size: int | None = None  # None: that of the main ladder

    @property
    def rungs(self) -> list[Variant]:
        """The variants of the ladders."""
        variants = registry.variants(labs.get(self.lab))
        return [variant for variant in variants if variant.ladder in self.ladders]

    @property
    def words(self) -> list[str]:
        """The command line of bench that measures them."""
        lab, names = labs.get(self.lab), ",".join(rung.name for rung in self.rungs)
        size = ["--n", str(self.size)] if self.size else []
        return [self.lab, *lab.words(lab.complete(self.case)), *size, "--variants", names]


SECONDS = "2"  # of sampling for a table
# The others are measured with the main ladder.
SIDES = (
    Side("matmul", ("A by its transpose",), {"product": "aat"}),
    Side("matmul", ("A by the transpose of B",), {"product": "abt"}),
    Side("matmul", ("small products",), size=777),
    Side("reduce", ("rows",), {"along": "rows"}),
    Side("reduce", ("columns", "a core's loop, columns"), {"along": "cols"}),
    Side("histogram", ("64 classes",), {"bins": 64}),
    Side("histogram", ("many classes",), {"dtype": "uint32", "bins": 65_536}),
    Side("radixsort", ("short arrays",), size=1 << 20),
    Side("radixsort", ("short arrays",), size=1 << 13),  # one block can hold them
    Side("radixsort", ("pairs",), {"layout": "pairs"}),
    Side("table", ("fewer digits",), {"accuracy": "fast"}),
)


def run(folder: str, seconds: str = "170") -> None:
    """Measure the ladders whose files are not in the folder, and store all if none is missing."""
    end = time.monotonic() + float(seconds)
    Path(folder).mkdir(parents=True, exist_ok=True)
    commands = [[lab, "--variants", "all"] for lab in labs.names()] + [side.words for side in SIDES]
    files = [Path(folder, f"{number}.json") for number in range(len(commands))]
    fill_cache("cuda", wanted())
    for path, words in zip(files, commands, strict=True):
        command = [sys.executable, "-m", "cudalab", "bench", *words, "--device", "cuda"]
        command += ["--baseline", "cupy,cub", "--time-limit", SECONDS, "--json", str(path)]
        if not path.exists() and time.monotonic() < end:
            done = subprocess.run(command, check=False, cwd=results.ROOT, stdout=sys.stderr)
            if done.returncode:
                path.unlink(missing_ok=True)
    if all(path.exists() for path in files):
        store([load(path) for path in files])


def wanted() -> Iterator[tuple[str, str, Case]]:
    """All variants, each in the cases in which it is measured."""
    for lab in map(labs.get, labs.names()):
        usual = lab.complete({})
        yield from (
            (lab.name, one.name, {}) for one in registry.variants(lab) if one.computes(usual)
        )
    for side in SIDES:
        yield from ((side.lab, rung.name, side.case) for rung in side.rungs)


def store(documents: list[Document], kind: str = "") -> None:
    """Store the statistics in the place of the last ones of their device and kind."""
    document = documents[0]
    document.tables = [table for each in documents for table in each.tables]
    for table in document.tables:
        table.rows = [
            replace(row, rounds=[], samples_ms=[], clocks_mhz=[], discarded=[])
            for row in table.rows
        ]
    name = results.slug(document.environment.device_name)
    results.write(results.FOLDER / "bench" / f"{name}{kind}.json", asdict(document))


def stored() -> list[Document]:
    """All stored runs by device, the oldest first."""
    documents = map(load, sorted((results.FOLDER / "bench").glob("*.json")))
    order = attrgetter("environment.device_name", "environment.date")
    return sorted(documents, key=order)


def heading(environment: Environment) -> str:
    """The device, the date and the commit of a table."""
    return (
        f"{environment.device_name}, driver {environment.driver}, "
        f"{environment.date[:10]}, commit `{environment.commit}`; "
        f"copy {environment.copy_gb_per_s:,.0f} GB/s\n\n"
    )


def line(measured: Table) -> list[str]:
    """A row of the table: the first rung and the fastest variant of one measured table."""
    rungs = [(row, one) for row, one in measured.timed if row.comparable]
    first, slow = rungs[0]
    best, figures = min(rungs, key=lambda rung: rung[1].median_ms)
    rate = (
        f"{figures.gflop_per_s / 1e3:,.1f} TFLOP/s"
        if figures.gflop_per_s
        else f"{figures.gb_per_s:,.0f} GB/s"
    )
    case = " ".join(value for value in measured.case.values() if isinstance(value, str))
    return [
        f"`{measured.lab}` {case}",
        measured.size,
        f"`{first.name}` {slow.median_ms:.3g}",
        f"`{best.name}` {figures.median_ms:.3g}",
        f"{slow.median_ms / figures.median_ms:.3g}",
        rate,
        against(best, "cupy"),
        against(best, "cub"),
    ]


def against(best: Row, baseline: str) -> str:
    """How many times as fast as the fastest form of a baseline, with its confidence interval."""
    forms = [one for name, one in best.baselines.items() if name.split(" ")[0] == baseline]
    if not forms:
        return ""
    closest = min(forms, key=lambda one: one.ratio)
    return f"{closest.ratio:.2f} ({closest.low:.2f} to {closest.high:.2f})"


def main(*words: str) -> None:
    """One of the commands above."""
    match words:
        case ["run", folder, *seconds]:
            run(folder, *seconds)
        case ["add" | "since" as command, *paths] if paths:
            documents = [load(Path(path)) for path in paths]
            measured = sorted({table.lab for one in documents for table in one.tables})
            store(documents, "-".join(["-since", *measured]) if command == "since" else "")
        case _:
            sys.exit(__doc__)
