"""The ladder of each lab, as `cudalab bench all --variants all --baseline cupy,cub` measures it.

python -m tools.ladders add BENCH.json    take what `cudalab bench --json` has written

Stores its statistics in docs/results/bench; tools/generate.py makes the table of README.md from
them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.bench.results import load
from tools import results

if TYPE_CHECKING:
    from tools.results import Json

SAMPLES = ("rounds", "samples_ms", "clocks_mhz", "discarded")  # a row's lists, one item a sample
COLUMNS = ["lab", "n", "first rung, ms", "fastest, ms", "times as fast", "reaches"]
COLUMNS += ["against CuPy", "against CUB"]


def add(path: Path) -> None:
    """Store the statistics of one document in the place of the last one of its device."""
    document = load(path)
    for row in (row for table in document["tables"] for row in table["rows"]):
        row.update({name: [] for name in SAMPLES})
    name = results.slug(document["environment"]["device_name"])
    results.write(results.FOLDER / "bench" / f"{name}.json", document)


def heading(environment: Json) -> str:
    """The device, the date and the commit of a table."""
    return (
        f"{environment['device_name']}, driver {environment['driver']}, "
        f"{environment['date'][:10]}, commit `{environment['commit']}`; "
        f"copy {environment['copy_gb_per_s']:,.0f} GB/s\n\n"
    )


def line(measured: Json) -> list[str]:
    """A row of the table: the first rung and the fastest variant of one measured table."""
    right = [r for r in measured["rows"] if r["kind"] == "variant" and r["status"] == "ok"]
    first = right[0]
    best = min(right, key=lambda r: r["statistics"]["median_ms"])
    figures = best["statistics"]
    rate = (
        f"{figures['gflop_per_s'] / 1e3:,.1f} TFLOP/s"
        if figures["gflop_per_s"]
        else f"{figures['gb_per_s']:,.0f} GB/s"
    )
    case = " ".join(v for v in measured["case"].values() if isinstance(v, str))
    return [
        f"`{measured['lab']}` {case}",
        measured["size"],
        f"`{first['name']}` {first['statistics']['median_ms']:.3g}",
        f"`{best['name']}` {figures['median_ms']:.3g}",
        f"{first['statistics']['median_ms'] / figures['median_ms']:.3g}",
        rate,
        against(best, "cupy"),
        against(best, "cub"),
    ]


def against(best: Json, baseline: str) -> str:
    """How many times as fast as the fastest form of a baseline, with its confidence interval."""
    ratios = [r for name, r in best["baselines"].items() if name.split(" ")[0] == baseline]
    if not ratios:
        return ""
    least = min(ratios, key=lambda r: r["ratio"])
    return f"{least['ratio']:.2f} ({least['low']:.2f} to {least['high']:.2f})"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["add", path]:
            add(Path(path))
        case _:
            sys.exit(__doc__)
