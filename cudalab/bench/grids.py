"""Tables of the results of bench."""
# ruff: noqa: RUF001, RUF003 - × is a multiplication sign on purpose

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import itemgetter

from cudalab.bench import stats
from cudalab.bench.comparison import BROKEN, FASTER, SAME, SLOWER, UNDECIDED, Comparison, Verdict
from cudalab.bench.document import (
    EMULATED,
    Document,
    Environment,
    Row,
    Speedup,
    Statistics,
    Table,
    cache_text,
)
from cudalab.bench.measured import COLD, UNUSABLE
from cudalab.output.grid import Column, Grid, factor, figure, percent, rate_for, unit_for

Cell = Callable[[Row], str]

COURSE = (
    "course, ms: as printed in the course's material, on the GPU of its day; "
    "it does not say for which n"
)


def grids(document: Document) -> list[Grid]:
    """All tables of a document, in the order of measuring."""
    each = [one for table in document.tables for one in of_table(table, document.environment)]
    return each + summaries(document)


def of_table(table: Table, environment: Environment) -> list[Grid]:
    """The tables to show when one table has been measured."""
    if table.sweep:
        parts = swept(table, environment)
        parts[-1].notes += table.notes
        return parts
    stages = end_to_end_grid(table)
    return [grid(table, environment), *([stages] if stages else [])]


def summaries(document: Document) -> list[Grid]:
    """The tables to show at the end: times over n."""
    over_n = [over_sizes(tables, document.environment) for tables in document.series()]
    return [one for one in over_n if one]


# One table ---------------------------------------------------------------------------------------


def grid(table: Table, environment: Environment) -> Grid:
    """The table of one lab, case and size, without empty columns."""
    cache: tuple[Column, Cell] = (Column("cache", right=False), lambda row: row.cache)
    columns: list[tuple[Column, Cell]] = [
        (Column("variant", right=False), lambda row: row.title),
        *([cache] if len(table.caches()) > 1 else []),
        *_columns_of_times(table),
        *_columns_of_speedups(table),
        (Column("course, ms", 6, note=COURSE), lambda row: row.course_ms),
    ]
    return Grid(
        f"{table.heading()}; {environment.device_text}; {cache_text([table])}",
        [column for column, _ in columns],
        [[cell(row) for _, cell in columns] for row in table.rows],
        notes=notes(table, environment),
        faint={i for i, row in enumerate(table.rows) if not row.statistics},
    ).without_empty()


def _columns_of_times(table: Table) -> list[tuple[Column, Cell]]:
    """Times and rates; a row without a time shows its status."""
    scale, unit = unit_for(one.median_ms for _, one in table.timed)
    rate, rate_unit = rate_for(one.items_per_s for _, one in table.timed)

    def median(row: Row) -> str:
        return figure(row.statistics.median_ms / scale) if row.statistics else str(row.status)

    def clock(row: Row) -> str:
        return row.clock if row.statistics else ""

    def spread(one: Statistics) -> str:
        return "unusable" if one.noise > UNUSABLE else f"{100 * one.noise:.1f} %"

    mixed = len({row.clock for row, _ in table.timed}) > 1
    return [
        (Column(f"median {unit}"), median),
        (Column("±", 8), _of_timed(spread)),
        (Column("min", 3), _of_timed(lambda one: figure(one.min_ms / scale))),
        (Column("runs", 2), _of_timed(lambda one: str(one.runs))),
        *([(Column("clock", 7, right=False), clock)] if mixed else []),
        (Column(f"{rate_unit}/s", 4), _of_timed(lambda one: figure(one.items_per_s / rate))),
        (
            Column("GFLOP/s" if table.by_flops else "GB/s", 7),
            _of_timed(lambda one: figure(one.rate)),
        ),
        (
            Column("% of peak" if table.by_flops else "% of copy", 6),
            _of_timed(lambda one: percent(one.of_ceiling)),
        ),
    ]


def _of_timed(text: Callable[[Statistics], str]) -> Cell:
    """A cell that is empty if the row has no time."""
    return lambda row: text(row.statistics) if row.statistics else ""


def _columns_of_speedups(table: Table) -> list[tuple[Column, Cell]]:
    def over(baseline: str) -> tuple[Column, Cell]:
        return Column(f"× {baseline}", 7), lambda row: times(row.baselines.get(baseline))

    baselines = dict.fromkeys(name for row in table.rows for name in row.baselines)
    return [
        (Column("× below", 8), lambda row: times(row.below)),
        (Column("× first", 5), lambda row: times(row.first)),
        *map(over, baselines),
    ]


def times(speedup: Speedup | None) -> str:
    """The factor of a speedup if it is decided."""
    if speedup is None:
        return ""
    return factor(speedup.ratio) if speedup.decided else "no winner"


# Notes -------------------------------------------------------------------------------------------


