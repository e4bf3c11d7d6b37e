"""What a page is made of, and how its drawings are aligned. No printing here."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LABEL = 10  # columns before the cells of a drawing
IDLE = "·"


@dataclass(frozen=True)
class Heading:
    """A line above what follows."""

    text: str


@dataclass(frozen=True)
class Text:
    """Paragraphs, to be filled to the width of the screen."""

    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """Lines that stay as they are."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Columns and rows; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Commands:
    """Lines for a shell that show the topic happening."""

    lines: tuple[str, ...]


Part = Heading | Text | Drawing | Table | Commands


def text(written: str) -> Text:
    """Paragraphs from an indented string; empty lines are between them."""
    return Text(tuple(" ".join(part.split()) for part in cleandoc(written).split("\n\n")))


def drawing(lines: Iterable[str]) -> Drawing:
    """Lines, without spaces at their ends."""
    return Drawing(tuple(line.rstrip() for line in lines))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of anything that can be written as text."""
    return Table(tuple(columns), tuple(tuple(map(str, row)) for row in rows))


def commands(*lines: str) -> Commands:
    """The page's last part."""
    return Commands(lines)


def row(label: str, cells: Iterable[object], width: int) -> str:
    """A label, then cells that end `width` columns apart."""
    return label.ljust(LABEL) + "".join(str(cell).rjust(width) for cell in cells)


def links(pairs: Iterable[tuple[int, int]], width: int, left: str, right: str) -> str:
    """A line from cell to cell of `row`, for pairs that do not overlap, with marks at the ends."""
    line = [" "] * LABEL
    for one, two in pairs:
        begin, end = (LABEL + width * (cell + 1) - 1 for cell in (one, two))
        line += [" "] * (begin - len(line)) + [left] + ["─"] * (end - begin - 1) + [right]
    return "".join(line)
