"""The JSON against its schema, tables at several widths, files, and verdicts on two runs."""
# ruff: noqa: RUF001, RUF003 - × is a multiplication sign on purpose

from __future__ import annotations

import copy
import csv
import io
import json
import os
import re
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import pytest
from command import cudalab

from cudalab.backends.base import DeviceInfo
from cudalab.bench import baselines, comparison, files, grids, measured, nvbench, results
from cudalab.bench import document as documents
from cudalab.bench.measured import Row, Sample, Status
from cudalab.cli import values as accepted
from cudalab.cli.app import cli
from cudalab.cli.work import bench as cli_bench
from cudalab.errors import ExitCode, InputError, UsageError
from cudalab.formats import save
from cudalab.labs.teaching import Work
from cudalab.output import grid, terminal

DOCS = Path(__file__).parents[2] / "docs" / "bench.md"
WORK = Work(items=1_000_000, read_bytes=4_000_000, write_bytes=4, flops=0)
CEILING = documents.Ceiling(gb_per_s=100.0, gflop_per_s=1000.0)


def row(name, samples, **options):
    found = Row(name, samples=[Sample(i, ms, 1800.0) for i, ms in enumerate(samples)], **options)
    measured.finish(found, 1800.0, measured.Plan())
    return found


def table(rows, *, ladder=True, **options):
    stages = {"read": 1.0, "copy in": 2.0, "kernels": 3.0, "copy out": 4.0, "write": 5.0}
    made = documents.Table(
        lab="reduce",
        case={"dtype": "int32", "op": "sum"},
        size="1,000,000",
        dist="uniform",
        work=WORK,
        ceiling=CEILING,
        sweep=[],
        rows=results.rows_of(rows, WORK, CEILING, ladder=ladder),
        end_to_end=documents.EndToEnd("single_pass", stages),
        notes=["left out: rows_warp: computes along rows only"],
    )
    return replace(made, **options)


def environment(**options):
    info = DeviceInfo(
        name="Some GPU",
        cores=132,
        clock_mhz=1980,
        dram_gbs=120.0,
        driver="580.1, CUDA 13.0",
        compiler="nvcc 13.0.88 (/usr/local/cuda/bin/nvcc)",
    )
    made = replace(
        results.environment("cuda", info, 100.0, []),
        date="2026-01-31T12:00:00+00:00",
        versions={"cudalab": "0.1.0"},
        commit="abc1234",
        clock_mhz=1800.0,
    )
    return replace(made, **options)


CPU = {"device": "cpu", "device_name": "Some CPU", "emulated": True}


def document(*tables, **options):
    return documents.Document(
        environment=environment(**options),
        conditions=documents.Conditions(["cold"], 10.0, 0),
        tables=list(tables),
    )


LADDER = [
    row("sequential", [0.4, 0.4, 0.44, 0.4, 0.4, 0.36], course="10.62", order=1),
    row("first_add_on_load", [0.2] * 6, course="9.1", order=2),
    row("single_pass", [0.1] * 6, order=3),
    row("as_good", [0.1] * 6, order=4),
    row("numpy", [1.0] * 6, kind="baseline", device="cpu", clock="host"),
]


@pytest.fixture
def stored():
    wrong = Row("own.cu")
    wrong.refuse(Status.WRONG, "1 of 1 elements differ\n  [0] expected 45, got 44", 3)
    return document(table([*LADDER, wrong]))


# The schema ---------------------------------------------------------------------------------------


def test_what_is_written_can_be_read(stored, tmp_path):
    path = tmp_path / "results.json"
    save(path, documents.as_json(stored))
    assert documents.load(path) == stored
    assert '"samples_ms": [0.4, 0.4, 0.44, 0.4, 0.4, 0.36],' in path.read_text(encoding="utf-8")


