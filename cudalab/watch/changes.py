"""What there is to say of a version, as facts that can be told apart from those of another one.

A fact is the same in two versions if it is of the same kind and about the same line of code, or
test, wherever that line has moved. So a watcher can say what is new, what is gone and what is
still there, and need not repeat the rest.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum
from itertools import zip_longest

from cudalab.checker.outputs import explained, headline_of
from cudalab.checker.verdicts import Report, Stage, Status
from cudalab.microscope.findings import FindingRow, grouped
from cudalab.watch.costs import Costs
from cudalab.watch.ladder import Place

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
            kind=stage.name, about=stage.says, text=headline_of(stage), details=tuple(stage.details)
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


# Versions ----------------------------------------------------------------------------------------

PRINTED = 10  # lines of a program


@dataclass
class Version:
    """A version that was judged."""

    verdict: str  # in a few words: "6 of 9 tests; 1 finding"
    facts: Sequence[Fact]
    _: KW_ONLY
    right: bool  # whether nothing but costs is left
    observed: bool  # whether the sanitizer has looked at it
    exit_code: int
    place: Place | None = None
    counts: Mapping[str, float] = field(default_factory=dict)  # see costs.counts_of
    notes: Sequence[str] = field(default_factory=tuple)
    printed: Sequence[str] = field(default_factory=tuple)  # the lines of a whole program


def verdict_of(report: Report) -> str:
    """A judge's report on a kernel in a few words."""
    compiled = report.stage("compile")
    if compiled is None or compiled.status is not Status.PASSED:
        return "broken" if compiled and compiled.status is Status.BROKEN else "does not compile"
    correct, sanitize = report.stage("correct"), report.stage("sanitize")
    words = [correct.says] if correct else []
    if sanitize is not None and sanitize.status is Status.PASSED:
        words.append(sanitize.says)
    elif sanitize is not None and sanitize.findings:
        words.append(sanitize.says.partition(":")[0])  # what it costs is for a class
    elif report.passed and sanitize is not None:
        words.append(f"not sanitized: {sanitize.says}")
    return "; ".join(words)


def was_observed(report: Report) -> bool:
    """Whether the judge came as far as the sanitizer."""
    stages = {stage.name: stage.status for stage in report.stages}
    return stages.get("sanitize", Status.SKIPPED) is not Status.SKIPPED


def lines(version: Version, before: Version | None) -> Iterator[tuple[str, str]]:
    """The lines to print, each with its style: "bad", "good", "cost", "", "dim" or "printed"."""
    known = {fact.identity: fact for fact in before.facts} if before else {}
    new = [fact for fact in version.facts if fact.identity not in known]
    still = [fact for fact in version.facts if fact.identity in known]
    present = {fact.identity for fact in version.facts}
    gone = [fact for fact in known.values() if fact.identity not in present]
    colour = "good" if version.right else "bad"
    if before is None or version.verdict != before.verdict:
        yield version.verdict, colour
    if still:
        yield f"still {listed(still)}", _style(still)
    # A fact may be unseen, and not gone, for the judge has stopped before it came to it.
    stopped = before and not (version.observed or version.right or before.right)
    costs_only = all(fact.grade is Grade.COST for fact in gone)
    if gone and before and not stopped and (version.right or not costs_only):
        yield f"gone: {listed(gone)}", "good"
    for fact in new:
        yield fact.head, _style([fact])
        for text in (fact.text, *fact.details):
            yield f"  {' '.join(text.splitlines())}", ""
    place = version.place
    known_place = before is not None and before.right and before.place == place
    if version.right and place is not None and not known_place:
        for text in place.words():
            yield text, "good"
    printed = list(_printed(version, before))
    yield from printed
    same = before is not None and version.verdict == before.verdict
    if same and not (new or gone or still or printed):
        yield "no change", colour


def _printed(version: Version, before: Version | None) -> Iterator[tuple[str, str]]:
    """The lines that a program has not printed before at the same place; the first of them."""
    known = before.printed if before else ()
    pairs = zip_longest(version.printed, known)
    texts = [text for text, other in pairs if text is not None and text != other]
    if texts:
        yield "prints" if not known else "now prints", ""
    for text in texts[:PRINTED]:
        yield f"  {text}", "printed"
    if len(texts) > PRINTED:
        yield f"  and {len(texts) - PRINTED:,} more lines", "dim"
    if known and not version.printed:
        yield "prints nothing now", ""


def listed(facts: Iterable[Fact]) -> str:
    """The facts by name, those of one kind together: "2 data races, lines 15 and 20"."""
    by_kind: dict[str, list[int]] = {}
    for fact in facts:
        by_kind.setdefault(fact.kind, []).append(fact.line)
    return "; ".join(_counted(kind, numbers) for kind, numbers in by_kind.items())


def _counted(kind: str, numbers: Sequence[int]) -> str:
    known = sorted({number for number in numbers if number})
    many = f"{len(numbers)} times {kind}" if len(numbers) > 1 else kind
    if not known:
        return many
    *most, last = map(str, known)
    places = f"lines {', '.join(most)} and {last}" if most else f"line {last}"
    return f"{many}, {places}"


def _style(facts: Sequence[Fact]) -> str:
    return "cost" if all(fact.grade is Grade.COST for fact in facts) else "bad"
