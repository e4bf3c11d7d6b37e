"""Compare each lab's best variant with the vendor's libraries on a GPU.

python -m tools.targets run [LAB...]         measure all lines below, or those of these labs
python -m tools.targets add BENCH.json...    take them from files of `cudalab bench --json`

Both add the statistics to docs/results/targets/ and leave the latest runs of each line there;
tools/generate.py makes the table of docs/performance/README.md from them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab import labs
from cudalab.bench.document import load
from cudalab.labs.sizes import in_words
from tools import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cudalab.labs.inputs import Case, Size
    from tools.results import Json

SECONDS = "1"  # of sampling for a table
RUNS_SHOWN = 3
ROW = ("name", "kind", "cache", "status", "statistics", "baselines")  # what is stored of each
PEERS = {"cub": "CUB", "cupy": "CuPy"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """A goal: at each of `sizes`, the best of `variants` is `goal` times as fast as `peer`."""

    lab: str
    work: str
    sizes: tuple[Size, ...]
    goal: float
    peer: str
    variants: tuple[str, ...]
    dist: str = ""
    case: Case = field(default_factory=dict)  # options that are not the lab's defaults


MANY = 128_000_000
LONG = (MANY, 1 << 28)
SHORT = (1 << 16, 1 << 18, 1 << 20)
ITERATIONS = (
    "richardson_coalesced",
    "jacobi",
    "chebyshev",
    "conjugate_gradient",
    "conjugate_gradient_scaled",
)
SMALL_TILES = ("group_split_k", "group_split_k_80", "group_split_k_wide")
LARGE_TILES = ("async_copy_deep", "whole_waves")
FACTORS = ("lu_blocked_panel", "lu_look_ahead")
TENSOR_CORES = ("tensor_cores_bf16x6", "tensor_cores_cluster", "tensor_cores_wide")

sums = partial(Target, lab="reduce", peer="cub", variants=("single_pass",))
scans = partial(
    Target, lab="scan", peer="cub", variants=("decoupled_lookback", "lookback_prefetch")
)
counts = partial(Target, lab="histogram", peer="cub", variants=("privatized", "privatized_tickets"))
keys = partial(
    Target,
    lab="radixsort",
    peer="cub",
    variants=("onesweep", "most_significant_first_heavy"),
    sizes=(MANY,),
)
products = partial(Target, lab="matmul", peer="cupy", work="A·B")
on_tensor_cores = partial(products, work="A·B on tensor cores", variants=TENSOR_CORES)
# cuBLAS computes both halves of the answer.
squares = partial(products, sizes=(4096,), goal=1.5, case={"product": "aat"})
systems = partial(Target, lab="solve", peer="cupy")


def of_type(dtype: str) -> Iterator[Target]:
    """The targets of reduce and scan for one of their usual types."""
    case = {"dtype": dtype}
    yield sums(work=f"sum, {dtype}", sizes=LONG, goal=1.0, case=case)
    yield sums(work=f"sum, {dtype}", sizes=SHORT, goal=1.2, case=case)
    yield scans(work=f"exclusive sum, {dtype}", sizes=SHORT + LONG, goal=1.15, case=case)


def keys_of(dist: str, goal: float, **rest: Any) -> Target:
    return keys(work=f"keys, {dist}", goal=goal, dist=dist, **rest)


TARGETS = (
    *of_type("int32"),
    *of_type("float32"),
    *(
        counts(work=f"bytes, {dist}", sizes=(512_000_000,), goal=1.1, dist=dist)
        for dist in ("uniform", "equal", "normal", "one-hot")
    ),
    *(
        counts(
            work=f"uint32, {bins} bins",
            sizes=(1 << 28,),
            goal=2.0,
            case={"dtype": "uint32", "bins": bins},
        )
        for bins in (64, 256, 1024, 4096)
    ),
    keys_of("uniform", 1.5, sizes=(MANY, (1 << 28) - (1 << 16))),
    keys_of("uniform", 2.0, sizes=(1 << 16, 1 << 20)),
    keys_of("reversed", 1.2),
    *(keys_of(dist, 1.1) for dist in ("sorted", "equal", "few", "top-byte")),
    *(keys_of(dist, 1.2) for dist in ("bounded", "half-equal", "entropy-0.544", "entropy-0.201")),
    keys(work="keys, float32", goal=1.2, case={"dtype": "float32"}),
    keys(work="keys, float32, bounded", goal=1.2, dist="bounded", case={"dtype": "float32"}),
    keys(
        work="pairs",
        goal=1.1,
        variants=("onesweep", "most_significant_first_stable"),
        case={"layout": "pairs"},
    ),
    products(goal=1.1, variants=SMALL_TILES, sizes=(256, 512, 777, 1000, 1001, 1024)),
    products(goal=1.01, variants=LARGE_TILES, sizes=(2048, 4096, 8192)),
    products(goal=0.98, variants=LARGE_TILES, sizes=(3000, 4095)),
    on_tensor_cores(goal=1.7, sizes=(1024,)),
    on_tensor_cores(goal=2.0, sizes=(2048,)),
    on_tensor_cores(goal=2.35, sizes=(4096,)),
    on_tensor_cores(goal=2.55, sizes=(8192,)),
    squares(work="A·Aᵀ", variants=("aat_symmetric_deep",)),
    squares(work="A·Aᵀ on tensor cores", variants=("aat_tensor_cores",)),
    Target(
        lab="transpose",
        work="float32",
        sizes=(8192, (8191, 4097)),
        goal=1.0,
        peer="cupy",
        variants=("tiled_vectorized", "tiled_sectors"),
    ),
    *(
        systems(work=dist, dist=dist, sizes=(4096, 8192, 16384), goal=5.0, variants=ITERATIONS)
        for dist in ("dominant", "spd")
    ),
    *(
        systems(work="random", dist="random", sizes=(n,), goal=goal, variants=FACTORS)
        for n, goal in ((1024, 1.2), (4096, 1.6), (8192, 1.8), (16384, 2.5))
    ),
    systems(
        work="spd:1e4",
        dist="spd:1e4",
        sizes=(8192, 16384),
        goal=1.3,
        variants=("cholesky_tensor_cores",),
    ),
)


def main(command: str, *words: str) -> None:
    """Measure, or read files, and store the tables that belong to a target."""
    if command == "run":
        documents = (measured(t) for t in TARGETS if not words or t.lab in words)
    elif command == "add" and words:
        documents = (asdict(load(Path(word))) for word in words)
    else:
        sys.exit(__doc__)
    for document in documents:  # each is stored before the next is measured
        environment = document["environment"]
        path = results.FOLDER / "targets" / f"{results.slug(environment['device_name'])}.json"
        stored = results.read(path) if path.exists() else {"tables": []}
        stored["device"] = environment["device_name"]
        run = {key: environment[key] for key in ("date", "commit", "driver")}
        stored["tables"] += [
            {**run, **statistics_of(table)}
            for table in document["tables"]
            if any(belongs(table, target, size) for target in TARGETS for size in target.sizes)
        ]
        stored["tables"] = latest(stored["tables"])
        results.write_rows(path, {"device": stored["device"]}, stored["tables"], key="tables")


def statistics_of(table: Json) -> Json:
    """A table of bench as it is stored: what was measured, and statistics without samples."""
    measured = {key: table[key] for key in ("lab", "case", "size", "dist")}
    return {**measured, "rows": [{key: row[key] for key in ROW} for row in table["rows"]]}


def latest(tables: list[Json]) -> list[Json]:
    """The tables of the last RUNS_SHOWN runs of each target's variants; older ones are dropped."""
    needed = set()
    by_date = sorted(range(len(tables)), key=lambda i: str(tables[i]["date"]))
    for target in TARGETS:
        for size in target.sizes:
            runs = [i for i in by_date if belongs(tables[i], target, size)]
            for name in target.variants:
                of = [i for i in runs if name in ratios(tables[i], target)]
                needed.update(of[-RUNS_SHOWN:])
    return [table for i, table in enumerate(tables) if i in needed]


