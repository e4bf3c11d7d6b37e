"""`cudalab new`: files to begin with."""

from __future__ import annotations

import shlex

import pytest
from checking import checked, cudalab
from click.testing import CliRunner

from cudalab import labs
from cudalab.checker.verdicts import Why
from cudalab.cli.app import cli
from cudalab.errors import ExitCode


@pytest.mark.parametrize("lab", labs.names())
def test_a_new_file_compiles_and_fails(lab, tmp_path):
    path = tmp_path / "my.cu"
    cudalab("new", lab, path, status=0)
    text = path.read_text()
    assert f"cudalab check {lab} --kernel my.cu" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    report = checked(lab, "--kernel", path, "--device", "cpu", "--quick", status=3)
    assert report["stages"][0]["status"] == "passed"
    tests = [test for test in report["tests"] if test["name"] != "a NaN"]  # any answer is right
    failed = [test["status"] == "failed" for test in tests]
    assert any(failed)
    assert all(failed) or lab == "bitonic"  # it sorts in place: sorted keys are right as they are
    assert Why.CRASH not in {test["why"] for test in report["tests"]}
    assert not any("could not be run" in stage["says"] for stage in report["stages"])


def test_new_prints_commands_for_a_shell(tmp_path):
    path = tmp_path / "my kernel.cu"
    done = CliRunner().invoke(cli, ["new", "table", str(path)])
    command = done.output.partition("judge it: ")[2]
    assert shlex.split(command) == ["cudalab", "check", "table", "--kernel", str(path)]
    assert "cudalab check table --kernel 'my kernel.cu'" in path.read_text()


def test_new_leaves_what_is_there(tmp_path):
    path = tmp_path / "my.cu"
    path.write_text("mine")
    assert cudalab("new", "scan", path).returncode == ExitCode.ERROR
    assert path.read_text() == "mine"
