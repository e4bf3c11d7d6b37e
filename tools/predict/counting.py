"""Predictions of all ladders, stored as documents."""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from cudalab import labs
from cudalab.backends import host_features
from cudalab.bench.choice import own_variant, shown_case
from cudalab.bench.results import commit
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from cudalab.predict import growth, ladder
from cudalab.predict.counts import Generated
from cudalab.predict.ladder import Prediction, Rung
from tools import results
from tools.predict.stored import (
    FITTED_ON,
    FOLDER,
    gpu_of,
    number_of,
    prediction_of,
    size_of,
    targets,
)

PLANTED = results.ROOT / "tests" / "predict" / "planted_stride.cu"
PLANTED_IN = "reduce"
PLANTED_SIZES = (1 << 22, 1 << 26)
STRIDES = (1, 2, 4, 8, 16, 32)
# Sizes that no other predictions have.
OTHER_SIZES: dict[str, tuple[int, ...]] = {
    "bitonic": (1 << 17, 1 << 19, 1 << 21),
    "histogram": (1 << 22, 1 << 24, 1 << 26),
    "matmul": (768, 1536, 3072),
    "radixsort": (1 << 19, 1 << 21, 1 << 23),
    "reduce": (1 << 21, 1 << 23, 1 << 25),
    "scan": (1 << 20, 1 << 22, 1 << 24),
    "softmax": (768, 1536, 3072),
    "table": (1 << 19, 1 << 21, 1 << 23),
    "transpose": (1024, 3072, 6144),
}


def count(shares: dict[str, list[int]]) -> None:
    """Store predictions for all ladders of each GPU, at its shares of the size that bench measures.

    As many processes as there are cores compute them.
    """
    jobs = [
        Job(lab.name, variant, share, growth.smaller(size, _halvings(lab, case, share)))
        for lab, case in ((lab, lab.complete({})) for lab in map(labs.get, labs.names()))
        for size in (lab.teaching.bench_size(case, "cuda"),)
        for share in sorted({share for each in shares.values() for share in each})
        for variant in _able(lab)
    ]
    rungs = _all_predicted(list(shares), jobs)
    for i, (name, own) in enumerate(shares.items()):
        store(name, {job: each[i] for job, each in rungs.items() if job.share in own})


def count_others(gpu_name: str) -> None:
    """Store predictions for all ladders of a GPU at OTHER_SIZES."""
    jobs = [
        Job(name, variant, 1, size)
        for name, sizes in OTHER_SIZES.items()
        for size in sizes
        for variant in _able(labs.get(name))
    ]
    ladders = _ladders({job: rung for job, (rung,) in _all_predicted([gpu_name], jobs).items()})
    write(gpu_name, f"{results.slug(gpu_of(gpu_name).name)}-other-sizes", ladders)


def count_again(name: str) -> None:
    """Store what today's model says of stored predictions that do not change any more."""
    document = results.read(FOLDER / f"{name}.json")
    jobs = [
        Job(each["lab"], rung["variant"], 1, size_of(each["size"]))
        for each in document["predictions"]
        for rung in each["rungs"]
        if rung["kernels"]
    ]
    gpu_name = document["gpu"]
    ladders = _ladders({job: rung for job, (rung,) in _all_predicted([gpu_name], jobs).items()})
    _write(FOLDER / f"today-{name}.json", gpu_name, ladders)


def _able(lab: Lab) -> list[str]:
    """The variants that the CPU device can count, by name."""
    case = lab.complete({})
    return [
        variant.name
        for variant in registry.variants(lab)
        if variant.computes(case) and not variant.missing(host_features())
    ]


def _all_predicted(gpu_names: list[str], jobs: list[Job]) -> dict[Job, list[Rung]]:
    """Predict all rungs, with as many processes as there are cores."""
    workers = max(1, (os.cpu_count() or 1) - 2)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return dict(zip(jobs, pool.map(partial(predicted, gpu_names), jobs), strict=True))


def count_targets() -> None:
    """Add predictions at smaller sizes that were measured on the GPU that is fitted on."""
    document = results.read(FOLDER / f"{FITTED_ON}.json")
    known = {each["lab"]: number_of(each["size"]) for each in document["predictions"]}
    able = {
        (each["lab"], rung["variant"])
        for each in document["predictions"]
        for rung in each["rungs"]
        if rung["kernels"]
    }
    jobs = []
    for name, size_text, variant in sorted(targets()):
        if (name, variant) in able and number_of(size_text) < known[name]:
            jobs.append(Job(name, variant, 1, size_of(size_text)))
    ladders = _ladders({job: predicted([document["gpu"]], job)[0] for job in jobs})
    rows = [_short(asdict(each)) for each in documents(document["gpu"], ladders)]
    head = {name: document[name] for name in ("gpu", "date", "commit")}
    path = FOLDER / f"{FITTED_ON}.json"
    results.write_rows(path, head, document["predictions"] + rows, "predictions")