def measured(target: Target) -> Json:
    """The document of one `cudalab bench`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        lab = labs.get(target.lab)
        sizes = ",".join(in_words(size) for size in target.sizes)
        command = [
            *(sys.executable, "-m", "cudalab", "bench", lab.name, "--device", "cuda"),
            *("--variants", ",".join(target.variants), "--n", sizes, "--baseline", target.peer),
            *("--time-limit", SECONDS, "--json", str(path), *lab.words(lab.complete(target.case))),
            *(("--dist", target.dist) if target.dist else ()),
        ]
        subprocess.run(command, check=True, cwd=results.ROOT, stdout=subprocess.DEVNULL)
        return asdict(load(path))


def belongs(table: Json, target: Target, size: Size) -> bool:
    """Whether `table` has measured `target` at `size`."""
    lab = labs.get(target.lab)
    return (
        table["lab"] == target.lab
        and table["size"] == in_words(size, ",")
        and table["dist"] == (target.dist or lab.distributions[0])
        and not table.get("sweep")  # which is not stored
        and lab.complete(table["case"]) == lab.complete(target.case)
        and ratio(table, target) is not None
    )


def ratio(table: Json, target: Target) -> tuple[float, str] | None:
    """How many times as fast as the fastest form of the peer the best variant is, and its name."""
    by_name = ratios(table, target)
    return max(((times, name) for name, times in by_name.items()), default=None)


def ratios(table: Json, target: Target) -> dict[str, float]:
    """How many times as fast as the fastest form of the peer each variant is."""
    return {
        row["name"]: min(of_peer)
        for row in table["rows"]
        if row["name"] in target.variants
        and (of_peer := [b["ratio"] for b in row["baselines"].values() if is_of(b, target.peer)])
    }


def is_of(baseline: Json, peer: str) -> bool:
    return str(baseline["name"]).split(" ")[0] == peer


def lines(stored: Json) -> Iterable[list[str]]:
    """The rows of the table: each target at each size, with the last runs of the best variant.

    A target is missed where the median of these runs is below its goal. Targets without a run are
    left out: `not_measured` names them.
    """
    for target, size, history in runs(stored):
        if not history:
            continue
        date, commit, name, _ = history[-1]
        times = [of[name] for *_, of in history if name in of][-RUNS_SHOWN:]
        missed = round(statistics.median(times), 2) < target.goal
        yield [
            f"`{target.lab}` {target.work}",
            in_words(size, ","),
            f"`{name}`",
            ", ".join(f"{best:.2f}" for best in times) + (" (missed)" if missed else ""),
            f"{target.goal:g} times {PEERS[target.peer]}",
            f"{date[:10]}, `{commit}`",
        ]


def not_measured(stored: Json) -> str:
    """A sentence that names the work without any run, or nothing."""
    sizes: dict[str, list[str]] = {}
    for target, size, history in runs(stored):
        if not history:
            sizes.setdefault(f"`{target.lab}` {target.work}", []).append(in_words(size, ","))
    missing = "; ".join(f"{work} (n = {', '.join(of)})" for work, of in sizes.items())
    return f"\nNot measured on this device: {missing}.\n" if missing else ""


Run = tuple[str, str, str, dict[str, float]]  # date, commit, best variant, all variants' ratios


def runs(stored: Json) -> Iterator[tuple[Target, Size, list[Run]]]:
    """Each target at each size with its runs, the latest last."""
    for target in TARGETS:
        for size in target.sizes:
            history: list[Run] = sorted(
                (str(table["date"]), str(table["commit"]), best[1], ratios(table, target))
                for table in stored["tables"]
                if belongs(table, target, size) and (best := ratio(table, target))
            )
            yield target, size, history


if __name__ == "__main__":
    main(*sys.argv[1:]) if sys.argv[1:] else sys.exit(__doc__)
