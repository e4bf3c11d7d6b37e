"""Predictions as one self-contained HTML page: `cudalab predict --html FILE`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cudalab.output import web
from cudalab.output.charts import Ladder, Point, Roof, Roofline
from cudalab.output.charts import Rung as Bar
from cudalab.output.grid import Column, Grid
from cudalab.output.web import escaped
from cudalab.predict import show
from cudalab.predict.gpus import Gpu
from cudalab.predict.ladder import Prediction, Rung

FOOTER = """\
<p>A prediction is not a measurement. The bytes are those that the model expects from DRAM and from
L2; a rung far below the roof has another limit, which the tables name.</p>"""


def page(predictions: Sequence[Prediction], gpu: Gpu) -> str:
    """The page of one lab: its sizes one after the other."""
    first = predictions[0]
    body = [part for each in predictions for part in _section(each, gpu)]
    body.append(web.notes(dict.fromkeys(note for each in predictions for note in each.notes)))
    case = ", ".join(f"{axis} {value}" for axis, value in first.case.items())
    subtitle = [f"{gpu.name}, by a model", case]
    return web.page(
        f"Prediction: {first.lab}", " · ".join(filter(None, subtitle)), body, footer=FOOTER
    )


def _section(prediction: Prediction, gpu: Gpu) -> Iterator[str]:
    rungs = [one for one in prediction.rungs if one.ms]
    yield f"<h2>n = {escaped(prediction.size)}</h2>"
    yield web.table(replace(show.grid(prediction), title=""))
    if rungs:
        yield web.pictures([roofline(prediction, rungs, gpu), _ladder(rungs)])
        yield web.table(_parts(rungs))


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
            f"{show.ms(rung.ms)} ms, {rung.limit}",
            range=(rung.low_ms, rung.high_ms) if rung.low_ms and rung.high_ms else None,
        )
        for rung in rungs
    ]
    return Ladder("predicted times, the ranges around them, and their limits", "ms", bars)


def _parts(rungs: Sequence[Rung]) -> Grid:
    """The time that each part of the GPU would need alone."""
    names = list(rungs[0].terms_ms or {})
    rows = [
        [rung.variant, *(show.ms((rung.terms_ms or {}).get(name)) for name in names)]
        for rung in rungs
    ]
    columns = [Column("variant", right=False), *(Column(name) for name in names)]
    return Grid("ms that each part of the GPU would need alone", columns, rows)
