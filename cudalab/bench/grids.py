"""Results of bench laid out as tables: for a terminal, as Markdown, as CSV.

All of it works on the JSON's own form, so that an old file gives the same tables as the run that
wrote it.
"""
# ruff: noqa: RUF001, RUF003 - × is a multiplication sign on purpose

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from cudalab.bench import stats
from cudalab.bench.measure import COLD, HOT
from cudalab.bench.results import BROKEN, EMULATED, FASTER, SAME, SLOWER, STATISTICS, heading
from cudalab.output.grid import Column, Grid, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cudalab.bench.results import Comparison, Json


COURSE = (
    "course, ms: as printed in the course's material, on the GPU of its day; "
    "matmul naive and tiled for n = 1024, the others without their n"
)
UNITS = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"))


def unit_for(ms: Iterable[float]) -> tuple[float, str]:
    """The unit in which the shortest time is 1 or more; microseconds at least."""
    shortest = min(ms, default=1.0)
    for factor, name in UNITS:
        if shortest >= factor:
            return factor, name
    return UNITS[-1]


RATES = ((1e9, "10⁹"), (1e6, "10⁶"), (1e3, "10³"), (1.0, "items"))


def rate_for(items_per_s: Iterable[float]) -> tuple[float, str]:
    """The power of ten in which the highest rate is 1 or more."""
    highest = max(items_per_s, default=1.0)
    for factor, name in RATES:
        if highest >= factor:
            return factor, name
    return RATES[-1]


