"""Predicted times beside measured ones: fits the model's constants, and scores it.

python -m tools.predict count GPU=SHARE,... ...   predict all ladders of a GPU at the size of bench
                                                  divided by each SHARE: h100=1 h200=1,4,16
python -m tools.predict fit                       fit the constants on the H100's ladders
python -m tools.predict add BENCH.json            store what `cudalab bench --json` has measured
python -m tools.predict score                     print what docs/predict.md says of the model

docs/results/predict has the predictions, and times at sizes that docs/results/bench has not. Only
the H100's ladders are fitted on; the predictions for the H200 were stored before its times were.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import tomllib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cudalab import labs
from cudalab.backends.cpu.device import CpuDevice
from cudalab.bench.document import load
from cudalab.bench.results import commit
from cudalab.bench.suite import shown_case
from cudalab.labs import registry
from cudalab.labs.sizes import in_words
from cudalab.predict import gpus, growth, ladder, model
from cudalab.predict.counts import Generated
from cudalab.predict.ladder import Prediction, Rung
from cudalab.predict.model import Constants
from cudalab.system import records
from tools import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Case, Size
    from cudalab.predict.gpus import Gpu

FOLDER = results.FOLDER / "predict"
FITTED_ON = "nvidia-h100-80gb-hbm3"
TIE = 0.05  # rungs that were measured closer than this have no order
NEAR = 1.5  # a factor, between a prediction and a measurement, that counts as right
MAX_MISS = 0.1  # of a squared logarithm: rungs off by more than a third count no more in the fit


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One rung, predicted and measured."""

    lab: str
    size: str
    variant: str
    order: float
    rung: Rung
    measured_s: float


# Counting ----------------------------------------------------------------------------------------


def count(shares: dict[str, list[int]]) -> None:
    """Store predictions for all ladders of each GPU, at its shares of the size that bench measures.

    As many processes as there are cores compute them.
    """
    jobs = [
        Job(lab.name, variant.name, share, growth.smaller(size, _halvings(lab, case, share)))
        for lab, case in ((lab, lab.complete({})) for lab in map(labs.get, labs.names()))
        for size in (lab.teaching.bench_size(case, "cuda"),)
        for share in sorted({share for each in shares.values() for share in each})
        for variant in registry.variants(lab)
        if variant.computes(case) and not variant.missing(CpuDevice.features)
    ]
    workers = max(1, (os.cpu_count() or 1) - 2)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        rungs = dict(zip(jobs, pool.map(partial(predicted, list(shares)), jobs), strict=True))
    for i, (name, own) in enumerate(shares.items()):
        store(name, {job: each[i] for job, each in rungs.items() if job.share in own})


class Job(NamedTuple):
    """A rung to predict."""

    lab: str
    variant: str
    share: int
    size: Size


def _halvings(lab: Lab, case: Case, share: int) -> int:
    """How often a size is halved for that share of the elements; share is a power of two."""
    halvings = share.bit_length() - 1
    return halvings // 2 if lab.teaching.sizes(case).is_order else halvings


def predicted(gpu_names: list[str], job: Job) -> list[Rung]:
    """Predict one rung on each GPU, in a process of its own."""
    lab = labs.get(job.lab)
    case, variant = lab.complete({}), registry.find(lab, job.variant)
    with tempfile.TemporaryDirectory() as name:
        data = Generated(lab, case, lab.distributions[0], 0, folder=Path(name))
        return ladder.predict(lab, variant, case, job.size, data, list(map(gpus.load, gpu_names)))


def store(gpu_name: str, rungs: dict[Job, Rung]) -> None:
    """Write one GPU's predictions: a document for each lab and size."""
    gpu = gpus.load(gpu_name)
    documents = [
        Prediction(
            gpu=gpu.name,
            assumed=gpu.origins("assumed"),
            lab=name,
            case=shown_case(labs.get(name), labs.get(name).complete({})),
            size=in_words(size, ","),
            rungs=[rung for job, rung in rungs.items() if (job.lab, job.size) == (name, size)],
            notes=[],
        )
        for name, size in dict.fromkeys((job.lab, job.size) for job in rungs)
    ]
    head = {"gpu": gpu_name, "date": results.today(), "commit": commit()}
    path = FOLDER / f"{results.slug(gpu.name)}.json"
    rows = [_short(each.to_json()) for each in documents]
    results.write_rows(path, head, rows, "predictions")


