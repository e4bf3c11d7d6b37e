"""Tables of results over launch shapes."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cudalab.bench.document import Environment, Row, Table
from cudalab.output.grid import Column, Grid, figure, unit_for

Value = int | str  # of a define
ValueOf = Callable[[Row], Value]


def grids(table: Table, environment: Environment) -> list[Grid]:
    """Medians over launch shapes, for each state of the caches.

    One define gives the columns. With two, each variant has a table, and the first define gives the
    rows. More make a list.
    """
    free = [name for name in table.sweep if len({row.defines[name] for row in table.rows}) > 1]
    free = free or table.sweep[:1]
    scale, unit = unit_for(one.median_ms for _, one in table.timed)
    axis = _Axis(free[-1], list(dict.fromkeys(row.defines[free[-1]] for row in table.rows)))
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
        over = f"{title}: median {unit} over {axis.name}"
        if len(free) == 1:
            plane = _Plane(rows, lambda row: row.variant, axis)
            best = {min(line, key=line.__getitem__) for line in plane.medians_by_line() if line}
            result.append(
                plane.grid(over, "variant", scale, best, "* the lowest median of its row")
            )
        elif len(free) == 2:
            result += _plane_of_each_variant(over, rows, free[0], axis, scale)
        else:
            result.append(_list(title, rows, table.sweep, scale, unit))
    return result


@dataclass(frozen=True)
class _Axis:
    """The define of the columns, and its values."""

    name: str
    values: list[Value]


def _plane_of_each_variant(
    title: str, rows: Sequence[Row], down: str, axis: _Axis, scale: float
) -> list[Grid]:
    """A table over two defines for each variant, with the best cell marked."""
    result = []
    for variant in dict.fromkeys(row.variant for row in rows):
        members = [row for row in rows if row.variant == variant]
        plane = _Plane(members, lambda row: row.defines[down], axis)
        medians = {cell: ms for line in plane.medians_by_line() for cell, ms in line.items()}
        best = {min(medians, key=medians.__getitem__)} if medians else set()
        label = f"{variant}: {down}"
        result.append(plane.grid(title, label, scale, best, "* the lowest median"))
    return result


class _Plane:
    """Rows arranged by two values: `line_of` gives the line, a define the column."""

    def __init__(self, rows: Sequence[Row], line_of: ValueOf, axis: _Axis) -> None:
        self.axis = axis
        self.lines = list(dict.fromkeys(map(line_of, rows)))
        timed_last = sorted(rows, key=lambda row: bool(row.statistics))
        # If two rows share a cell, one with times is shown.
        self.rows = {(line_of(row), row.defines[axis.name]): row for row in timed_last}

    def medians_by_line(self) -> list[dict[tuple[int, int], float]]:
        """The medians of each line by cell; column 0 has the labels."""
        return [
            {
                (i, j): row.statistics.median_ms
                for j, value in enumerate(self.axis.values, start=1)
                if (row := self.rows.get((line, value))) and row.statistics
            }
            for i, line in enumerate(self.lines)
        ]

    def grid(
        self, title: str, label: str, scale: float, best: set[tuple[int, int]], star: str
    ) -> Grid:
        """The table with stars at the `best` cells, and the note `star` that explains them."""
        cells = [
            [
                str(line),
                *(_median(self.rows.get((line, value)), scale) for value in self.axis.values),
            ]
            for line in self.lines
        ]
        for i, j in best:
            cells[i][j] += " *"
        heads = [Column(label, right=False), *(Column(str(value)) for value in self.axis.values)]
        notes = [*_why_not(self.rows.values()), *([star] if best else [])]
        return Grid(title, heads, cells, notes=notes, best=best)


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
