"""What the results of bench look like as charts: their data, taken from the JSON's own form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cudalab.bench import grids
from cudalab.bench.results import heading
from cudalab.output.plots import Ladder, Line, OverSizes, Rung, write_charts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cudalab.bench.results import Json
    from cudalab.output.plots import Chart


def draw(document: Json, path: Path) -> None:
    """Draw the results of bench into a file: time over n, and a ladder for each lab and case."""
    write_charts(charts(document), path)


def charts(document: Json) -> list[Chart]:
    """Of each lab and case: time over n where there are several sizes, and the ladder.

    The ladder is that of the last size, which is the greatest as sizes are usually given. Sweeps
    over numbers are drawn over the last define that changes.
    """
    environment = document["environment"]
    series: dict[str, list[Json]] = {}
    for table in document["tables"]:
        if not table["sweep"] and any(row["statistics"] for row in table["rows"]):
            key = json.dumps([table["lab"], table["case"], table["dist"]])
            series.setdefault(key, []).append(table)
    found: list[Chart] = []
    for tables in series.values():
        if len(tables) > 1:
            found.append(over_sizes(tables, environment))
        found.append(ladder(tables[-1], environment))
    sweeps = [over_shapes(table, environment) for table in document["tables"] if table["sweep"]]
    return found + [chart for chart in sweeps if chart]


def over_shapes(table: Json, environment: Json) -> OverSizes | None:
    """Times over a define; a line for each variant, state of the caches and other defines."""
    rows = [row for row in table["rows"] if row["statistics"]]
    changing = [n for n in table["sweep"] if len({r["defines"].get(n) for r in rows}) > 1]
    if not changing or not all(isinstance(row["defines"][changing[-1]], int) for row in rows):
        return None
    *others, across = changing
    both = len({row["cache"] for row in rows}) > 1
    lines: dict[str, list[Json]] = {}
    for row in rows:
        words = [row["name"].partition("[")[0]]
        words += [f"{name}={row['defines'][name]}" for name in others]
        words += [f"({row['cache']})"] if both else []
        lines.setdefault(" ".join(words), []).append(row)
    factor, unit = grids.unit_for(row["statistics"]["median_ms"] for row in rows)
    return OverSizes(
        f"{heading(table)}; {grids.device_text(environment)}; {grids.cache_text([table])}",
        across,
        unit,
        [
            Line(label, [float(row["defines"][across]) for row in line], *_times(line, factor))
            for label, line in lines.items()
        ],
    )


def _times(rows: Sequence[Json], factor: float) -> tuple[list[float], list[float]]:
    """Medians and standard deviations."""
    medians = [row["statistics"]["median_ms"] / factor for row in rows]
    noises = [row["statistics"]["noise"] for row in rows]
    return medians, [ms * noise for ms, noise in zip(medians, noises, strict=True)]


def over_sizes(tables: Sequence[Json], environment: Json) -> OverSizes:
    """A line for each row that has times, in the order of the first table that has it."""
    by_n = all(table["size"].replace(",", "").isdecimal() for table in tables)
    measure = _n if by_n else _items
    tables = sorted(tables, key=measure)
    rows: dict[tuple[str, str], list[tuple[float, Json]]] = {}
    for table in tables:
        for row in table["rows"]:
            if row["statistics"]:
                rows.setdefault((row["name"], row["cache"]), []).append((measure(table), row))
    factor, unit = grids.unit_for(
        row["statistics"]["median_ms"] for line in rows.values() for _, row in line
    )
    both = len({cache for _, cache in rows}) > 1
    lines = [
        Line(
            name + (f" ({cache})" if both else ""),
            [n for n, _ in line],
            *_times([row for _, row in line], factor),
            line[0][1]["kind"] == "baseline",
        )
        for (name, cache), line in rows.items()
    ]
    what = heading(tables[0] | {"size": "…"})
    title = f"{what}; {grids.device_text(environment)}; {grids.cache_text(tables)}"
    floor = _floor(tables, [measure(table) for table in tables], factor)
    return OverSizes(title, "n" if by_n else "elements", unit, lines, floor)


def _n(table: Json) -> float:
    return float(table["size"].replace(",", ""))


def _items(table: Json) -> float:
    return float(table["work"]["items"])


def _floor(tables: Sequence[Json], places: Sequence[float], factor: float) -> Line | None:
    """The least work at the ceiling's rate."""
    by_flops = bool(tables[0]["work"]["flops"])
    x, y = [], []
    for table, place in zip(tables, places, strict=True):
        rate = table["ceiling"]["gflop_per_s" if by_flops else "gb_per_s"]
        if rate:
            work = table["work"]
            amount = work["flops"] if by_flops else work["read_bytes"] + work["write_bytes"]
            x.append(place)
            y.append(1e-6 * amount / rate / factor)
    label = "peak of the units" if by_flops else "copy of the same bytes"
    return Line(label, x, y, []) if x else None


def ladder(table: Json, environment: Json) -> Ladder:
    """A bar for each row; one that has no time shows why."""
    by_flops = bool(table["work"]["flops"])
    both = len(grids.caches(table)) > 1
    timed = [row["statistics"]["median_ms"] for row in table["rows"] if row["statistics"]]
    factor, unit = grids.unit_for(timed)
    rungs = []
    for row in table["rows"]:
        one = row["statistics"]
        label = row["name"] + (f" ({row['cache']})" if both else "")
        baseline = row["kind"] == "baseline"
        if one:
            rate = one["gflop_per_s"] if by_flops else one["gb_per_s"]
            text = f"{grids.figure(one['median_ms'] / factor)} {unit}"
            rungs.append(Rung(label, rate, text, baseline))
        else:
            rungs.append(Rung(label, None, row["status"], baseline))
    most = table["ceiling"]["gflop_per_s" if by_flops else "gb_per_s"]
    name = "peak of the units" if by_flops else "measured copy"
    unit_of_rate = "GFLOP/s" if by_flops else "GB/s"
    ceiling = (most, f"{name}, {most:,.0f} {unit_of_rate}") if most else None
    title = f"{heading(table)}; {grids.device_text(environment)}; {grids.cache_text([table])}"
    return Ladder(title, unit_of_rate, rungs, ceiling)