def notes(table: Table, environment: Environment) -> list[str]:
    """Notes: the winner, why rows have no time, and doubts about times."""
    lines = winner(table, environment)
    names_by_warning: dict[str, list[str]] = {}  # rows with the same warning share a line
    for row in table.rows:
        name = row.name + ("" if row.cache == COLD else f" ({row.cache})")
        if not row.statistics:
            lines.append(f"{name}: {row.status}: {row.reason}")
        lines += [text if text.startswith(f"{name}:") else f"{name}: {text}" for text in row.notes]
        for text in row.warnings:
            names_by_warning.setdefault(text, []).append(name)
    lines += [f"{', '.join(names)}: {text}" for text, names in names_by_warning.items()]
    by_host = list(dict.fromkeys(row.name for row, _ in table.timed if row.clock == "host"))
    if by_host:
        all_rows = len(by_host) == len({row.name for row, _ in table.timed})
        which = "all rows" if all_rows else ", ".join(by_host)
        lines.append(f"timed by the host's clock: {which}")
    if any(row.course_ms for row in table.rows):
        lines.append(COURSE)
    return lines + table.notes


def winner(table: Table, environment: Environment) -> list[str]:
    """A line for each state of the caches: the fastest variant, or that there is no winner.

    Tables without stored samples have none, because the confidence is not known.
    """
    if table.sweep:
        return []
    lines = []
    for cache in table.caches():
        where = f" ({cache})" if len(table.caches()) > 1 else ""
        where += f" ({EMULATED}: no measure of a GPU)" if environment.emulated else ""
        ladder = sorted(
            (
                (one.median_ms, one.noise > UNUSABLE, row)
                for row, one in table.timed
                if row.cache == cache and row.comparable and row.samples_ms
            ),
            key=itemgetter(0),
        )
        if unusable := [row.name for _, is_unusable, row in ladder[:2] if is_unusable]:
            lines.append(f"no winner{where}: unusable times of {' and '.join(unusable)}")
        elif len(ladder) > 1:
            lines.append(_ahead(ladder[0][-1], ladder[1][-1], where))
    return lines


def _ahead(best: Row, second: Row, where: str) -> str:
    ratio = stats.ratio(second.valid_samples(), best.valid_samples())
    interval = f"{factor(ratio.low)} to {factor(ratio.high)}"
    if ratio.decided:
        times = f"{factor(ratio.value)} times as fast as {second.name} ({interval})"
        return f"fastest{where}: {best.name}, {times}"
    return f"no winner{where}: {best.name} may be {interval} times as fast as {second.name}"


# Launch shapes -----------------------------------------------------------------------------------

Value = int | str  # of a define


def swept(table: Table, environment: Environment) -> list[Grid]:
    """Medians over launch shapes, for each state of the caches.

    One define gives the columns. With two, each variant has a table, and the first define gives the
    rows. More make a list.
    """
    free = [name for name in table.sweep if len({row.defines[name] for row in table.rows}) > 1]
    free = free or table.sweep[:1]
    scale, unit = unit_for(one.median_ms for _, one in table.timed)
    axis = free[-1], list(dict.fromkeys(row.defines[free[-1]] for row in table.rows))
    result = []
    for cache in table.caches():
        # Those that cannot run belong to every state of the caches.
        names = {row.name for row in table.rows if row.cache == cache}
        rows = [
            row
            for row in table.rows
            if row.cache == cache or (row.name not in names and not row.statistics)
        ]
        title = f"{table.heading()}; {environment.device_text}; {cache} cache"
        over = f"{title}: median {unit} over {free[-1]}"
        if len(free) > 2:
            result.append(_list(title, rows, table.sweep, scale, unit))
        elif len(free) == 1:
            plane = _plane("variant", rows, lambda row: row.variant, axis, scale, by_line=True)
            result.append(replace(plane, title=over))
        else:
            for variant in dict.fromkeys(row.variant for row in rows):
                members = [row for row in rows if row.variant == variant]
                label = f"{variant}: {free[0]}"
                plane = _plane(label, members, lambda row: row.defines[free[0]], axis, scale)
                result.append(replace(plane, title=over))
    return result


def _plane(
    label: str,
    rows: Sequence[Row],
    line_of: Callable[[Row], Value],
    axis: tuple[str, list[Value]],
    scale: float,
    *,
    by_line: bool = False,
) -> Grid:
    """A table with a define's values as columns; a star marks the best cell of it or of a line."""
    name, values = axis
    lines = list(dict.fromkeys(map(line_of, rows)))
    timed_last = sorted(rows, key=lambda row: bool(row.statistics))
    # If two rows share a cell, one with times is shown.
    shown = {(line_of(row), row.defines[name]): row for row in timed_last}
    cells = [
        [str(line), *(_median(shown.get((line, value)), scale) for value in values)]
        for line in lines
    ]
    medians = [
        {
            (i, j): row.statistics.median_ms
            for j, value in enumerate(values, start=1)
            if (row := shown.get((line, value))) and row.statistics
        }
        for i, line in enumerate(lines)
    ]
    if not by_line:
        medians = [{cell: ms for line in medians for cell, ms in line.items()}]
    best = {min(group, key=group.__getitem__) for group in medians if group}
    for i, j in best:
        cells[i][j] += " *"
    notes = _why_not(shown.values())
    if best:
        notes.append("* the lowest median of its row" if by_line else "* the lowest median")
    heads = [Column(label, right=False), *(Column(str(value)) for value in values)]
    return Grid("", heads, cells, notes=notes, best=best)


