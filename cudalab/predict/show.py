"""A prediction laid out as a table."""
# ruff: noqa: RUF001, RUF003 - × is a multiplication sign on purpose

from itertools import pairwise

from cudalab.output.grid import Column, Grid
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
            _factor(factor),
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


def _factor(factor: float | None) -> str:
    if factor is None:
        return ""
    return f"≈ {factor:.2f} ×" if is_tie(factor) else f"{factor:.2f} ×"


def _limits(one: Rung) -> tuple[str, str]:
    """The two parts of the GPU that take longest, with their times."""
    terms = sorted((one.terms_ms or {}).items(), key=lambda term: -term[1])
    first, second = (f"{name} {ms(time)}" for name, time in terms[:2])
    return first, second
