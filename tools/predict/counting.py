"""Predictions of all ladders, stored as documents."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cudalab import labs
from cudalab.backends.cpu.device import CpuDevice
from cudalab.bench.results import commit
from cudalab.bench.suite import shown_case
from cudalab.labs import registry
from cudalab.labs.sizes import in_words
from cudalab.predict import growth, ladder
from cudalab.predict.counts import Generated
from cudalab.predict.ladder import Prediction, Rung
from tools import results
from tools.predict.stored import FOLDER, gpu_of

if TYPE_CHECKING:
    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Case, Size


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
        return ladder.predict(lab, variant, case, job.size, data, list(map(gpu_of, gpu_names)))


def store(gpu_name: str, rungs: dict[Job, Rung]) -> None:
    """Write one GPU's predictions: a document for each lab and size."""
    gpu = gpu_of(gpu_name)
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
