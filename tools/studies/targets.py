"""Compare each lab's best variant with the vendor's libraries on a GPU.

python -m tools.studies targets run [LAB...]         measure all lines below, or those of these labs
python -m tools.studies targets add BENCH.json...    take them from files of `cudalab bench --json`

Both add the statistics to docs/results/targets/ and leave the latest runs of each line there;
tools/generate.py makes the table of docs/performance/README.md from them.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.bench.document import load
from cudalab.bench.measured import Status
from cudalab.errors import ExitCode
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from tools import results
from tools.results import Json

SECONDS = "1"  # of sampling for a table
RUNS_SHOWN = 3
# What is stored of each row.
ROW = ("name", "kind", "cache", "status", "reason", "notes", "statistics", "baselines")
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
FACTORS = ("lu_graph", "lu_tensor_cores", "lu_look_ahead")
TENSOR_CORES = ("tensor_cores_fp16x3", "tensor_cores_fp16x3_wide")
THREE_PARTS = ("tensor_cores_bf16x6", "tensor_cores_cluster", "tensor_cores_wide")

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
            goal=2.2,
            case={"dtype": "uint32", "bins": bins},
        )
        for bins in (64, 256, 1024, 4096)
    ),
    keys_of("uniform", 1.8),
    keys_of("uniform", 1.5, sizes=((1 << 28) - (1 << 16),)),
    keys_of("uniform", 2.0, sizes=(1 << 16, 1 << 20)),
    keys_of("reversed", 1.2),
    *(keys_of(dist, 1.1) for dist in ("sorted", "equal", "few", "top-byte")),
    keys_of("few", 1.5, sizes=(1 << 20,)),
    keys_of("bounded", 1.35),
    *(keys_of(dist, 1.2) for dist in ("half-equal", "entropy-0.544", "entropy-0.201")),
    keys(work="keys, float32", goal=1.2, case={"dtype": "float32"}),
    keys(work="keys, float32, bounded", goal=1.2, dist="bounded", case={"dtype": "float32"}),
    keys(
        work="pairs",
        goal=1.6,
        variants=("onesweep", "most_significant_first_stable"),
        case={"layout": "pairs"},
    ),
    products(goal=1.1, variants=SMALL_TILES, sizes=(256, 512, 777, 1000, 1001, 1024)),
    products(goal=1.01, variants=LARGE_TILES, sizes=(2048, 4096, 8192)),
    products(goal=0.98, variants=LARGE_TILES, sizes=(3000, 4095)),
    on_tensor_cores(goal=1.7, sizes=(1024,), variants=THREE_PARTS),
    on_tensor_cores(goal=2.8, sizes=(2048,)),
    on_tensor_cores(goal=3.5, sizes=(4096,)),
    on_tensor_cores(goal=3.8, sizes=(8192,)),
    squares(work="A·Aᵀ", variants=("aat_symmetric_deep",)),
    squares(work="A·Aᵀ on tensor cores", variants=("aat_tensor_cores_fp16x3",)),
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
        for n, goal in ((1024, 1.25), (4096, 1.75), (8192, 2.3), (16384, 3.0))
    ),
    *(
        systems(
            work="spd:1e4",
            dist="spd:1e4",
            sizes=(n,),
            goal=goal,
            variants=("cholesky_narrow_strips", "cholesky_tensor_cores"),
        )
        for n, goal in ((4096, 1.1), (8192, 1.3), (16384, 2.0))
    ),
)


def main(command: str = "", *words: str) -> None:
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
        for table in document["tables"]:
            for row in table["rows"]:
                if row["status"] == Status.WRONG:
                    print(f"{table['lab']} n={table['size']} {row['name']}: {row['reason']}")


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
        done = subprocess.run(command, check=False, cwd=results.ROOT, stdout=subprocess.DEVNULL)
        if done.returncode not in (ExitCode.OK, ExitCode.WRONG_ANSWER):
            sys.exit(f"bench of {lab.name} {target.work} ended with {done.returncode}")
        return asdict(load(path))  # a wrong answer is stored as such


Ratio = tuple[float, float, float]  # how many times as fast, with the ends of its interval


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


def ratio(table: Json, target: Target) -> tuple[Ratio, str] | None:
    """How many times as fast as the fastest form of the peer the best variant is, and its name.

    Forms of the peer whose answer is wrong have no time.
    """
    by_name = ratios(table, target)
    return max(((times, name) for name, times in by_name.items()), default=None)


def ratios(table: Json, target: Target) -> dict[str, Ratio]:
    """How many times as fast as the fastest form of the peer each variant is."""
    return {
        row["name"]: min(of_peer)
        for row in table["rows"]
        if row["name"] in target.variants
        and (
            of_peer := [
                (each["ratio"], each["low"], each["high"])
                for each in row["baselines"].values()
                if is_of(each, target.peer)
            ]
        )
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
        last = history[-1]
        times = [run.ratios[last.best] for run in history if last.best in run.ratios][-RUNS_SHOWN:]
        missed = round(statistics.median(value for value, *_ in times), 2) < target.goal
        yield [
            f"`{target.lab}` {target.work}",
            in_words(size, ","),
            f"`{last.best}`",
            ", ".join(map(in_figures, times)) + (" (missed)" if missed else ""),
            f"{target.goal:g} times {last.peer}",
            f"{last.date[:10]}, `{last.commit}`" + (last.driver and f", driver {last.driver}"),
        ]


def in_figures(times: Ratio) -> str:
    """A ratio with its interval, unless that is narrower than the digits shown."""
    value, low, high = (f"{each:.2f}" for each in times)
    return value if low == high else f"{value} ({low} to {high})"


def wrong_answers(stored: Json) -> str:
    """A sentence that names the peers' wrong answers of the runs shown, or nothing."""
    wrong = {
        f"{row['name']}: `{table['lab']}` {table['dist']}, n = {table['size']}"
        for table in stored["tables"]
        for row in table["rows"]
        if row["kind"] == "baseline" and row["status"] == Status.WRONG
    }
    return f"\nWrong answers, which have no time: {'; '.join(sorted(wrong))}.\n" if wrong else ""


