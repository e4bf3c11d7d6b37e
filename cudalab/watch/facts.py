"""What there is to say of a version, as facts that can be told apart from those of another one.

A fact is the same in two versions if it is of the same kind and about the same line of code, or
test, wherever that line has moved. So a watcher can say what is new, what is gone and what is
still there, and need not repeat the rest.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from cudalab.checker.outputs import explained, headline_of
from cudalab.checker.verdicts import Report, Stage, Status
from cudalab.microscope.findings import FindingRow, grouped
from cudalab.watch.costs import Costs

MAX_ERRORS = 3  # of a compiler
MAX_DETAILS = 4  # lines about a wrong answer
_ERROR = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)")


class Grade(IntEnum):
    """How much a fact weighs: only costs are left of a right kernel."""

    ERROR = 2
    COST = 1


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that is wrong with a version, or costly."""

    kind: str  # a word for the reader, such as "data race"
    about: str  # the code or the test: with the kind, it tells facts apart
    file: str = ""
    line: int = 0  # 0: no line is to blame
    text: str = ""  # a sentence
    details: tuple[str, ...] = ()
    grade: Grade = Grade.ERROR

    @property
    def identity(self) -> tuple[str, str]:
        """What is equal for the same fact of two versions."""
        return self.kind, self.about

    @property
    def head(self) -> str:
        """The fact in a few words: "data race, line 15"."""
        return f"{self.kind}, line {self.line}" if self.line else self.kind


def facts_of(report: Report, costs: Costs | None, file: str) -> list[Fact]:
    """The facts about a version, the gravest first; `file` is the one that is watched."""
    facts = [fact for stage in report.stages for fact in _of_stage(stage, report)]
    facts.sort(key=lambda fact: not fact.line)  # a cause with its line before what it leads to
    if costs is not None and report.passed:
        facts += of_costs(costs)
    return placed(facts, file)


def placed(facts: Iterable[Fact], file: str) -> list[Fact]:
    """The facts, numbered where they are equal; a line of another file is named with it."""
    counts: Counter[tuple[str, str]] = Counter()
    result = []
    for fact in facts:
        counts[fact.identity] += 1
        repeated = f" ({counts[fact.identity]})" if counts[fact.identity] > 1 else ""
        kind = fact.kind
        if fact.line and fact.file not in ("", file):
            kind = f"{kind} in {fact.file}"
        result.append(Fact(**{**vars(fact), "kind": kind, "about": fact.about + repeated}))
    return result


def _of_stage(stage: Stage, report: Report) -> Iterator[Fact]:
    if stage.status not in (Status.FAILED, Status.BROKEN):
        return
    if stage.name == "compile":
        yield from _of_compiler(stage)
    elif stage.name == "correct":
        yield from _of_tests(report)
    elif stage.findings:
        yield from of_findings(stage.findings)
    else:
        yield Fact(
            kind=stage.name,
            about=stage.says,
            text=headline_of(stage),
            details=tuple(stage.details),
        )


def of_findings(rows: Iterable[FindingRow]) -> Iterator[Fact]:
    """A fact for each group of the sanitizer's findings; notes are left out."""
    for group in grouped(row for row in rows if not row.note):
        one = group[0]
        more = (f"and {len(group) - 1} more like this",) if len(group) > 1 else ()
        yield Fact(
            kind=one.title,
            about=one.code or one.kind,
            file=one.file,
            line=one.line,
            text=one.what,
            details=(*more, one.cure),
        )


def of_costs(costs: Costs) -> Iterator[Fact]:
    """A fact for each line that is costly."""
    for one in costs.lines:
        yield Fact(
            kind=one.title,
            about=one.code,
            file=one.file,
            line=one.line,
            text=one.text,
            grade=Grade.COST,
        )


def of_compiler(lines: Sequence[str]) -> Iterator[Fact]:
    """A fact for each of a compiler's first errors that name a line."""
    for match in [match for line in lines if (match := _ERROR.match(line))][:MAX_ERRORS]:
        yield Fact(
            kind="compile error",
            about=match["text"],
            file=match["file"],
            line=int(match["line"]),
            text=match["text"],
        )


def _of_compiler(stage: Stage) -> Iterator[Fact]:
    """A fact for each of the first errors; for all of the message if it names no line."""
    errors = list(of_compiler(stage.details))
    yield from errors
    if not errors:
        kind = str(stage.why) or "compile"
        yield Fact(
            kind=kind, about=" ".join(stage.details), text=headline_of(stage),
            details=tuple(stage.details[: 2 * MAX_DETAILS]),
        )  # fmt: skip


def _of_tests(report: Report) -> Iterator[Fact]:
    """One fact for all tests that fail for the same reason: the first shows what is wrong."""
    failed = [test for test in report.tests if test.status in (Status.FAILED, Status.BROKEN)]
    for why in dict.fromkeys(test.why for test in failed):
        alike = [test for test in failed if test.why == why]
        first = alike[0]
        names = ", ".join(test.name for test in alike)
        size = f" (n = {first.size})" if first.size else ""
        yield Fact(
            kind=str(why),
            about=names,
            text=f"{first.name}{size}: {first.says}",
            details=tuple(without_commands(explained(first))[:MAX_DETAILS]),
        )


def without_commands(lines: Sequence[str]) -> list[str]:
    """Lines of an explanation without the commands that repeat it by hand: saving does that."""
    result = []
    for line in lines:
        if line.startswith("to repeat it:"):
            break
        if not line.strip().startswith("see: "):
            result.append(line)
    return result