STORED = sorted((DOCS.parent / "results" / "bench").glob("*.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_file_stays_as_it_is(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert json.dumps(asdict(documents.load(path))) == json.dumps(stored)


OBJECTS = {
    "document": documents.Document,
    "environment": documents.Environment,
    "conditions": documents.Conditions,
    "table": documents.Table,
    "work": Work,
    "ceiling": documents.Ceiling,
    "end_to_end": documents.EndToEnd,
    "row": documents.Row,
    "statistics": documents.Statistics,
    "bound": measured.Bound,
    "ratio": documents.Speedup,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_the_documentation_has_every_key_and_no_other(name):
    text = DOCS.read_text(encoding="utf-8")
    section = re.search(rf"^#### `{name}`$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, name
    documented = re.findall(r"^\| `(\w+)`", section[1], re.MULTILINE)
    assert documented == [field.name for field in fields(OBJECTS[name])]


def spoil(stored, path, value):
    *way, last = path
    place = stored
    for step in way:
        place = place[step]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return stored


ROW = ["tables", 0, "rows", 0]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], "cudalab-bench/0", "schema 'cudalab-bench/0', expected 'cudalab-bench/1'"),
        (["tables"], {}, "tables: a dict is not expected"),
        (["environment", "device"], KeyError, "environment.device: is missing"),
        (["environment", "user"], "me", "environment.user: is unknown"),
        (["tables", 0, "work", "items"], True, "tables[0].work.items: a bool is not expected"),
        (
            ["tables", 0, "end_to_end"],
            {"variant": "a"},
            "tables[0].end_to_end.stages_ms: is missing",
        ),
        ([*ROW, "status"], "fine", "tables[0].rows[0].status: 'fine' is not one of"),
        ([*ROW, "statistics", "runs"], 1.5, "tables[0].rows[0].statistics.runs: a float is not"),
        ([*ROW, "rounds"], [], "tables[0].rows[0]: as many rounds as samples"),
        ([*ROW, "samples_ms", 0], "1", "tables[0].rows[0].samples_ms: numbers are expected"),
        ([*ROW, "baselines", "numpy"], {}, "tables[0].rows[0].baselines.numpy.name: is missing"),
        (["tables", 0, "rows", 0], [], "tables[0].rows[0]: an object is expected"),
    ],
)
def test_what_is_not_as_documented_is_named(stored, tmp_path, path, value, message):
    file = tmp_path / "results.json"
    file.write_text(json.dumps(spoil(asdict(stored), path, value)), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        documents.load(file)
    assert refused.value.message.startswith(f"{file}: {message}")


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_file_of_something_else(tmp_path, text):
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"results\.json"):
        documents.load(file)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        documents.load(tmp_path / "results.json")


def test_no_path_of_this_machine_is_stored():
    assert environment().properties["compiler"] == "nvcc 13.0.88"


def test_the_commit_of_the_checkout(monkeypatch):
    monkeypatch.setenv("CUDALAB_COMMIT", "1234567")
    info = DeviceInfo(name="Some CPU", cores=2)
    assert results.environment("cpu", info, 1.0, []).commit == "1234567"


# Statistics of rows -------------------------------------------------------------------------------


def test_statistics_of_a_row(stored):
    found = stored.tables[0].rows[0].statistics
    assert found.median_ms == 0.4
    assert found.min_ms == 0.36
    assert found.runs == 6
    assert found.items_per_s == pytest.approx(2.5e9)
    assert found.gb_per_s == pytest.approx(10.00001)
    assert found.of_ceiling == pytest.approx(0.1000001)
    assert found.gflop_per_s is None


def test_rates_of_operations_are_of_the_units_ceiling():
    product = Work(1, 8, 4, flops=10**9)
    (found,) = results.rows_of([row("a", [10.0] * 6)], product, CEILING)
    assert found.statistics.gflop_per_s == pytest.approx(100)
    assert found.statistics.of_ceiling == pytest.approx(0.1)


def test_a_rung_is_compared_with_the_one_below_the_first_and_the_baselines(stored):
    rows = {row.name: row for row in stored.tables[0].rows}
    assert rows["sequential"].below is rows["sequential"].first is None
    below, first = rows["single_pass"].below, rows["single_pass"].first
    assert (below.name, below.ratio) == ("first_add_on_load", 2)
    assert (first.name, first.ratio) == ("sequential", 4)
    assert rows["single_pass"].baselines["numpy"].ratio == 10
    assert rows["numpy"].baselines == {}
    assert rows["numpy"].statistics.of_ceiling is None  # not of the GPU's memory
    assert rows["own.cu"].below is rows["own.cu"].statistics is None


def test_cold_and_hot_rows_are_ladders_of_their_own():
    rows = [
        row("a", [4.0] * 6, cache="cold"),
        row("a", [2.0] * 6, cache="hot"),
        row("b", [2.0] * 6, cache="cold"),
        row("b", [0.5] * 6, cache="hot"),
        row("numpy", [8.0] * 6, kind="baseline", device="cpu"),
    ]
    found = results.rows_of(rows, WORK, CEILING)
    assert [one.below and one.below.ratio for one in found] == [None, None, 2, 4, None]
    assert [one.baselines["numpy"].ratio for one in found[:4]] == [2, 4, 4, 16]


def test_the_rung_below_is_one_of_the_same_ladder():
    rows = [
        row("a", [8.0] * 6),
        row("aside", [16.0] * 6, ladder="x"),
        row("b", [4.0] * 6),
        row("farther aside", [2.0] * 6, ladder="x"),
    ]
    found = results.rows_of(rows, WORK, CEILING)
    assert [one.below and one.below.name for one in found] == [None, None, "a", "aside"]
    assert [one.first and one.first.name for one in found] == [None, "a", "a", "a"]


# Tables -------------------------------------------------------------------------------------------

