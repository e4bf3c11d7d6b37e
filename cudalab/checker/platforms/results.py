"""A report in the words of platforms that show everything to students at once.

Nothing in them depends on hidden tests: where there are some, the stages that run only if all tests
have passed are left out, with what they cost.
"""

import datetime as dt
import json
import os
from typing import Any, NamedTuple

from cudalab.checker.outputs import explained, headline_of, speed_line
from cudalab.checker.verdicts import Report, Result, Stage, Status
from cudalab.errors import CudalabError, ExitCode

RESULT_SCHEMA = "classroom50/result/v1"
IDENTITY = {  # of a submission to Classroom 50: its key in the result, and the runner's variable
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
}
HUNDREDTHS = 100  # where points are no whole numbers


class Shown(NamedTuple):
    """A test, or a stage, as students see it."""

    name: str
    passed: bool
    points: float
    max_points: float
    text: str


def shown(report: Report) -> list[Shown]:
    """All that students may see. CudalabError if nothing could be judged."""
    if report.exit_code in (ExitCode.ERROR, ExitCode.NO_DEVICE):
        raise CudalabError("nothing could be judged: there are no points to report")
    secret = any(test.hidden for test in report.tests)
    kept = 1.0 if secret else 1 - report.cost
    rows = [
        _row(stage.name, stage, 0.0, 0.0)
        for stage in report.stages
        if stage.name == "compile" or (_counts(stage) and not secret)
    ]
    rows += [
        _row(test.name, test, test.points * kept, test.max_points)
        for test in report.tests
        if not test.hidden
    ]
    if report.speed is not None and not secret:
        speed = report.speed
        rows.append(Shown("speed", True, speed.points * kept, speed.max_points, speed_line(report)))
    elif report.speed_offered and not secret:
        rows.append(Shown("speed", False, 0.0, report.speed_offered, "not measured"))
    return rows


def _counts(stage: Stage) -> bool:
    return stage.name not in ("correct", "time") and stage.status is not Status.SKIPPED


def _row(name: str, one: Result | Stage, points: float, max_points: float) -> Shown:
    text = "\n".join([headline_of(one), *explained(one)])
    return Shown(name, one.status is Status.PASSED, points, max_points, text)


def _share(rows: list[Shown]) -> float:
    total = sum(row.max_points for row in rows)
    return sum(row.points for row in rows) / total if total else 0.0


def classroom50(report: Report) -> str:
    """The result.json of Classroom 50, whose points are whole numbers: hundredths if need be.

    CudalabError outside of its runner, which names the submission in the environment.
    """
    identity = {key: os.environ.get(name, "") for key, name in IDENTITY.items()}
    missing = [IDENTITY[key] for key, value in identity.items() if not value]
    if missing:
        raise CudalabError(
            f"Classroom 50's runner names the submission: {', '.join(missing)} is not set",
            hint="--json writes a report anywhere",
        )
    rows = shown(report)
    whole = all(float(value).is_integer() for row in rows for value in (row.points, row.max_points))
    scale = 1 if whole else HUNDREDTHS
    tests: list[dict[str, Any]] = [
        {
            "test-name": row.name,
            "passed": row.passed,
            "score": round(row.points * scale),
            "max-score": round(row.max_points * scale),
            "output": row.text,
        }
        for row in rows
    ]
    now = dt.datetime.now(dt.UTC)
    result = {
        "schema": RESULT_SCHEMA,
        **identity,
        "review": os.environ.get("REVIEW_URL") or identity["commit"],
        "datetime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }
    return json.dumps(result, indent=1) + "\n"


def prairielearn(report: Report) -> str:
    """The results.json of a PrairieLearn grader: the share of the points, and each test."""
    rows = shown(report)
    tests = [
        {
            "name": row.name,
            "points": round(row.points, 6),
            "max_points": row.max_points,
            "output": row.text,
        }
        for row in rows
    ]
    result = {"gradable": True, "score": round(_share(rows), 6), "tests": tests}
    return json.dumps(result, indent=1) + "\n"


def coderunner(report: Report) -> str:
    """What a combinator template grader of Moodle's CodeRunner prints: a fraction and a table."""
    rows = shown(report)
    table: list[list[object]] = [["iscorrect", "Test", "Points", "Result"]]
    table += [
        [int(row.passed), row.name, f"{row.points:g} of {row.max_points:g}", row.text]
        for row in rows
    ]
    import html  # noqa: PLC0415 - for few reports

    text = f"<p>{html.escape(report.lab)}: {_share(rows):.0%} of the points</p>"
    return json.dumps(
        {"fraction": round(_share(rows), 6), "testresults": table, "epiloguehtml": text}
    ) + "\n"  # fmt: skip


def vpl(report: Report) -> str:
    """The comments and the grade that Moodle's VPL reads from stdout; the grade is of 100."""
    rows = shown(report)
    lines = []
    for row in rows:
        lines += ["<|--", f"-{row.name} ({row.points:g} of {row.max_points:g})"]
        lines += [f">{line}" for line in row.text.splitlines()]
        lines += ["--|>"]
    return "\n".join([*lines, f"Grade :=>> {100 * _share(rows):.2f}", ""])
