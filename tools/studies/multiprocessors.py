"""Launch plans on fewer multiprocessors: is the plan for their number the fastest there?

python -m tools.studies multiprocessors run [DEVICE [SECONDS [LAB...]]]

Parts of a GPU stand for smaller ones: a green context has some of its multiprocessors to itself.
Each question is one input, and the plans that compute it: variants, and one variant's plans for
other numbers of multiprocessors. All are sampled in turn. On the CPU device the parts are the
whole, and inputs are tiny: a rehearsal, which stores nothing.

tools/generate.py makes a table of docs/performance/README.md from the stored times.
"""

import ctypes
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from cudalab import labs
from cudalab.backends import choose_device, facts, open_device
from cudalab.backends.base import Device
from cudalab.backends.meter import open_meter
from cudalab.bench.measure import Candidate, Sampler
from cudalab.bench.measured import COLD
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.base import Job
from cudalab.labs.header import Variant
from cudalab.labs.inputs import HostInputs
from cudalab.labs.sizes import in_words
from tools import results
from tools.results import Json
from tools.studies.compilation import fill_cache

PARTS = (114, 72, 40)
ROUNDS = 40
REHEARSED = {"matmul": 100}  # sizes on the CPU device
REHEARSED_ITEMS = 10_000


@dataclass(frozen=True, eq=False)
class Question:
    """Inputs, and the variants to choose from: the first, unless the lab chooses another."""

    lab: str
    sizes: tuple[int, ...]
    variants: tuple[str, ...]
    case: dict[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    dist: str | None = None


SMALL = ("group_split_k", "group_split_k_80", "group_split_k_wide", "split_k")
TENSOR = ("tensor_cores_bf16x6", "tensor_cores_cluster", "tensor_cores_wide")
TENSOR_LARGE = ("tensor_cores_fp16x3", "tensor_cores_fp16x3_wide")
LOOK_BACK = ("decoupled_lookback", "lookback_prefetch")
QUESTIONS = (
    Question("matmul", (1000, 1536), TENSOR),
    Question("matmul", (2048, 3000, 4096), TENSOR_LARGE),
    Question("matmul", (1536, 2048, 3000, 4096), ("whole_waves",)),
    Question("matmul", (256, 400, 512, 640, 777), SMALL),
    Question("scan", (1 << 20, 1 << 21, 3 << 20, 1 << 22, 1 << 24), LOOK_BACK),
    Question("histogram", (1 << 24, 1 << 27), ("privatized_tickets",)),
    Question("histogram", (1 << 27,), ("privatized_tickets",), dist="equal"),
    Question("histogram", (1 << 27,), ("privatized",)),
    Question("histogram", (1 << 25,), ("shared_ranges",), {"dtype": "uint32", "bins": 65_536}),
    Question("radixsort", (1 << 20, 1 << 24), ("most_significant_first_heavy",)),
    Question("radixsort", (1 << 24,), ("onesweep",)),
    Question("radixsort", (1 << 18,), ("single_launch",)),
    Question("radixsort", (1 << 24,), ("most_significant_first_stable",), {"layout": "pairs"}),
)  # fmt: skip


# Parts of a GPU ----------------------------------------------------------------------------------


class _Multiprocessors(ctypes.Structure):
    """CUdevResource of cuda.h: some of a GPU's multiprocessors."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("padding", ctypes.c_ubyte * 92),
        ("count", ctypes.c_uint),
        ("others", ctypes.c_ubyte * 44),
    )


OF_MULTIPROCESSORS = 1  # CU_DEV_RESOURCE_TYPE_SM
EACH_BY_ITSELF = 1  # CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
WITH_A_STREAM = 1  # CU_GREEN_CTX_DEFAULT_STREAM


def _call(name: str, *args: object) -> None:
    """Call the driver. CudalabError if it refuses."""
    error = getattr(ctypes.CDLL("libcuda.so.1"), name)(*args)
    if error:
        raise CudalabError(f"{name} fails with error {error}: an older driver?")


@contextmanager
def part_of(device: Device, count: int) -> Iterator[None]:
    """Give the open GPU's launches `count` of its multiprocessors, and its plans that number."""
    plans = cast("Any", device)  # the number is fixed, but here
    if device.facts.on_host or count == device.multiprocessors:
        plans.multiprocessors = count
        yield
        return
    gpu, before = ctypes.c_int(), ctypes.c_void_p()
    _call("cuCtxGetDevice", ctypes.byref(gpu))
    _call("cuCtxGetCurrent", ctypes.byref(before))
    every, some = _Multiprocessors(), _Multiprocessors()
    _call("cuDeviceGetDevResource", gpu, ctypes.byref(every), OF_MULTIPROCESSORS)
    groups, rest = ctypes.c_uint(1), _Multiprocessors()
    _call(
        "cuDevSmResourceSplitByCount", ctypes.byref(some), ctypes.byref(groups),
        ctypes.byref(every), ctypes.byref(rest), EACH_BY_ITSELF, count,
    )  # fmt: skip
    if some.count != count:
        raise CudalabError(f"a part of {count} multiprocessors has {some.count}")
    description, green, context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuDevResourceGenerateDesc", ctypes.byref(description), ctypes.byref(some), 1)
    _call("cuGreenCtxCreate", ctypes.byref(green), description, gpu, WITH_A_STREAM)
    _call("cuCtxFromGreenCtx", ctypes.byref(context), green)
    _call("cuCtxSetCurrent", context)
    plans.multiprocessors = count
    try:
        yield
    finally:
        device.synchronize()
        _call("cuCtxSetCurrent", before)


# Measuring ---------------------------------------------------------------------------------------


def run(name: str = "auto", seconds: str = "150", *names: str) -> None:
    """Measure the questions, all or of these labs, on the whole device and on its parts.

    Times are stored in the place of those of the same labs.
    """
    questions = [each for each in QUESTIONS if each.lab in names or not names]
    device, end = choose_device(name), time.monotonic() + float(seconds)
    with open_device(device) as opened:
        whole = opened.multiprocessors
    fill_cache(device, ((each.lab, one, each.case) for each in questions for one in each.variants))
    rows: list[Json] = []
    for count in (whole, *PARTS):
        with open_device(device) as opened, part_of(opened, count):
            sampler = Sampler(opened, open_meter(opened))
            for question, size in ((each, n) for each in questions for n in each.sizes):
                if time.monotonic() < end:
                    rows += times(question, size, sampler, whole)
    if facts(device).on_host:
        sys.stdout.writelines(f"{row}\n" for row in rows)
        return
    store(results.machine(device), rows)


def store(machine: dict[str, str], rows: list[Json]) -> None:
    """Store the times in the place of earlier ones of the same labs."""
    path = results.FOLDER / "multiprocessors" / f"{results.slug(machine['device'])}.json"
    others = {row["lab"] for row in rows}
    kept = (
        [row for row in results.read(path)["rows"] if row["lab"] not in others]
        if path.exists()
        else []
    )
    when = {"date": machine["date"], "commit": machine["commit"]}
    head = {"device": machine["device"], "driver": machine["driver"]}
    results.write_rows(path, head, kept + [row | when for row in rows])


def times(question: Question, size: int, sampler: Sampler, whole: int) -> Iterator[Json]:
    """The median times of all plans that can run, and which of them the lab takes on this part."""
    device, lab = sampler.device, labs.get(question.lab)
    case = lab.complete(question.case)
    shown = REHEARSED.get(lab.name, REHEARSED_ITEMS) if device.facts.on_host else size
    inputs = drawn(question, shown)
    buffers = {name: device.to_device(array) for name, array in inputs.arrays.items()}
    candidates, first = {}, None
    variants = (registry.find(lab, name) for name in question.variants)
    for variant in (one for one in variants if not one.missing(device.features)):
        # No kernel names the numbers that follow from the multiprocessors: one compilation does.
        kernels = lab.compiled(variant.on(of_size(whole)), device, case)
        for plan, planned in plans_of(variant, device.multiprocessors):
            job = Job(
                device=device,
                kernels=kernels,
                variant=planned,
                buffers=buffers,
                params=inputs.params,
                case=case,
            )
            step = lab.plan(planned.dispatch)(job)
            step()
            answer = device.to_host(step.out)
            first = answer if first is None else first
            if not np.array_equal(answer, first):  # another order of additions
                np.testing.assert_allclose(answer, first, rtol=1e-3, atol=1e-3 * size**0.5)
            candidates[plan] = Candidate(
                name=plan,
                kind="variant",
                run=step.run,
                answer=lambda: np.empty(0),
                poison=lambda: None,
                reads_back=step.reads_back,
                device=device.name,
            )
    samples: dict[str, list[float]] = {plan: [] for plan in candidates}
    for number in range(1 if device.facts.on_host else ROUNDS):
        for plan, candidate in candidates.items():
            samples[plan].append(sampler.sample(candidate, COLD, number).ms)
    if not candidates:
        return
    yield {
        "lab": lab.name,
        "case": question.case,
        "n": in_words(shown, ","),
        "dist": lab.distribution(question.dist),
        "multiprocessors": device.multiprocessors,
        "chosen": chosen(question, inputs, device, list(candidates)),
        "ms": {plan: round(statistics.median(ms), 5) for plan, ms in samples.items()},
    }


@cache
def drawn(question: Question, size: int) -> HostInputs:
    """The inputs of a question, which all parts share."""
    lab = labs.get(question.lab)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "input.bin")
        case = lab.complete(question.case)
        lab.write_file(path, case, size, lab.distribution(question.dist), seed=1)
        return lab.read_file(path, case).copy()


