"""What patterns of accesses to shared memory cost: the model against what GPUs have counted."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORED = sorted((ROOT / "docs" / "results" / "patterns").glob("*.json"))


@pytest.fixture(scope="module")
def patterns():
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("patterns", ROOT / "docs" / "patterns.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


def test_there_is_a_measurement():
    assert STORED


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_the_model_gives_what_the_gpu_has_counted(patterns, path):
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


def test_the_patterns_stay_those_that_were_counted(patterns):
    accesses = [json.loads(path.read_text(encoding="utf-8"))["rows"] for path in STORED]
    for rows in accesses:
        asked = [{key: row[key] for key in ("bytes", "access", "pattern", "items")} for row in rows]
        assert asked == list(patterns.rows())