def again(name: str) -> None:
    """Compute the times of stored predictions anew, from the work that was counted.

    Those of a GPU that was measured, and not fitted on, do not change any more.
    """
    path = FOLDER / f"{name}.json"
    if name != FITTED_ON and (FOLDER / f"measured-{name}.json").exists():
        sys.exit(f"{path} has been measured: predictions do not change any more")
    document = results.read(path)
    gpu = gpu_of(document["gpu"])
    rows = []
    for each in document["predictions"]:
        one = prediction_of(each)
        rungs = [ladder.timed(rung, gpu) if rung.kernels else rung for rung in one.rungs]
        rows.append(_short(asdict(replace(one, rungs=rungs))))
    head = {"gpu": document["gpu"], "date": results.today(), "commit": commit()}
    results.write_rows(path, head, rows, "predictions")


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
    case = lab.complete({})
    _, is_planted, stride = job.variant.rstrip("]").partition("[STRIDE=")
    variant = with_stride(int(stride)) if is_planted else registry.find(lab, job.variant)
    with tempfile.TemporaryDirectory() as name:
        data = Generated(lab, case, lab.distributions[0], 0, folder=Path(name))
        return ladder.predict(lab, variant, case, job.size, data, list(map(gpu_of, gpu_names)))


def store(gpu_name: str, rungs: dict[Job, Rung]) -> None:
    """Write one GPU's predictions: a document for each lab and size."""
    write(gpu_name, results.slug(gpu_of(gpu_name).name), _ladders(rungs))


def _ladders(rungs: dict[Job, Rung]) -> dict[tuple[str, Size], list[Rung]]:
    """The rungs by lab and size."""
    ladders: dict[tuple[str, Size], list[Rung]] = {}
    for job, rung in rungs.items():
        ladders.setdefault((job.lab, job.size), []).append(rung)
    return ladders


def planted(gpu_name: str) -> None:
    """Store predictions for a student's kernel with strides planted in it, as a ladder."""
    names = [with_stride(stride).name for stride in STRIDES]
    jobs = [Job(PLANTED_IN, name, 1, size) for size in PLANTED_SIZES for name in names]
    ladders = _ladders({job: predicted([gpu_name], job)[0] for job in jobs})
    write(gpu_name, f"{results.slug(gpu_of(gpu_name).name)}-planted", ladders)


def with_stride(stride: int) -> Variant:
    """The kernel with that stride, called as in a sweep of bench."""
    lab = labs.get(PLANTED_IN)
    own = own_variant(lab, lab.complete({}), PLANTED)
    return replace(
        own,
        name=f"{own.name}[STRIDE={stride}]",
        label=PLANTED.name,
        order=stride,
        defines=own.defines | {"STRIDE": stride},
    )


def write(gpu_name: str, name: str, ladders: dict[tuple[str, Size], list[Rung]]) -> None:
    """Write the file of one GPU's predictions; those of a GPU that is not fitted on stay."""
    path = FOLDER / f"{name}.json"
    if path.exists() and name != FITTED_ON:
        sys.exit(f"{path} has been predicted: predictions do not change any more")
    _write(path, gpu_name, ladders)


def _write(path: Path, gpu_name: str, ladders: dict[tuple[str, Size], list[Rung]]) -> None:
    head = {"gpu": gpu_name, "date": results.today(), "commit": commit()}
    rows = [_short(asdict(each)) for each in documents(gpu_name, ladders)]
    results.write_rows(path, head, rows, "predictions")


def documents(gpu_name: str, ladders: dict[tuple[str, Size], list[Rung]]) -> list[Prediction]:
    """A document for each lab and size."""
    gpu = gpu_of(gpu_name)
    return [
        Prediction(
            gpu=gpu.name,
            assumed=gpu.origins("assumed"),
            lab=lab,
            case=shown_case(labs.get(lab), labs.get(lab).complete({})),
            size=in_words(size, ","),
            rungs=rungs,
            notes=[],
        )
        for (lab, size), rungs in ladders.items()
    ]


def _short(value: Any) -> Any:
    """Numbers with six digits."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