WIDE = """\
reduce: dtype int32, op sum, n = 1,000,000, uniform; Some GPU; cold cache
┏━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━┳━━━━━━━┳━━━━━━┳━━━━━━━━┳━━━━━━━┳━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━━┓
┃ variant           ┃ median µs ┃     ± ┃   min ┃ runs ┃ clock  ┃ 10⁹/s ┃  GB/s ┃ % of copy ┃   × below ┃ × first ┃ × numpy ┃ course, ms ┃
┡━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━╇━━━━━━━╇━━━━━━╇━━━━━━━━╇━━━━━━━╇━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━━┩
│ sequential        │     400.0 │ 0.0 % │ 360.0 │    6 │ device │ 2.500 │ 10.00 │        10 │           │         │     2.5 │      10.62 │
│ first_add_on_load │     200.0 │ 0.0 % │ 200.0 │    6 │ device │ 5.000 │ 20.00 │        20 │         2 │       2 │       5 │        9.1 │
│ single_pass       │     100.0 │ 0.0 % │ 100.0 │    6 │ device │ 10.00 │ 40.00 │        40 │         2 │       4 │      10 │            │
│ as_good           │     100.0 │ 0.0 % │ 100.0 │    6 │ device │ 10.00 │ 40.00 │        40 │ no winner │       4 │      10 │            │
│ numpy             │     1,000 │ 0.0 % │ 1,000 │    6 │ host   │ 1.000 │ 4.000 │           │           │         │         │            │
│ own.cu            │     WRONG │       │       │      │        │       │       │           │           │         │         │            │
└───────────────────┴───────────┴───────┴───────┴──────┴────────┴───────┴───────┴───────────┴───────────┴─────────┴─────────┴────────────┘
  no winner: single_pass may be 1 to 1 times as fast as as_good
  own.cu: WRONG: 1 of 1 elements differ
        [0] expected 45, got 44
  timed by the host's clock: numpy
  course, ms: as printed in the course's material, on the GPU of its day; it does not say for which n
  left out: rows_warp: computes along rows only

"""  # noqa: E501 - a table

NARROW = """\
reduce: dtype int32, op sum, n = 1,000,000, uniform; Some
GPU; cold cache
┏━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━┳━━━━━━━━━━━┓
┃ variant           ┃ median µs ┃     ± ┃   × below ┃
┡━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━╇━━━━━━━━━━━┩
│ sequential        │     400.0 │ 0.0 % │           │
│ first_add_on_load │     200.0 │ 0.0 % │         2 │
│ single_pass       │     100.0 │ 0.0 % │         2 │
│ as_good           │     100.0 │ 0.0 % │ no winner │
│ numpy             │     1,000 │ 0.0 % │           │
│ own.cu            │     WRONG │       │           │
└───────────────────┴───────────┴───────┴───────────┘
  no winner: single_pass may be 1 to 1 times as fast as
      as_good
  own.cu: WRONG: 1 of 1 elements differ
        [0] expected 45, got 44
  timed by the host's clock: numpy
  left out: rows_warp: computes along rows only
  no room here for: min, runs, clock, 10⁹/s, GB/s, % of
      copy, × first, × numpy, course, ms

"""


