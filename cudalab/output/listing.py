"""Source code with a margin of numbers, and findings in it; terminal.py prints both."""

from dataclasses import dataclass, field
from typing import Protocol

GOOD, BAD, ALARM, QUIET = "good", "bad", "alarm", "quiet"


@dataclass(frozen=True)
class Cell:
    """Text, such as in the margin, and its style: GOOD, BAD, ALARM, QUIET or plain."""

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


class Finding(Protocol):
    """The printed properties of a finding: what happened and where, why, and the cure."""

    @property
    def note(self) -> bool: ...
    @property
    def title(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def cure(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def code(self) -> str: ...
    @property
    def other_line(self) -> int | None: ...
    @property
    def other_code(self) -> str | None: ...
