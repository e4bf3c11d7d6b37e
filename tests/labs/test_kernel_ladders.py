"""The ladders of each lab: one idea a rung, said in the header and shown in the lab's README.md."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from bench_documents import document, row, table

from cudalab import labs
from cudalab.bench.document import load
from cudalab.labs import registry
from tools import results
from tools.studies import ladders, lessons, rungs

SLOWER = 0.97  # a smaller difference needs no reason
LADDERS = [
    pytest.param(ladder, id=f"{lab}-{name or 'main'}")
    for lab in labs.names()
    for name, ladder in rungs.ladders(registry.variants(labs.get(lab))).items()
]


@pytest.fixture(autouse=True)
def times_are_read_anew():
    """Tests may have measurements of their own."""
    rungs.times_by_device.cache_clear()
    yield
    rungs.times_by_device.cache_clear()


@pytest.mark.parametrize("ladder", LADDERS)
def test_each_rung_says_what_it_adds_to_the_one_before_it(ladder):
    for before, rung in pairwise(ladder):
        assert rung.adds, f"{rung.label}: adds = …"
        assert before.order < rung.order, f"{rung.label}: the order of {before.name}"


@pytest.mark.parametrize("lab", labs.names())
def test_no_two_variants_have_the_same_place(lab):
    orders = [variant.order for variant in registry.variants(labs.get(lab))]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("lab", labs.names())
def test_a_rung_that_is_slower_than_the_one_before_it_says_so_and_why(lab):
    stored = [load(path) for path in sorted((results.FOLDER / "bench").glob("*.json"))]
    for name, ladder in rungs.ladders(registry.variants(labs.get(lab))).items():
        for one in stored:
            times = rungs.of_ladder(ladder, list(rungs.times_of(lab, one)))
            for rung, before in rungs.with_the_one_before(ladder, rungs.case_of(lab, name)):
                factor = times and rungs.times_as_fast(before, rung, times)
                if factor and float(factor) < SLOWER:
                    text = rung.path.read_text("utf-8")
                    assert "slower" in text, f"{rung.label}: {factor} on {times.column}"


@pytest.mark.parametrize("lab", labs.names())
def test_every_variant_is_on_one_ladder(lab):
    variants = registry.variants(labs.get(lab))
    ladders = rungs.ladders(variants)
    assert next(iter(ladders)) == "", "the main ladder comes first"
    assert sorted(rung.name for ladder in ladders.values() for rung in ladder) == sorted(
        variant.name for variant in variants
    )
    page = rungs.page(lab)
    assert all(page.count(f"| [`{variant.name}`](#{variant.name})") == 1 for variant in variants)
    assert all(page.count(f"\n### {variant.name}\n") == 1 for variant in variants)


@pytest.mark.parametrize("ladder", LADDERS)
def test_a_lesson_shows_new_lines_that_stand_in_the_kernel_s_files(ladder):
    for before, rung in zip([None, *ladder], ladder, strict=False):
        path, lines = lessons.excerpt(rung, before)
        text = (rung.path.parent / path).read_text("utf-8")
        new = [line[2:].strip() for line in lines if line.startswith("+ ")]
        assert new, rung.label
        assert len(lines) <= lessons.LONGEST
        assert all(line in text or line.startswith("// ") for line in new)
        paragraphs = lessons.prose(rung)
        assert paragraphs
        assert not any("Macros from outside" in each for each in paragraphs)
        assert "**Limits.**" in "\n".join(paragraphs) or rung is ladder[-1] or len(ladder) == 1


def test_a_step_s_new_lines_are_those_that_differ():
    find = registry.find
    lab = labs.get("transpose")
    _, lines = lessons.excerpt(find(lab, "tiled_padded"), find(lab, "tiled"))
    assert [line for line in lines if line.startswith("+")] == [
        "+ constexpr unsigned TILE_WIDTH = TILE_DIM + 1;  // the last column is padding"
    ]
    lab = labs.get("reduce")
    _, lines = lessons.excerpt(find(lab, "sequential"), find(lab, "interleaved_strided"))
    assert [line for line in lines if line.startswith("+")] == [
        "+ for (unsigned s = THREADS_PER_BLOCK / 2; s > 0; s /= 2) {",
        "+     if (tid < s) values[tid] = combine(values[tid], values[tid + s]);",
    ]


@pytest.mark.parametrize(
    ("comment", "markdown"),
    [
        ("a * b < c, see s[i]", r"a \* b &lt; c, see s\[i]"),
        ("`a * b` stays\nas it is", "`a * b` stays as it is"),
        ("Idea.\nLimits: it waits.", "Idea.\n\n**Limits.** It waits."),
        ("Kernels:\n  one    first\n         more\n  two", "Kernels:\n* `one`: first more\n* two"),
        ("    0  a * b\n      <", "```text\n0  a * b\n  <\n```"),
    ],
)
def test_prose_becomes_markdown(tmp_path, comment, markdown):
    path = tmp_path / "a.cu"
    path.write_text(
        "// ///\n//\n" + "".join(f"// {line}\n" for line in comment.split("\n")) + "x;\n"
    )
    rung = replace(registry.variants(labs.get("scan"))[0], path=path)
    assert lessons.prose(rung) == [markdown]


def test_the_course_s_kernel_is_the_rung_below_the_tiles():
    main = [rung.name for rung in rungs.ladders(registry.variants(labs.get("matmul")))[""]]
    assert main[:3] == ["naive", "tiled", "register_tiled_1d"]


def test_a_rung_s_lines_are_its_own_and_its_headers():
    find = registry.find
    assert len(set(rungs.lines_of(find(labs.get("matmul"), "naive")))) == 1
    own, whole = rungs.lines_of(find(labs.get("radixsort"), "onesweep"))
    assert own < 100 < 4 * own < whole


MOST_ADDED, MOST_BEHIND = 300, 1_250  # lines; 1,200 is the aim
# What a plain run takes may be built of more than the rungs before it; its file says what and why.
MORE_THAN_IS_TAUGHT = {
    "radixsort": ("most_significant_first_heavy", "most_significant_first_stable"),
    "solve": (
        "lu_tensor_cores",
        "lu_look_ahead",
        "cholesky_tensor_cores",
        "cholesky_narrow_strips",
    ),
}


@pytest.mark.parametrize("name", labs.names())
def test_no_rung_adds_or_stands_on_too_many_lines(name):
    """All lines of its files, comments too, beside those of the rung that it is built on."""
    for rung in registry.variants(labs.get(name)):
        added, behind = rungs.added_lines(rung), rungs.lines_of(rung)[1]
        if rung.name in MORE_THAN_IS_TAUGHT.get(name, ()):
            text = " ".join(rung.path.read_text("utf-8").replace("//", " ").split())
            assert "built of more than the rungs before" in text, rung.label
        else:
            assert added <= MOST_ADDED, f"{rung.label} adds {added} to {rungs.built_on(rung)}"
            assert behind <= MOST_BEHIND, f"{rung.label} stands on {behind}"


def test_what_is_built_of_more_than_is_taught_is_what_a_plain_run_takes():
    for name, rungs_ in MORE_THAN_IS_TAUGHT.items():
        lab = labs.get(name)
        for rung in rungs_:
            assert rung in lab.taken or registry.find(lab, rung).default, rung


def test_a_rung_s_lines_are_compared_with_those_of_the_rung_that_it_is_built_on():
    find = registry.find
    lab = labs.get("radixsort")
    assert rungs.built_on(find(lab, "most_significant_first")) == find(lab, "bucket_slots")
    assert rungs.built_on(find(lab, "split_1bit")).lab == "scan"
    lab = labs.get("solve")
    assert rungs.built_on(find(lab, "lu_graph")) == find(lab, "lu_blocked_panel")
    assert rungs.added_lines(find(lab, "lu_graph")) == rungs.lines_of(find(lab, "lu_graph"))[0]


def test_times_stand_beside_the_rungs_that_were_measured(tmp_path, monkeypatch):
    stored = document(
        table([row("global", 2.0), row("shared", 0.5)], lab="bitonic", dtype="int32"),
        table([row("naive", 9.0)], lab="matmul"),
    )
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(ladders, "load", lambda path: stored if path.name == "a.json" else None)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "a.json").touch()
    lines = rungs.page("bitonic").splitlines()
    heading = next(line for line in lines if line.startswith("| rung "))
    assert heading == "| rung | Test, ms | times as fast | lines | with headers |"
    begins = [line.split(" | ")[1:3] for line in lines if line.startswith("| [")]
    assert begins == [["", ""], ["2.00", ""], ["0.500", "4.00"], ["", ""], ["", ""]]
    assert "Test GPU: the median at n = 1,024, int32; commit ``, 2026-01-31." in lines
    assert "Measured: 0.500 ms on Test, 4.00 times as fast as `global`." in lines


def test_a_lab_that_was_measured_again_shows_its_newest_times(tmp_path, monkeypatch):
    """Other ladders of the device keep theirs, with the commit and the date of their run."""
    old, new = (
        document(table([row("global", 2.0), row("shared", ms)], lab="bitonic", dtype="int32"))
        for ms in (0.5, 0.25)
    )
    later = replace(new.environment, date="2026-02-01T00:00:00+00:00", commit="later")
    new = replace(new, environment=later)
    (tmp_path / "bench").mkdir()
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    ladders.store([new], "-since")
    ladders.store([old])
    assert len(ladders.stored()) == 2
    page = rungs.page("bitonic")
    assert page.count("Test, ms") == 1
    assert "Measured: 0.250 ms on Test, 8.00 times as fast as `global`." in page
    assert "commit `later`, 2026-02-01." in page


def test_a_rung_is_compared_with_the_same_one_on_every_device():
    case = labs.get("matmul").complete({})
    one, two, three = ladder = registry.variants(labs.get("matmul"))[:3]

    def factors(ladder, ms):
        times = rungs.Times("", "", "", ms)
        return [
            rungs.times_as_fast(b, rung, times)
            for rung, b in rungs.with_the_one_before(ladder, case)
        ]

    names = [rung.name for rung in ladder]
    measured = dict(zip(names, (6.0, 2.0, 1.0), strict=True))
    assert factors(ladder, measured) == ["", "3.00", "2.00"]
    assert factors(ladder, {one.name: 6.0, three.name: 1.0}) == ["", "", ""]
    assert factors([one, replace(two, precision="bf16"), three], measured) == ["", "", "6.00"]
    elsewhere = replace(two, applies={"product": ["aat"]})
    assert factors([one, elsewhere, three], measured)[2] == "6.00"


def test_a_rung_that_has_no_time_says_why(tmp_path, monkeypatch):
    stored = document(table([row("naive", 9.0), row("tiled", 3.0)], lab="matmul", product="ab"))
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(ladders, "load", lambda _: stored)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "a.json").touch()
    page = rungs.page("matmul")
    assert "Not measured on Test GPU: `register_tiled_1d`, " in page
    two = [registry.find(labs.get("matmul"), name) for name in ("naive", "tiled")]
    times = rungs.Times("A GPU", "", "", {"naive": 9.0})
    cells = rungs.table(two, [times], {"product": "aat"})
    assert "| another case |  |" in cells


def test_a_ladder_is_shown_in_the_case_that_it_is_for():
    few, all_of, again = (
        rungs.Times("GPU", size, "", dict.fromkeys(name, 1.0))
        for name, size in (("a", "3"), ("ab", "1"), ("ba", "2"))
    )
    ladder = [replace(registry.variants(labs.get("matmul"))[0], name=name) for name in "abc"]
    assert rungs.of_ladder(ladder, [all_of, again, few]) is again
    assert rungs.of_ladder(ladder, [all_of, again, few], "1") is all_of
    assert rungs.of_ladder(ladder, [all_of, again, few], "3") is again
    assert rungs.of_ladder(ladder[2:], [all_of, again, few]) is None
    assert rungs.of_ladder(ladder, []) is None
    also = rungs.at_other_sizes(ladder[:2], {"GPU": [all_of, few, again]}, ["2", "3"])
    assert list(also) == ["GPU: : `a` 1.00 ms, `b` 1.00 ms.\n"]


def test_each_ladder_beside_the_main_one_is_measured_somewhere():
    """With the main ladder, whose case all of its rungs compute, or in a case of its own."""
    for name in labs.names():
        lab = labs.get(name)
        own = {ladder for side in ladders.SIDES if side.lab == name for ladder in side.ladders}
        stored = rungs.ladders(registry.variants(lab))
        assert own <= stored.keys()
        usual = lab.complete({})
        for ladder in stored.keys() - own:
            assert any(rung.computes(usual) for rung in stored[ladder]), f"{name}: {ladder}"
    for side in ladders.SIDES:
        case = labs.get(side.lab).complete(side.case)
        assert side.rungs
        assert all(rung.computes(case) for rung in side.rungs)


def test_without_measurements_a_page_has_no_times(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert " ms" not in rungs.page("bitonic").partition("| --- |")[2]


# Rungs whose idea is no one else's in particular: what everyone writes first, what the lectures and
# the exercises ask for, one thread doing all by itself, and another size of the rung before.
OWN_IDEAS = {
    "histogram": (
        "global_atomic",
        "privatized_tickets",
        "shared_ranges",
        "table_per_thread",
    ),
    "matmul": (
        "aat_conflict",
        "aat_symmetric_deep",
        "abt_conflict",
        "async_copy_deep",
        "group_split_k_80",
        "group_split_k_wide",
        "serial_rows",
        "uncoalesced",
    ),
    "radixsort": (
        "digit_8bit_serial",
        "one_block",
    ),
    "reduce": (
        "cols_global",
        "cols_shared",
        "cols_strips",
        "global_halving",
        "rows_global",
        "rows_shared",
        "rows_warp",
        "serial",
    ),
    "softmax": (
        "in_registers",
        "thread_per_row",
        "warp_per_row",
    ),
    "solve": ("cholesky_narrow_strips",),
    "table": ("accurate",),
    "transpose": (
        "tiled_sectors",
        "tiled_vectorized",
        "tiles_serial",
    ),
}


@pytest.mark.parametrize("name", labs.names())
def test_a_rung_names_its_source_or_is_an_idea_of_its_own(name):
    rungs_ = registry.variants(labs.get(name))
    without = sorted(rung.name for rung in rungs_ if not lessons.paper(rung))
    assert without == sorted(OWN_IDEAS.get(name, ()))
