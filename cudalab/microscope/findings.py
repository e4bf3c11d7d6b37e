"""The findings of `sanitize` in one variant; docs/profile.md describes their JSON."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cudalab.system import records
from cudalab.system.records import Scalar

SCHEMA = "cudalab-sanitize/1"


@dataclass(frozen=True, kw_only=True)
class FindingRow:
    """A finding with its explanation and the source lines that it names, as a flat record."""

    kind: str
    title: str
    note: bool
    kernel: str
    file: str
    line: int
    block: list[int]
    thread: list[int]
    access: str | None
    space: str | None
    bytes: int
    buffer: str | None
    index: int | None
    beyond: int | None
    other_file: str | None
    other_line: int | None
    other_block: list[int] | None
    other_thread: list[int] | None
    other_access: str | None
    missing: str | None
    detail: str
    count: int
    input: str
    code: str
    other_code: str | None
    what: str
    why: str
    cure: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All findings in one variant, or in a whole program."""

    schema: str = SCHEMA
    lab: str
    variant: str
    file: str
    case: dict[str, Scalar]
    inputs: list[str]
    clean: bool
    findings: list[FindingRow]  # errors first, then notes
    launches: int | None = None  # of a whole program, as far as they were observed
    ended_by: str = ""  # the signal that ended a whole program, if any
    ignored: list[str] = field(default_factory=list)  # failures that a whole program ignores
    follows: list[str] = field(default_factory=list)  # failures that the findings have caused
    lines_observed: int | None = None  # those with accesses that were all seen; None: not known
    not_looked_at: list[str] = field(default_factory=list)  # lines with accesses that were not
    leaks: list[str] = field(default_factory=list)  # memory that a whole program never frees
    # What the threads of each kernel did on each input, one thread after another: for the checker.
    tallies: list[dict[str, dict[str, int]]] = field(default_factory=list)


def grouped(rows: Iterable[FindingRow]) -> list[list[FindingRow]]:
    """The findings as reports number them: those that share an explanation and a cure are one."""
    groups: dict[tuple[bool, str, str, str], list[FindingRow]] = {}
    for row in rows:
        groups.setdefault((row.note, row.title, row.why, row.cure), []).append(row)
    return list(groups.values())


def errors(groups: Iterable[list[FindingRow]]) -> int:
    """The number of findings that are more than notes."""
    return sum(not group[0].note for group in groups)


def read(path: Path) -> Findings:
    """Read a file of findings."""
    return from_json(path.read_text(encoding="utf-8"))


def from_json(text: str | bytes) -> Findings:
    """Read findings from JSON. ValueError for other text, InputError for other JSON."""
    return records.read(Findings, json.loads(text))
