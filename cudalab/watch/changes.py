"""The words of a watcher: the verdict on a version, and what has changed since the one before."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING

from cudalab.checker.verdicts import Status
from cudalab.watch.facts import Grade

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cudalab.checker.verdicts import Report
    from cudalab.watch.facts import Fact
    from cudalab.watch.ladder import Place

WIDTH = 80


@dataclass
class Version:
    """A version that was judged."""

    report: Report
    facts: Sequence[Fact]
    _: KW_ONLY
    place: Place | None = None
    counts: Mapping[str, float] = field(default_factory=dict)  # see costs.counts_of
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def right(self) -> bool:
        """Whether nothing but costs is left."""
        return self.report.passed


def verdict(version: Version) -> str:
    """The verdict in a few words: "6 of 9 tests, 1 race"."""
    report = version.report
    compiled = report.stage("compile")
    if compiled is None or compiled.status is not Status.PASSED:
        return "broken" if compiled and compiled.status is Status.BROKEN else "does not compile"
    correct, sanitize = report.stage("correct"), report.stage("sanitize")
    words = [correct.says] if correct else []
    if sanitize is not None and sanitize.status is Status.PASSED:
        words.append(sanitize.says)
    elif sanitize is not None and sanitize.findings:
        words.append(sanitize.says.partition(":")[0])  # what it costs is for a class
    elif version.right and sanitize is not None:
        words.append(f"not sanitized: {sanitize.says}")
    return "; ".join(words)


def lines(version: Version, before: Version | None) -> Iterator[tuple[str, str]]:
    """The lines to print, each with its style: "bad", "good", "cost", "" or "dim"."""
    known = {fact.identity: fact for fact in before.facts} if before else {}
    new = [fact for fact in version.facts if fact.identity not in known]
    still = [fact for fact in version.facts if fact.identity in known]
    present = {fact.identity for fact in version.facts}
    gone = [fact for fact in known.values() if fact.identity not in present]
    if before is None or verdict(version) != verdict(before):
        yield verdict(version), "good" if version.right else "bad"
    if still:
        yield f"still {listed(still)}", _style(still)
    seen_again = not (version.right or before is None or before.report.passed)
    if gone and not _only_hidden(version, gone, seen_again=seen_again):
        yield f"gone: {listed(gone)}", "good"
    for fact in new:
        yield from _told(fact)
    if version.right:
        yield from _climbed(version, before)
    if before is not None and not (new or gone or still) and verdict(version) == verdict(before):
        yield f"no change: {verdict(version)}", "good" if version.right else "bad"


def _only_hidden(version: Version, gone: Sequence[Fact], *, seen_again: bool) -> bool:
    """Whether facts are not gone but unseen, for the judge has stopped before it came to them."""
    stages = {stage.name: stage.status for stage in version.report.stages}
    reached = stages.get("sanitize", Status.SKIPPED) is not Status.SKIPPED
    costs_only = all(fact.grade is Grade.COST for fact in gone)
    return (not reached and seen_again) or (costs_only and not version.right)


def _told(fact: Fact) -> Iterator[tuple[str, str]]:
    """A fact in full."""
    yield fact.head, _style([fact])
    for text in (fact.text, *fact.details):
        for line in wrap(text, WIDTH - 14, break_long_words=False, break_on_hyphens=False):
            yield f"  {line}", ""


def _climbed(version: Version, before: Version | None) -> Iterator[tuple[str, str]]:
    """The place on the ladder, if it has changed."""
    place = version.place
    if place is None or (before is not None and before.place == place and before.right):
        return
    for text in place.words():
        for number, line in enumerate(wrap(text, WIDTH - 14, break_on_hyphens=False)):
            yield ("  " if number else "") + line, "good"


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