@pytest.mark.parametrize(("width", "expected"), [(160, WIDE), (60, NARROW)])
def test_the_table_at_a_width(stored, monkeypatch, capsys, width, expected):
    monkeypatch.setenv("COLUMNS", str(width))
    terminal.grid(grids.grid(stored.tables[0], stored.environment))
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("width", range(60, 150, 9))
def test_no_line_is_wider_than_the_terminal(stored, monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    terminal.grid(grids.grid(stored.tables[0], stored.environment))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert any("median" in line for line in lines)


def test_columns_are_left_out_in_the_order_of_their_worth(stored):
    shown = grids.grid(stored.tables[0], stored.environment)
    left_out = [terminal.columns_that_fit(shown, width)[1] for width in range(160, 40, -1)]
    for fewer, more in pairwise(left_out):
        assert set(fewer) <= set(more)
    assert next(one for one in left_out if one) == ["runs"]


def test_emulated_times_say_so_in_every_table_and_file():
    found = document(table(LADDER[:3]), table(LADDER[:3], size="2,000,000"), **CPU)
    shown = grids.grids(found)
    titled = [grid for grid in shown if not grid.title.startswith("end to end")]
    assert len(titled) == 3
    assert all("emulated" in grid.title for grid in titled)
    assert "fastest (emulated: no measure of a GPU): single_pass" in shown[0].notes[0]
    assert "CPU device, emulated: Some CPU" in files.markdown(found).splitlines()[0]


def test_warnings_that_are_alike_are_one_line():
    noisy = [row(name, [1.0, 1.5] * 6) for name in ("a", "b")]
    shown = grids.grid(table(noisy), environment())
    assert "a, b: noisy: a longer --time-limit takes more samples" in shown.notes


def test_end_to_end_separates_the_stages(stored):
    shown = grids.end_to_end_grid(stored.tables[0])
    assert [column.title for column in shown.columns] == [
        *("variant", "read", "copy in", "kernels", "copy out", "write", "total"),
    ]
    assert shown.rows == [["single_pass", "1.000", "2.000", "3.000", "4.000", "5.000", "15.00"]]


def test_times_over_sizes_mark_the_best():
    slower = [row("a", [2.0] * 6), row("b", [4.0] * 6)]
    faster = [row("a", [20.0] * 6), row("b", [10.0] * 6)]
    shown = grids.over_sizes([table(slower), table(faster, size="2,000,000")], environment())
    assert shown.rows == [["a", "2.000", "20.00"], ["b", "4.000", "10.00"]]
    assert shown.best == {(0, 1), (1, 2)}
    assert shown.title.endswith("; cold cache")
    assert grids.over_sizes([table(slower)], environment()) is None


def swept(values, names):
    rows = []
    for name, defines, ms, *cache in values:
        label = " ".join(f"{k}={v}" for k, v in defines.items())
        options = {"defines": defines, "cache": cache[0] if cache else "cold"}
        if ms is None:
            one = Row(f"{name}[{label}]", **options)
            one.refuse(Status.FAILED, "g++ rejected the kernel:\nx.cu:1:2: error: too many", 5)
        else:
            one = row(f"{name}[{label}]", [ms] * 6, **options)
        rows.append(one)
    found = table(rows, ladder=False, sweep=names, end_to_end=None)
    return grids.swept(found, environment())


def test_a_sweep_of_one_define_has_a_line_for_each_variant():
    (shown,) = swept(
        [("a", {"T": 1}, 4.0), ("a", {"T": 2}, 2.0), ("b", {"T": 1}, 3.0), ("b", {"T": 2}, None)],
        ["T"],
    )
    assert [column.title for column in shown.columns] == ["variant", "1", "2"]
    assert shown.rows == [["a", "4.000", "2.000 *"], ["b", "3.000 *", "FAILED"]]
    assert shown.notes == ["b[T=2]: FAILED: too many", "* the lowest median of its row"]


def test_a_sweep_of_two_defines_is_a_grid_with_its_best_cell():
    (shown,) = swept(
        [
            ("a", {"T": t, "U": u}, ms)
            for t, u, ms in ((1, 8, 4.0), (1, 9, 3.0), (2, 8, 1.0), (2, 9, None))
        ],
        ["T", "U"],
    )
    assert [column.title for column in shown.columns] == ["a: T", "8", "9"]
    assert shown.rows == [["1", "4.000", "3.000"], ["2", "1.000 *", "FAILED"]]
    assert shown.notes == ["a[T=2 U=9]: FAILED: too many", "* the lowest median"]


def test_a_sweep_of_three_defines_is_a_list():
    (shown,) = swept([("a", {"T": t, "U": t, "V": t}, float(t)) for t in (1, 2)], ["T", "U", "V"])
    assert shown.rows == [["a", "1", "1", "1", "1.000 *"], ["a", "2", "2", "2", "2.000"]]
    assert shown.notes == ["* the lowest median"]


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        ("T", [[["a", "2.000 *", "4.000"]], [["a", "3.000", "1.000 *"]]]),
        (
            "TU",
            [
                [["1", "2.000 *", ""], ["2", "", "4.000"]],
                [["1", "3.000", ""], ["2", "", "1.000 *"]],
            ],
        ),
        (
            "TUV",
            [
                [["a", "1", "1", "1", "2.000 *"], ["a", "2", "2", "2", "4.000"]],
                [["a", "1", "1", "1", "3.000"], ["a", "2", "2", "2", "1.000 *"]],
            ],
        ),
    ],
)
def test_a_sweep_has_a_table_for_each_state_of_the_caches(names, rows):
    shown = swept(
        [
            ("a", dict.fromkeys(names, value), ms, cache)
            for value, cold, hot in ((1, 2.0, 3.0), (2, 4.0, 1.0))
            for cache, ms in (("cold", cold), ("hot", hot))
        ],
        list(names),
    )
    assert [one.rows for one in shown] == rows
    assert [re.search(r"; (\w+) cache", one.title)[1] for one in shown] == ["cold", "hot"]


@pytest.mark.parametrize("states", [["hot"], ["cold", "hot"]])
def test_what_cannot_run_is_in_the_table_of_each_state(states):
    """Such a row has no state of its own, whatever it says."""
    shown = swept(
        [
            ("a", {"T": 1}, None, "cold"),
            *(("a", {"T": value}, float(value), cache) for value in (2, 3) for cache in states),
        ],
        ["T"],
    )
    assert [one.rows for one in shown] == [[["a", "FAILED", "2.000 *", "3.000"]]] * len(states)
    assert [re.search(r"; (\w+) cache", one.title)[1] for one in shown] == states


def test_a_row_that_cannot_run_is_of_no_state():
    failed = Row("own.cu")
    failed.refuse(Status.FAILED, "no", 5)
    shown = grids.grid(table([row("a", [1.0] * 6, cache="hot"), failed]), environment())
    assert shown.title.endswith("; hot cache")
    assert "cache" not in [column.title for column in shown.columns]


