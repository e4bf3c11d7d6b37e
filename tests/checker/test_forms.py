"""The forms of a report: for people, for graders and for other programs."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from checking import CHEATS, cudalab
from gradescope import RESULTS

from cudalab import labs
from cudalab.checker import cases, outputs, verdicts
from cudalab.checker.cases import Plan, Test
from cudalab.checker.platforms import results
from cudalab.checker.verdicts import Clue, Report, Result, SpeedResult, Stage, Status, Why
from cudalab.errors import CudalabError, ExitCode
from cudalab.output.listing import ALARM


def a_report(*tests, stages=(), **options):
    base = Report(
        lab="reduce",
        submission="my.cu",
        kind="kernel",
        device="cpu",
        sandbox="bwrap",
        sandbox_words="isolated",
        seed=7,
        plan="public",
    )
    base.tests = list(tests)
    failed = [test for test in tests if test.status is Status.FAILED]
    base.stages = [
        Stage("compile", Status.PASSED, says="compiled"),
        Stage("correct", Status.FAILED if failed else Status.PASSED, says="some"),
        *stages,
    ]
    for name, value in options.items():
        setattr(base, name, value)
    return base


@pytest.mark.parametrize(("kind", "style"), [("none", ALARM), ("bwrap", ""), ("user", "")])
def test_a_missing_sandbox_is_an_alarm(kind, style):
    last = outputs._last_lines(a_report(sandbox=kind, sandbox_words="NO SANDBOX, say the words"))
    assert [(cell.text[:8], cell.style) for cell in last] == [("sandbox ", style)]


def passed(name="one", points=1.0):
    return Result(
        name=name,
        size="1",
        dist="uniform",
        seed=3,
        status=Status.PASSED,
        points=points,
        max_points=points,
    )


def failed(name="two", why=Why.WRONG, clue="the last element", **options):
    return Result(
        name=name,
        size="257",
        dist="uniform",
        seed=4,
        status=Status.FAILED,
        why=why,
        says="1 of 1 elements",
        details=["[0] expected 1, got 2 <&\x00\x1b>"],
        clues=[Clue(clue, "says", "cause", "look")],
        commands=["cudalab gen reduce"],
        max_points=2.0,
        **options,
    )


def test_exit_status():
    status = {
        ExitCode.OK: a_report(passed()),
        ExitCode.WRONG_ANSWER: a_report(passed(), failed()),
        ExitCode.TIME_LIMIT: a_report(passed(), failed(why=Why.TIME)),
    }
    for code, report in status.items():
        assert results.exit_status(report) == code
    mixed = a_report(failed(why=Why.TIME), failed("three", Why.CRASH))
    assert results.exit_status(mixed) == ExitCode.WRONG_ANSWER
    broken = a_report(passed())
    broken.stages[0].status = Status.FAILED
    assert results.exit_status(broken) == ExitCode.COMPILE_ERROR


def test_nothing_that_ran_is_no_pass():
    assert results.exit_status(a_report()) == ExitCode.ERROR
    skipped = Result(name="one", size="1", dist="", seed=None, status=Status.SKIPPED)
    assert results.exit_status(a_report(skipped)) == ExitCode.ERROR
    broken = a_report(passed(), stages=[Stage("time", Status.BROKEN, says="x", why=Why.GRADER)])
    assert results.exit_status(broken) == ExitCode.ERROR
    for stage in ("sanitize", "time"):
        report = a_report(
            passed(), stages=[Stage(stage, Status.FAILED, says="x", why=Why.SANITIZER)]
        )
        assert results.exit_status(report) == ExitCode.WRONG_ANSWER


def test_testlib_exit_status():
    assert results.exit_status(a_report(passed()), "testlib") == 0
    assert results.exit_status(a_report(failed()), "testlib") == 1
    assert results.exit_status(a_report(failed(clue="text on stdout")), "testlib") == 2
    assert results.exit_status(a_report(), "testlib") == 3


def test_json_comes_back():
    report = a_report(passed(), failed())
    value = json.loads(outputs.as_json(report))
    assert value["schema"] == verdicts.SCHEMA
    assert value["exit_code"] == 3
    assert (value["points"], value["max_points"]) == (1, 3)
    assert verdicts.from_json(value) == report


def test_junit():
    text = results.junit(a_report(passed(), failed(stderr="\x1b[31mred\x00")))
    suite = ET.fromstring(text).find("testsuite")  # noqa: S314 - our own
    assert suite.attrib["tests"] == "3"
    assert suite.attrib["failures"] == "1"
    names = [case.attrib["name"] for case in suite]
    assert names == ["compile", "one", "two"]
    assert {"name", "errors", "skipped", "time"} <= suite.attrib.keys()
    for case in suite:
        assert {"name", "classname", "time"} <= case.attrib.keys()
        assert {part.tag for part in case} <= {"failure", "error", "skipped", "system-err"}
    failure = suite[2].find("failure")
    assert failure.attrib["type"] == "wrong answer"
    assert "expected 1, got 2" in failure.text


def test_gradescope():
    value = json.loads(results.gradescope(a_report(passed(), failed(hidden=True))))
    assert value["score"] == 1
    one, two, compiled = value["tests"]
    assert (one["score"], one["max_score"], one["visibility"]) == (1, 1, "visible")
    assert (two["score"], two["status"]) == (0, "failed")
    assert two["visibility"] == "after_published"
    assert "the last element" in two["output"]
    assert compiled["name"] == "compile"
    skipped = Stage("sanitize", Status.SKIPPED, says="an earlier stage did not pass")
    value = json.loads(results.gradescope(a_report(failed(), stages=[skipped])))
    assert [test["name"] for test in value["tests"]] == ["two", "compile"]  # neither of the two
    assert value["output"].endswith("sanitize: skipped: an earlier stage did not pass")
    broken = json.loads(
        results.gradescope(a_report(stages=[Stage("time", Status.BROKEN, says="no")]))
    )
    assert "score" not in broken
    timed = SpeedResult(
        reference="serial", size="1000", ms=2.0, reference_ms=1.0, ratio=2.0, low=1.9, high=2.1,
        points=1.5, max_points=2.0, full=1.2, zero=5.0, rounds=7, what="kernels",
    )  # fmt: skip
    fast = json.loads(results.gradescope(a_report(passed(), speed=timed)))
    assert fast["score"] == 2.5 == sum(test["score"] for test in fast["tests"])
    assert fast["leaderboard"][0]["value"] == 2
    for one in (value, broken, fast):
        jsonschema.validate(one, RESULTS)


def test_gradescope_shows_nothing_that_hidden_tests_decide():
    """All that a student sees before the grades are published is the same, pass or fail."""
    speed = SpeedResult(
        reference="serial", size="1000", ms=2.0, reference_ms=1.0, ratio=2.0, low=1.9, high=2.1,
        points=1.5, max_points=2.0, full=1.2, zero=5.0, rounds=7, what="kernels",
    )  # fmt: skip
    clean = [Stage("sanitize", Status.PASSED), Stage("time", Status.PASSED)]
    skipped = [Stage("sanitize", Status.SKIPPED), Stage("time", Status.SKIPPED)]
    right = passed()
    right.hidden = True
    seen = []
    for report in (
        a_report(passed(), right, stages=clean, speed=speed),
        a_report(passed(), failed(hidden=True), stages=skipped),
    ):
        value = json.loads(results.gradescope(report))
        jsonschema.validate(value, RESULTS)
        value["tests"] = [one for one in value["tests"] if one["visibility"] == "visible"]
        del value["score"]  # which Gradescope holds back with the hidden tests
        seen.append(value)
    assert seen[0] == seen[1]


def test_what_a_submission_prints_is_plain_and_short_in_every_form():
    odd = "\x1b]0;title\x07\x1b[2J \ud800 <b>"
    stage = Stage(
        "sanitize", Status.FAILED, why=Why.SANITIZER, says=f"{odd}{'x' * 90_000}",
        details=[f"::error::{odd}", "  ::stop-commands::x", "y" * 90_000, "std::vector"],
    )  # fmt: skip
    test = failed(stderr=f"::add-mask::{odd}\n" + "z" * 90_000)
    test.details, test.says = stage.details, stage.says
    report = a_report(test, stages=[stage])
    forms = (results.junit, results.gradescope, results.check50)
    texts = [form(report) for form in forms] + [outputs.github(report, "my.cu")]
    for text in texts:
        assert len(text) < 12_000
        assert "\x1b" not in text
        assert "\\u001b" not in text
        text.encode()
    lines = [line for one in (stage, test) for line in outputs.explained(one)]
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert not any(line.startswith("::") for line in texts[-1].splitlines() if "title=" not in line)
    assert ": :error::]0;title[2J  <b>" in lines
    assert "std::vector" in lines


def test_check50():
    value = json.loads(results.check50(a_report(passed(), failed())))
    assert [result["passed"] for result in value["results"]] == [True, True, False]
    assert value["results"][2]["cause"]["rationale"] == "wrong answer: 1 of 1 elements"


def test_github():
    text = outputs.github(a_report(failed("a: b, c")), "my.cu")
    error, notice = text.splitlines()
    assert error.startswith(
        "::error file=my.cu,title=a%3A b%2C c::wrong answer: 1 of 1 elements%0A"
    )
    assert notice == "::notice title=reduce::0 of 2 points"


def test_codegrade():
    assert results.codegrade(a_report(passed(), failed())) == "0.3333"
    with pytest.raises(CudalabError):
        results.codegrade(a_report())


def test_all_formats_of_one_run(sort, tmp_path):
    names = {
        "--junit": "j.xml",
        "--gradescope": "g.json",
        "--check50": "c.json",
        "--json": "r.json",
    }
    options = [word for option, name in names.items() for word in (option, tmp_path / name)]
    done = cudalab(
        "check", "radixsort", "--quick", "--no-time", *options, "--exit-style", "testlib", "--",
        sys.executable, sort, status=0,
    )  # fmt: skip
    points = len(cases.public(labs.get("radixsort"), {}, None, quick=True).tests)
    assert f"{points} of {points} points" in done.stdout
    junit = ET.parse(tmp_path / "j.xml").getroot()  # noqa: S314 - our own
    assert junit[0].attrib["failures"] == "0"
    assert json.loads((tmp_path / "g.json").read_text())["score"] == points
    assert all(r["passed"] for r in json.loads((tmp_path / "c.json").read_text())["results"])
    assert json.loads((tmp_path / "r.json").read_text())["passed"]


def test_graded_bytes_have_no_colour(sort):
    done = cudalab(
        "check", "radixsort", "--quick", "--no-time", "--codegrade", "--", sys.executable, sort,
        FORCE_COLOR="1", COLUMNS="20",
    )  # fmt: skip
    assert done.stdout == "1.0000\n"


def test_kept_inputs(tmp_path):
    cudalab(
        "check", "reduce", "--quick", "--no-time", "--keep", tmp_path / "kept", "--",
        sys.executable, CHEATS / "known_answers.py", status=3,
    )  # fmt: skip
    kept = sorted((tmp_path / "kept").iterdir())
    assert kept
    sizes = [test.size for test in cases.public(labs.get("reduce"), {}, None, quick=True).tests]
    assert kept[0].read_bytes()[:4] == sizes[0].to_bytes(4, "little")


def test_unreachable_points_for_speed_are_not_forgotten():
    report = a_report(failed(), speed_offered=10.0)
    assert report.max_points == 12
    assert Plan(()).speed.points == 0
    assert Test("x", 1, "uniform").points == 1
