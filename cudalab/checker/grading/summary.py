"""A class's results as a document (JSON), a table (CSV), and a page with charts (HTML).

DIR/reports/ has each verdict in full. No printing here.
"""

import csv
import io
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cudalab.checker import outputs
from cudalab.checker.grading import similar
from cudalab.checker.grading.store import DONE, Row
from cudalab.checker.verdicts import Report, Status, Why
from cudalab.output import web
from cudalab.output.charts import Chart, Columns, Ladder, Rung
from cudalab.output.grid import Column, Grid


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a submission has earned."""

    passed: bool
    exit_code: int
    points: float
    max_points: float
    first_failure: str
    pattern: str  # in the answer of the first test that failed
    times_reference: float | None  # null: no time was measured
    seconds: float
    digest: str  # of the submission's bytes


@dataclass(frozen=True, kw_only=True)
class Submission:
    """One submission of the class."""

    name: str
    state: str  # done, broken, removed, waiting
    attempts: int
    problem: str  # why it was not judged
    verdict: Verdict | None
    similar_to: list[str]


@dataclass(frozen=True, kw_only=True)
class Class:
    """The document of `cudalab grade`."""

    schema: str = "cudalab-grade/1"
    lab: str
    seed: int
    sandbox: str
    judged: int
    passed: int
    judged_again: list[str]  # because they have changed
    submissions: list[Submission]


@dataclass(frozen=True, kw_only=True)
class Results:
    """What a class has earned."""

    rows: Sequence[Row]  # all submissions, by name
    reports: Mapping[str, Report]  # of those that were judged
    pairs: Sequence[similar.Pair]
    full: float  # the points of the whole task

    @property
    def passed(self) -> int:
        """How many have passed."""
        return sum(report.passed for report in self.reports.values())

    @cached_property
    def alike(self) -> Mapping[str, list[str]]:
        """The submissions that each one is like."""
        alike = defaultdict[str, list[str]](list)
        for pair in self.pairs:
            alike[pair.one].append(pair.two)
            alike[pair.two].append(pair.one)
        return alike


def results(
    rows: Sequence[Row], full: float, public: Iterable[frozenset[int]], untouched: frozenset[int]
) -> Results:
    """The results of all submissions.

    `public` are the fingerprints of code that everybody has, `untouched` those of an empty kernel
    file: a student who has written nothing has copied nothing.
    """
    reports = {row.name: row.report for row in rows if row.state == DONE and row.report is not None}
    prints = {row.name: row.prints for row in rows}
    digests = {name: report.digest for name, report in reports.items() if report.digest}
    same = similar.identical({n: d for n, d in digests.items() if prints[n] != untouched})
    known = {(pair.one, pair.two) for pair in same}
    near = similar.pairs({name: marks for name, marks in prints.items() if marks}, public)
    pairs = same + [pair for pair in near if (pair.one, pair.two) not in known]
    return Results(rows=rows, reports=reports, pairs=pairs, full=full)


def submissions(judged: Results) -> list[Submission]:
    """All submissions, by name."""
    return [
        Submission(
            name=row.name,
            state=row.state,
            attempts=row.attempts,
            problem=row.problem or "",
            verdict=_verdict(judged.reports[row.name]) if row.name in judged.reports else None,
            similar_to=judged.alike[row.name],
        )
        for row in judged.rows
    ]


def _verdict(report: Report) -> Verdict:
    why, pattern = first_failure(report)
    return Verdict(
        passed=report.passed,
        exit_code=int(report.exit_code),
        points=report.points,
        max_points=report.max_points,
        first_failure=why,
        pattern=pattern,
        times_reference=report.speed.ratio if report.speed else None,
        seconds=report.seconds,
        digest=report.digest,
    )


COLUMNS = (
    "name", "state", "points", "max_points", "share", "passed", "exit_code", "tests_passed",
    "tests", "compile", "first_failure", "pattern", "times_reference", "seconds", "attempts",
    "similar_to", "digest", "cause", "file",
)  # fmt: skip
BINS = 10
RATIOS = (0.5, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)  # of times: the bounds of the columns


def table(judged: Results) -> str:
    """CSV with one line for each submission; all points are parts of the task's."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in judged.rows:
        line: dict[str, object] = {"name": _cell(row.name), "state": row.state}
        line |= {"attempts": row.attempts, "similar_to": _cell(" ".join(judged.alike[row.name]))}
        if row.name in judged.reports:
            line |= _cells(judged.reports[row.name], judged.full)
        writer.writerow(line)
    return text.getvalue()


