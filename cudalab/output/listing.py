"""Source code with a margin of numbers, which terminal.py prints."""

from dataclasses import dataclass, field

GOOD, BAD, QUIET = "good", "bad", "quiet"


@dataclass(frozen=True)
class Cell:
    """Text in the margin, and its style: GOOD, BAD, QUIET or plain."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Row:
    """A line of the listing: the margin and a line of the source, or a remark."""

    margin: tuple[Cell, ...] = ()
    line: int = 0
    remark: str = ""
    whole: int = 0  # letters of the code, without its indentation, that must not be cut off


@dataclass(frozen=True)
class Listing:
    """The parts of one source file that a kernel executes."""

    label: str
    head: str  # the titles of the margin's columns
    rows: list[Row] = field(default_factory=list)
