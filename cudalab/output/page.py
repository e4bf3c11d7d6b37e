"""The parts of a page, and the alignment of its drawings. terminal.py prints them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import cleandoc

LABEL = 10  # width of the label in front of a drawing's cells
IDLE = "·"


@dataclass(frozen=True)
class Heading:
    """A heading, printed directly above the next part."""

    text: str


@dataclass(frozen=True)
class Text:
    """Paragraphs, to be wrapped to the width of the screen."""

    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """Lines to be printed unchanged."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Column titles and rows; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Commands:
    """Shell commands that demonstrate the topic."""

    lines: tuple[str, ...]


Part = Heading | Text | Drawing | Table | Commands


def text(written: str) -> Text:
    """Paragraphs from an indented string, separated by empty lines."""
    return Text(tuple(" ".join(part.split()) for part in cleandoc(written).split("\n\n")))


def drawing(lines: Iterable[str]) -> Drawing:
    """A drawing of lines, without trailing spaces."""
    return Drawing(tuple(line.rstrip() for line in lines))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of values that can be converted to text."""
    return Table(tuple(columns), tuple(tuple(map(str, row)) for row in rows))


def commands(*lines: str) -> Commands:
    """The last part of a page: commands to try."""
    return Commands(lines)


def row(label: str, cells: Iterable[object], width: int) -> str:
    """A label, then cells aligned to the right, `width` columns each."""
    return label.ljust(LABEL) + "".join(str(cell).rjust(width) for cell in cells)


def links(pairs: Iterable[tuple[int, int]], width: int, left: str, right: str) -> str:
    """Lines between pairs of cells of a `row`, with marks at their ends; pairs must not overlap."""
    line = [" "] * LABEL
    for one, two in pairs:
        begin, end = (LABEL + width * (cell + 1) - 1 for cell in (one, two))
        line += [" "] * (begin - len(line)) + [left] + ["─"] * (end - begin - 1) + [right]
    return "".join(line)
