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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab import labs
from cudalab.bench.document import load
from tools import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cudalab.labs.inputs import Size
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
    options: tuple[str, ...] = ()
    case: tuple[tuple[str, object], ...] = ()  # what the options mean


def of_type(dtype: str) -> Iterator[Target]:
    """The targets of reduce and scan for one of their usual types."""
    options, case = ("--dtype", dtype), (("dtype", dtype),)
    scans = ("decoupled_lookback", "lookback_prefetch")
    for sizes, goal in ((LONG, 1.0), (SHORT, 1.2)):
        yield Target(
            lab="reduce",
            work=f"sum, {dtype}",
            sizes=sizes,
            goal=goal,
            peer="cub",
            variants=("single_pass",),
            options=options,
            case=case,
        )
    yield Target(
        lab="scan",
        work=f"exclusive sum, {dtype}",
        sizes=SHORT + LONG,
        goal=1.15,
        peer="cub",
        variants=scans,
        options=options,
        case=case,
    )


def bytes_of(dist: str) -> Target:
    variants = ("privatized", "privatized_tickets")
    return Target(
        lab="histogram",
        work=f"bytes, {dist}",
        sizes=(512_000_000,),
        goal=1.1,
        peer="cub",
        variants=variants,
        dist=dist,
    )


def words_in(bins: int) -> Target:
    return Target(
        lab="histogram",
        work=f"uint32, {bins} bins",
        sizes=(1 << 28,),
        goal=2.0,
        peer="cub",
        variants=("privatized", "privatized_tickets"),
        options=("--dtype", "uint32", "--bins", str(bins)),
        case=(("dtype", "uint32"), ("bins", bins)),
    )


def keys_of(dist: str, goal: float, *sizes: int) -> Target:
    variants = ("onesweep", "most_significant_first_heavy")
    return Target(
        lab="radixsort",
        work=f"keys, {dist}",
        sizes=sizes or (MANY,),
        goal=goal,
        peer="cub",
        variants=variants,
        dist=dist,
    )


def product(kind: str, goal: float, variants: tuple[str, ...], *sizes: int) -> Target:
    return Target(lab="matmul", work=kind, sizes=sizes, goal=goal, peer="cupy", variants=variants)


def symmetric(kind: str, variant: str) -> Target:
    """A times its transpose; cuBLAS computes both halves of the answer."""
    case = (("product", "aat"),)
    return Target(
        lab="matmul",
        work=kind,
        sizes=(4096,),
        goal=1.5,
        peer="cupy",
        variants=(variant,),
        options=("--aat",),
        case=case,
    )


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
TENSOR_CORES = ("tensor_cores_bf16x6", "tensor_cores_cluster", "tensor_cores_wide")
TARGETS = (
    *of_type("int32"),
    *of_type("float32"),
    *map(bytes_of, ("uniform", "equal", "normal", "one-hot")),
    *map(words_in, (64, 256, 1024, 4096)),
    keys_of("uniform", 1.5, MANY, (1 << 28) - (1 << 16)),
    keys_of("uniform", 2.0, 1 << 16, 1 << 20),
    keys_of("reversed", 1.2),
    *(keys_of(dist, 1.1) for dist in ("sorted", "equal", "few", "top-byte")),
    *(keys_of(dist, 1.2) for dist in ("bounded", "half-equal", "entropy-0.544", "entropy-0.201")),
    *(
        Target(
            lab="radixsort",
            work=work,
            sizes=(MANY,),
            goal=1.2,
            peer="cub",
            variants=("onesweep", "most_significant_first_heavy"),
            dist=dist,
            options=("--dtype", "float32"),
            case=(("dtype", "float32"),),
        )
        for work, dist in (("keys, float32", ""), ("keys, float32, bounded", "bounded"))
    ),
    Target(
        lab="radixsort",
        work="pairs",
        sizes=(MANY,),
        goal=1.1,
        peer="cub",
        variants=("onesweep", "most_significant_first_stable"),
        options=("--pairs",),
        case=(("layout", "pairs"),),
    ),
    product("A·B", 1.1, SMALL_TILES, 256, 512, 777, 1000, 1001, 1024),
    product("A·B", 1.01, LARGE_TILES, 2048, 4096, 8192),
    product("A·B", 0.98, LARGE_TILES, 3000, 4095),
    product("A·B on tensor cores", 1.7, TENSOR_CORES, 1024),
    product("A·B on tensor cores", 2.0, TENSOR_CORES, 2048),
    product("A·B on tensor cores", 2.35, TENSOR_CORES, 4096),
    product("A·B on tensor cores", 2.55, TENSOR_CORES, 8192),
    symmetric("A·Aᵀ", "aat_symmetric_deep"),
    symmetric("A·Aᵀ on tensor cores", "aat_tensor_cores"),
    Target(
        lab="transpose",
        work="float32",
        sizes=(8192, (8191, 4097)),
        goal=1.0,
        peer="cupy",
        variants=("tiled_vectorized", "tiled_sectors"),
    ),
    *(
        Target(
            lab="solve",
            work=work,
            sizes=(4096, 8192, 16384),
            goal=5.0,
            peer="cupy",
            variants=ITERATIONS,
            dist=work,
        )
        for work in ("dominant", "spd")
    ),
    Target(
        lab="solve",
        work="random",
        sizes=(1024, 4096, 16384),
        goal=1.0,
        peer="cupy",
        variants=("lu_blocked_panel",),
        dist="random",
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
        dist = ["--dist", target.dist] if target.dist else []
        command = [
            sys.executable,
            "-m",
            "cudalab",
            "bench",
            target.lab,
            "--device",
            "cuda",
            "--variants",
            ",".join(target.variants),
            "--n",
            ",".join(shown(size, "") for size in target.sizes),
            "--baseline",
            target.peer,
            "--time-limit",
            SECONDS,
            "--json",
            str(path),
            *dist,
            *target.options,
        ]
        subprocess.run(command, check=True, cwd=results.ROOT, stdout=subprocess.DEVNULL)
        return asdict(load(path))


def shown(size: Size, comma: str = ",") -> str:
    """A size as `cudalab bench` writes it; without commas as its --n takes it."""
    return "x".join(
        f"{n:,}".replace(",", comma) for n in (size if isinstance(size, tuple) else [size])
    )


def belongs(table: Json, target: Target, size: Size) -> bool:
    """Whether `table` has measured `target` at `size`."""
    lab = labs.get(target.lab)
    return (
        table["lab"] == target.lab
        and table["size"] == shown(size)
        and table["dist"] == (target.dist or lab.distributions[0])
        and not table.get("sweep")  # which is not stored
        and lab.complete(table["case"]) == lab.complete(dict(target.case))
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
            shown(size),
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
            sizes.setdefault(f"`{target.lab}` {target.work}", []).append(shown(size))
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
