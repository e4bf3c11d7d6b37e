"""Hints about extras: one function writes them all, and what it writes can be pasted."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from cudalab import errors

REPOSITORY = Path(__file__).parents[2]
COMMAND = re.compile(r"pip install (-e )?['\"{]")


@pytest.fixture
def python(monkeypatch, tmp_path):
    """A virtual environment in a clone, with pip, that is not on PATH."""
    monkeypatch.setattr(errors, "_ROOT", tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    pip = tmp_path / ".venv" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.touch(mode=0o755)
    return pip


@pytest.mark.usefixtures("python")
def test_in_a_clone():
    assert errors.install_command("plot") == ".venv/bin/pip install -e '.[plot]'"
    assert errors.install_command("cpu", "test") == ".venv/bin/pip install -e '.[cpu,test]'"


def test_an_active_environment_needs_no_path(python, monkeypatch):
    monkeypatch.setenv("PATH", str(python.parent))
    assert errors.install_command("plot") == "pip install -e '.[plot]'"


def test_in_another_folder(python, monkeypatch, tmp_path):
    folder = tmp_path / "my labs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert shlex.split(errors.install_command("plot")) == [
        *(str(python), "install", "-e", f"{tmp_path}[plot]")
    ]


@pytest.mark.usefixtures("python")
def test_an_installed_wheel_names_the_package(tmp_path):
    (tmp_path / "pyproject.toml").unlink()
    assert errors.install_command("plot") == ".venv/bin/pip install 'cudalab[plot]'"


def test_an_environment_without_pip(python):
    python.unlink()
    assert errors.install_command("plot") == "pip install -e '.[plot]'"


def test_no_other_module_writes_such_a_command():
    modules = set((REPOSITORY / "cudalab").rglob("*.py")) - {Path(errors.__file__)}
    writing = [path.name for path in modules if COMMAND.search(path.read_text("utf-8"))]
    assert writing == []
