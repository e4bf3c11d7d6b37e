"""A table of text, which terminal.py prints."""

from __future__ import annotations

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
