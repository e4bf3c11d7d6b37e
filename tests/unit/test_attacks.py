"""The attacks of our own: what `python -m tools.attacks` makes of their table."""

from __future__ import annotations

import tomllib

import pytest

from cudalab import labs
from cudalab.errors import ExitCode
from cudalab.labs import registry
from tools import attacks

ALL = {one["name"]: one for one in tomllib.loads(attacks.TELLS.read_text())["attack"]}


@pytest.mark.parametrize("name", ALL)
def test_an_attack_is_a_kernel_file(tmp_path, name):
    path = tmp_path / "my.cu"
    path.write_text(attacks.kernel(ALL[name]))
    registry.read_header(path, labs.get("reduce"), "my.cu")
    assert set(ALL[name]["status"]) <= set(ExitCode)
    assert set(ALL[name]) <= {"name", "does", "status", "above", "begins", "tells", "ends"}


def test_each_attack_is_judged_once(tmp_path):
    found = list(attacks.found(tmp_path, tmp_path, ["tells"]))
    assert [one.name for one in found] == list(ALL)
    assert all(list(one.wanted()) == ALL[one.name]["status"] for one in found)
