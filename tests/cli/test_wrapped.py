"""`cudalab run --sanitize`: whatever is put around a user's access, the access is the user's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import cudalab

pytestmark = pytest.mark.xdist_group("wrapped")  # one report for all

PROGRAM = Path(__file__).parents[1] / "programs" / "wrapped.cu"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrapped") / "found.json"
    done = cudalab("run", "--device", "cpu", "--sanitize", "--json", path, PROGRAM)
    assert done.returncode == 3, done.stderr.decode()
    return json.loads(path.read_text())


def test_each_bug_is_reported_at_its_own_line_and_nothing_else(report):
    lines = PROGRAM.read_text().splitlines()
    bugs = {n: re.search("// bug: (.*)", line) for n, line in enumerate(lines, 1)}
    found = {}
    for row in report["findings"]:
        if not row["note"]:
            found.setdefault(row["line"], set()).add(row["kind"])
    kinds = {
        "past the end": {"out_of_bounds"},
        "misaligned": {"misaligned"},
        "race": {"race", "lost_update"},
    }
    assert set(found) == {n for n, bug in bugs.items() if bug}
    assert {n: bugs[n][1] for n in found if not found[n] <= kinds[bugs[n][1]]} == {}
