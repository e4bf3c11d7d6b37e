"""A table of text, which terminal.py prints, and the numbers in its cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace


@dataclass(frozen=True)
class Column:
    """A column of a table; without room for all, the smallest `keep` is dropped first."""

    title: str
    keep: int = 9
    right: bool = True
    note: str = ""  # the one of the table's notes that explains it, dropped with it


@dataclass
class Grid:
    """A table of text, for a terminal or a file."""

    title: str
    columns: list[Column]
    rows: list[list[str]]
    _: KW_ONLY
    notes: list[str] = field(default_factory=list)
    faint: set[int] = field(default_factory=set)  # rows without a time
    best: set[tuple[int, int]] = field(default_factory=set)  # cells to highlight: row, column

    def without_empty(self) -> Grid:
        """The table without columns that are empty in all rows; `best` must have no cells."""
        if not self.rows:
            return self
        used = [i for i in range(len(self.columns)) if any(row[i] for row in self.rows)]
        return replace(
            self,
            columns=[self.columns[i] for i in used],
            rows=[[row[i] for i in used] for row in self.rows],
        )


def percent(part: float | None) -> str:
    """A fraction as a percentage, with one decimal below ten."""
    if part is None:
        return ""
    return f"{100 * part:.0f}" if part >= 0.0995 else f"{100 * part:.1f}"


UNITS = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"))
RATES = ((1e9, "10⁹"), (1e6, "10⁶"), (1e3, "10³"), (1.0, "items"))


def unit_for(ms: Iterable[float]) -> tuple[float, str]:
    """The largest unit in which the shortest time is at least 1; otherwise microseconds."""
    return _largest_within(UNITS, min(ms, default=1.0))


def rate_for(items_per_s: Iterable[float]) -> tuple[float, str]:
    """The power of ten in which the highest rate is 1 or more."""
    return _largest_within(RATES, max(items_per_s, default=1.0))


def _largest_within(units: tuple[tuple[float, str], ...], value: float) -> tuple[float, str]:
    return next((unit for unit in units if value >= unit[0]), units[-1])


def figure(value: float) -> str:
    """A number with four significant digits, or as an integer if it has more."""
    for lower, digits in ((1000, 0), (100, 1), (10, 2)):
        if abs(value) >= lower:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"


def factor(value: float) -> str:
    """A number with three significant digits, or as an integer if it has more."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"
