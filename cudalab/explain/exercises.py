"""The hand-out's exercises, each computed with different kinds of memory. No printing."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cudalab import labs
from cudalab.backends import facts
from cudalab.backends.base import Device
from cudalab.backends.meter import open_meter
from cudalab.bench import candidates, measure, stats
from cudalab.bench.document import device_text
from cudalab.bench.measure import Entry, Judge, Sampler
from cudalab.bench.measured import HOT, Plan, Row, Status
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.inputs import Array, HostInputs, Size
from cudalab.labs.sizes import in_words
from cudalab.labs.teaching import Exercise
from cudalab.output.grid import Column, Grid, figure, unit_for

PLAN = Plan(time_limit_s=1.0)  # for sampling all variants of an exercise at one size
LAB = labs.get("reduce")
MAX_ELEMENTS = 2**31 - 1  # of a matrix; a larger order is assumed to be a typing error
EQUAL = "equal"
MIN_SHOWN = 0.1  # in the unit of time, so that the shortest times have two digits
_DIFFERENCES = (
    "apart: the largest difference between two variants; error: the largest difference between a "
    "variant and the exact result; both as fractions of the allowed error"
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """An exercise at one size."""

    title: str
    size: str
    rows: dict[str, Row]  # kind of memory -> the measurement of its variant
    between: float | None  # the largest difference of two answers / the bound; None: equal bytes
    to_reference: float | None  # the same for an answer and the exact one; None: no difference

    def ratio(self) -> stats.Ratio | None:
        """The first time divided by the best of the others; None if there is none."""
        first, *others = self.rows.values()
        right = [row for row in others if timed(row)]
        if not timed(first) or not right:
            return None
        best = min(right, key=median)
        return stats.ratio(first.valid_samples(), best.valid_samples())


def timed(row: Row) -> bool:
    """Whether the row's answer is right and its time is known."""
    return row.status is Status.OK


def median(row: Row) -> float:
    """Milliseconds of a row that is timed."""
    return stats.median(list(row.valid_samples().values()))


def run(
    device: Device,
    sizes: Sequence[Size] | None = None,
    seed: int = 0,
    progress: Callable[[str, float], None] = lambda _what, _done: None,
) -> Iterator[Result]:
    """Check and time all exercises, by default at their own sizes.

    A size is the length of vectors and the order of square matrices; a size with two dimensions is
    for matrices only. `progress` is called with the current measurement and its finished fraction.
    """
    everything = LAB.teaching.exercises()
    for size in sizes or ():
        if not any(fits(exercise, size) for exercise in everything):
            raise UsageError(
                f"no exercise has data of size {in_words(size)}",
                hint="one number, or rows x cols for the exercises with matrices",
            )
    jobs = [
        (exercise, size)
        for exercise in everything
        for size in (exercise.sizes if sizes is None else sizes)
        if fits(exercise, size)
    ]
    sampler = Sampler(device, open_meter(device))
    for exercise, size in jobs:
        what = f"{exercise.title}, {shown_size(exercise, size)}"
        progress(what, 0.0)
        yield _measured(exercise, size, seed, sampler, partial(progress, what))


def fits(exercise: Exercise, size: Size) -> bool:
    """Whether the exercise can use data of this size."""
    if exercise.case["along"] == "all":
        return isinstance(size, int)
    rows, cols = size if isinstance(size, tuple) and len(size) == 2 else (size, size)
    return isinstance(rows, int) and isinstance(cols, int) and rows * cols <= MAX_ELEMENTS


def shown_size(exercise: Exercise, size: Size) -> str:
    """The size as text: n, or rows x cols."""
    if isinstance(size, int) and exercise.case["along"] == "all":
        return str(size)
    rows, cols = size if isinstance(size, tuple) else (size, size)
    return f"{rows}x{cols}"


def _measured(
    exercise: Exercise, size: Size, seed: int, sampler: Sampler, progress: Callable[[float], None]
) -> Result:
    lab, case, device = LAB, exercise.case, sampler.device
    with tempfile.TemporaryDirectory(prefix="cudalab-exercises-") as folder:
        dist = lab.distributions[0]
        data = candidates.make_data(lab, case, size, dist, seed, device, Path(folder))
        entries = {}
        for kind, name in exercise.variants.items():
            variant = registry.find(lab, name)
            candidate = candidates.variant_candidate(lab, variant, sampler, data, case)
            row = Row(name, device=device.name, emulated=not device.facts.gpu_times, cache=HOT)
            entries[kind] = Entry(row, candidate)
        judge = Judge(lab, data.inputs, case, device, data.buffers)
        measured = list(entries.values())
        measure.measure(measured, sampler, judge, PLAN, lambda done, _: progress(done))
        answers = [entry.candidate.answer() for entry in entries.values() if entry.candidate]
        between, to_reference = differences(answers, data.inputs, case)
    rows = {kind: entry.row for kind, entry in entries.items()}
    return Result(
        title=exercise.title,
        size=shown_size(exercise, size),
        rows=rows,
        between=between,
        to_reference=to_reference,
    )