def not_measured(stored: Json) -> str:
    """A sentence that names the work without any run, or nothing."""
    sizes: dict[str, list[str]] = {}
    for target, size, history in runs(stored):
        if not history:
            sizes.setdefault(f"`{target.lab}` {target.work}", []).append(in_words(size, ","))
    missing = "; ".join(f"{work} (n = {', '.join(of)})" for work, of in sizes.items())
    return f"\nNot measured on this device: {missing}.\n" if missing else ""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run has measured of a target at a size."""

    date: str
    commit: str
    driver: str
    best: str  # the variant
    peer: str  # its fastest form
    ratios: dict[str, Ratio]  # of all variants


def runs(stored: Json) -> Iterator[tuple[Target, Size, list[Run]]]:
    """Each target at each size with its runs, the latest last."""
    for target in TARGETS:
        for size in target.sizes:
            history = [
                Run(
                    date=table["date"],
                    commit=table["commit"],
                    driver=table.get("driver", ""),
                    best=best[1],
                    peer=fastest_peer(table, target),
                    ratios=ratios(table, target),
                )
                for table in stored["tables"]
                if belongs(table, target, size) and (best := ratio(table, target))
            ]
            yield target, size, sorted(history, key=lambda run: (run.date, run.commit, run.best))


def fastest_peer(table: Json, target: Target) -> str:
    """The fastest form of the peer that is right, by its own note where that is stored."""
    forms = [row for row in table["rows"] if is_of(row, target.peer) and row["statistics"]]
    fastest = min(forms, key=lambda row: row["statistics"]["median_ms"])
    if fastest.get("notes"):
        return str(fastest["notes"][0]).partition(", n of")[0]
    return PEERS[target.peer] + str(fastest["name"]).removeprefix(target.peer)