@pytest.mark.parametrize("names", ["T", "TU", "TUV"])
def test_a_sweep_of_which_nothing_ran_has_no_star(names):
    (shown,) = swept([("a", dict.fromkeys(names, value), None) for value in (1, 2)], list(names))
    assert not shown.best
    assert not any("*" in note for note in shown.notes)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1234, "0.123"),
        (1.2345, "1.234"),
        (12.345, "12.35"),
        (123.45, "123.5"),
        (12345.6, "12,346"),
    ],
)
def test_figures_have_four_digits(value, text):
    assert grid.figure(value) == text


# Files --------------------------------------------------------------------------------------------


def test_markdown_has_every_table(stored):
    text = files.markdown(stored)
    first, second, *_ = text.splitlines()
    assert first == (
        "Some GPU, 132 multiprocessors, 1980 MHz at most, peak 120.0 GB/s, "
        "copy measured 100 GB/s, clock measured 1,800 MHz"
    )
    assert (
        second
        == "driver 580.1, CUDA 13.0; cudalab 0.1.0; commit abc1234; 2026-01-31T12:00:00+00:00"
    )
    assert "| variant | median µs | ± | min | runs | clock |" in text
    assert "* own.cu: WRONG: 1 of 1 elements differ [0] expected 45, got 44" in text
    rules = [line for line in text.splitlines() if line.startswith("| ---")]
    assert len(rules) == 2


def test_csv_has_every_row_in_full(stored):
    lines = list(csv.DictReader(io.StringIO(files.csv_text(stored))))
    assert [line["row"] for line in lines] == [r.name for r in stored.tables[0].rows]
    assert float(lines[0]["median_ms"]) == 0.4
    assert lines[0]["case"] == "dtype=int32 op=sum"
    assert lines[2]["baselines"] == "numpy=10.0"
    assert lines[5]["status"] == "WRONG"
    assert lines[5]["median_ms"] == ""
    assert {line["emulated"] for line in lines} == {""}


def test_numbers_in_csv_are_in_full():
    one = row("a", [1.0] * 6, defines={"SKIP": 0, "T": 64})
    tables = [table([one], size=size) for size in ("1,000,000", "3,000x200")]
    lines = list(csv.DictReader(io.StringIO(files.csv_text(document(*tables)))))
    assert [line["n"] for line in lines] == ["1000000", "3000x200"]
    assert lines[0]["defines"] == "SKIP=0 T=64"


def test_csv_of_the_cpu_device_says_emulated():
    emulated = [row("a", [1.0] * 6, device="cpu", emulated=True)]
    (line,) = csv.DictReader(io.StringIO(files.csv_text(document(table(emulated), **CPU))))
    assert line["emulated"] == "emulated"


# Factors ------------------------------------------------------------------------------------------


def test_factors_are_those_of_the_medians_beside_them():
    """The row that takes longer was sampled in the first rounds only."""
    found = document(table([row("b", [1.5] * 6), row("a", [2.0] * 6 + [1.0] * 20)]))
    shown = grids.grid(found.tables[0], environment())
    assert shown.notes[0] == "fastest: a, 1.5 times as fast as b (1.5 to 1.5)"
    titles = [column.title for column in shown.columns]
    assert shown.rows[1][titles.index("× below")] == "1.5"
    assert "| 1.5 |" in files.markdown(found)
    lines = list(csv.DictReader(io.StringIO(files.csv_text(found))))
    assert lines[1]["times_below"] == lines[1]["times_first"] == "1.5"


@pytest.mark.parametrize(
    ("factor", "text"),
    [(2.0, "2"), (2.346, "2.35"), (999.4, "999"), (999.6, "1,000"), (1234.4, "1,234")],
)
def test_factors_have_three_digits_or_all_before_the_point(factor, text):
    found = table([row("b", [factor] * 6), row("a", [1.0] * 6)])
    assert grids.times(found.rows[1].below) == text
    assert grids.winner(found, environment()) == [
        f"fastest: a, {text} times as fast as b ({text} to {text})",
    ]


def test_a_row_with_unusable_times_is_not_the_fastest():
    found = table([row("b", [2.0] * 6), row("a", [0.1, 0.1, 1.0, 1.0, 5.0, 5.0])])
    shown = grids.of_table(found, environment())[0]
    assert "unusable" in shown.rows[1]
    assert grids.winner(found, environment()) == ["no winner: unusable times of a"]


def test_a_lossy_row_is_named_so_and_compared_with_no_other():
    rows = [row("b", [2.0] * 6), row("coarse", [0.5] * 6, precision="bf16"), row("a", [1.0] * 6)]
    found = document(table(rows), table(rows))
    shown = grids.grid(found.tables[0], environment())
    assert [line[0] for line in shown.rows] == ["b", "coarse (bf16)", "a"]
    assert shown.notes[0] == "fastest: a, 2 times as fast as b (2 to 2)"
    _, coarse, above = found.tables[0].rows
    assert (coarse.below, coarse.first, coarse.baselines) == (None, None, {})
    assert above.below.name == "b"
    assert "coarse (bf16)" in files.markdown(found)
    assert "bf16" in files.csv_text(found)
    over = grids.over_sizes(found.tables, environment())
    assert over.best == {(2, 1), (2, 2)}


