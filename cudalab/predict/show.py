"""Predictions laid out as a table, and as one self-contained page for a browser."""
# ruff: noqa: RUF001, RUF003 - × is a multiplication sign on purpose

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cudalab.output import web
from cudalab.output.charts import Ladder, Point, Roof, Roofline
from cudalab.output.charts import Rung as Bar
from cudalab.output.grid import Column, Grid
from cudalab.output.web import escaped
from cudalab.predict.gpus import Gpu
from cudalab.predict.ladder import TIE, Prediction, Rung, is_tie, neighbours

MIN_MS = 1e-5  # far below the time of a launch
# What each part of the GPU is busy with when it is the limit.
LIMITS = {
    "DRAM": "the bytes that it reads and writes",
    "L2": "the bytes that come from L2",
    "L1": "uncoalesced accesses, bank conflicts or other traffic of L1",
    "issue": "the number of its instructions",
    "latency": "warps that wait, for loads or at barriers",
    "stores": "sectors that it stores in part",
    "atomics": "atomics in global memory",
    "launches": "the number of its launches",
}


def grid(prediction: Prediction) -> Grid:
    """A line for each rung, in the order of the ladder."""
    rungs = [one for one in prediction.rungs if not one.failed]
    rows = [
        [
            one.variant,
            ms(one.ms),
            f"{ms(one.low_ms)} – {ms(one.high_ms)}",
            f"{'≈ ' if is_tie(factor) else ''}{factor:.2f} ×" if factor is not None else "",
            *_limits(one),
        ]
        for one, factor in zip(rungs, neighbours(rungs), strict=True)
    ]
    columns = [
        Column("variant", right=False),
        Column("ms"),
        Column("within", 5),
        Column("times as fast", 8),
        Column("limit", 7, right=False),
        Column("next", 3, right=False),
    ]
    failed = [f"{one.variant}: {one.failed}" for one in prediction.rungs if one.failed]
    title = f"{prediction.lab}: n = {prediction.size} on an {prediction.gpu}, predicted by a model"
    notes = [_order(rungs), *_legend(rungs), *failed, *prediction.notes]
    return Grid(title, columns, rows, notes=notes)


def _legend(rungs: list[Rung]) -> list[str]:
    """What the columns mean, and the parts of the GPU that they name."""
    own = next((one.variant for one in rungs if one.variant.endswith(".cu")), "")
    other = own or "the nearest line above that is a rung of the same ladder"
    named = dict.fromkeys(cell.split()[0] for one in rungs for cell in _limits(one))
    parts = "; ".join(f"{name}: {LIMITS[name]}" for name in named)
    columns = (
        "within: nine of ten measured times of an H100 and an H200 lie as close to the prediction, "
        f"and it is never below the GPU's roofline; times as fast: as {other}; limit, next: the "
        "two parts of the GPU that take longest, and the ms that each needs alone"
    )
    return [columns, parts] if rungs else []


def _order(rungs: list[Rung]) -> str:
    """The rungs by their times; ≈ stands between those that are too close to tell apart."""
    fastest = sorted(rungs, key=lambda one: one.ms or 0)
    text = fastest[0].variant if fastest else ""
    for before, one in pairwise(fastest):
        close = is_tie((one.ms or 1) / (before.ms or 1))
        text += (" ≈ " if close else ", ") + one.variant
    return f"fastest first (≈: within {100 * (TIE - 1):.0f} %): {text}" if fastest else ""


def ms(value: float | None) -> str:
    """Milliseconds in a cell; those below MIN_MS look alike."""
    if value and value < MIN_MS:
        return f"< {MIN_MS:.5f}"
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _limits(one: Rung) -> tuple[str, str]:
    """The two parts of the GPU that take longest, with their times."""
    terms = sorted((one.terms_ms or {}).items(), key=lambda term: -term[1])
    first, second = (f"{name} {ms(time)}" for name, time in terms[:2])
    return first, second


FOOTER = """\
<p>A prediction is not a measurement. The bytes are those that the model expects from DRAM and from
L2; a rung far below the roof has another limit, which the tables name.</p>"""


def page(predictions: Sequence[Prediction], gpu: Gpu) -> str:
    """The page of one lab: its sizes one after the other."""
    first = predictions[0]
    body = []
    for each in predictions:
        body += [f"<h2>n = {escaped(each.size)}</h2>", web.table(replace(grid(each), title=""))]
        if rungs := [one for one in each.rungs if one.ms]:
            body.append(web.pictures([roofline(each, rungs, gpu), _ladder(rungs)]))
            body.append(web.table(_parts(rungs)))
    body.append(web.notes(dict.fromkeys(note for each in predictions for note in each.notes)))
    case = ", ".join(f"{axis} {value}" for axis, value in first.case.items())
    subtitle = [f"{gpu.name}, by a model", case]
    return web.page(
        f"Prediction: {first.lab}", " · ".join(filter(None, subtitle)), body, footer=FOOTER
    )


def roofline(prediction: Prediction, rungs: Sequence[Rung], gpu: Gpu) -> Roofline:
    """The predicted rates of the rungs over their operations per byte, below the GPU's roof."""
    operations = prediction.flops or prediction.items
    points = []
    for rung in rungs:
        num_bytes = sum(kernel.dram_bytes + kernel.l2_bytes for kernel in rung.kernels or [])
        if rung.ms and num_bytes:
            points.append(Point(rung.variant, operations / num_bytes, 1e-6 * operations / rung.ms))
    copy = f"copy, {gpu.dram_gb_per_s:,.0f} GB/s"
    flat = gpu.float_gflops if prediction.flops else None
    peak = (f"peak of the units, {flat:,.0f} GFLOP/s",) if flat else ()
    return Roofline(
        f"roofline of an {gpu.name}",
        "flop per byte moved" if flat else "elements per byte moved",
        "GFLOP/s" if flat else "10⁹ elements/s",
        points,
        roof=Roof(gpu.dram_gb_per_s, flat, (copy, *peak)),
    )


def _ladder(rungs: Sequence[Rung]) -> Ladder:
    """The times as bars, with the ranges of the table."""
    bars = [
        Bar(
            rung.variant,
            rung.ms,
            f"{ms(rung.ms)} ms, {rung.limit}",
            range=(rung.low_ms, rung.high_ms) if rung.low_ms and rung.high_ms else None,
        )
        for rung in rungs
    ]
    return Ladder("predicted times, the ranges around them, and their limits", "ms", bars)


def _parts(rungs: Sequence[Rung]) -> Grid:
    """The time that each part of the GPU would need alone."""
    names = list(rungs[0].terms_ms or {})
    rows = [
        [rung.variant, *(ms((rung.terms_ms or {}).get(name)) for name in names)] for rung in rungs
    ]
    columns = [Column("variant", right=False), *(Column(name) for name in names)]
    return Grid("ms that each part of the GPU would need alone", columns, rows)