def _cells(report: Report, full: float) -> dict[str, object]:
    why, pattern = first_failure(report)
    compiled = report.stage("compile")
    return {
        "points": f"{report.share * full:g}",
        "max_points": f"{full:g}",
        "share": f"{report.share:.4f}",
        "passed": int(report.passed),
        "exit_code": int(report.exit_code),
        "tests_passed": sum(test.status is Status.PASSED for test in report.tests),
        "tests": len(report.tests),
        "compile": str(compiled.status) if compiled else "",
        "first_failure": why,
        "pattern": pattern,
        "times_reference": f"{report.speed.ratio:.3f}" if report.speed else "",
        "seconds": f"{report.seconds:.2f}",
        "digest": report.digest,
        "cause": _cell(cause(report)),
        "file": _cell(" ".join(report.files)),
    }


def _cell(text: str) -> str:
    """The text of a cell, quoted if a spreadsheet would take it for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def first_failure(report: Report) -> tuple[str, str]:
    """Why the first failed test or stage failed, and the pattern in its answer."""
    for test in report.tests:
        if test.status is Status.FAILED:
            return str(test.why), test.clues[0].pattern if test.clues else ""
    for stage in report.stages:
        if stage.status is Status.FAILED:
            return str(stage.why), ""
    return "", ""


def cause(report: Report) -> str:
    """The cause of the first failure in a few words: a finding and its line, or what was refused.

    It is empty for a wrong answer of no known pattern.
    """
    for stage in report.stages:
        for finding in stage.findings if stage.status is Status.FAILED else ():
            if not finding.note:
                where = f", {finding.file}:{finding.line}" if finding.line else ""
                return f"{finding.title}{where}"
    for stage in report.stages:
        if stage.name == "compile" and stage.status is Status.FAILED:
            lines = [line for line in (*stage.details, stage.says) if line]
            return next((line for line in lines if "error:" in line), lines[0] if lines else "")
    why, pattern = first_failure(report)
    if pattern or why == Why.WRONG:
        return pattern
    says = [test.says for test in report.tests if test.status is Status.FAILED]
    says += [stage.says for stage in report.stages if stage.status is Status.FAILED]
    return says[0] if says else ""


def ranking(title: str, reports: Mapping[str, Report]) -> str:
    """The page of those that passed and were timed, the fastest first; empty without any."""
    timed = [(one.speed, name) for name, one in reports.items() if one.passed and one.speed]
    if not timed:
        return ""
    timed.sort(key=lambda each: (each[0].ratio, each[1]))
    lines = [
        [str(place), name, f"{speed.ratio:.2f}", f"{speed.low:.2f} to {speed.high:.2f}"]
        for place, (speed, name) in enumerate(timed, 1)
    ]
    first = timed[0][0]
    note = f"Times as multiples of {first.reference}'s, at {first.size}: {first.what}. "
    note += "Neighbours whose ranges overlap are equally fast."
    heads = ("place", "submission", "times the reference", "range")
    return web.page(title, note, [web.table(_grid(heads, lines))])


def page(title: str, judged: Results) -> str:
    """The HTML page, which needs no other file."""
    reports = judged.reports
    failures = Counter(
        pattern or why for why, pattern in map(first_failure, reports.values()) if why
    )
    ratios = [report.speed.ratio for report in reports.values() if report.speed]
    unjudged = [row for row in judged.rows if row.state != DONE]
    parts = []
    if any(report.sandbox == "none" for report in reports.values()):
        parts.append('<p class="bad">NO SANDBOX: submissions ran as the grader\'s own user.</p>')
    if unjudged:
        lines = [[row.name, row.state, row.problem or ""] for row in unjudged]
        parts += ["<h2>Not judged</h2>", web.table(_grid(("name", "state", "problem"), lines))]
    charts: list[Chart] = [
        _histogram(
            "Points: submissions by the part they have earned",
            [*(f"{100 * i // BINS} %" for i in range(BINS)), "100 %"],
            (int(report.share * BINS) for report in reports.values()),
        ),
        _bars("What went wrong first", failures.most_common(15), len(reports)),
        _bars("Tests: the part of the class that passes", _test_rates(reports), 100, " %"),
    ]
    if ratios:
        labels = [*(f"≤ {edge:g}" for edge in RATIOS), f"> {RATIOS[-1]:g}"]
        places = (bisect_left(RATIOS, ratio) for ratio in ratios)
        charts.insert(1, _histogram("Times the reference's time", labels, places))
    parts.append(web.pictures(charts))
    parts.append("<h2>Identical or nearly so</h2>")
    if judged.pairs:
        lines = [[pair.one, pair.two, f"{100 * pair.share:.0f} %"] for pair in judged.pairs]
        parts.append(web.table(_grid(("one", "other", "of the smaller one's code"), lines)))
        parts.append("<p>A sign, not a proof: look at both.</p>")
    else:
        parts.append("<p>None.</p>")
    parts += ["<h2>Submissions</h2>", _submissions(judged)]
    counts = f"{len(reports)} of {len(judged.rows)} judged, {judged.passed} passed."
    return web.page(title, counts, parts)


def _test_rates(reports: Mapping[str, Report]) -> list[tuple[str, int]]:
    """The percentage of the class that passes each test."""
    passed: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for report in reports.values():
        for test in report.tests:
            ran[test.name] += 1
            passed[test.name] += test.status is Status.PASSED
    return [(name, round(100 * passed[name] / count)) for name, count in ran.items()]


def _submissions(judged: Results) -> str:
    lines, cells = [], {}
    for number, (name, report) in enumerate(judged.reports.items()):
        why, _ = first_failure(report)
        speed = f"{report.speed.ratio:.2f}" if report.speed else ""
        points = f"{report.share * judged.full:g} of {judged.full:g}"
        lines.append([name, points, why, cause(report), speed])
        look = "good" if report.passed else "bad"
        details = "\n".join(_details(report))
        cells[number, 0] = (
            f'<details><summary class="{look}">{web.breakable(name)}</summary>'
            f"<pre>{web.escaped(details)}</pre></details>"
        )
    grid = _grid(("name", "points", "failure", "cause"), lines)
    grid.columns.append(Column("times reference", 6, right=False))
    return web.table(grid, cells)


def _grid(heads: Sequence[str], lines: list[list[str]]) -> Grid:
    """A table of words."""
    return Grid("", [Column(head, right=False) for head in heads], lines)


def _details(report: Report) -> list[str]:
    lines = []
    for stage in report.stages:
        lines.append(f"{stage.status:<8} {stage.name}: {outputs.headline_of(stage)}")
        if stage.status is not Status.PASSED:
            lines += [f"    {line}" for line in outputs.explained(stage)]
    for test in report.tests:
        if test.status is Status.FAILED:
            lines.append(f"{test.name} ({test.size} {test.dist}): {outputs.headline_of(test)}")
            lines += [f"    {line}" for line in outputs.explained(test)]
    if report.speed:
        lines.append(outputs.speed_line(report))
    return lines


def _histogram(title: str, labels: list[str], places: Iterable[int]) -> Columns:
    """Columns of so many submissions as have a place."""
    counts = Counter(places)
    return Columns(title, "", labels, [counts[place] for place in range(len(labels))])


def _bars(title: str, rows: Sequence[tuple[str, int]], full: int, unit: str = "") -> Ladder:
    """Bars with their names on the left, as parts of `full`."""
    rungs = [Rung(label, count, f"{count}{unit}") for label, count in rows]
    return Ladder(title if rungs else f"{title}: nothing", "", rungs, full=full)
