"""Turns results of bench into the data of charts."""

from collections.abc import Sequence
from pathlib import Path

from cudalab.bench.comparison import Comparison
from cudalab.bench.document import Document, Environment, Row, Statistics, Table, cache_text
from cudalab.microscope.document import Document as Profile
from cudalab.output.charts import (
    Change,
    Changes,
    Ladder,
    Line,
    OverSizes,
    Point,
    Roof,
    Roofline,
    Rung,
)
from cudalab.output.grid import figure, unit_for
from cudalab.output.plots import write_charts

Timed = tuple[float, Row, Statistics]  # the position of a point, and its time


def draw(document: Document, path: Path) -> None:
    """Draw the results of bench into a file: time over n, and a ladder for each lab and case."""
    write_charts(charts(document), path)


def draw_changes(comparison: Comparison, environment: Environment, path: Path) -> None:
    """Draw how the rows of two runs differ into a file. CudalabError if no row is in both."""
    chart = changes(comparison, environment)
    write_charts([chart] if chart.rows else [], path)


def changes(comparison: Comparison, environment: Environment) -> Changes:
    """The change of each row that has times in both runs."""
    rows = []
    for one in comparison.verdicts:
        if one.change is not None:
            percent, *ends = one.percents
            label = f"{one.key.lab} {one.key.size} {one.key.name}"
            text = f"{percent:+.1f} %  {one.verdict}"
            rows.append(Change(label, percent, (ends[0], ends[1]), text=text))
    title = f"times of the new run against the old one; {environment.device_text}"
    label = (
        f"change in %; grey: changes of up to {100 * comparison.threshold:g} %, which are ignored"
    )
    return Changes(title, label, rows, band=100 * comparison.threshold)


def charts(document: Document) -> list[OverSizes | Ladder]:
    """For each lab and case: time over n if there are several sizes, and the ladder.

    The ladder is that of the last size, usually the largest. Sweeps over numbers are drawn over the
    last define that changes.
    """
    environment = document.environment
    drawn: list[OverSizes | Ladder] = []
    for series in document.series():
        tables = [table for table in series if table.timed]
        if len(tables) > 1:
            drawn.append(over_sizes(tables, environment))
        if tables:
            drawn.append(ladder(tables[-1], environment))
    sweeps = [over_shapes(table, environment) for table in document.tables if table.sweep]
    return drawn + [chart for chart in sweeps if chart]


def over_shapes(table: Table, environment: Environment) -> OverSizes | None:
    """Times over a define, with a line for each variant, cache state and other defines."""
    rows = table.timed
    changing = [name for name in table.sweep if len({row.defines.get(name) for row, _ in rows}) > 1]
    if not changing or not all(isinstance(row.defines[changing[-1]], int) for row, _ in rows):
        return None
    *others, across = changing
    both = len({row.cache for row, _ in rows}) > 1
    lines: dict[str, list[Timed]] = {}
    for row, one in rows:
        words = [row.variant, *(f"{name}={row.defines[name]}" for name in others)]
        words += [f"({row.cache})"] if both else []
        lines.setdefault(" ".join(words), []).append((float(row.defines[across]), row, one))
    scale, unit = unit_for(one.median_ms for _, one in rows)
    title = f"{table.heading()}; {environment.device_text}; {cache_text([table])}"
    drawn = [_line(label, points, scale) for label, points in lines.items()]
    return OverSizes(title, across, unit, drawn)


def over_sizes(tables: Sequence[Table], environment: Environment) -> OverSizes:
    """Times over n, with a line for each row that has times."""
    by_n = all(table.size.replace(",", "").isdecimal() for table in tables)

    def position(table: Table) -> float:
        return float(table.size.replace(",", "") if by_n else table.work.items)

    tables = sorted(tables, key=position)
    lines: dict[tuple[str, str], list[Timed]] = {}
    for table in tables:
        for row, one in table.timed:
            lines.setdefault((row.title, row.cache), []).append((position(table), row, one))
    scale, unit = unit_for(one.median_ms for table in tables for _, one in table.timed)
    both = len({cache for _, cache in lines}) > 1
    drawn = [
        _line(name + (f" ({cache})" if both else ""), points, scale)
        for (name, cache), points in lines.items()
    ]
    title = f"{tables[0].heading(size='…')}; {environment.device_text}; {cache_text(tables)}"
    floor = _floor(tables, [position(table) for table in tables], scale)
    return OverSizes(title, "n" if by_n else "elements", unit, drawn, floor=floor)


