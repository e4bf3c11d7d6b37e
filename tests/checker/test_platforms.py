"""What `grade --make` writes, unpacked and run as its platform runs it."""

from __future__ import annotations

import base64
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

CHECK50 = shutil.which("check50", path=str(Path(sys.executable).parent))
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
    platform("bash", "./run_autograder", cwd=autograder)
    results = json.loads((autograder / "results" / "results.json").read_text())
    jsonschema.validate(results, RESULTS)
    one, hidden, *_ = results["tests"]
    assert (results["score"], one["score"], one["max_score"]) == (0, 0, 2)
    assert one["name"] == 'a block and "one"'
    assert hidden["visibility"] == "after_published"


def test_github_classroom(made, platform, tmp_path):
    repository = made("classroom")
    (repository / "sum.py").write_text(SUM)
    (repository / ".github" / "cudalab" / "requirements.txt").write_text("")
    workflow = (repository / ".github" / "workflows" / "classroom.yml").read_text()
    steps = re.findall(r"^        run: \|\n((?:^ {10}.*\n)+)", workflow, re.MULTILINE)
    assert len(steps) == 2
    outputs = tmp_path / "outputs"
    outputs.write_text("")
    more = {"RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_OUTPUT": str(outputs)}
    (tmp_path / "temp").mkdir()
    for step in steps:  # as the runner starts them
        printed = platform("bash", "-e", "-c", step, cwd=repository, **more)
    assert printed == "::notice title=reduce::3 of 3 points\n"
    name, _, value = outputs.read_text().strip().partition("=")
    assert name == "result"
    assert "steps.cudalab.outputs.result" in workflow
    result = json.loads(base64.b64decode(value))
    assert result["status"] == "pass"
    assert sum(test["score"] for test in result["tests"]) == result["max_score"] == 3
    assert {test["status"] for test in result["tests"]} == {"pass"}


@pytest.mark.skipif(CHECK50 is None, reason="there is no check50: pip install check50")
def test_check50(made, platform, tmp_path):
    slug, student = made("check50"), tmp_path / "student"
    student.mkdir()
    (student / "my.cu").write_text(wrong_kernel())
    (student / "notes.txt").write_text("left out")
    out = tmp_path / "out.json"
    command = (CHECK50, "--dev", str(slug), "-o", "json", "--output-file", str(out))
    platform(*command, cwd=student, status=1)  # not everything passed
    results = {one["description"]: one for one in json.loads(out.read_text())["results"]}
    assert results["it compiles"]["passed"] is True
    wrong = results["a block and 'one'"]
    assert wrong["passed"] is False
    assert wrong["cause"]["rationale"].startswith("wrong answer")
    assert "cudalab gen reduce" in wrong["cause"]["help"]
    assert results["the instructor's"]["cause"]["help"] is None  # it is hidden
    assert results["its kernels compute the answer"]["passed"] is True  # not asked of a kernel


def test_nothing_is_overwritten_and_nothing_is_ignored(made, tmp_path):
    out = made("classroom")
    done = cudalab("grade", "--make", "classroom", out, "--lab", "reduce", status=1)
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
