"""The parts of a report, independent of the file format."""

from dataclasses import dataclass

from cudalab.output.charts import Chart
from cudalab.output.grid import Grid


@dataclass(frozen=True)
class Heading:
    """The title (level 1), or the heading of a section (2) or subsection (3)."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Code:
    """Preformatted lines."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table with its title and notes."""

    grid: Grid


@dataclass(frozen=True)
class Picture:
    """A chart."""

    chart: Chart


@dataclass(frozen=True)
class Blank:
    """Space for the student's own text."""

    prompt: str


Block = Heading | Text | Code | Table | Picture | Blank