# Two runs -----------------------------------------------------------------------------------------


def compared(before, after, threshold=0.05):
    old, new = (document(table([row("a", samples)])) for samples in (before, after))
    return comparison.compare(old, new, threshold)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([1.0] * 9, [1.0] * 9, comparison.SAME),
        ([1.0] * 9, [1.04] * 9, comparison.SAME),  # below the threshold
        ([1.0] * 9, [1.06] * 9, comparison.SLOWER),
        ([1.06] * 9, [1.0] * 9, comparison.FASTER),
        ([1.0, 1.02, 0.98] * 9, [1.01, 1.03, 0.99] * 9, comparison.SAME),
        ([1.0, 2.0, 3.0] * 3, [1.5, 2.5, 3.5] * 3, comparison.UNDECIDED),  # the interval holds 1
        ([1.0, 1.1, 0.9] * 9, [1.03, 1.13, 0.93] * 9, comparison.UNDECIDED),  # too wide for SAME
        ([0.99, 1.01] * 9, [1.02, 1.07] * 9, comparison.UNDECIDED),  # slower, but by how much?
    ],
)
def test_each_verdict_needs_to_be_shown(before, after, verdict):
    mixed = np.random.default_rng(1).permutation
    found = compared([float(ms) for ms in mixed(before)], [float(ms) for ms in mixed(after)])
    assert [one.verdict for one in found.verdicts] == [verdict]
    assert found.regressions == (verdict == comparison.SLOWER)
    assert found.all_same == (verdict == comparison.SAME)
    doubts = [note for note in found.notes if "narrows the interval" in note]
    assert len(doubts) == (verdict == comparison.UNDECIDED)
    (total, *_) = grids.comparison_grid(found).notes
    assert f"1 {verdict}" in total


def test_nothing_is_equivalent_to_a_row_that_is_missing():
    old, new = (document(table([row(name, [1.0] * 9) for name in names])) for names in ("ab", "a"))
    assert not comparison.compare(old, new).all_same
    assert not comparison.compare(document(), document()).all_same


@pytest.mark.parametrize("scatter", [0.001, 0.2])
def test_equal_kernels_get_a_false_verdict_in_one_of_a_hundred_comparisons_at_most(scatter):
    """With little noise they are the same, with much of it nobody knows."""
    noise = np.random.default_rng(0).lognormal(0, scatter, (2, 100, 20))
    found = [comparison.judged(*pair, 0.02)[0] for pair in zip(*noise, strict=True)]
    false = sum(verdict in (comparison.FASTER, comparison.SLOWER) for verdict in found)
    assert false <= 1
    assert (comparison.SAME in found) == (comparison.UNDECIDED not in found) == (scatter < 0.1)


def test_a_lower_threshold_sees_more():
    assert compared([1.0] * 9, [1.04] * 9, 0.03).regressions == 1


def test_a_row_that_is_no_longer_right_is_a_regression():
    wrong = Row("a")
    wrong.refuse(Status.WRONG, "no", 3)
    old, new = document(table([row("a", [1.0] * 9)])), document(table([wrong]))
    found = comparison.compare(old, new)
    assert [one.verdict for one in found.verdicts] == [comparison.BROKEN]
    assert found.regressions == 1
    assert [one.verdict for one in comparison.compare(new, old).verdicts] == [comparison.NOT_TIMED]


def test_nothing_is_decided_without_samples():
    """As for a document of docs/results, which has statistics only."""
    kept = document(table([row(name, [1.0] * 9) for name in "ab"]))
    stored = copy.deepcopy(kept)
    (known,) = stored.tables
    known.rows = [replace(one, rounds=[], samples_ms=[]) for one in known.rows]
    compared = comparison.compare(stored, kept)
    assert [one.verdict for one in compared.verdicts] == [comparison.NO_SAMPLES] * 2
    assert compared.regressions == 0
    assert compared.notes == ["not judged: 2 rows have statistics only, without samples"]
    assert comparison.compare(kept, kept).notes == []
    shown = grids.grid(known, environment())
    assert shown.rows == grids.grid(kept.tables[0], environment()).rows
    assert not any("winner" in note for note in shown.notes)


def test_rows_of_one_run_only():
    old, new = (document(table([row(name, [1.0] * 9)])) for name in "ab")
    found = comparison.compare(old, new)
    assert [(one.name, one.verdict) for one in found.verdicts] == [
        ("b", comparison.ONLY_NEW),
        ("a", comparison.ONLY_OLD),
    ]
    assert "no row is in both" in found.notes[0]


def test_cold_is_compared_with_cold():
    both = [row("a", [1.0] * 9), row("a", [0.5] * 9, cache="hot")]
    found = comparison.compare(document(table(both)), document(table(both)))
    assert [(one.name, one.verdict) for one in found.verdicts] == [
        ("a", comparison.SAME),
        ("a (hot)", comparison.SAME),
    ]