def differences(
    answers: Sequence[Array], inputs: HostInputs, case: dict[str, Any]
) -> tuple[float | None, float | None]:
    """The largest difference between two answers, and between an answer and the reference.

    Both are fractions of the allowed error; None if there is no difference.
    """
    exact, allowed = LAB.bounds(inputs, case) or (LAB.reference(inputs, case), np.zeros(1))
    wide = [answer.reshape(-1).astype(np.float64) for answer in answers]
    equal = len({answer.tobytes() for answer in answers}) == 1
    between = None if equal else _share(np.ptp(wide, axis=0), allowed)
    errors = np.abs(np.array(wide) - exact)
    return between, _share(errors.max(axis=0), allowed) if errors.any() else None


def _share(difference: Array, allowed: Array) -> float:
    """The largest quotient; infinite if there is a difference where none is allowed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(difference == 0, 0.0, difference / allowed)
    return float(np.max(quotients))


# The table ---------------------------------------------------------------------------------------


def grid(results: Sequence[Result], device: str, name: str) -> Grid:
    """All results in one table; `device` is the device's name, `name` that of the hardware."""
    kinds = list(dict.fromkeys(kind for result in results for kind in result.rows))
    rows = [row for result in results for row in result.rows.values()]
    medians = [median(row) for row in rows if timed(row)]
    factor, unit = unit_for(ms / MIN_SHOWN for ms in medians)
    where = device_text(name, emulated=not facts(device).gpu_times)
    columns = [
        Column("exercise", right=False),
        Column("size"),
        *(Column(kind.rpartition(", ")[2]) for kind in kinds),
        Column("ratio", 8),
        Column("apart"),
        Column("error", 7),
    ]
    cells = [
        [
            result.title,
            result.size,
            *(_time(result.rows.get(kind), factor) for kind in kinds),
            _ratio(result.ratio()),
            *(_part(difference) for difference in (result.between, result.to_reference)),
        ]
        for result in results
    ]
    runs = [len(row.valid_samples()) for row in rows if timed(row)]
    return Grid(
        f"Exercises of the hand-out, {unit}; {where}",
        columns,
        cells,
        notes=[*_legend(kinds, runs), *_verdict(results)],
    )


def _time(row: Row | None, factor: float) -> str:
    if row is None:
        return ""
    if not timed(row):
        return str(row.status)
    return figure(median(row) / factor)


def _ratio(ratio: stats.Ratio | None) -> str:
    if ratio is None:
        return ""
    return figure(ratio.value) if ratio.decided else "≈ 1"


def _part(difference: float | None) -> str:
    return EQUAL if difference is None else f"{difference:.1g}"


def _legend(kinds: Sequence[str], runs: Sequence[int]) -> list[str]:
    few, many = (min(runs), max(runs)) if runs else (0, 0)
    return [
        f"times: the median of {few}" + (f" to {many}" if many > few else "") + " runs, each "
        "directly after another run of the same kernels",
        f"ratio: the time of {kinds[0]} / the time of the fastest of the others; ≈ 1: undecided",
        _DIFFERENCES,
    ]


def _verdict(results: Sequence[Result]) -> list[str]:
    """The failures, or the largest error if all answers are right."""
    failures = [
        f"{result.title}, {result.size}: {row.name}: {row.status}: {row.reason}"
        for result in results
        for row in result.rows.values()
        if not timed(row)
    ]
    if failures:
        return failures
    worst = max(results, key=lambda result: result.to_reference or 0.0)
    if worst.to_reference is None:
        return ["all answers are right: equal to the reference"]
    part, where = _part(worst.to_reference), f"{worst.title}, {worst.size}"
    return [f"all answers are right; the largest error is {part} of the allowed error ({where})"]


def exit_codes(results: Sequence[Result]) -> set[int]:
    return {row.exit_code for result in results for row in result.rows.values()}


def device_name(device: Device) -> str:
    """The hardware's name."""
    return device.info().name