def _line(label: str, points: Sequence[Timed], scale: float) -> Line:
    """A line of medians with their standard deviations."""
    return Line(
        label,
        [x for x, _, _ in points],
        [one.median_ms / scale for _, _, one in points],
        [one.median_ms / scale * one.noise for _, _, one in points],
        baseline=points[0][1].kind == "baseline",
    )


def _floor(tables: Sequence[Table], positions: Sequence[float], scale: float) -> Line | None:
    """The time of the minimum work at the ceiling's rate."""
    by_flops = tables[0].by_flops
    x, y = [], []
    for table, position in zip(tables, positions, strict=True):
        rate = table.ceiling.gflop_per_s if by_flops else table.ceiling.gb_per_s
        if rate:
            amount = table.work.flops if by_flops else table.work.bytes
            x.append(position)
            y.append(1e-6 * amount / rate / scale)
    label = "peak of the units" if by_flops else "copy of the same bytes"
    return Line(label, x, y, []) if x else None


def ladder(table: Table, environment: Environment) -> Ladder:
    """A bar for each row; a row without a time shows its status."""
    unit_of_rate = "GFLOP/s" if table.by_flops else "GB/s"
    both = len(table.caches()) > 1
    rungs = []
    for row in table.rows:
        one = row.statistics
        label = row.title + (f" ({row.cache})" if both else "")
        text = str(row.status)
        if one:  # three digits, however slow it is
            rate = figure(one.rate) if one.rate >= 1 else f"{one.rate:.3g}"
            text = f"{rate} {unit_of_rate}"
        rungs.append(Rung(label, one.rate if one else None, text, row.kind == "baseline"))
    name = "peak of the units" if table.by_flops else "measured copy"
    limit = table.limit
    ceiling = (limit, f"{name}, {limit:,.0f} {unit_of_rate}") if limit else None
    title = f"{table.heading()}; {environment.device_text}; {cache_text([table])}"
    return Ladder(title, unit_of_rate, rungs, ceiling)


def rooflines(document: Document, profile: Profile | None) -> list[Roofline]:
    """A roofline for each lab and case, at its last size with times."""
    last = [[table for table in series if table.timed][-1:] for series in document.series()]
    made = [roofline(table, document.environment, profile) for tables in last for table in tables]
    return [chart for chart in made if chart.points]


def roofline(table: Table, environment: Environment, profile: Profile | None) -> Roofline:
    """The rates of variants over their operations per byte, below the rates of the ceiling.

    The bytes are those that each variant requested in the profile; without a profile of the same
    case, those of the minimum work, and the libraries have points too.
    """
    work, by_flops = table.work, table.by_flops
    operations = "flop" if by_flops else "elements"
    counted = intensities(table, profile)
    minimum = (work.flops if by_flops else work.items) / work.bytes
    points = []
    for row, one in table.timed:
        x = counted.get(row.variant) if counted else minimum
        y = one.gflop_per_s if by_flops else one.items_per_s / 1e9
        if x and y and row.cache == table.caches()[0]:
            points.append(Point(row.title, x, y, baseline=row.kind == "baseline"))
    flat = table.ceiling.gflop_per_s if by_flops else None
    slope = table.ceiling.gb_per_s
    peak = (f"peak of the units, {flat:,.0f} GFLOP/s",) if flat else ()
    roof = Roof(slope, flat, (f"measured copy, {slope:,.0f} GB/s", *peak))
    kind = "requested" if counted else "of the minimum work"
    return Roofline(
        f"roofline of {table.heading()}; {environment.device_text}; {table.caches()[0]} cache",
        f"{operations} per byte {kind}",
        "GFLOP/s" if by_flops else "10⁹ elements/s",
        points,
        roof=roof,
    )


def intensities(table: Table, profile: Profile | None) -> dict[str, float]:
    """Operations per requested byte, by variant; empty without a profile of the table's case."""
    if profile is None or (profile.lab, profile.case) != (table.lab, table.case):
        return {}
    operations = profile.flops if table.by_flops else profile.items
    requested = profile.requested_bytes()
    return {name: operations / count for name, count in requested.items() if operations and count}
