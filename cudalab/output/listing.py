"""Source with a margin of numbers: laid out elsewhere, printed by terminal.py."""

from __future__ import annotations

from dataclasses import dataclass, field

GOOD, BAD, QUIET = "good", "bad", "quiet"


@dataclass(frozen=True)
class Cell:
    """Text of the margin, and how it looks: GOOD, BAD, QUIET or plain."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Row:
    """A line of the listing: the margin and a line of the source, or a remark."""

    margin: tuple[Cell, ...] = ()
    line: int = 0
    remark: str = ""


@dataclass(frozen=True)
class Listing:
    """The parts of one source file that a kernel runs through."""

    label: str
    head: str  # above the margin's columns
    rows: list[Row] = field(default_factory=list)
