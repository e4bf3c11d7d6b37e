"""The study of counters: what it runs, how it reads ncu's table, how it judges a deviation."""

from __future__ import annotations

import json

import pytest

from cudalab.backends.trace import LaunchTrace
from cudalab.microscope import ncu, profile
from tools import results
from tools.studies import causes, counters


def test_all_variants_of_the_five_labs_at_two_sizes():
    runs = list(counters.work())
    keys = [counters.key(lab, variant, size) for lab, variant, _, size in runs]
    assert len(set(keys)) == len(keys) == 2 * len({key.rpartition("/")[0] for key in keys})
    assert {lab.name for lab, *_ in runs} == {"matmul", "reduce", "scan", "histogram", "transpose"}
    assert all(variant.computes(case) for _, variant, case, _ in runs)
    assert "matmul/aat_padded/200" in keys
    assert "reduce/rows_shared/300x200" in keys


def test_some_runs_are_added_to_those_before(tmp_path):
    some = [
        counters.key(lab, one, size)
        for lab, one, _, size in counters.work(["reduce/serial", "scan"])
    ]
    assert some[:2] == ["reduce/serial/65536", "reduce/serial/100003"]
    assert {name.partition("/")[0] for name in some[2:]} == {"scan"}
    path = tmp_path / "counts.json"
    counters.add(path, {"device": "a", "counts": {"x": 1, "y": 1}}, "counts")
    counters.add(path, {"device": "b", "counts": {"y": 2}}, "counts")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found == {"device": "b", "counts": {"x": 1, "y": 2}}


def test_whatever_is_compared_is_counted_here():
    empty = LaunchTrace(
        kernel="k",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        blocks=1,
        blocks_traced=1,
        warps_traced=1,
        accesses=(),
    )
    assert set(counters.COUNTERS) <= set(vars(profile.totals(empty)))
    assert set(counters.JUDGED) <= set(counters.COUNTERS)


def test_the_table_of_ncu():
    log = (
        '==PROF== Connected to process 1\n"ID","Kernel Name","a.sum"\n'
        '"","","sector"\n"0","multiply","1,234"\n"1","multiply","n/a"\n'
    )
    rows = counters.table(log)
    assert [row["Kernel Name"] for row in rows] == ["multiply", "multiply"]
    assert [counters.number(row["a.sum"]) for row in rows] == [1234, 0]
    with pytest.raises(SystemExit, match="no table"):
        counters.table("==ERROR== nothing")


def test_launches_find_their_runs():
    row = {
        "Kernel Name": "multiply(const float*)",
        **{n: "2" for c in counters.COUNTERS.values() for n in c},
    }
    found = counters.by_run([("a", "multiply"), ("b", "multiply"), ("b", "multiply")], [row] * 3)
    assert found["a"]["multiply"]["global_load_sectors"] == 2
    assert found["b"]["multiply"]["bank_conflicts"] == 8  # of loads and of stores
    with pytest.raises(SystemExit, match="ncu saw 1 launches"):
        counters.by_run([], [row])
    with pytest.raises(SystemExit, match="launched scan"):
        counters.by_run([("a", "scan")], [row])


def counts(lines=None, **changed):
    lines = {"accesses": [], "branches": [], **(lines or {})}
    return {**dict.fromkeys(counters.COUNTERS, 100), "lines": lines, **changed}


def instruction(opcode, line=7, **counted):
    return {
        "file": "k.cu",
        "line": line,
        "opcode": opcode,
        "copies": 1,
        **dict.fromkeys(ncu.BY_INSTRUCTION, 0),
        **counted,
    }


def test_what_is_near_needs_no_cause():
    near = counts(shared_wavefronts=101)
    row = counters.row_of(("r", "k", "shared_wavefronts"), counts(), near, [])
    assert counters.within(row)
    assert "cause" not in row


