"""The parts of a report, whatever kind of file they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.output.grid import Grid
    from cudalab.output.plots import Chart


@dataclass(frozen=True)
class Heading:
    """The title (level 1), a section (2), a part of one (3)."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines as they are."""

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
    """Room for the student's own words."""

    prompt: str


Block = Heading | Text | Code | Table | Picture | Blank
