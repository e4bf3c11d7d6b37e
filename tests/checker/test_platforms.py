"""What `grade --make` writes, unpacked and run as its platform runs it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema
import pytest
from checking import ROOT, cudalab
from gradescope import RESULTS

from cudalab.checker import outputs, verdicts
from cudalab.checker.platforms import results

CHECK50 = shutil.which("check50", path=str(Path(sys.executable).parent))
SCHEMA = "vendor.github-workflows"
KERNEL = ROOT / "kernels" / "reduce" / "sequential.cu"
TESTS = """[rules]
races = "free"
language = "any"
[[test]]
name = 'a block and "one"'
n = 257
points = 2
[[test]]
name = "the instructor's"
input = "data/three.bin"
hidden = true
"""
SUM = """import sys, numpy as np
data = sys.stdin.buffer.read()
n = int(np.frombuffer(data, "<i4", 1)[0])
sys.stdout.buffer.write(np.frombuffer(data, "<i4", n, 4).sum(dtype=np.int32).tobytes())
"""


@pytest.fixture
def made(tmp_path):
    """The files for a platform, by the instructor's own tests."""

    def make(platform):
        course = tmp_path / "course"
        (course / "data").mkdir(parents=True)
        (course / "hidden.toml").write_text(TESTS)
        (course / "data" / "three.bin").write_bytes(bytes([3, 0, 0, 0] + [1, 0, 0, 0] * 3))
        out = tmp_path / platform
        words = ("--tests", course / "hidden.toml", "--device", "cpu", "--no-time")
        cudalab("grade", "--make", platform, out, "--lab", "reduce", *words, status=0)
        shutil.rmtree(course)  # it must not be needed any more
        return out

    return make


@pytest.fixture
def platform(tmp_path):
    """Runs a script on a machine that has all packages of the system and of Python already."""
    programs = tmp_path / "bin"
    programs.mkdir()
    python = f'exec {sys.executable} "$@"'
    for name, text in (("apt-get", "exit 0"), ("sudo", '"$@"'), ("python3", python)):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    environment.pop("PYTHONPATH", None)

    def run(*command, cwd, status=0, **more):
        done = subprocess.run(
            command, cwd=cwd, env={**environment, **more}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return run


def wrong_kernel():
    text = KERNEL.read_text()
    assert "i < n ? load" in text
    return text.replace("i < n ? load", "i < n - 1 ? load")


def shadow(folder, *modules):
    """Python files of a student with the names of modules that the grader starts."""
    for name in modules:
        (folder / f"{name}.py").write_text("raise SystemExit(0)\n")


def test_gradescope(made, platform, tmp_path):
    autograder = tmp_path / "autograder"
    source = autograder / "source"
    with zipfile.ZipFile(made("gradescope") / "autograder.zip") as archive:
        archive.extractall(source)
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    assert modes["setup.sh"] & modes["run_autograder"] & 0o111
    assert "click" in (source / "requirements.txt").read_text()
    (source / "requirements.txt").write_text("")
    platform("bash", "setup.sh", cwd=source)
    shutil.copy(source / "run_autograder", autograder)
    for name in ("submission", "results"):
        (autograder / name).mkdir()
    (autograder / "submission" / "my.cu").write_text(wrong_kernel())
    shadow(autograder / "submission", "cudalab")
    platform("bash", "./run_autograder", cwd=autograder)
    found = json.loads((autograder / "results" / "results.json").read_text())
    jsonschema.validate(found, RESULTS)
    one, hidden, *_ = found["tests"]
    assert (found["score"], one["score"], one["max_score"]) == (0, 0, 2)
    assert one["name"] == 'a block and "one"'
    assert hidden["visibility"] == "after_published"


def test_github_actions(made, platform, tmp_path):
    repository = made("actions")
    (repository / "main.py").write_text(SUM)
    shadow(repository, "cudalab", "pip", "zipfile")
    (repository / ".github" / "cudalab" / "requirements.txt").write_text("")
    workflow = (repository / ".github" / "workflows" / "check.yml").read_text()
    schema = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMA]
    if importlib.util.find_spec("check_jsonschema"):  # it has the schema that editors use
        subprocess.run([*schema, repository / ".github/workflows/check.yml"], check=True)
    steps = re.findall(r"^        run: \|\n((?:^ {10}.*\n)+)", workflow, re.MULTILINE)
    assert len(steps) == 2
    (tmp_path / "temp").mkdir()
    for step in steps:  # as the runner starts them
        printed = platform(
            "bash", "-e", "-c", step, cwd=repository, RUNNER_TEMP=str(tmp_path / "temp")
        )
    assert printed == ""  # a sum of points would depend on the hidden test