@pytest.mark.parametrize(
    ("quantity", "access", "there", "code", "cause", "evidence"),
    [
        (
            "shared_wavefronts",
            ["k.cu", 7, "shared", "load", 4, 64],
            {"shared_load_wavefronts": 40},
            [("LDS.128", 16, 40)],
            "merged",
            "shared loads: 64 of 4 bytes by the source; 16 of 16 bytes on the GPU",
        ),
        (
            "global_store_sectors",
            ["k.cu", 7, "global", "store", 16, 16],
            {"global_store_sectors": 1024},
            [("STG.E.128", 8, 128), ("STG.E", 32, 512)],
            "split",
            (
                "global stores: 16 of 16 bytes by the source; "
                "32 of 4 bytes and 8 of 16 bytes on the GPU"
            ),
        ),
        (
            "shared_wavefronts",
            ["k.cu", 7, "shared", "load", 4, 64],
            {"shared_load_wavefronts": 50},
            [("LDS", 32, 50)],
            "kept",
            "shared loads: 64 of 4 bytes by the source; 32 of 4 bytes on the GPU",
        ),
        (
            "shared_wavefronts",
            ["k.cu", 7, "shared", "store", 4, 64],
            {"shared_store_wavefronts": 0},
            [("LDGSTS.E", 64, 0)],
            "asynchronous",
            "shared stores: 64 of 4 bytes by the source; none on the GPU, 64 LDGSTS",
        ),
        (
            "bank_conflicts",
            ["k.cu", 7, "shared", "store", 4, 64],
            {"shared_store_wavefronts": 109},
            [("@STS", 64, 164)],
            "other traffic",
            "100 conflicts by instruction",
        ),
    ],
)
def test_causes_of_other_accesses(quantity, access, there, code, cause, evidence):
    here = counts({"accesses": [access]})
    executed = [
        instruction(
            opcode,
            **{ncu.EXECUTED: count, ncu.WAVEFRONTS: wavefronts, ncu.IDEAL_WAVEFRONTS: count},
        )
        for opcode, count, wavefronts in code
    ]
    counted = counts(**{quantity: 10, **there})
    row = counters.row_of(("r", "k", quantity), here, counted, executed)
    assert (row["cause"], row["evidence"]) == (cause, evidence)


def test_causes_of_other_branches():
    here = counts({"branches": [["k.cu", 7, 200, 60], ["k.cu", 9, 200, 40]]})
    there = counts(divergent_branches=40)
    at_9 = instruction("@BRA", 9, **{ncu.EXECUTED: 200, ncu.DIVERGENT: 40})
    row = counters.row_of(("r", "k", "divergent_branches"), here, there, [at_9])
    assert (row["cause"], row["evidence"]) == (
        "predicated",
        "k.cu:7: 60 by the source, no branch on the GPU",
    )
    at_7 = instruction("@BRA", 7, **{ncu.EXECUTED: 50, ncu.DIVERGENT: 15})
    row = counters.row_of(("r", "k", "divergent_branches"), here, there, [at_7, at_9])
    assert (row["cause"], row["evidence"]) == (
        "partly predicated",
        "k.cu:7: 60 by the source, 15 on the GPU",
    )


def test_what_nothing_explains_stays_open():
    row = counters.row_of(("r", "k", "bank_conflicts"), counts(), counts(bank_conflicts=0), [])
    assert row["deviation"] is None
    assert "cause" not in row
    assert not counters.within(row)


def test_the_comparison_is_stored(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path / "docs" / "results")
    run = "transpose/tiled/256"
    cpu = {"counts": {run: {"transpose": counts()}}}
    there = counts(bank_conflicts=0)
    cuda = {"device": "A GPU", "ncu": "Version 1", "counts": {run: {"transpose": there}}}
    counters.compare(cpu, cuda, {"columns": [], "code": {run: {"transpose": []}}})
    printed = capsys.readouterr().out
    assert "UNKNOWN" in printed
    assert "docs/results/counters/a-gpu.json" in printed
    path = tmp_path / "docs" / "results" / "counters" / "a-gpu.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert len(stored["rows"]) == len(counters.COUNTERS)
    assert stored["counters"] == counters.COUNTERS


# What is stored ----------------------------------------------------------------------------------

STORED = sorted((results.FOLDER / "counters").glob("*.json"))
# What the lecture shows with them stands or falls with these counts.
LADDERS = {
    "reduce/interleaved_strided/65536",
    "reduce/sequential/65536",
    "matmul/aat_conflict/128",
    "matmul/aat_padded/128",
    "transpose/naive/256",
    "transpose/tiled/256",
    "transpose/tiled_padded/256",
    "histogram/per_thread_64_linear/65536",
    "histogram/per_thread_64/65536",
}


@pytest.fixture(params=STORED, ids=lambda path: path.stem)
def stored(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_there_is_a_comparison():
    assert STORED


def test_every_deviation_has_a_cause(stored):
    rows = [row for row in stored["rows"] if row["quantity"] in counters.JUDGED]
    assert {row["quantity"] for row in rows} == set(counters.JUDGED)
    assert [row for row in rows if not counters.within(row) and "cause" not in row] == []
    assert stored["causes"] == causes.CAUSES
    assert {row["cause"] for row in rows if "cause" in row} <= set(stored["causes"])


def test_the_stored_counts_are_those_of_this_instrument(stored):
    kept = {(row["run"], row["kernel"], row["quantity"]): row["cpu"] for row in stored["rows"]}
    for lab, variant, case, size in counters.work():
        run = counters.key(lab, variant, size)
        if run in LADDERS:
            for kernel, found in counters.cpu_run(lab, variant, case, size).items():
                same = {what: count for what, count in kept.items() if what[:2] == (run, kernel)}
                assert same == {what: found[what[2]] for what in same}
                assert same
