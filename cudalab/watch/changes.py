"""The words of a watcher: the verdict on a version, and what has changed since the one before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import zip_longest

from cudalab.checker.verdicts import Report, Status
from cudalab.watch.facts import Fact, Grade
from cudalab.watch.ladder import Place

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
    if gone and before and not _only_hidden(version, gone, before):
        yield f"gone: {listed(gone)}", "good"
    for fact in new:
        yield fact.head, _style([fact])
        for text in (fact.text, *fact.details):
            yield f"  {' '.join(text.splitlines())}", ""
    if version.right:
        yield from _climbed(version, before)
    printed = list(_printed(version, before))
    yield from printed
    same = before is not None and version.verdict == before.verdict
    if same and not (new or gone or still or printed):
        yield "no change", colour


def _only_hidden(version: Version, gone: Sequence[Fact], before: Version) -> bool:
    """Whether facts are not gone but unseen, for the judge has stopped before it came to them."""
    stopped = not (version.observed or version.right or before.right)
    costs_only = all(fact.grade is Grade.COST for fact in gone)
    return stopped or (costs_only and not version.right)


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


def _climbed(version: Version, before: Version | None) -> Iterator[tuple[str, str]]:
    """The place on the ladder, if it has changed."""
    place = version.place
    if place is None or (before is not None and before.place == place and before.right):
        return
    for text in place.words():
        yield text, "good"


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
