"""Compare the labs' defaults with CUB under other tuning policies than its own.

python -m tools.studies tuned_cub run    measure; stores docs/results/tuned-cub/GPU.json
python -m tools.generate                 writes the table of docs/performance/README.md

From 3.5 on, callers may tune CUB's algorithms. The policies tried are a grid around its own; those
that CUB cannot be compiled with are left out. Needs nvcc and the package `nvidia-cuda-cccl`.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from cudalab.backends.cuda import nvcc
from cudalab.bench.baselines import cub
from cudalab.bench.document import load
from tools import results
from tools.results import Json, table

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = (256, 384, 512)
MACROS = ("TUNED_THREADS", "TUNED_ITEMS", "TUNED_AHEAD")
OWN = (0, 0, 0)  # CUB's own policy
Policy = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is compared: the macro WORK, the words of `cudalab bench`, sizes and policies."""

    name: str
    words: tuple[str, ...]
    sizes: tuple[int, ...]
    policies: tuple[Policy, ...]
    floats: bool = False


def grid(items: tuple[int, ...], threads: tuple[int, ...] = THREADS) -> tuple[Policy, ...]:
    return (OWN, *((t, i, 0) for t in threads for i in items))


MANY = 128_000_000
WORKS = (
    Work(
        name="keys",
        words=("radixsort", "--variants", "most_significant_first_heavy"),
        sizes=(1 << 20, MANY),
        policies=grid((16, 20, 23, 28)),
    ),
    Work(
        name="pairs",
        words=("radixsort", "--pairs", "--variants", "most_significant_first_stable"),
        sizes=(MANY,),
        policies=grid((14, 18, 23)),
    ),
    Work(
        name="scan",
        words=("scan", "--variants", "lookback_prefetch"),
        sizes=(1 << 25, 1 << 28),
        policies=(
            *grid((16, 20, 24), (128, 256, 512)),
            *((warps, items, 4) for warps, items in ((1, 255), (1, 351), (2, 95), (2, 127))),
            *((warps, items, 4) for warps, items in ((2, 159), (2, 175), (4, 63), (4, 79))),
        ),
        floats=True,
    ),
    Work(
        name="reduce",
        words=("reduce", "--variants", "single_pass"),
        sizes=(MANY, 1 << 28),
        policies=grid((16, 20, 32)),
        floats=True,
    ),
)


def main(command: str = "") -> None:
    """Compile every policy, measure them one by one, then our own defaults; store the rows."""
    if command != "run":
        sys.exit(__doc__)
    compiler, headers = nvcc.find_nvcc(), cub.of_package()
    if headers is None:
        sys.exit("CUB's policies need the package nvidia-cuda-cccl")
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        for work in WORKS:
            built = dict(
                zip(
                    work.policies,
                    pool.map(
                        lambda policy, work=work: compiled(
                            compiler, headers, work.name, policy, Path(folder)
                        ),
                        work.policies,
                    ),
                    strict=True,
                )
            )
            for n in work.sizes:
                times = {
                    policy: measured(binary, n, work) for policy, binary in built.items() if binary
                }
                rows.append(
                    {
                        "work": work.name,
                        "n": n,
                        **our_own(work, n),
                        "policies": [[*policy, us] for policy, us in times.items()],
                    }
                )
                print(rows[-1], flush=True)
    machine = results.machine("cuda")
    head = {**machine, "cub": ".".join(map(str, headers.version))}
    name = results.slug(machine["device"])
    results.write_rows(results.FOLDER / "tuned-cub" / f"{name}.json", head, rows)


def compiled(
    compiler: Path, headers: cub.Headers, work: str, policy: Policy, folder: Path
) -> Path | None:
    """The program of a policy, or None if CUB refuses the policy."""
    binary = folder / "-".join(map(str, (work, *policy)))
    named = zip(MACROS, policy, strict=True)
    macros = [f"-D{name}={value}" for name, value in named]
    flags = ["-std=c++17", "-O3", "-arch=native", f"-I{headers.folder}", f"-DWORK={work}", *macros]
    done = subprocess.run(
        [str(compiler), *flags, str(SOURCE), "-o", str(binary)], capture_output=True, check=False
    )
    return None if done.returncode else binary


def measured(binary: Path, n: int, work: Work) -> float:
    """The median of a policy, in microseconds."""
    return float(subprocess.check_output([str(binary), str(n), str(int(work.floats))]))


def our_own(work: Work, n: int) -> Json:
    """The median of the lab's default, in microseconds, and its name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        command = [sys.executable, "-m", "cudalab", "bench", *work.words, "--device", "cuda"]
        subprocess.run(
            [*command, "--n", str(n), "--time-limit", "0.5", "--quiet", "--json", str(path)],
            check=True,
            cwd=results.ROOT,
            stdout=subprocess.DEVNULL,
        )
        (bench,) = asdict(load(path))["tables"]
    (row,) = bench["rows"]
    return {"variant": row["name"], "us": round(1e3 * row["statistics"]["median_ms"], 2)}


def compared() -> str:
    """The tables for docs/performance/README.md, one for each GPU."""
    return "\n".join(map(of_gpu, results.read_all("tuned-cub")))


def of_gpu(stored: Json) -> str:
    head = (
        f"{stored['device']}, driver {stored['driver']}, {stored['date']}, commit "
        f"`{stored['commit']}`; CUB {stored['cub']}, n of 32 bits:\n\n"
    )
    columns = ["work", "n", "variant", "µs", "CUB, µs", "tuned, µs", "by", "times as fast"]
    return head + table(columns, map(line, stored["rows"]), numbers=0)


def line(row: Json) -> list[str]:
    """Our time beside CUB's own policy and the fastest of those tried."""
    times = {tuple(policy): us for *policy, us in row["policies"]}
    best = min(times, key=times.__getitem__)
    return [
        f"`{row['work']}`",
        f"{row['n']:,}",
        f"`{row['variant']}`",
        f"{row['us']:,.1f}",
        f"{times[OWN]:,.1f}",
        f"{times[best]:,.1f}",
        described(best),
        f"{times[best] / row['us']:.2f}",
    ]


def described(policy: tuple[int, ...]) -> str:
    blocks, items, ahead = policy
    if policy == OWN:
        return "its own"
    return f"{blocks} {'warps, look-ahead' if ahead else 'threads'}, {items} items each"
