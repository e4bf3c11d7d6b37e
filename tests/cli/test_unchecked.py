"""`cudalab run --sanitize`: calls of the API that failed, and that nobody looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import cudalab

pytestmark = pytest.mark.xdist_group("unchecked")  # one build for all

PROGRAM = Path(__file__).parents[1] / "programs" / "unchecked.cu"


def report(part, status, tmp_path):
    path = tmp_path / "found.json"
    done = cudalab("run", "--device", "cpu", "--sanitize", "--json", path, PROGRAM, "--", part)
    assert done.returncode == status, done.stderr.decode()
    return json.loads(path.read_text())


def marked(words):
    lines = PROGRAM.read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if f"// {words}" in line]


def places(texts):
    return [int(text.removeprefix(f"{PROGRAM}:").partition(":")[0]) for text in texts]


def test_each_failure_that_nobody_looks_at_is_found_once(tmp_path):
    found = report("0", 3, tmp_path)
    assert places(found["ignored"]) == marked("thrown away")
    assert (found["findings"], found["follows"], found["clean"]) == ([], [], False)


def test_a_program_that_looks_at_its_failures_is_clean(tmp_path):
    found = report("1", 0, tmp_path)
    assert (found["ignored"], found["clean"]) == ([], True)


def test_what_is_done_with_memory_that_was_never_made_follows_from_that(tmp_path):
    found = report("2", 3, tmp_path)
    assert places(found["ignored"]) == marked("never made")
    assert found["findings"] == []
    filled = marked("never made")[0] + 1
    assert places(found["follows"]) == [filled, *marked("through null"), filled + 1]
    assert found["follows"][1].endswith(", through a null pointer.")