def _median(row: Row | None, scale: float) -> str:
    """The text of a cell; empty for a combination that was not measured."""
    if row is None:
        return ""
    return figure(row.statistics.median_ms / scale) if row.statistics else str(row.status)


def _list(title: str, rows: Sequence[Row], names: Sequence[str], scale: float, unit: str) -> Grid:
    """A line for each combination, for three or more defines."""
    cells = [
        [row.variant, *(str(row.defines.get(name, "")) for name in names), _median(row, scale)]
        for row in rows
    ]
    medians = {i: row.statistics.median_ms for i, row in enumerate(rows) if row.statistics}
    if medians:
        cells[min(medians, key=medians.__getitem__)][-1] += " *"
    heads = [Column("variant", right=False), *map(Column, names), Column(f"median {unit}")]
    return Grid(
        title, heads, cells, notes=[*_why_not(rows), *(["* the lowest median"] if medians else [])]
    )


def _why_not(rows: Iterable[Row]) -> list[str]:
    """Why combinations cannot run, one line for each reason."""
    names_by_reason: dict[str, list[str]] = {}
    for row in rows:
        if not row.statistics:
            error = re.search(r"error: (.*)", row.reason)  # the first of a compiler's messages
            gist = error[1] if error else row.reason.partition("\n")[0]
            names_by_reason.setdefault(f"{row.status}: {gist}", []).append(row.name)
    return [f"{', '.join(names)}: {reason}" for reason, names in names_by_reason.items()]


# Other tables ------------------------------------------------------------------------------------


def end_to_end_grid(table: Table) -> Grid | None:
    """The times of the stages from file to file."""
    measured = table.end_to_end
    if measured is None:
        return None
    stages = {**measured.stages_ms, "total": sum(measured.stages_ms.values())}
    scale, unit = unit_for([stages["total"]])
    return Grid(
        f"end to end, from file to file, {unit}",
        [Column("variant", right=False), *map(Column, stages)],
        [[measured.variant, *(figure(ms / scale) for ms in stages.values())]],
    )


def over_sizes(tables: Sequence[Table], environment: Environment) -> Grid | None:
    """Medians of one lab and case over n; None for a single table."""
    if len(tables) < 2:
        return None
    states = [table.caches() for table in tables]
    both = any(len(state) > 1 for state in states)
    differ = not both and len({cache for state in states for cache in state}) > 1
    heads = [
        table.size + "".join(f" ({cache})" for cache in state if differ)
        for table, state in zip(tables, states, strict=True)
    ]
    names = list(dict.fromkeys(_label(row, both=both) for t in tables for row in t.rows))
    medians = [
        {_label(row, both=both): one.median_ms for row, one in table.timed} for table in tables
    ]
    scale, unit = unit_for(ms for column in medians for ms in column.values())
    return Grid(
        f"{tables[0].heading(size='')}: median {unit} over n; {environment.device_text}; "
        f"{cache_text(tables)}",
        [Column("variant", right=False), *map(Column, heads)],
        [
            [name, *(figure(ms[name] / scale) if name in ms else "" for ms in medians)]
            for name in names
        ],
        best=set() if both else _fastest_of_sizes(tables, names),
    )


def _label(row: Row, *, both: bool) -> str:
    """A row's name, with the state of the caches if the tables have both."""
    return f"{row.title} ({row.cache})" if both else row.title


def _fastest_of_sizes(tables: Sequence[Table], names: Sequence[str]) -> set[tuple[int, int]]:
    """The cell of the fastest variant in each column."""
    variants = {row.name for table in tables for row in table.rows if row.comparable}
    cells = set()
    for column, table in enumerate(tables, start=1):
        medians = {row.name: one.median_ms for row, one in table.timed if row.name in variants}
        if medians:
            fastest = min(medians, key=lambda name: medians[name])
            cells.add((names.index(fastest), column))
    return cells


def comparison_grid(comparison: Comparison) -> Grid:
    """A line for each row, and the number of rows with each verdict."""
    verdicts = comparison.verdicts
    scale, unit = unit_for(one.new_ms for one in verdicts if one.new_ms is not None)
    counts = {
        verdict: sum(one.verdict == verdict for one in verdicts)
        for verdict in (SAME, FASTER, SLOWER, UNDECIDED, BROKEN)
    }
    total = ", ".join(
        f"{count} {verdict}"
        for verdict, count in counts.items()
        if count or verdict not in (UNDECIDED, BROKEN)
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
    cells = [_compared(one, scale) for one in verdicts]
    return Grid("old and new", columns, cells, notes=[total, *comparison.notes])


def _compared(one: Verdict, scale: float) -> list[str]:
    both = ("" if ms is None else figure(ms / scale) for ms in (one.old_ms, one.new_ms))
    change, interval = "", ""
    if one.percents:
        change = f"{one.percents[0]:+.1f} %"
        interval = f"{one.percents[1]:+.1f} to {one.percents[2]:+.1f} %"
    return [one.key.lab, one.key.size, one.key.name, *both, change, interval, one.verdict]
