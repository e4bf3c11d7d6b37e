"""What patterns of accesses to shared memory cost: the model against what GPUs have counted."""

from __future__ import annotations

import json

import pytest

from tools import results
from tools.studies import patterns

STORED = sorted((results.FOLDER / "patterns").glob("*.json"))


def test_there_is_a_measurement():
    assert STORED


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_the_model_gives_what_the_gpu_has_counted(path):
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert {(row["bytes"], row["access"]) for row in rows} == {
        (size, access) for size in (4, 8, 16) for access in ("load", "store")
    }
    wrong = [
        {**row, "model": wavefronts}
        for row, wavefronts in zip(rows, patterns.model(rows), strict=True)
        if wavefronts != row["wavefronts"]
    ]
    assert wrong == []


def test_the_patterns_stay_those_that_were_counted():
    accesses = [json.loads(path.read_text(encoding="utf-8"))["rows"] for path in STORED]
    for rows in accesses:
        asked = [{key: row[key] for key in ("bytes", "access", "pattern", "items")} for row in rows]
        assert asked == list(patterns.rows())
