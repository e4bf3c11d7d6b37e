"""The ladders of each lab, each measured where it belongs.

python -m tools.ladders run [SECONDS]     measure on a GPU; after so many seconds leave out the rest
python -m tools.ladders add BENCH.json    store what `cudalab bench --json` has written

The main ladders are those of `cudalab bench all --variants all --baseline cupy,cub`. Of the others,
those for another case or size are measured there: SIDES. Statistics are stored in
docs/results/bench; tools/generate.py makes a table of docs/performance/README.md and the tables of
kernels/*/README.md from them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cudalab import labs
from cudalab.bench.document import load
from cudalab.labs import registry
from tools import results
from tools.compilation import fill_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cudalab.bench.document import Document, Environment, Row, Table
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case

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
    Side("radixsort", ("pairs",), {"layout": "pairs"}),
    Side("table", ("fewer digits",), {"accuracy": "fast"}),
)


def run(seconds: str = "170") -> None:
    """Measure all ladders, one document for each call of bench, and store them as one."""
    end = time.monotonic() + float(seconds)
    commands = [["all", "--variants", "all"], *(side.words for side in SIDES)]
    fill_cache("cuda", wanted())
    documents = []
    with TemporaryDirectory() as folder:
        for number, words in enumerate(commands):
            path = Path(folder, f"{number}.json")
            command = [sys.executable, "-m", "cudalab", "bench", *words, "--device", "cuda"]
            command += ["--baseline", "cupy,cub", "--json", str(path)]
            left = end - time.monotonic()
            if left > 1:
                command += ["--kill-after", f"{left:.0f}"]
                subprocess.run(command, check=False, cwd=results.ROOT, stdout=sys.stderr)
            documents += [load(path)] if path.exists() else []
    store(documents)


def wanted() -> Iterator[tuple[str, str, Case]]:
    """All variants, each in the cases in which it is measured."""
    for lab in map(labs.get, labs.names()):
        usual = lab.complete({})
        yield from (
            (lab.name, one.name, {}) for one in registry.variants(lab) if one.computes(usual)
        )
    for side in SIDES:
        yield from ((side.lab, rung.name, side.case) for rung in side.rungs)


def store(documents: list[Document]) -> None:
    """Store the statistics in the place of the last ones of their device."""
    document = documents[0]
    document.tables = [table for each in documents for table in each.tables]
    for table in document.tables:
        table.rows = [
            replace(row, rounds=[], samples_ms=[], clocks_mhz=[], discarded=[])
            for row in table.rows
        ]
    name = results.slug(document.environment.device_name)
    results.write(results.FOLDER / "bench" / f"{name}.json", asdict(document))


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


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", *words]:
            run(*words)
        case ["add", path]:
            store([load(Path(path))])
        case _:
            sys.exit(__doc__)
