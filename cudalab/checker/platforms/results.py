"""A report in the forms that grading systems read: a function for each, which writes a text.

Some platforms show everything to students at once. Nothing that they get depends on hidden tests:
where there are some, the stages that run only if all tests have passed are left out, with what they
cost.
"""

import datetime as dt
import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from cudalab.checker import outputs
from cudalab.checker.verdicts import Report, Result, Stage, Status
from cudalab.errors import CudalabError, ExitCode
from cudalab.system import records

RESULT_SCHEMA = "classroom50/result/v1"
IDENTITY = {  # of a submission to Classroom 50: its key in the result, and the runner's variable
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
}
HUNDREDTHS = 100  # where points are no whole numbers
# testlib's codes: ok, wrong answer, presentation error, failure of the checker itself.
OK, WRONG, PRESENTATION, FAIL = 0, 1, 2, 3
WRONG_FORMAT = {
    "nothing on stdout", "text on stdout", "header repeated", "text before the answer",
    "text behind the answer", "bytes before the answer", "bytes behind the answer",
    "line ends translated", "elements twice as wide", "bytes for elements", "cut short",
    "too short", "too long",
}  # fmt: skip
# Characters that XML 1.0 cannot hold; a submission may print any.
_NO_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535)) | dict.fromkeys(
    range(55296, 57344)
)


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
        rows.append(
            Shown("speed", True, speed.points * kept, speed.max_points, outputs.speed_line(report))
        )
    elif report.speed_offered and not secret:
        rows.append(Shown("speed", False, 0.0, report.speed_offered, "not measured"))
    return rows


def _counts(stage: Stage) -> bool:
    return stage.name not in ("correct", "time") and stage.status is not Status.SKIPPED


def _row(name: str, one: Result | Stage, points: float, max_points: float) -> Shown:
    text = "\n".join([outputs.headline_of(one), *outputs.explained(one)])
    return Shown(name, one.status is Status.PASSED, points, max_points, text)


def _share(rows: list[Shown]) -> float:
    total = sum(row.max_points for row in rows)
    return sum(row.points for row in rows) / total if total else 0.0


def gradescope(report: Report) -> str:
    """results.json: each test's score and visibility; the time is a leaderboard entry."""
    # What follows from hidden tests stays hidden with them: later stages, times, sums of points.
    secret = any(test.hidden for test in report.tests)

    def entry(row: Shown, *, hidden: bool, **more: str) -> dict[str, object]:
        return {
            "name": row.name,
            **more,
            "score": row.points,
            "max_score": row.max_points,
            "status": "passed" if row.passed else "failed",
            "output": row.text,
            "visibility": "after_published" if hidden else "visible",
        }

    tests = [
        entry(
            _row(test.name, test, test.points, test.max_points),
            hidden=test.hidden,
            number=str(number),
        )
        for number, test in enumerate(report.tests, 1)
    ]
    tests += [
        entry(_row(stage.name, stage, 0.0, 0.0), hidden=secret and stage.name != "compile")
        for stage in report.stages
        if _counts(stage)
    ]
    leaderboard: list[dict[str, object]] = []
    if report.speed is not None:
        speed, name = report.speed, f"speed against {report.speed.reference}"
        row = Shown(name, True, speed.points, speed.max_points, outputs.speed_line(report))
        tests.append(entry(row, hidden=secret))
        title, ratio = f"times {speed.reference}", round(speed.ratio, 3)
        leaderboard = [] if secret else [{"name": title, "value": ratio, "order": "asc"}]
    skipped = [one for one in report.stages if one.status is Status.SKIPPED and not secret]
    output = [] if secret else [outputs.points_line(report)]
    output += [
        outputs.sandbox_line(report),
        *(f"{one.name}: skipped: {one.says}" for one in skipped),
    ]
    result: dict[str, object] = {
        "output": "\n".join(output),
        **({} if secret else {"execution_time": round(report.seconds, 3)}),
        "tests": tests,
        "leaderboard": leaderboard,
    }
    broken = [stage for stage in report.stages if stage.status is Status.BROKEN]
    if broken:  # Gradescope shows a score that is missing as a failure of the autograder
        result["output"] = "\n".join(outputs.explained(broken[0])) or broken[0].says
    else:
        result["score"] = round(report.points, 6)
    return records.text(result)


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
    return records.text(result)


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
    return records.text(result)


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