CLASSROOM50 = {  # what its runner says of a submission
    "CLASSROOM": "cuda",
    "ASSIGNMENT": "reduce",
    "SUBMISSION_TAG": "submit/2026-11-24T08-00-00Z-a1b2c3d",
    "COMMIT_URL": "https://example.com/commit/a1b2c3d",
    "RELEASE_URL": "https://example.com/releases/tag/submit",
}
WHOLE = {"type": "integer", "minimum": 0}
RESULT = {  # what its collector asks of a result.json, besides that no score exceeds its maximum
    "type": "object",
    "required": ["schema", "classroom", "assignment", "submission", "commit", "release", "review",
                 "datetime", "score", "max-score", "tests"],
    "properties": {
        "schema": {"const": "classroom50/result/v1"},
        "submission": {"type": "string", "pattern": "^submit/"},
        "datetime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
        **{
            key: {"type": "string", "minLength": 1}
            for key in ("classroom", "assignment", "commit", "release", "review")
        },
        "score": WHOLE,
        "max-score": WHOLE,
        "tests": {"items": {
            "required": ["test-name", "passed", "score", "max-score"],
            "properties": {
                "test-name": {"type": "string", "minLength": 1}, "passed": {"type": "boolean"},
                "score": WHOLE, "max-score": WHOLE,
            },
        }},
    },
}  # fmt: skip


def collected(text):
    """A result.json that Classroom 50's collector accepts."""
    result = json.loads(text)
    jsonschema.validate(result, RESULT)
    for one in (result, *result["tests"]):
        assert one["score"] <= one["max-score"]
        assert type(one["score"]) is int
    return result


def test_classroom50(made, platform, tmp_path):
    bundle, checkout = made("classroom50"), tmp_path / "checkout"
    (bundle / "requirements.txt").write_text("")
    checkout.mkdir()
    (checkout / "my.cu").write_text(wrong_kernel())
    shadow(checkout, "cudalab", "pip")
    script = str(bundle / "autograder.py")
    platform(sys.executable, script, cwd=checkout, **CLASSROOM50)
    result = collected((checkout / "result.json").read_text())
    assert (result["classroom"], result["score"], result["max-score"]) == ("cuda", 0, 2)
    assert [one["test-name"] for one in result["tests"]] == ["compile", 'a block and "one"']
    platform(sys.executable, script, cwd=checkout, status=1)  # nobody says whose it is
    assert not (checkout / "result.json").exists()


PRAIRIELEARN = {
    "type": "object",
    "required": ["gradable", "score", "tests"],
    "properties": {
        "gradable": {"type": "boolean"},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "tests": {"items": {"required": ["name", "points", "max_points", "output"]}},
    },
}


def judged(*, hidden_passes=True, points=1.0):
    """A report on a visible test that passed, one that failed, and perhaps a hidden one."""
    report = verdicts.Report(
        lab="reduce", submission="my.cu", kind="kernel", device="cpu", sandbox="none",
        sandbox_words="", seed=1, plan="", version="0",
    )  # fmt: skip
    status = verdicts.Status
    tests = [("one", status.PASSED, False), ("two <b>", status.FAILED, False)]
    if hidden_passes is not None:
        tests.append(("secret", status.PASSED if hidden_passes else status.FAILED, True))
    for name, one, hidden in tests:
        result = verdicts.Result(name=name, size="1", dist="", seed=1, status=one, hidden=hidden)
        result.points = points if one is status.PASSED else 0.0
        report.tests.append(result)
    report.stages = [verdicts.Stage("compile", status.PASSED), verdicts.Stage("correct", one)]
    report.stages.append(
        verdicts.Stage("sanitize", status.PASSED if hidden_passes else status.SKIPPED)
    )
    return report


def test_what_platforms_read(monkeypatch):
    for name, value in CLASSROOM50.items():
        monkeypatch.setenv(name, value)
    report = judged(hidden_passes=None, points=0.5)
    result = collected(results.classroom50(report))
    assert (result["score"], result["max-score"]) == (50, 200)  # hundredths
    result = json.loads(results.prairielearn(report))
    jsonschema.validate(result, PRAIRIELEARN)
    assert (result["gradable"], result["score"]) == (True, 0.25)
    result = json.loads(results.coderunner(report))
    header, *rows = result["testresults"]
    assert header[0] == "iscorrect"
    assert {len(row) for row in rows} == {len(header)}
    assert {row[0] for row in rows} == {0, 1}
    assert result["fraction"] == 0.25
    *comments, grade = results.vpl(report).splitlines()
    assert grade == "Grade :=>> 25.00"
    assert comments.count("<|--") == comments.count("--|>") == 3
    assert all(line[:1] in "->" for line in comments if line not in ("<|--", "--|>"))


