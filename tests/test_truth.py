"""docs/truth.py: what it runs, how it reads ncu's table, and how it judges a deviation."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from cudalab import profile
from cudalab.trace import LaunchTrace

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def truth():
    spec = importlib.util.spec_from_file_location("truth", ROOT / "docs" / "truth.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_variants_of_the_five_labs_at_two_sizes(truth):
    runs = list(truth.work())
    keys = [truth.key(lab, variant, size) for lab, variant, _, size in runs]
    assert len(set(keys)) == len(keys) == 2 * len({key.rpartition("/")[0] for key in keys})
    assert {lab.name for lab, *_ in runs} == {"matmul", "reduce", "scan", "histogram", "transpose"}
    assert all(variant.computes(case) for _, variant, case, _ in runs)
    assert "matmul/aat_padded/200" in keys
    assert "reduce/rows_shared/300x200" in keys


def test_whatever_is_compared_is_counted_here(truth):
    empty = LaunchTrace("k", (1, 1, 1), (32, 1, 1), 1, 1, 1, ())
    assert set(truth.COUNTERS) <= set(profile.totals(empty))
    assert set(truth.CAUSES) <= set(truth.COUNTERS)
    assert {name for names in truth.CAUSES.values() for name in names} <= set(truth.COUNTERS)


def test_the_table_of_ncu(truth):
    log = (
        '==PROF== Connected to process 1\n"ID","Kernel Name","a.sum"\n'
        '"","","sector"\n"0","multiply","1,234"\n"1","multiply","n/a"\n'
    )
    rows = truth.table(log)
    assert [row["Kernel Name"] for row in rows] == ["multiply", "multiply"]
    assert [truth.number(row["a.sum"]) for row in rows] == [1234, 0]
    with pytest.raises(SystemExit, match="no table"):
        truth.table("==ERROR== nothing")


def test_launches_find_their_runs(truth):
    row = {
        "Kernel Name": "multiply(const float*)",
        **{n: "2" for c in truth.COUNTERS.values() for n in c},
    }
    found = truth.by_run([("a", "multiply"), ("b", "multiply"), ("b", "multiply")], [row] * 3)
    assert found["a"]["multiply"]["global_load_sectors"] == 2
    assert found["b"]["multiply"]["bank_conflicts"] == 8  # of loads and of stores
    with pytest.raises(SystemExit, match="ncu saw 1 launches"):
        truth.by_run([], [row])
    with pytest.raises(SystemExit, match="launched scan"):
        truth.by_run([("a", "scan")], [row])


def counts(truth, **changed):
    return {**dict.fromkeys(truth.COUNTERS, 100), **changed}


def test_a_deviation_and_its_cause(truth):
    here = counts(truth)
    near = counts(truth, shared_wavefronts=101)
    assert truth.within(truth.row_of("r", "k", "shared_wavefronts", here, near))
    merged = counts(truth, shared_wavefronts=50, shared_load_requests=50)
    row = truth.row_of("r", "k", "shared_wavefronts", here, merged)
    assert row["deviation"] == 1.0
    assert row["cause"] == "shared_load_requests 100 here, 50 there"
    unknown = truth.row_of("r", "k", "bank_conflicts", here, counts(truth, bank_conflicts=0))
    assert (unknown["deviation"], unknown["cause"]) == (None, "")
    assert not truth.within(unknown)


def test_the_comparison_is_stored(truth, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(truth, "ROOT", tmp_path)
    run = "transpose/tiled/256"
    cpu = {"counts": {run: {"transpose": counts(truth)}}}
    there = counts(truth, bank_conflicts=0)
    cuda = {"device": "A GPU", "ncu": "Version 1", "counts": {run: {"transpose": there}}}
    truth.compare(cpu, cuda)
    printed = capsys.readouterr().out
    assert "UNKNOWN" in printed
    assert "docs/results/counters/a-gpu.json" in printed
    path = tmp_path / "docs" / "results" / "counters" / "a-gpu.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert len(stored["rows"]) == len(truth.COUNTERS)
    assert stored["counters"] == truth.COUNTERS
