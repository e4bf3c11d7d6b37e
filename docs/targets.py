"""Measures, on a GPU, each lab's best beside the vendor's libraries, at the sizes that count.

python docs/targets.py RESULTS.json [LAB...]    one run; three runs apart make the table

Adds a run to the file: `cudalab bench` of every line below, with all samples. docs/generate.py
makes the table in docs/performance/README.md of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SECONDS = "1"  # of sampling for a table


@dataclass(frozen=True)
class Target:
    """Peer time / our time is to be at least `floor` for each of `sizes`."""

    lab: str
    work: str
    variant: str
    peer: str
    sizes: str
    floor: float
    options: tuple[str, ...] = ()


LONG = "128e6,2^28"
SHORT = "2^16,2^18,2^20"
SORTED = "128e6,268369920"
SHAPES = "uniform", "sorted", "reversed", "equal", "few", "top-byte"
TARGETS = (
    *(
        target
        for dtype in ("int32", "float32")
        for target in (
            Target("reduce", f"sum {dtype}", "single_pass", "cub", LONG, 1.0, ("--dtype", dtype)),
            Target("reduce", f"sum {dtype}", "single_pass", "cub", SHORT, 1.2, ("--dtype", dtype)),
            Target(
                "scan", f"exclusive {dtype}", "lookback_prefetch", "cub", LONG, 1.15,
                ("--dtype", dtype),
            ),
            Target(
                "scan", f"exclusive {dtype}", "decoupled_lookback", "cub", SHORT, 1.15,
                ("--dtype", dtype),
            ),
        )
    ),
    *(
        Target("histogram", f"u8, {dist}", "privatized", "cub", "512e6", 1.1, ("--dist", dist))
        for dist in ("uniform", "equal", "normal", "one-hot")
    ),
    *(
        Target(
            "histogram", f"u32, {bins} bins", "privatized", "cub", "2^28", 2.0,
            ("--dtype", "uint32", "--bins", bins),
        )
        for bins in ("64", "256", "1024", "4096")
    ),
    *(
        Target(
            "radixsort", f"keys u32, {dist}", "most_significant_first", "cub",
            SORTED if dist == "uniform" else "128e6", 1.2 if "t" not in dist else 1.1,
            ("--dist", dist),
        )
        for dist in SHAPES
    ),
    Target(
        "radixsort", "keys f32", "most_significant_first", "cub", "128e6", 1.2,
        ("--dtype", "float32"),
    ),
    Target("radixsort", "keys u32, by sweeps alone", "onesweep", "cub", SORTED, 1.2),
    Target("radixsort", "keys u32", "most_significant_first", "cub", "2^16,2^20", 2.0),
    Target("radixsort", "pairs", "onesweep", "cub", "128e6", 1.1, ("--pairs",)),
)  # fmt: skip


def main(path: Path, *chosen: str) -> None:
    """Add a run of all lines, or those of the labs named, to the results in `path`."""
    stored: dict[str, Any] = {"environment": {}, "runs": []}
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
    tables = []
    for target in TARGETS:
        if chosen and target.lab not in chosen:
            continue
        found = measured(target)
        stored["environment"] = found["environment"]
        tables += [{"work": target.work, "floor": target.floor, **t} for t in found["tables"]]
    stored["runs"].append(tables)
    path.write_text(json.dumps(stored) + "\n", encoding="utf-8")


def measured(target: Target) -> dict[str, Any]:
    """The document of one `cudalab bench`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        command = [
            sys.executable, "-m", "cudalab", "bench", target.lab, "--variants", target.variant,
            "--n", target.sizes, "--baseline", target.peer, "--device", "cuda",
            "--time-limit", SECONDS, "--json", path, *target.options,
        ]  # fmt: skip
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:]) if sys.argv[1:] else sys.exit(__doc__)
