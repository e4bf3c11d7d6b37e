"""The ladder of each lab, as `cudalab bench all --variants all --baseline cupy,cub` measures it.

python -m tools.ladders add BENCH.json    store what `cudalab bench --json` has written

Stores its statistics in docs/results/bench; tools/generate.py makes a table of
docs/performance/README.md from them.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.bench.document import load
from tools import results

if TYPE_CHECKING:
    from cudalab.bench.document import Environment, Row, Table

SAMPLES = ("rounds", "samples_ms", "clocks_mhz", "discarded")  # a row's lists, one item per sample
COLUMNS = ["lab", "n", "first rung, ms", "fastest, ms", "times as fast", "reaches"]
COLUMNS += ["against CuPy", "against CUB"]


def add(path: Path) -> None:
    """Store the statistics of one document in the place of the last one of its device."""
    document = load(path)
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
        case ["add", path]:
            add(Path(path))
        case _:
            sys.exit(__doc__)