def figure(value: float) -> str:
    """Four digits, or all before the point."""
    for least, digits in ((1000, 0), (100, 1), (10, 2)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"


def device_text(environment: Json) -> str:
    """The device, and whether times on it are emulated."""
    name = str(environment["device_name"])
    return f"CPU device, {EMULATED}: {name}" if environment["emulated"] else name


def caches(table: Json) -> list[str]:
    """The states of the caches in which a table was measured.

    A variant that cannot run has one row, whatever the states: that row does not count.
    """
    rows = table["rows"]
    count = Counter(row["name"] for row in rows)
    counting = [row for row in rows if row["statistics"] or count[row["name"]] > 1]
    found = {row["cache"] for row in counting or rows}
    return [cache for cache in (COLD, HOT) if cache in found]


def cache_text(tables: Sequence[Json]) -> str:
    """The states of the caches in which any of `tables` was measured, for a title."""
    found = {cache for table in tables for cache in caches(table)} or {COLD}
    return " and ".join(cache for cache in (COLD, HOT) if cache in found) + " cache"


def grid(table: Json, environment: Json) -> Grid:
    """The table of one lab, case and size."""
    rows = table["rows"]
    timed = [row["statistics"] for row in rows if row["statistics"]]
    factor, unit = unit_for([one["median_ms"] for one in timed])
    rate, rate_unit = rate_for([one["items_per_s"] for one in timed])
    baselines = list(dict.fromkeys(name for row in rows for name in row["baselines"]))
    both = len(caches(table)) > 1
    mixed = len({row["clock"] for row in rows if row["statistics"]}) > 1
    by_flops = bool(table["work"]["flops"])
    columns = [
        Column("variant", right=False),
        *([Column("cache", right=False)] if both else []),
        Column(f"median {unit}"),
        Column("±", 8),
        Column("min", 3),
        Column("runs", 2),
        *([Column("clock", 7, right=False)] if mixed else []),
        Column(f"{rate_unit}/s", 4),
        Column("GFLOP/s" if by_flops else "GB/s", 7),
        Column("% of peak" if by_flops else "% of copy", 6),
        Column("× below", 8),
        Column("× first", 5),
        *(Column(f"× {name}", 7) for name in baselines),
        Column("course, ms", 6),
    ]
    cells = []
    for row in rows:
        one = row["statistics"]
        cells.append(
            [
                row["name"],
                *([row["cache"]] if both else []),
                *(
                    [
                        figure(one["median_ms"] / factor),
                        f"{100 * one['noise']:.1f} %",
                        figure(one["min_ms"] / factor),
                        str(one["runs"]),
                        *([row["clock"]] if mixed else []),
                        figure(one["items_per_s"] / rate),
                        figure(one["gflop_per_s"] if by_flops else one["gb_per_s"]),
                        percent(one["of_ceiling"]),
                    ]
                    if one
                    else [row["status"], *[""] * (7 if mixed else 6)]
                ),
                times(row["below"]),
                times(row["first"]),
                *(times(row["baselines"].get(name)) for name in baselines),
                row["course_ms"],
            ]
        )
    used = [i for i in range(len(columns)) if i == 0 or any(line[i] for line in cells)]
    return Grid(
        f"{heading(table)}; {device_text(environment)}; {cache_text([table])}",
        [columns[i] for i in used],
        [[line[i] for i in used] for line in cells],
        notes(table, environment),
        {i for i, row in enumerate(rows) if not row["statistics"]},
    )


def times(ratio: Json | None) -> str:
    """How many times faster, where that is decided."""
    if ratio is None:
        return ""
    if ratio["low"] <= 1 <= ratio["high"]:
        return "no winner"
    return _factor(ratio["ratio"])


def _factor(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def notes(table: Json, environment: Json) -> list[str]:
    """What a table's figures leave open: who won, why rows have no time, what is doubtful."""
    said = winner(table, environment)
    alike: dict[str, list[str]] = {}  # the same warning of several rows is one line
    for row in table["rows"]:
        name = row["name"] + ("" if row["cache"] == COLD else f" ({row['cache']})")
        if not row["statistics"]:
            said.append(f"{name}: {row['status']}: {row['reason']}")
        said += [
            text if text.startswith(f"{name}:") else f"{name}: {text}" for text in row["notes"]
        ]
        for text in row["warnings"]:
            alike.setdefault(text, []).append(name)
    said += [f"{', '.join(names)}: {text}" for text, names in alike.items()]
    if any(row["clock"] == "host" for row in table["rows"] if row["statistics"]):
        said.append("timed by the host's clock: " + _by_host(table))
    if any(row["course_ms"] for row in table["rows"]):
        said.append(COURSE)
    return said + list(table["notes"])


def _by_host(table: Json) -> str:
    timed = [row for row in table["rows"] if row["statistics"]]
    names = list(dict.fromkeys(row["name"] for row in timed if row["clock"] == "host"))
    everybody = len(names) == len({row["name"] for row in timed})
    return "all rows" if everybody else ", ".join(names)


def winner(table: Json, environment: Json) -> list[str]:
    """The fastest variant and by how much, or that there is none."""
    said = []
    for cache in caches(table):
        right = [
            row
            for row in table["rows"]
            if row["cache"] == cache and row["statistics"] and row["kind"] == "variant"
        ]
        if len(right) < 2 or table["sweep"]:
            continue
        right.sort(key=lambda row: row["statistics"]["median_ms"])
        best, second = right[:2]
        ratio = stats.ratio(_by_round(second), _by_round(best))
        interval = (
            f"{_factor(ratio.value)} times as fast as {second['name']} "
            f"({_factor(ratio.low)} to {_factor(ratio.high)})"
        )
        where = f" ({cache})" if len(caches(table)) > 1 else ""
        where += f" ({EMULATED}: no measure of a GPU)" if environment["emulated"] else ""
        said.append(
            f"fastest{where}: {best['name']}, {interval}"
            if ratio.decided
            else f"no winner{where}: {best['name']} is {interval}"
        )
    return said


def _by_round(row: Json) -> dict[int, float]:
    discarded = set(row["discarded"])
    pairs = enumerate(zip(row["rounds"], row["samples_ms"], strict=True))
    return {number: ms for i, (number, ms) in pairs if i not in discarded}


def end_to_end_grid(table: Json) -> Grid | None:
    """The stages from file to file."""
    found = table["end_to_end"]
    if found is None:
        return None
    stages = found["stages_ms"]
    total = sum(stages.values())
    factor, unit = unit_for([total])
    return Grid(
        f"end to end, from file to file, {unit}",
        [Column("variant", right=False), *(Column(stage) for stage in stages), Column("total")],
        [
            [
                found["variant"],
                *(figure(ms / factor) for ms in stages.values()),
                figure(total / factor),
            ]
        ],
    )


def over_sizes(tables: Sequence[Json], environment: Json) -> Grid | None:
    """Medians of one lab and case over n."""
    if len(tables) < 2:
        return None
    both = any(len(caches(table)) > 1 for table in tables)
    apart = not both and len({cache for table in tables for cache in caches(table)}) > 1

    def label(row: Json) -> str:
        return str(row["name"]) + (f" ({row['cache']})" if both else "")

    names = list(dict.fromkeys(label(row) for table in tables for row in table["rows"]))
    medians = [
        {label(row): row["statistics"]["median_ms"] for row in table["rows"] if row["statistics"]}
        for table in tables
    ]
    factor, unit = unit_for([ms for found in medians for ms in found.values()])
    rows = [
        [name, *(figure(found[name] / factor) if name in found else "" for found in medians)]
        for name in names
    ]
    best = set()
    if not both:
        variants = {r["name"] for t in tables for r in t["rows"] if r["kind"] == "variant"}
        for column, found in enumerate(medians):
            timed = {name: ms for name, ms in found.items() if name in variants}
            if timed:
                fastest = min(timed, key=lambda name: timed[name])
                best.add((names.index(fastest), column + 1))
    heads = [
        table["size"] + "".join(f" ({cache})" for cache in caches(table) if apart)
        for table in tables
    ]
    title = heading(tables[0], size=False)
    return Grid(
        f"{title}: median {unit} over n; {device_text(environment)}; {cache_text(tables)}",
        [Column("variant", right=False), *map(Column, heads)],
        rows,
        [],
        set(),
        best,
    )


def sweep_grids(table: Json, environment: Json) -> list[Grid]:
    """Medians over launch shapes, for each state of the caches.

    One define stands across; of two, the first down, for each variant.
    """
    names = table["sweep"]
    rows = table["rows"]
    timed = [row["statistics"]["median_ms"] for row in rows if row["statistics"]]
    factor, unit = unit_for(timed)
    what = f"{heading(table)}; {device_text(environment)}"
    parts = {f"{what}; {cache} cache": _in_state(rows, cache) for cache in caches(table)}
    free = [name for name in names if len({row["defines"][name] for row in rows}) > 1] or names[:1]
    across = free[-1] if len(free) < 3 else None
    if across is None:
        return [_sweep_list(*part, names, factor, unit) for part in parts.items()]
    columns = list(dict.fromkeys(row["defines"][across] for row in rows))
    groups: dict[tuple[str, str], list[Json]] = {}
    for title, part in parts.items():
        for row in part:
            groups.setdefault((title, _base(row) if len(free) == 2 else ""), []).append(row)
    grids = []
    for (title, group), members in groups.items():
        down = free[0] if len(free) == 2 else None
        lines = dict.fromkeys(row["defines"][down] if down else _base(row) for row in members)
        label = f"{group}: {down}" if down else "variant"
        grids.append(
            _sweep_grid(
                f"{title}: median {unit} over {across}",
                label,
                (list(lines), columns),
                {
                    (row["defines"][down] if down else _base(row), row["defines"][across]): row
                    for row in sorted(members, key=lambda row: bool(row["statistics"]))
                },  # of two rows for one cell, one with times is shown
                factor,
                best_of_row=down is None,
            )
        )
    return grids


def _in_state(rows: Sequence[Json], cache: str) -> list[Json]:
    """The rows of one state of the caches, with those that cannot run."""
    names = {row["name"] for row in rows if row["cache"] == cache}
    return [
        row
        for row in rows
        if row["cache"] == cache or (row["name"] not in names and not row["statistics"])
    ]


def _base(row: Json) -> str:
    return str(row["name"]).partition("[")[0]


def _sweep_grid(
    title: str,
    label: str,
    axes: tuple[list[Any], list[Any]],
    found: Mapping[tuple[Any, Any], Json],
    factor: float,
    *,
    best_of_row: bool,
) -> Grid:
    lines, columns = axes
    cells, best = [], set()
    medians: dict[tuple[int, int], float] = {}
    for i, line in enumerate(lines):
        shown = [str(line)]
        for j, column in enumerate(columns):
            row = found.get((line, column))
            if row is None:
                shown.append("")
            elif row["statistics"]:
                medians[i, j + 1] = row["statistics"]["median_ms"]
                shown.append(figure(medians[i, j + 1] / factor))
            else:
                shown.append(row["status"])
        cells.append(shown)
    for group in (
        [{k for k in medians if k[0] == i} for i in range(len(lines))]
        if best_of_row
        else [set(medians)]
    ):
        if group:
            best.add(min(group, key=lambda k: medians[k]))
    for i, j in best:
        cells[i][j] += " *"
    said = _why_not(found.values())
    if best:
        said.append("* the least median of its row" if best_of_row else "* the least median")
    heads = [Column(label, right=False), *(Column(str(column)) for column in columns)]
    return Grid(title, heads, cells, said, set(), best)


def _sweep_list(
    title: str, rows: Sequence[Json], names: Sequence[str], factor: float, unit: str
) -> Grid:
    """One line a combination, where three defines or more change."""
    timed = [i for i, row in enumerate(rows) if row["statistics"]]
    best = min(timed, key=lambda i: rows[i]["statistics"]["median_ms"]) if timed else -1
    cells = [
        [
            _base(row),
            *(str(row["defines"].get(name, "")) for name in names),
            figure(row["statistics"]["median_ms"] / factor) + (" *" if i == best else "")
            if row["statistics"]
            else row["status"],
        ]
        for i, row in enumerate(rows)
    ]
    heads = [Column("variant", right=False), *map(Column, names), Column(f"median {unit}")]
    said = [*_why_not(rows), *(["* the least median"] if timed else [])]
    return Grid(title, heads, cells, said)


def _why_not(rows: Iterable[Json]) -> list[str]:
    """Why combinations cannot run: one line for all that have the same reason."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        if not row["statistics"]:
            alike.setdefault(f"{row['status']}: {_gist(row['reason'])}", []).append(row["name"])
    return [f"{', '.join(names)}: {reason}" for reason, names in alike.items()]


def _gist(reason: str) -> str:
    """The first error of a compiler's messages, else the first line."""
    error = re.search(r"error: (.*)", reason)
    return error[1] if error else reason.partition("\n")[0]


def comparison_grid(found: Comparison) -> Grid:
    """A line a row, and how many there are of each verdict."""
    timed = [v.new_ms for v in found.verdicts if v.new_ms is not None]
    factor, unit = unit_for(timed)
    cells = [
        [
            verdict.lab,
            verdict.size,
            verdict.name,
            figure(verdict.old_ms / factor) if verdict.old_ms is not None else "",
            figure(verdict.new_ms / factor) if verdict.new_ms is not None else "",
            *_change(verdict.change),
            verdict.verdict,
        ]
        for verdict in found.verdicts
    ]
    counts = {
        v: sum(one.verdict == v for one in found.verdicts) for v in (SAME, FASTER, SLOWER, BROKEN)
    }
    total = ", ".join(
        f"{count} {verdict}" for verdict, count in counts.items() if count or verdict != BROKEN
    )
    columns = [
        Column("lab", right=False),
        Column("n", 7),
        Column("row", right=False),
        Column(f"old {unit}", 6),
        Column(f"new {unit}", 7),
        Column("change", 8),
        Column("interval", 5),
        Column("verdict", right=False),
    ]
    return Grid("old and new", columns, cells, [total, *found.notes])


def _change(change: stats.Ratio | None) -> list[str]:
    """By how much, and between which bounds."""
    if change is None:
        return ["", ""]
    percents = [100 * (value - 1) for value in (change.value, change.low, change.high)]
    return [f"{percents[0]:+.1f} %", f"{percents[1]:+.1f} to {percents[2]:+.1f} %"]


def of_table(table: Json, environment: Json) -> list[Grid]:
    """What is shown of one table when it is measured."""
    if table["sweep"]:
        swept = sweep_grids(table, environment)
        swept[-1].notes += table["notes"]
        return swept
    stages = end_to_end_grid(table)
    return [grid(table, environment), *([stages] if stages else [])]


def summaries(document: Json) -> list[Grid]:
    """What is shown when all tables are measured: times over n."""
    series: dict[str, list[Json]] = {}
    for table in document["tables"]:
        if not table["sweep"]:
            key = json.dumps([table["lab"], table["case"], table["dist"]])
            series.setdefault(key, []).append(table)
    found = [over_sizes(tables, document["environment"]) for tables in series.values()]
    return [one for one in found if one]


def grids(document: Json) -> list[Grid]:
    """All of a document, in the order in which it was measured."""
    environment = document["environment"]
    each = [one for table in document["tables"] for one in of_table(table, environment)]
    return each + summaries(document)


# Files -------------------------------------------------------------------------------------------


def markdown(document: Json) -> str:
    """All tables as Markdown, with the device on top."""
    parts = [device_lines(document["environment"])]
    for one in grids(document):
        parts.append([f"### {one.title}", ""])
        heads = [column.title for column in one.columns]
        rules = ["---:" if column.right else "---" for column in one.columns]
        lines = [heads, rules, *([cell.replace("|", "\\|") for cell in row] for row in one.rows)]
        parts.append([f"| {' | '.join(line)} |" for line in lines])
        if one.notes:
            parts.append(["", *(f"* {_one_line(text)}" for text in one.notes)])
        parts.append([""])
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def device_lines(environment: Json) -> list[str]:
    """The device in a few lines."""
    known = environment["properties"]
    first = [device_text(environment)]
    labels = {
        "multiprocessors": "{} multiprocessors",
        "OS threads used": "{} OS threads",
        "clock (MHz)": "{} MHz at most",
        "peak memory bandwidth (GB/s)": "peak {} GB/s",
    }
    first += [text.format(known[label]) for label, text in labels.items() if label in known]
    first.append(f"copy measured {environment['copy_gb_per_s']:,.0f} GB/s")
    if environment["clock_mhz"]:
        first.append(f"clock measured {environment['clock_mhz']:,.0f} MHz")
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    driver = f"driver {environment['driver']}; " if environment["driver"] else ""
    commit = f"; commit {environment['commit']}" if environment["commit"] else ""
    lines = [", ".join(first), f"{driver}{versions}{commit}; {environment['date']}"]
    if environment["other_processes"]:
        lines.append("other processes on the GPU: " + ", ".join(environment["other_processes"]))
    return [*lines, ""]


# fmt: off
CSV_COLUMNS = [
    "device", "device_name", "emulated", "lab", "case", "n", "dist",
    "row", "kind", "cache", "clock", "status",
    "median_ms", "min_ms", "noise", "runs", "items_per_s", "gb_per_s", "gflop_per_s", "of_ceiling",
    "times_below", "times_first", "baselines", "course_ms", "defines", "reason",
]
# fmt: on


def csv_text(document: Json) -> str:
    """A line a row, with numbers in full."""
    target = io.StringIO()
    lines = csv.DictWriter(target, CSV_COLUMNS, lineterminator="\n")
    lines.writeheader()
    where = document["environment"]
    for table in document["tables"]:
        for row in table["rows"]:
            one = row["statistics"] or {}
            lines.writerow(
                {
                    "device": where["device"],
                    "device_name": where["device_name"],
                    "emulated": EMULATED if row["emulated"] else "",
                    "lab": table["lab"],
                    "case": _pairs(table["case"]),
                    "n": table["size"].replace(",", ""),
                    "dist": table["dist"],
                    "row": row["name"],
                    **{key: row[key] for key in ("kind", "cache", "clock", "status", "course_ms")},
                    **{key: one[key] for key in STATISTICS if key in one and key in CSV_COLUMNS},
                    "times_below": row["below"]["ratio"] if row["below"] else "",
                    "times_first": row["first"]["ratio"] if row["first"] else "",
                    "baselines": _pairs({k: r["ratio"] for k, r in row["baselines"].items()}),
                    "defines": _pairs(row["defines"]),
                    "reason": row["reason"],
                }
            )
    return target.getvalue()


def _pairs(values: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in values.items() if v is not None and v is not False)