def test_another_gpu_or_driver_is_named():
    rows = table([row("a", [1.0] * 9)])
    old = document(rows, device_name="Old GPU", other_processes=["train (17)"])
    assert comparison.compare(old, document(rows)).notes == [
        "device: Old GPU then, Some GPU now",
        "other processes were on the GPU then: train (17)",
    ]


def test_another_seed_or_number_of_threads_is_named():
    old, new = (
        document(table([row("a", [1.0] * 9)]), properties={"OS threads used": threads}, **CPU)
        for threads in (2, 4)
    )
    new.conditions = replace(new.conditions, seed=7)
    assert comparison.compare(old, new).notes == [
        "OS threads used: 2 then, 4 now",
        "seed of the data: 0 then, 7 now",
    ]


def test_of_rows_that_were_measured_twice_the_last_is_compared_and_that_is_said():
    tables = [table([row("a", [ms] * 9), row("b", [ms] * 9)]) for ms in (1.0, 2.0)]
    found = comparison.compare(document(*tables), document(tables[1]))
    assert [one.verdict for one in found.verdicts] == [comparison.SAME] * 2
    assert found.notes == [
        f"measured more than once then: {tables[0].heading()}: a, b; the last is compared"
    ]


def test_emulated_times_are_not_compared_with_those_of_a_gpu():
    rows = table([row("a", [1.0] * 9)])
    with pytest.raises(UsageError, match="cpu device are not compared with those of the cuda"):
        comparison.compare(document(rows, **CPU), document(rows))


def run(*args):
    return cudalab("bench", *args, text=True, env=os.environ | {"COLUMNS": "120"})


def test_compare_exits_3_for_a_regression_and_prints_a_line_a_row(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    for path, ms in ((old, 1.0), (new, 1.2)):
        found = document(table([row("a", [ms] * 9)]))
        path.write_text(documents.as_json(found), encoding="utf-8")
    slower = run("--compare", old, new)
    assert slower.returncode == 3
    assert "+20.0 %" in slower.stdout
    assert "SLOWER" in slower.stdout
    assert run("--compare", new, old, "--plot", tmp_path / "new.svg").returncode == 0
    assert "FASTER" in (tmp_path / "new.svg").read_text(encoding="utf-8")
    assert run("--compare", new, old, "--plot", "new.txt").returncode == 2
    assert run("--compare", old, new, "--threshold", "25").returncode == 0
    assert run("--compare", old, new, "--equivalent", "25").returncode == 0
    assert run("--compare", new, old, "--equivalent", "5").returncode == 3
    assert run("--compare", old, new, "--equivalent", "5", "--threshold", "5").returncode == 2
    assert run("reduce", "--equivalent", "5").returncode == 2
    assert run("--compare", old, new, "reduce").returncode == 2
    assert run("--compare", old, DOCS).returncode == 1


# The command line ---------------------------------------------------------------------------------


def convert(kind, text):
    return kind.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1Mi", [2**20]),
        ("1e6,2^20,300x200", [10**6, 2**20, (300, 200)]),
        ("2^16:2^28:x4", [2**16, 2**18, 2**20, 2**22, 2**24, 2**26, 2**28]),
        ("1000:5000:+2000", [1000, 3000, 5000]),
        ("1:10", [1, 2, 4, 8]),
    ],
)
def test_sizes(text, sizes):
    assert convert(accepted.Sizes(), text) == sizes


@pytest.mark.parametrize("text", ["0", "many", "8:4", "1:8:x1", "1:8:-1", "0:8:x2", "1:1e6:+1"])
def test_sizes_that_are_none(text):
    with pytest.raises(click.BadParameter):
        convert(accepted.Sizes(), text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("T=32,64,…,1024", ["32", "64", "128", "256", "512", "1024"]),
        ("T=32,64,...,128", ["32", "64", "128"]),
        ("T=10,20,...,50", ["10", "20", "30", "40", "50"]),
        ("T=1,2,4,...,16,99", ["1", "2", "4", "8", "16", "99"]),
        ("T=2*U", ["2*U"]),
        ("T=~U,7", ["~U", "7"]),
    ],
)
def test_sweeps(text, values):
    assert convert(accepted.SweepOption(), text) == ("T", values)


@pytest.mark.parametrize("text", ["T", "=1", "T=", "T=1,,2", "T=...,8", "T=3,7,...,12", "1=2"])
def test_sweeps_that_are_none(text):
    with pytest.raises(click.BadParameter):
        convert(accepted.SweepOption(), text)


