"""The JSON document of `cudalab grade`: a class in numbers. DIR/reports/ has each verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cudalab.checker.grading.similar import Pair
from cudalab.checker.grading.store import Row
from cudalab.checker.grading.summary import first_failure
from cudalab.checker.verdicts import Report


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
    state: str  # done, broken, withdrawn, waiting
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


def submissions(
    rows: Sequence[Row], reports: Mapping[str, Report], pairs: Sequence[Pair]
) -> list[Submission]:
    """All submissions, by name."""
    alike: dict[str, list[str]] = {}
    for pair in pairs:
        alike.setdefault(pair.one, []).append(pair.two)
        alike.setdefault(pair.two, []).append(pair.one)
    return [
        Submission(
            name=row.name,
            state=row.state,
            attempts=row.attempts,
            problem=row.problem or "",
            verdict=_verdict(reports[row.name]) if row.name in reports else None,
            similar_to=alike.get(row.name, []),
        )
        for row in rows
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