def _short(value: Any) -> Any:
    """Numbers with six digits."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


# Comparing ---------------------------------------------------------------------------------------


def pairs(name: str) -> tuple[Gpu, list[Pair]]:
    """The rungs of one GPU that were predicted and measured."""
    stored, times = results.read(FOLDER / f"{name}.json"), measured(name)
    result = []
    for document in stored["predictions"]:
        each = records.read(Prediction, document)
        for rung in each.rungs:
            key = each.lab, each.size, rung.variant
            if rung.kernels and key in times:
                one = Pair(
                    lab=each.lab,
                    size=each.size,
                    variant=rung.variant,
                    order=rung.order,
                    rung=rung,
                    measured_s=times[key],
                )
                result.append(one)
    return gpus.load(stored["gpu"]), result


def measured(name: str) -> dict[tuple[str, str, str], float]:
    """The seconds of the rungs of one GPU, by lab, size and variant; none if it was not measured.

    Those of the GPU that is fitted on are in docs/results/bench. Others count only if they were
    measured after the predictions.
    """
    if name == FITTED_ON:
        document = load(results.FOLDER / "bench" / f"{name}.json")
        return {
            (table.lab, table.size, row.name): figures.median_ms / 1e3
            for table in document.tables
            for row, figures in table.timed
            if row.kind == "variant"
        }
    path = FOLDER / f"measured-{name}.json"
    return {
        (table["lab"], table["size"], row["name"]): row["median_ms"] / 1e3
        for table in (results.read(path)["tables"] if path.exists() else [])
        for row in table["rows"]
    }


def recomputed(pair: Pair, gpu: Gpu, k: Constants) -> float:
    """The seconds that the model predicts now."""
    return model.seconds(pair.rung.kernels or [], gpu, k)


@dataclass(frozen=True, kw_only=True)
class Score:
    """How far predictions are from measurements."""

    rungs: int
    ordered: int  # pairs of rungs in the right order
    decided: int  # pairs that the measurement decides
    near: int  # neighbours whose factor is within NEAR
    neighbours: int
    errors: tuple[float, ...]  # of the times, as factors of at least 1

    @property
    def tau(self) -> float:
        """Kendall's tau; pairs that were measured within TIE are left out."""
        return 2 * self.ordered / self.decided - 1 if self.decided else 1.0

    @property
    def median(self) -> float:
        """The factor by which half of the times are off at most."""
        return sorted(self.errors)[len(self.errors) // 2]

    @property
    def within(self) -> int:
        """How many times are off by a factor of NEAR at most."""
        return sum(error <= NEAR for error in self.errors)


def score(rungs: Sequence[tuple[float, float]]) -> Score:
    """Score one ladder: predicted and measured times, in its order."""
    decided = [
        (a > b) == (x > y) for (a, x), (b, y) in combinations(rungs, 2) if abs(x / y - 1) > TIE
    ]
    factors = [(a / b) / (x / y) for (a, x), (b, y) in pairwise(rungs)]
    return Score(
        rungs=len(rungs),
        ordered=sum(decided),
        decided=len(decided),
        near=sum(_off(factor) <= NEAR for factor in factors),
        neighbours=len(factors),
        errors=tuple(_off(a / x) for a, x in rungs),
    )


def _off(factor: float) -> float:
    return max(factor, 1 / factor)


def total(scores: Iterable[Score]) -> Score:
    """All ladders together; only rungs of one ladder are compared with each other."""
    every = list(scores)
    return Score(
        rungs=sum(one.rungs for one in every),
        ordered=sum(one.ordered for one in every),
        decided=sum(one.decided for one in every),
        near=sum(one.near for one in every),
        neighbours=sum(one.neighbours for one in every),
        errors=tuple(error for one in every for error in one.errors),
    )


def ladders(
    found: Sequence[Pair], times: Sequence[float]
) -> dict[tuple[str, str], list[tuple[Pair, float]]]:
    """The rungs with their times, by lab and size, in the order of the ladder."""
    result: dict[tuple[str, str], list[tuple[Pair, float]]] = {}
    for pair, time in sorted(zip(found, times, strict=True), key=lambda one: one[0].order):
        result.setdefault((pair.lab, pair.size), []).append((pair, time))
    return dict(sorted(result.items(), key=lambda one: (one[0][0], _number(one[0][1]))))


def _number(size: str) -> int:
    return int(size.split("x", maxsplit=1)[0].replace(",", ""))


# Fitting -----------------------------------------------------------------------------------------


def fit() -> dict[str, float]:
    """The constants for which the H100's ladders are nearest, found one factor at a time."""
    gpu, found = pairs(FITTED_ON)
    best = {**asdict(Constants()), "launch_us": gpu.launch_us}

    def cost(trial: dict[str, float]) -> float:
        k = Constants(**{name: value for name, value in trial.items() if name != "launch_us"})
        there = replace(gpu, launch_us=trial["launch_us"])
        logs = (math.log(recomputed(pair, there, k) / pair.measured_s) for pair in found)
        return sum(min(log * log, MAX_MISS) for log in logs)

    for step in (1.5, 1.2, 1.08, 1.03, 1.01):
        moved = True
        while moved:
            trials = [{**best, name: best[name] * f} for name in best for f in (step, 1 / step)]
            nearest = min((one for one in trials if one["overlap"] >= 1), key=cost)
            moved = cost(nearest) < cost(best) - 1e-9
            best = nearest if moved else best
    return best


# Tables ------------------------------------------------------------------------------------------

CONSTANTS = {
    "overlap": ("*p*", "how far the parts of the GPU overlap"),
    "barrier_cycles": ("*b*", "cycles that a warp waits at a barrier for its block"),
    "partial_per_cycle": ("*s*", "partly stored sectors in a cycle, of the whole GPU"),
    "launch_us": ("*c*", "µs from launch to launch; in the H100's file"),
}
GPU_COLUMNS = {
    "multiprocessors": "multiprocessors",
    "clock_mhz": "MHz",
    "dram_gb_per_s": "copy, GB/s",
    "l2_mb": "L2, MB",
    "shared_kb": "shared memory, KB",
    "warps": "warps",
    "float_lanes": "lanes",
}
COLUMNS = ["lab", "n", "rungs", "tau", "neighbours within 1.5", "median error of a time"]
MISSES = ["rung", "n", "measured, ms", "predicted, ms", "ratio", "what the model does not know"]


def constants() -> str:
    """The fitted constants."""
    values = {**asdict(Constants()), "launch_us": gpus.load("h100").launch_us}
    rows = [[symbol, f"{values[name]:g}", text] for name, (symbol, text) in CONSTANTS.items()]
    return results.table(["constant", "value", "what it is"], rows)


def known_gpus() -> str:
    """The GPUs that have a file, and how many of their numbers were measured."""
    rows = [
        [
            f"`{name}`",
            gpu.name,
            *(f"{getattr(gpu, column):,g}" for column in GPU_COLUMNS),
            *(str(len(gpu.origins(kind))) for kind in gpus.SOURCES),
        ]
        for name, gpu in ((name, gpus.load(name)) for name in gpus.names())
    ]
    columns = ["`--gpu`", "GPU", *GPU_COLUMNS.values(), *gpus.SOURCES]
    return results.table(columns, rows, numbers=len(columns) - 2)


def scores() -> str:
    """A table for each GPU of docs/results/predict."""
    return "\n".join(map(scores_of, stored_names())) or "Nothing is stored yet.\n"


def stored_names() -> list[str]:
    """The GPUs with predictions and measurements, the one fitted on first."""
    names = [path.stem for path in sorted(FOLDER.glob("nvidia-*.json"))]
    return [name for name in sorted(names, key=lambda name: name != FITTED_ON) if pairs(name)[1]]


def scores_of(name: str) -> str:
    """The scores of each ladder, and of all."""
    stored = results.read(FOLDER / f"{name}.json")
    gpu, found = pairs(name)
    times = [(pair.rung.ms or 0.0) / 1e3 for pair in found]
    each = {
        key: score([(time, pair.measured_s) for pair, time in rungs])
        for key, rungs in ladders(found, times).items()
    }
    rows = [[f"`{lab}`", size, *_cells(one)] for (lab, size), one in each.items()]
    rows.append(["all", "", *_cells(total(each.values()))])
    fitted = "fitted on" if name == FITTED_ON else "predicted before it was measured"
    head = (
        f"{gpu.name}, {fitted}; predictions of {stored['date']}, commit `{stored['commit']}`:\n\n"
    )
    return head + results.table(COLUMNS, rows, numbers=4)


def _cells(one: Score) -> list[str]:
    return [
        str(one.rungs),
        f"{one.tau:.2f} ({one.ordered} of {one.decided})" if one.decided else "",
        f"{one.near} of {one.neighbours}" if one.neighbours else "",
        f"{100 * (one.median - 1):.0f} %",
    ]


def without_terms() -> str:
    """What becomes of the H100's ladders if a term is left out, and nothing is fitted again."""
    gpu, found = pairs(FITTED_ON)
    terms = list(model.terms((found[0].rung.kernels or [])[0], gpu, Constants()))
    left_out = {"nothing": [], **{term: [term] for term in terms}}
    left_out["all but DRAM and L2: a plain roofline of bytes"] = terms[2:]
    rows = []
    for text, names in left_out.items():
        times = [_seconds_without(pair, gpu, names) for pair in found]
        each = ladders(found, times).values()
        whole = total(score([(t, pair.measured_s) for pair, t in rungs]) for rungs in each)
        rows.append([text, *_cells(whole)[1:]])
    return results.table(["left out", *COLUMNS[3:]], rows, numbers=3)


def _seconds_without(pair: Pair, gpu: Gpu, names: list[str]) -> float:
    k, result = Constants(), 0.0
    for work in pair.rung.kernels or []:
        terms = model.terms(work, gpu, k)
        powers = sum(term**k.overlap for name, term in terms.items() if name not in names)
        result += work.launches * gpu.launch_us * 1e-6 + powers ** (1 / k.overlap)
    return result


def misses() -> str:
    """The times that are off by more than a factor of NEAR, and why."""
    path = FOLDER / "misses.toml"
    reasons = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    rows = []
    for name in stored_names():
        gpu, found = pairs(name)
        for pair in found:
            ms, measured = pair.rung.ms or 0.0, 1e3 * pair.measured_s
            if _off(ms / measured) > NEAR:
                why = reasons.get(pair.lab, {}).get(pair.variant, "not known")
                head = f"`{pair.lab}/{pair.variant}`, {gpu.name}"
                rows.append(
                    [head, pair.size, f"{measured:.3g}", f"{ms:.3g}", f"{ms / measured:.2f}", why]
                )
    return results.table(MISSES, rows)


def add(paths: Sequence[Path]) -> None:
    """Store the times of one GPU's ladders in the place of the last ones."""
    documents = [load(path) for path in paths]
    tables = [
        {
            "lab": table.lab,
            "size": table.size,
            "rows": [
                {"name": row.name, "median_ms": figures.median_ms}
                for row, figures in table.timed
                if row.kind == "variant"
            ],
        }
        for document in documents
        for table in document.tables
        if any(row.kind == "variant" for row, _ in table.timed)
    ]
    environment = documents[0].environment
    head = {
        name: getattr(environment, name) for name in ("device_name", "date", "driver", "commit")
    }
    name = results.slug(environment.device_name)
    results.write_rows(FOLDER / f"measured-{name}.json", head, tables, "tables")


def main() -> None:
    """Run one of the commands."""
    match sys.argv[1:]:
        case ["count", *gpus_and_shares]:
            named = (each.partition("=") for each in gpus_and_shares)
            count({gpu: [int(share) for share in text.split(",")] for gpu, _, text in named})
        case ["add", *paths]:
            add(list(map(Path, paths)))
        case ["fit"]:
            print(fit())
        case ["score"]:
            print(scores(), without_terms(), misses(), sep="\n")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