def test_a_library_s_wrong_answer_is_a_result_and_no_failure(tmp_path, monkeypatch, capsys):
    def candidate(*args):
        numpy = right(*args)
        answer = numpy.answer
        return replace(numpy, answer=lambda: answer() + 1)

    right = baselines._numpy
    monkeypatch.setattr(baselines, "_numpy", candidate)
    path = tmp_path / "bench.json"
    words = ["--n", "64", "--time-limit", "0.05", "--device", "cpu", "--baseline", "numpy"]
    words = ["bench", "transpose", *words, "--json", str(path)]
    assert cli.main(words, standalone_mode=False) == 0
    by_name = {row.name: row for row in documents.load(path).tables[0].rows}
    assert (by_name["numpy"].status, by_name["numpy"].samples_ms) == (Status.WRONG, [])
    assert by_name["naive"].status == Status.OK
    assert by_name["naive"].baselines == {}
    assert "WRONG" in capsys.readouterr().out


# A process that has to wait measures seconds where others measure microseconds.
ANY_CHANGE = 1e8


def test_the_files_of_a_run(tmp_path):
    paths = {kind: tmp_path / f"results.{kind}" for kind in ("json", "csv", "markdown", "nvbench")}
    options = [word for kind, path in paths.items() for word in (f"--{kind}", path)]
    measure = ("transpose", "--n", "64,96", "--time-limit", "0.05", "--device", "cpu", *options)
    done = run(*measure, "--baseline", "numpy")
    assert done.returncode == 0, done.stderr
    found = documents.load(paths["json"])
    assert [one.size for one in found.tables] == ["64", "96"]
    rows = found.tables[0].rows
    assert [one.name for one in rows] == ["naive", "tiles_serial", "numpy"]
    assert [one.emulated for one in rows] == [True, True, False]
    assert all(one.status == "ok" and len(one.samples_ms) >= 5 for one in rows)
    assert set(found.tables[0].end_to_end.stages_ms) == {
        *("read", "copy in", "kernels", "copy out", "write"),
    }
    assert files.csv_text(found) == paths["csv"].read_text(encoding="utf-8")
    assert files.markdown(found) == paths["markdown"].read_text(encoding="utf-8")
    assert comparison.compare(found, nvbench.load(paths["nvbench"]), ANY_CHANGE).all_same
    assert "emulated" in done.stdout
    assert "median µs over n" in done.stdout
    assert "transpose: dtype float32, n = 64" in done.stderr
    again = run(*measure, "--against", paths["json"], "--threshold", f"{100 * ANY_CHANGE:g}")
    assert again.returncode == 0, again.stderr
    assert "4 SAME" in again.stdout


def test_a_lab_s_own_options_choose_the_case():
    done = run(
        *("reduce", "--op", "max", "--rows", "--n", "40x30", "--time-limit", "0.05"),
        *("--device", "cpu", "--variants", "all"),
    )
    assert done.returncode == 0, done.stderr
    assert "op max, along rows" in done.stdout
    assert "│ rows_global" in done.stdout
    assert "│ sequential" not in done.stdout
    assert run("reduce", "scan", "--rows").returncode == 2


def test_a_define_that_is_swept_twice_has_the_values_of_both():
    asked = cli_bench.request(
        ("reduce",),
        **dict.fromkeys(("sizes", "variants", "kernel", "dist", "time_limit"), None),
        seed=0,
        baselines=(),
        hot=False,
        cold=False,
        sweep=(("T", ["8", "16"]), ("U", ["1"]), ("T", ["16", "32"])),
    )
    assert asked.sweep == {"T": ["8", "16", "32"], "U": ["1"]}


def test_a_picture_without_a_time_hides_no_verdict(tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install -e '.[plot]'")
    old, picture = tmp_path / "old.json", tmp_path / "new.png"
    found = document(table([row("a", [1.0] * 9)]), **CPU)
    old.write_text(documents.as_json(found), encoding="utf-8")
    own = Path(__file__).parents[1] / "broken" / "bench" / "wrong.cu"
    done = run(
        *("reduce", "--n", "1000", "--kernel", own, "--sweep", "THREADS_PER_BLOCK=256"),
        *("--variants", "serial", "--time-limit", "0.1", "--device", "cpu"),
        *("--against", old, "--plot", picture),
    )
    assert done.returncode == 3, done.stderr
    assert "only in the old" in done.stdout
    assert "there is nothing to draw" in done.stderr
    assert not picture.exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["reduce", "--variants", "nonsense"], "has no variant"),
        (["reduce", "--dist", "zipf"], "has no distribution"),
        (["reduce", "scan", "--dtype", "int8"], "no such type"),
        (["--kernel", DOCS], "--kernel is a file of one lab"),
        (["reduce", "--baseline", "numpy,blas"], "'blas' is unknown"),
        (["reduce", "--sweep", "LANES=1,2", "--n", "100"], "defines LANES"),
    ],
)
def test_usage_errors(args, message):
    done = run(*args, "--device", "cpu")
    assert done.returncode == 2, done.stderr
    assert message in done.stderr


def test_the_status_of_several_measurements():
    assert ExitCode.of_all([]) == ExitCode.OK
    assert ExitCode.of_all([0, 1, 5]) == ExitCode.COMPILE_ERROR
    assert ExitCode.of_all([0, 3, 5]) == ExitCode.WRONG_ANSWER
