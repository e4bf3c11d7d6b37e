"""A ladder as a GPU would climb it: each rung's predicted time, and the part that limits it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cudalab.backends import host_device, host_features
from cudalab.errors import CudalabError, NoDeviceError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.language import source
from cudalab.predict import model
from cudalab.predict.code import Code, compiled
from cudalab.predict.counts import Counts, Generated, Subject
from cudalab.predict.gpus import Gpu
from cudalab.predict.growth import counts_of
from cudalab.predict.model import Constants, Work
from cudalab.predict.recorder import Recorder
from cudalab.system.records import Scalar

# The time is within this factor of the prediction for nine in ten of the measured rungs:
# docs/predict.md has a table, by `tools.predict.tables.intervals`.
INTERVAL, INTERVAL_WITHOUT_NVCC = 1.5, 2.7
TIE = 1.1  # rungs closer than this have no winner


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One variant's prediction; without a time, the reason why."""

    variant: str
    order: float
    summary: str
    ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    limit: str = ""  # the part of the GPU that takes longest
    terms_ms: dict[str, float] | None = None  # of all parts
    ladder: str = ""  # whose rung it is; the main one, if empty
    failed: str = ""
    compiled: bool = True  # by nvcc; without it, nothing is known of the instructions
    kernels: list[Work] | None = None


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One lab's rungs at one size on one GPU."""

    gpu: str
    assumed: list[str]  # the numbers of the GPU's file that nobody measured or documented
    lab: str
    case: dict[str, Scalar]
    size: str
    items: int = 0  # elements that are computed
    flops: int = 0  # floating-point operations; 0 if the bytes are the limit
    rungs: list[Rung]
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """The document of `cudalab predict`: one prediction for each size."""

    schema: str = "cudalab-predict/1"
    predictions: list[Prediction]


def predict(
    lab: Lab, variant: Variant, case: Case, size: Size, data: Generated, gpus: Sequence[Gpu]
) -> list[Rung]:
    """Count one variant, and predict its time on each GPU."""
    return [_predict(lab, variant, case, size, data, gpu) for gpu in gpus]


def _predict(lab: Lab, variant: Variant, case: Case, size: Size, data: Generated, gpu: Gpu) -> Rung:
    keys = ("order", "summary", "ladder")
    about = {"variant": variant.name, **{key: getattr(variant, key) for key in keys}}
    try:
        registry.check_features(variant, gpu.name, gpu.features)
        counts = counts_of(Subject(lab, variant, case, int(gpu.multiprocessors)), size, data)
        return rung(counts, codes_of(lab, variant, case, gpu), gpu, about)
    except CudalabError as error:
        return Rung(**about, failed=error.message)


def rung(counts: Counts, codes: dict[str, Code], gpu: Gpu, about: dict[str, Any]) -> Rung:
    """The prediction from the counts and the code of a variant's kernels."""
    works = model.works(counts, codes, gpu)
    return timed(Rung(**about, compiled=bool(codes), kernels=works), gpu)


def timed(one: Rung, gpu: Gpu) -> Rung:
    """A rung with the times that follow from its kernels' work."""
    works, k = one.kernels or [], Constants()
    interval = INTERVAL if one.compiled else INTERVAL_WITHOUT_NVCC
    terms: dict[str, float] = defaultdict(float)
    for each in works:
        for name, seconds in model.terms(each, gpu, k).items():
            terms[name] += 1e3 * seconds
    launches = sum(each.launches for each in works)
    terms["launches"] += 1e-3 * (k.begin_us + gpu.launch_us * launches)
    ms = 1e3 * model.seconds(works, gpu, k)
    return replace(
        one,
        ms=ms,
        low_ms=min(ms, max(ms / interval, 1e3 * model.least_seconds(works, gpu))),
        high_ms=ms * interval,
        limit=max(terms, key=lambda name: terms[name]),
        terms_ms=dict(terms),
    )


def codes_of(lab: Lab, variant: Variant, case: Case, gpu: Gpu) -> dict[str, Code]:
    """The variant's kernels as nvcc compiles them for the GPU; none without nvcc."""
    loaded = source.load(variant.path, variant.label)
    device = Recorder(host_device(), host_features(), int(gpu.multiprocessors))
    defines = {**lab.kernel_defines(case), **variant.on(device).defines}
    try:
        return compiled(loaded, defines, gpu.architecture)
    except NoDeviceError:
        return {}


def neighbours(rungs: Sequence[Rung]) -> list[float | None]:
    """How many times as fast each rung is as the nearest one before it of the same ladder."""
    below: dict[str, Rung] = {}
    factors: list[float | None] = []
    for one in rungs:
        other = below.get(one.ladder)
        factors.append(other.ms / one.ms if other and other.ms and one.ms else None)
        below[one.ladder] = one
    return factors


def is_tie(factor: float) -> bool:
    """Whether two rungs are too close for the model to name a winner."""
    return abs(math.log(factor)) < math.log(TIE)