def of_size(multiprocessors: int) -> Device:
    """As much of a device as a variant's numbers need."""
    return cast("Device", SimpleNamespace(multiprocessors=multiprocessors))


def plans_of(variant: Variant, here: int) -> Iterator[tuple[str, Variant]]:
    """The variant as planned for `here` multiprocessors, and for other numbers of them."""
    if variant.on(of_size(1)) is variant:  # the number has no effect
        yield variant.name, variant
        return
    for number in sorted({here // 2, here, here * 3 // 2, 2 * here, 132, *PARTS}):
        yield f"{variant.name} for {number}", variant.on(of_size(number))


def chosen(question: Question, inputs: HostInputs, device: Device, plans: list[str]) -> str:
    """The plan that the lab takes of those measured."""
    lab = labs.get(question.lab)
    params = HostInputs(inputs.arrays, dict(inputs.params))
    gpu = cast("Device", SimpleNamespace(name="cuda", multiprocessors=device.multiprocessors))
    names = lab.choose(params, lab.complete(question.case), gpu)
    names = [names] if isinstance(names, str) else names or []
    name = next((one for one in names if one in question.variants), question.variants[0])
    numbered = f"{name} for {device.multiprocessors}"
    return numbered if numbered in plans else name


# The table of the documents ----------------------------------------------------------------------

COLUMNS = ["work", "n", "plans"]
COLUMNS += [f"on {part}" for part in PARTS] + [f"as for 132, on {part}" for part in PARTS]


def lines(rows: list[Json]) -> Iterator[list[str]]:
    """A row for each question: times of the plan taken on each part, divided by the best one's."""
    questions: dict[tuple[str, str, str], dict[int, Json]] = {}
    for row in rows:
        case = [str(value) for value in row["case"].values()]
        names = " or ".join(dict.fromkeys(f"`{plan.partition(' ')[0]}`" for plan in row["ms"]))
        key = " ".join([f"`{row['lab']}`", *case, row["dist"]]), row["n"], names
        questions.setdefault(key, {})[row["multiprocessors"]] = row
    for key, by_part in questions.items():
        of = [by_part.get(part) for part in PARTS]
        taken = [share(row, row["chosen"]) if row else "" for row in of]
        fixed = [
            share(row, f"{row['chosen'].partition(' ')[0]} for 132") if row else "" for row in of
        ]
        yield [*key, *taken, *fixed]


def share(row: Json, plan: str) -> str:
    """How many times as long as the best plan another one takes."""
    ms = row["ms"]
    return f"{ms[plan] / min(ms.values()):.2f}" if plan in ms else ""


def summary(rows: list[Json]) -> str:
    """How many of the plans taken on parts are close to the best."""
    parts = [row for row in rows if row["multiprocessors"] in PARTS]
    worst = [row["ms"][row["chosen"]] / min(row["ms"].values()) for row in parts]
    close = sum(one <= 1.05 for one in worst)
    rest = "" if close == len(worst) else f", the others within {100 * max(worst) - 100:.0f} %"
    return f"{close} of {len(worst)} plans taken are within 5 % of the best{rest}"


def main(command: str = "", *words: str) -> None:
    """Measure and store, or say how."""
    run(*words) if command == "run" else sys.exit(__doc__)