@pytest.mark.parametrize(
    "form", [results.classroom50, results.prairielearn, results.coderunner, results.vpl,
             results.check50, lambda report: outputs.github(report, "my.cu"),
             lambda report: outputs.sarif(report, "my.cu")],
)  # fmt: skip
def test_nothing_depends_on_hidden_tests(form, monkeypatch):
    for name, value in CLASSROOM50.items():
        monkeypatch.setenv(name, value)
    one, two = (
        re.sub(r'"datetime": "[^"]*"', "", form(judged(hidden_passes=passes)))
        for passes in (True, False)
    )
    assert one == two
    assert "secret" not in one


@pytest.mark.skipif(CHECK50 is None, reason="there is no check50: pip install check50")
def test_check50(made, platform, tmp_path):
    slug, student = made("check50"), tmp_path / "student"
    student.mkdir()
    (student / "my.cu").write_text(wrong_kernel())
    (student / "notes.txt").write_text("left out")
    out = tmp_path / "out.json"
    command = (CHECK50, "--dev", str(slug), "-o", "json", "--output-file", str(out))
    platform(*command, cwd=student, status=1)  # not everything passed
    checks = {one["description"]: one for one in json.loads(out.read_text())["results"]}
    assert checks["it compiles"]["passed"] is True
    wrong = checks["a block and 'one'"]
    assert wrong["passed"] is False
    assert wrong["cause"]["rationale"].startswith("wrong answer")
    assert "cudalab gen reduce" in wrong["cause"]["help"]
    assert not {"the instructor's", "its kernels compute the answer"} & set(checks)  # hidden


OTTER = """import json
from otter.nbmeta_config import NBMetadataConfig
from otter.test_files import create_test_file
made = create_test_file("tests/reduce.py", NBMetadataConfig())
made.run({})
rows = [(r.test_case.name, r.test_case.points, r.test_case.hidden, r.passed, r.message)
        for r in made.test_case_results]
print(json.dumps(rows))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("otter") is None, reason="there is no Otter: pip install otter-grader"
)
def test_otter(made, platform):
    """Its own loader reads the tests and runs them, in a folder with the submission."""
    folder = made("otter")
    assert [one.name for one in folder.glob("*.py")] == ["upload.py"]  # it runs one, or a notebook
    (folder / "my.cu").write_text(wrong_kernel())
    shadow(folder, "cudalab")
    rows = json.loads(platform(sys.executable, "-c", OTTER, cwd=folder))
    assert [row[:3] for row in rows] == [
        ["it compiles", 0, False], ['a block and "one"', 2, False], ["the instructor's", 1, True],
    ]  # fmt: skip
    compiles, wrong, _ = rows
    assert compiles[3]
    assert not wrong[3]
    assert "AssertionError: wrong answer: 1 of 1 elements" in wrong[4]
    assert "cudalab gen reduce" in wrong[4]


def test_nothing_is_overwritten_and_nothing_is_ignored(made, tmp_path):
    out = made("actions")
    done = cudalab("grade", "--make", "actions", out, "--lab", "reduce", status=1)
    assert "already exists; nothing was written" in done.stderr
    done = cudalab("grade", "--make", "check50", tmp_path / "x", "--lab", "scan", "--jobs", "2")
    assert done.returncode == 2
    assert "--jobs" in done.stderr
    assert cudalab("grade", tmp_path, "--lab", "scan").returncode == 2


def test_options_reach_the_platform(tmp_path):
    words = ("--aat", "--seed", "3", "--quick", "--no-require-kernel", "--races", "free")
    cudalab("grade", "--make", "check50", tmp_path, "--lab", "matmul", *words, status=0)
    command = re.search(r"^COMMAND = (.*)", (tmp_path / "__init__.py").read_text(), re.MULTILINE)
    assert command[1] == repr(
        ["check", "matmul", "--aat", *words[1:3], "--quick", "--no-require-kernel", *words[5:]]
    )


@pytest.mark.parametrize("name", ["my.cu", "my.py", "notes.txt"])
def test_what_is_refused_has_no_points_of_as_many_as_all(name, tmp_path):
    """A file with nothing in it, and what the course does not ask for."""
    (tmp_path / name).write_text("" if name == "my.cu" else SUM)
    words = ("--submission", tmp_path, "--tests", tmp_path / "tests.toml", "--speed-points", "4")
    (tmp_path / "tests.toml").write_text(
        TESTS.partition('[[test]]\nname = "the')[0].replace('"any"', '"cuda"')
    )
    done = cudalab("check", "reduce", *words, "--json", "-")
    assert done.returncode in (3, 5), done.stderr
    report = json.loads(done.stdout)
    assert (report["points"], report["max_points"]) == (0, 6)
    assert [one["status"] for one in report["tests"]] == ["skipped"]