def check50(report: Report) -> str:
    """JSON as check50 writes it: null for a check that did not run."""
    results = []
    for name, one in outputs.cases_of_all(report):
        passed = {Status.PASSED: True, Status.FAILED: False}.get(one.status)
        rationale = None if passed else outputs.headline_of(one)
        cause: dict[str, str | None] | None = None
        if not passed:
            helped = [line for line in outputs.explained(one) if line]
            cause = {"rationale": rationale, "help": "\n".join(helped) or None}
        results.append(
            {
                "name": name,
                "description": name,
                "passed": passed,
                "log": outputs.explained(one),
                "cause": cause,
                "data": {},
                "dependency": "compile" if name != "compile" else None,
            }
        )
    result = {"slug": f"cudalab/{report.lab}", "results": results, "version": report.version}
    return records.text(result)


def junit(report: Report) -> str:
    """JUnit XML: a test case for each test, and one for each other stage."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - for few reports

    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root, "testsuite", name=f"{report.lab}: {report.submission}".translate(_NO_XML)
    )
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for name, one in outputs.cases(report):
        counts["tests"] += 1
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"cudalab.{report.lab}",
            name=name.translate(_NO_XML),
            time=f"{one.seconds:.3f}",
        )
        tags = {
            Status.FAILED: ("failure", "failures"),
            Status.BROKEN: ("error", "errors"),
            Status.SKIPPED: ("skipped", "skipped"),
        }
        if one.status in tags:
            tag, counted = tags[one.status]
            counts[counted] += 1
            text = "\n".join(outputs.explained(one)).translate(_NO_XML)
            headline = outputs.headline_of(one).translate(_NO_XML)
            ET.SubElement(case, tag, message=headline, type=str(one.why or one.status)).text = text
        if isinstance(one, Result) and one.stderr:
            lines = "\n".join(map(outputs.plain, one.stderr.splitlines()))
            ET.SubElement(case, "system-err").text = lines.translate(_NO_XML)
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{report.seconds:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def codegrade(report: Report) -> str:
    """The share of the points as a number from 0 to 1, which CodeGrade reads."""
    if report.exit_code in (ExitCode.ERROR, ExitCode.NO_DEVICE):
        broken = [stage for stage in report.stages if stage.status is Status.BROKEN]
        raise CudalabError(
            "nothing could be judged: there are no points to report",
            "\n".join(outputs.explained(broken[0])) if broken else None,
        )
    return f"{report.share:.4f}"


def exit_status(report: Report, style: str = "cudalab") -> int:
    """The process's exit status; never 0 when something was not judged."""
    code = report.exit_code
    if style == "cudalab":
        return int(code)
    if code is ExitCode.OK:
        return OK
    if code in (ExitCode.ERROR, ExitCode.NO_DEVICE):
        return FAIL
    failed = [test for test in report.tests if test.status is Status.FAILED]
    patterns = {clue.pattern for test in failed for clue in test.clues[:1]}
    wrong_format = bool(failed) and patterns <= WRONG_FORMAT and all(test.clues for test in failed)
    return PRESENTATION if wrong_format else WRONG


# By the option of `cudalab check` that names the file.
FORMS: dict[str, Callable[[Report], str]] = {
    "json_path": outputs.as_json,
    "junit": junit,
    "gradescope": gradescope,
    "check50": check50,
    "classroom50": classroom50,
    "prairielearn": prairielearn,
    "coderunner": coderunner,
    "vpl": vpl,
}
