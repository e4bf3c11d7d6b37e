"""The ladders of each lab: one idea a rung, said in the header and shown in the lab's README.md."""

from __future__ import annotations

from itertools import pairwise

import pytest
from bench_documents import document, row, table

from cudalab import labs
from cudalab.labs import registry
from tools import results, rungs

LADDERS = [
    pytest.param(ladder, id=f"{lab}-{name or 'main'}")
    for lab in labs.names()
    for name, ladder in rungs.ladders(registry.variants(labs.get(lab))).items()
]


@pytest.mark.parametrize("ladder", LADDERS)
def test_each_rung_says_what_it_adds_to_the_one_before_it(ladder):
    for before, rung in pairwise(ladder):
        assert rung.adds, f"{rung.label}: adds = …"
        assert before.order < rung.order, f"{rung.label}: the order of {before.name}"


@pytest.mark.parametrize("lab", labs.names())
def test_every_variant_is_on_one_ladder(lab):
    variants = registry.variants(labs.get(lab))
    ladders = rungs.ladders(variants)
    assert next(iter(ladders)) == "", "the main ladder comes first"
    assert sorted(rung.name for ladder in ladders.values() for rung in ladder) == sorted(
        variant.name for variant in variants
    )
    page = rungs.page(lab)
    assert all(page.count(f"| [`{variant.name}`]({variant.name}.cu)") == 1 for variant in variants)


def test_the_course_s_kernel_is_the_rung_below_the_tiles():
    main = [rung.name for rung in rungs.ladders(registry.variants(labs.get("matmul")))[""]]
    assert main[:3] == ["naive", "tiled", "register_tiled_1d"]


def test_a_rung_s_lines_are_its_own_and_its_headers():
    find = registry.find
    assert len(set(rungs.lines_of(find(labs.get("matmul"), "naive")))) == 1
    own, whole = rungs.lines_of(find(labs.get("radixsort"), "onesweep"))
    assert own < 100 < 4 * own < whole


def test_times_stand_beside_the_rungs_that_were_measured(tmp_path, monkeypatch):
    stored = document(
        table([row("global", 2.0), row("shared", 0.5)], lab="bitonic", dtype="int32"),
        table([row("naive", 9.0)], lab="matmul"),
    )
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(rungs, "load", lambda path: stored if path.name == "a.json" else None)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "a.json").touch()
    lines = rungs.page("bitonic").splitlines()
    heading = next(line for line in lines if line.startswith("| rung "))
    assert heading.endswith("| with headers | Test GPU, ms | times as fast |")
    ends = [line.split(" | ")[-2:] for line in lines if line.startswith("| [")]
    assert ends == [["", " |"], ["2.00", " |"], ["0.500", "4.00 |"]]
    assert "Test GPU, ms: the median at n = 1,024, int32; commit ``, 2026-01-31." in lines


def test_without_measurements_a_page_has_no_times(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert " ms" not in rungs.page("bitonic").partition("| --- |")[2]
