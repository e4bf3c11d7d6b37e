"""A report in several forms: for people, and for the grading systems that courses use.

Nothing is judged here: a test that passes in one form passes in all.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from cudalab.backends import DEVICES, facts
from cudalab.checker.failures import POINTS, rule_of
from cudalab.checker.verdicts import ANY_DEVICE, Report, Result, Stage, Status
from cudalab.errors import CudalabError, ExitCode
from cudalab.microscope.remarks import of_findings
from cudalab.output import annotations as documents
from cudalab.output.annotations import Annotation, commands
from cudalab.system import records

STDERR_SHOWN = 8  # lines
LONGEST = 500  # letters of a line
_COMPILE_ERROR = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+):.*\berror\b")
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
_MARKS = {
    Status.PASSED: "ok",
    Status.FAILED: "FAILED",
    Status.SKIPPED: "-",
    Status.BROKEN: "BROKEN",
}


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


def as_json(report: Report) -> str:
    """The complete report."""
    return records.text(report.json())


def junit(report: Report) -> str:
    """JUnit XML: a test case for each test, and one for each other stage."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - for few reports

    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root, "testsuite", name=f"{report.lab}: {report.submission}".translate(_NO_XML)
    )
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for name, one in _cases(report):
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
            text = "\n".join(explained(one)).translate(_NO_XML)
            headline = headline_of(one).translate(_NO_XML)
            ET.SubElement(case, tag, message=headline, type=str(one.why or one.status)).text = text
        if isinstance(one, Result) and one.stderr:
            lines = "\n".join(map(plain, one.stderr.splitlines()))
            ET.SubElement(case, "system-err").text = lines.translate(_NO_XML)
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{report.seconds:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def gradescope(report: Report) -> str:
    """results.json: each test's score and visibility; the time is a leaderboard entry."""
    broken = [stage for stage in report.stages if stage.status is Status.BROKEN]
    # What follows from hidden tests stays hidden with them: later stages, times, sums of points.
    secret = any(test.hidden for test in report.tests)
    skipped = [stage for stage in report.stages if stage.status is Status.SKIPPED]
    tests = []
    for number, test in enumerate(report.tests, 1):
        tests.append(
            {
                "name": test.name,
                "number": str(number),
                "score": test.points,
                "max_score": test.max_points,
                "status": "passed" if test.status is Status.PASSED else "failed",
                "output": "\n".join([headline_of(test), *explained(test)]),
                "visibility": "after_published" if test.hidden else "visible",
            }
        )
    tests += [
        {
            "name": stage.name,
            "score": 0.0,
            "max_score": 0.0,
            "status": "passed" if stage.status is Status.PASSED else "failed",
            "output": "\n".join([headline_of(stage), *explained(stage)]),
            "visibility": "after_published" if secret and stage.name != "compile" else "visible",
        }
        for stage in report.stages
        if stage.name not in ("correct", "time") and stage not in skipped  # passed or failed there
    ]
    leaderboard = []
    if report.speed is not None:
        speed = report.speed
        tests.append(
            {
                "name": f"speed against {speed.reference}",
                "score": speed.points,
                "max_score": speed.max_points,
                "status": "passed",
                "output": speed_line(report),
                "visibility": "after_published" if secret else "visible",
            }
        )
        leaderboard = (
            []
            if secret
            else [
                {"name": f"times {speed.reference}", "value": round(speed.ratio, 3), "order": "asc"}
            ]
        )
    result: dict[str, object] = {
        "output": "\n".join(
            [
                *([] if secret else [_points(report)]),
                sandbox_line(report),
                *(f"{one.name}: skipped: {one.says}" for one in skipped if not secret),
            ]
        ),
        **({} if secret else {"execution_time": round(report.seconds, 3)}),
        "tests": tests,
        "leaderboard": leaderboard,
    }
    if broken:  # Gradescope shows a score that is missing as a failure of the autograder
        result["output"] = "\n".join(explained(broken[0])) or broken[0].says
    else:
        result["score"] = round(report.points, 6)
    return json.dumps(result, indent=1) + "\n"


def check50(report: Report) -> str:
    """JSON as check50 writes it: null for a check that did not run."""
    results = []
    for name, one in _cases_of_all(report):
        passed = {Status.PASSED: True, Status.FAILED: False}.get(one.status)
        rationale = None if passed else headline_of(one)
        cause: dict[str, str | None] | None = None
        if not passed:
            helped = [line for line in explained(one) if line]
            cause = {"rationale": rationale, "help": "\n".join(helped) or None}
        results.append(
            {
                "name": name,
                "description": name,
                "passed": passed,
                "log": explained(one),
                "cause": cause,
                "data": {},
                "dependency": "compile" if name != "compile" else None,
            }
        )
    return (
        json.dumps(
            {"slug": f"cudalab/{report.lab}", "results": results, "version": report.version},
            indent=1,
        )
        + "\n"
    )


def codegrade(report: Report) -> str:
    """The share of the points as a number from 0 to 1, which CodeGrade reads."""
    if report.exit_code in (ExitCode.ERROR, ExitCode.NO_DEVICE):
        broken = [stage for stage in report.stages if stage.status is Status.BROKEN]
        raise CudalabError(
            "nothing could be judged: there are no points to report",
            "\n".join(explained(broken[0])) if broken else None,
        )
    return f"{report.share:.4f}"


def remarks(report: Report, file: str) -> list[Annotation]:
    """An annotation for each failure, those with a line of the source first.

    `file` is the submission's; empty if it has none.
    """
    result = []
    for name, one in _cases_of_all(report):
        if isinstance(one, Stage) and one.findings:
            annotations = of_findings(one.findings, file)
            if one.status is Status.PASSED:  # what the instructor calls a warning
                annotations = [
                    replace(r, level="warning") if r.level == "error" else r for r in annotations
                ]
            result += annotations
            continue
        if one.status not in (Status.FAILED, Status.BROKEN):
            continue
        at = _first_error(one.details) if name == "compile" else None
        result.append(
            Annotation(
                rule=rule_of(one),
                title=name,
                level="error",
                text="\n".join([headline_of(one), *explained(one)]),
                file=at["file"] if at else file,
                line=int(at["line"]) if at else 0,
            )
        )
    return sorted(result, key=lambda remark: not remark.line)


def _first_error(lines: Sequence[str]) -> re.Match[str] | None:
    """The place of the first error in a compiler's messages."""
    return next(filter(None, map(_COMPILE_ERROR.match, lines)), None)


def github(report: Report, file: str) -> str:
    """Workflow commands: an annotation for each failure, and a notice with the points."""
    notes = []
    if report.tests and not any(test.hidden for test in report.tests):
        notes = [Annotation(rule=POINTS, title=report.lab, level="note", text=_points(report))]
    return commands([*remarks(report, file), *notes])


def sarif(report: Report, file: str) -> str:
    """SARIF 2.1.0 with a result for each failure."""
    return documents.sarif(remarks(report, file), "cudalab check", report.version)


def _points(report: Report) -> str:
    return f"{report.points:g} of {report.max_points:g} points{_less(report)}"


def _less(report: Report) -> str:
    """A remark about points that failed stages cost."""
    costly = max(report.stages, key=lambda stage: stage.cost, default=None)
    if costly is None or not costly.cost:
        return ""
    return f", less {costly.cost:.0%} by the stage {costly.name}"


def _cases(report: Report) -> list[tuple[str, Result | Stage]]:
    """Everything that passes or fails: the stages, with its tests in the place of `correct`."""
    result: list[tuple[str, Result | Stage]] = []
    for stage in report.stages:
        if stage.name == "correct":
            result += [(test.name, test) for test in report.tests]
        if stage.name != "correct" or stage.status is Status.BROKEN:
            result.append((stage.name, stage))
    return result


def _cases_of_all(report: Report) -> list[tuple[str, Result | Stage]]:
    """What does not depend on hidden tests, for those who see all of it at once."""
    if not any(test.hidden for test in report.tests):
        return _cases(report)
    return [
        (name, one)
        for name, one in _cases(report)
        if (isinstance(one, Result) and not one.hidden) or name == "compile"
    ]


def headline_of(one: Result | Stage) -> str:
    """The verdict in one line."""
    counted = isinstance(one, Stage) and one.name == "correct"  # its tests have their own reasons
    words = ["" if counted or one.status is Status.PASSED else str(one.why), one.says]
    return plain(": ".join(word for word in words if word) or str(one.status))


def plain(text: str) -> str:
    """A line of text that comes from a submission, fit for any terminal and any log.

    It is cut where it is too long, control characters are left out, and it gives no command to
    GitHub Actions, which takes one from every line that begins with two colons.
    """
    text = " ".join(text.expandtabs(4).splitlines())
    text = "".join(letter for letter in text if letter.isprintable())
    text = re.sub(r"^(\s*):(?=:)", r"\1: ", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def explained(one: Result | Stage) -> list[str]:
    """The explanation of a verdict, line by line."""
    lines = [plain(line) for line in one.details]
    if isinstance(one, Result):
        for clue in one.clues:
            lines.append(plain(f"{clue.pattern}: {clue.says}"))
            if clue.cause:
                lines.append(f"  {clue.cause}")
            if clue.look:
                lines.append(f"  see: {_visible(clue.look)}")
        lines += _stderr(one)
        if one.commands:
            lines += ["to repeat it:", *(f"  {_visible(command)}" for command in one.commands)]
    return lines


def _visible(command: str) -> str:
    """A command with what a name in it must not do to a terminal written out."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in command
    )


def _stderr(test: Result) -> list[str]:
    """The last lines of a failed run's stderr, unless the verdict quotes them already."""
    lines = [plain(line) for line in test.stderr.splitlines()[-STDERR_SHOWN:]]
    quoted = " ".join(map(plain, [test.says, *test.details]))
    if not any(line and line not in quoted for line in lines):
        return []
    return ["stderr:", *(f"  {line}" for line in lines)]


def speed_line(report: Report) -> str:
    """The time, compared with the reference's."""
    speed = report.speed
    if speed is None:
        return ""
    line = (
        f"{speed.ms:.4g} ms at n = {speed.size}; {speed.reference} takes "
        f"{speed.reference_ms:.4g} ms: {speed.ratio:.2f} times its time "
        f"({speed.low:.2f} to {speed.high:.2f})"
    )
    if speed.max_points:
        line += (
            f"; {speed.points:.2f} of {speed.max_points:g} points "
            f"(all up to {speed.full:g} times, none from {speed.zero:g})"
        )
    return f"{line}; {speed.what}"


def sandbox_line(report: Report) -> str:
    """The sandbox, and what it isolates."""
    return f"sandbox {report.sandbox}: {report.sandbox_words}"


def show(report: Report) -> None:
    """Print a report for people on stdout."""
    from cudalab.output import terminal  # noqa: PLC0415 - rich takes its time

    head = plain(f"{report.lab}: {report.submission} ({report.kind}){_device_words(report)}")
    terminal.verdict(head, _rows(report), _explanations(report), _last_lines(report))


def _device_words(report: Report) -> str:
    if report.device == ANY_DEVICE:
        return ", as a program"
    if report.device not in DEVICES:  # the submission was refused before a device was chosen
        return ""
    if facts(report.device).gpu_times:
        return ", GPU"
    return ", CPU device: right or wrong, but no GPU's speed"


def _rows(report: Report) -> list[tuple[str, str, str, str]]:
    """The rows of the table: mark, name, input, verdict."""
    rows = []
    for stage in report.stages:
        rows.append((_MARKS[stage.status], stage.name, "", headline_of(stage)))
        if stage.name == "correct" and stage.status is not Status.SKIPPED:
            for test in report.tests:
                what = f"{test.size} {test.dist}".strip()
                rows.append((_MARKS[test.status], f"  {test.name}", what, _test_words(test)))
    return rows


def _test_words(test: Result) -> str:
    if test.status is Status.FAILED:
        return headline_of(test)
    if test.status is not Status.PASSED:
        return test.says
    if test.accuracy:
        return test.accuracy.says
    return next((note for note in test.notes if "different answers" in note or "left" in note), "")


def _explanations(report: Report) -> list[tuple[str, list[str]]]:
    """Explanations of stages that did not pass and of the first failed tests."""
    result = [
        (f"{stage.name}: {headline_of(stage)}", explained(stage))
        for stage in report.stages
        if stage.status in (Status.FAILED, Status.BROKEN) and stage.name != "correct"
    ]
    result += [
        (f"{stage.name}: worth knowing", stage.details)
        for stage in report.stages
        if stage.status is Status.PASSED and stage.details
    ]
    failed = [test for test in report.tests if test.status is Status.FAILED]
    seen: set[tuple[str, ...]] = set()
    for test in failed:
        kind = (str(test.why), *(clue.pattern for clue in test.clues[:1]))
        if kind not in seen and len(seen) < 3:
            seen.add(kind)
            result.append((f"{test.name}: {headline_of(test)}", explained(test)))
    if report.speed is not None:
        result.append(("time", [speed_line(report)]))
    return result


def _last_lines(report: Report) -> list[str]:
    last = list(report.notes)
    if report.tests:
        last.append(f"{_points(report)}; seed {report.seed}; {report.plan}")
    if report.kind != "variant":
        last.append(sandbox_line(report))
    elif report.exit_code is ExitCode.ERROR:
        last.append("nothing could be judged, so it has not passed")
    return last
