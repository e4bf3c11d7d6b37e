"""The profile: counts put together, JSON, tables, annotated source, the page."""

from __future__ import annotations

import dataclasses
import html.parser
import itertools
import json
import os
import re
import resource
import shutil
import struct
import sys
from collections import Counter

import pytest
from command import cudalab
from traced import BARRIER, FILE, LADDER, OUT, STORE, TREE, memory, profiled, shared, trace

from cudalab import labs
from cudalab.backends.trace import Place
from cudalab.cli.work import instruments as cli_profile
from cudalab.errors import InputError, UsageError
from cudalab.labs import registry
from cudalab.language import source
from cudalab.microscope import annotate, compare, profile, subject
from cudalab.microscope import page as profile_page
from cudalab.microscope.document import document, from_json, to_json

# Counting ----------------------------------------------------------------------------------------


def test_launches_of_one_kernel_are_added_up():
    (kernel,) = profile.merged([trace(), trace(blocks=16, blocks_traced=16, warps_traced=128)])
    assert kernel.launches == 2
    assert (kernel.trace.blocks, kernel.trace.blocks_traced) == (4112, 80)
    assert kernel.trace.warps_traced == 640
    tree = [a for a in kernel.trace.accesses if a.place.line == TREE]
    assert [(a.kind, a.requests, a.wavefronts) for a in tree] == [
        ("load", 1920, 5632),
        ("load", 1920, 5632),
        ("store", 1920, 5632),
    ]
    assert tree[0].conflict_degree_mean == pytest.approx(2816 / 960)
    assert kernel.trace.branches[0].divergent == 640
    assert kernel.trace.barriers == {Place(FILE, BARRIER): 1024}
    assert kernel.trace.operations == {"float": 4096}


def test_a_mean_is_weighted_by_requests():
    few, many = shared(TREE, "load", 10, 80, 8), shared(TREE, "load", 90, 90)
    (kernel,) = profile.merged([trace(accesses=(few,)), trace(accesses=(many,))])
    (access,) = kernel.trace.accesses
    assert access.conflict_degree_max == 8
    assert access.conflict_degree_mean == pytest.approx(1.7)


def test_kernels_stay_apart():
    kernels = profile.merged([trace(), trace(kernel="other"), trace()])
    assert [(kernel.name, kernel.launches) for kernel in kernels] == [
        ("reduce_blocks", 2),
        ("other", 1),
    ]


def test_totals():
    found = profile.totals(trace())
    assert found.global_load_requests == 512
    assert found.global_sectors == 2112
    assert found.global_efficiency == 1
    assert found.shared_wavefronts == 512 + 3 * 2816 + 64
    assert found.bank_conflicts == 3 * (2816 - 960)
    assert found.conflict_degree_max == 8
    assert found.divergence == pytest.approx(384 / 4608)
    assert found.arithmetic_intensity == pytest.approx(2048 / (32 * 2112))


def test_nothing_counted_is_no_ratio():
    found = profile.totals(trace(accesses=(), branches=(), operations={}))
    assert found.global_efficiency is None
    assert found.divergence is None
    assert found.arithmetic_intensity is None


def test_passes_are_one_measure_for_both_memories():
    assert profile.passes(shared(TREE, "load", 10, 80, 8)) == 80
    assert profile.passes(memory(STORE, "load", 1, 4, 4)) == 1


# JSON --------------------------------------------------------------------------------------------


def test_the_json_is_flat():
    found = json.loads(json.dumps(to_json(document(profiled()))))
    assert found["schema"] == "cudalab-profile/1"
    (variant,) = found["variants"]
    assert (variant["bank_conflicts"], variant["conflict_degree_max"]) == (True, 8)
    assert (variant["conflict_file"], variant["conflict_line"]) == (FILE, TREE)
    row = next(row for row in found["accesses"] if row["line"] == TREE)
    assert row["variant"] == "interleaved_strided"
    assert row["conflict_degree_max"] == 8
    assert [step["conflict_degree"] for step in row["steps"]] == list(LADDER)
    assert next(row for row in found["accesses"] if row["space"] == "global")[
        "sectors_per_request"
    ] == pytest.approx(4)
    for rows in (found["kernels"], found["branches"], found["barriers"]):
        assert all(row["kernel"] == "reduce_blocks" for row in rows)


def test_what_is_written_can_be_read():
    found = document(profiled())
    assert from_json(json.loads(json.dumps(to_json(found, compared=found)))) == found
    with pytest.raises(InputError, match=r"^kernels\[0\]\.blocks: a str is not expected$"):
        from_json(
            json.loads(json.dumps(to_json(found)).replace('"blocks": 4096', '"blocks": "many"'))
        )


def test_the_schema_is_documented():
    text = (source.kernels_dir().parent / "docs" / "profile.md").read_text(encoding="utf-8")
    stored = to_json(document(profiled()))
    keys = set(stored)
    for name in ("variants", "kernels", "accesses", "branches", "barriers"):
        keys |= set(stored[name][0])
    missing = [key for key in sorted(keys) if f"`{key}`" not in text]
    assert not missing


# Tables and annotated source ---------------------------------------------------------------------


def test_verdicts():
    (variant,) = profiled().variants
    assert variant.verdict == (f"bank conflicts: yes, up to 8-way (mean 2.93) at {FILE}:{TREE}")
    (clean,) = profiled(trace(accesses=(shared(STORE, "store", 512, 512),))).variants
    assert clean.verdict == "bank conflicts: no"
    (none,) = profiled(trace(accesses=(memory(OUT, "store", 1, 1, 1),))).variants
    assert "no access to shared memory" in none.verdict
    atomic = dataclasses.replace(
        shared(TREE, "atomic", 4, 4), same_address_max=32, same_address_mean=20.0
    )
    (meeting,) = profiled(trace(accesses=(atomic,))).variants
    assert "up to 32 lanes of an atomic meet in one word" in meeting.verdict


def test_the_listing_shows_the_kernel_with_numbers_beside_its_lines():
    (variant,) = profiled().variants
    (listing,) = annotate.listings(variant, variant.kernels[0])
    assert listing.label == FILE
    shown = {row.line: "".join(cell.text for cell in row.margin) for row in listing.rows}
    assert "88%" in shown[TREE]
    assert "8-way" in shown[TREE]
    assert annotate.WASTED in shown[TREE]
    assert annotate.WASTED not in shown[STORE]
    assert "4 (4)" in shown[STORE]
    remarks = [row.remark.strip() for row in listing.rows if row.remark]
    assert remarks == [
        "└ load, store: conflict degree by step: 2 4 8 8 8 4 2 1",
        "└ split: 6.4 and 25.6 lanes on the two sides",
        "└ split: 1 and 31 lanes on the two sides",
    ]
    text = variant.texts[FILE].splitlines()
    lines = [row.line for row in listing.rows if row.line]
    assert text[lines[0] - 1].startswith('extern "C" __global__')
    assert text[lines[-1] - 1] == "}"


def test_functions_are_found_by_their_braces():
    text = """\
#include <x>
constexpr int A = 3;

// a } comment
__device__ int f(int a,
                 int b) {
    if (a) { return 1; }
    return '}';
}
struct S {
    int a;
};
__global__ void g() {}
"""
    assert list(annotate.functions(text)) == [(5, 9), (10, 12), (13, 13)]


def test_what_else_a_kernel_does_is_told():
    (variant,) = profiled().variants
    (note,) = annotate.access_grid(variant, variant.kernels[0]).notes
    assert note == ("branches: 9 a warp, 8.3 % split; barriers: 8 a block; float operations: 2,048")


def test_long_series_are_shortened():
    assert annotate.shortened(list("1248")) == "1 2 4 8"
    assert annotate.shortened(["1"] * 100 + ["2"]) == "1 (×100) 2"  # noqa: RUF001 - as printed
    assert annotate.shortened([str(i) for i in range(100)]).endswith("15 ...")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_listings_fit_the_screen(width, capsys, monkeypatch):
    from cudalab.output import code  # noqa: PLC0415 - reads COLUMNS when it prints

    monkeypatch.setenv("COLUMNS", str(width))
    (variant,) = profiled().variants
    for listing in annotate.listings(variant, variant.kernels[0], width):
        code.listing(listing, variant.texts[listing.label])
    lines = capsys.readouterr().out.splitlines()
    assert any("8-way" in line for line in lines)
    assert max(len(line) for line in lines if "└" not in line) <= width
    access = variant.texts[FILE].splitlines()[TREE - 1].split("//")[0]
    begin = next(i for i, line in enumerate(lines) if "8-way" in line)
    margin = len(lines[begin].partition("  if")[0])
    shown = "".join(line[margin:] for line in lines[begin:])
    assert shown.replace(" ", "").startswith(access.replace(" ", ""))


def test_files_included_are_listed_after_the_own():
    variant = registry.find(labs.get("scan"), "blelloch")
    loaded = subject.texts_of(source.load(variant.path, variant.label))
    assert next(iter(loaded)) == "kernels/scan/blelloch.cu"
    assert "kernels/common/block/blelloch.cuh" in loaded
    assert loaded["kernels/common/thread/operators.cuh"].startswith("// Associative")


# What the CPU device sees -------------------------------------------------------------------------


def run(*words, **options):
    """`cudalab profile` in a process of its own."""
    return cudalab("profile", *words, text=True, **options)


def counted(*words, **options):
    """The JSON of a profile."""
    done = run(*words, "--json", "-", **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def degrees(document):
    """Variant -> the worst conflict."""
    return {row["variant"]: row["conflict_degree_max"] for row in document["variants"]}


def steps(document, kind):
    """The conflict degrees of the one access that changes from step to step."""
    (row,) = [
        row
        for row in document["accesses"]
        if row["access"] == kind and len({step["conflict_degree"] for step in row["steps"]}) > 1
    ]
    return [step["conflict_degree"] for step in row["steps"]]


def test_the_ladder_of_reduce():
    done = run("reduce", "--n", 4096, "--json", "-")
    note = "interleaved_strided has bank conflicts, sequential is without; 10 more with --variants"
    assert f"note: no variant is named: {note} all" in done.stderr
    found = json.loads(done.stdout)
    assert found["notes"] == ["10 more with --variants all"]
    assert degrees(found) == {"interleaved_strided": 8, "sequential": 1}
    assert steps(found, "load") == list(LADDER)
    assert steps(found, "store") == list(LADDER)


def test_the_ladder_of_reduce_by_the_rule_of_the_lecture():
    found = counted(
        "reduce", "--n", 4096, "--variants", "interleaved_strided,sequential", "--banks", 16
    )
    assert degrees(found) == {"interleaved_strided": 16, "sequential": 1}
    assert steps(found, "load")[:4] == [2, 4, 8, 16]


def cases_of(lab, *variants):
    """The options that choose a case which all variants compute."""
    applies = {axis: values for one in variants for axis, values in one.applies.items()}
    return lab.complete({axis: values[0] for axis, values in applies.items()})


@pytest.mark.parametrize(
    ("lab", "pair"),
    [(name, pair) for name in labs.names() for pair in labs.get(name).teaching.showcases],
)
def test_a_showcase_is_chosen_for_its_case(lab, pair, capsys):
    lab = labs.get(lab)
    one, cure = (registry.find(lab, name) for name in (pair.variant, pair.cure))
    chosen, _ = cli_profile.choose(lab, cases_of(lab, one, cure), None, None, "cpu")
    assert chosen == [one, cure]
    assert capsys.readouterr().err.startswith(f"note: no variant is named: {one.name} has ")


def test_all_says_why_it_leaves_variants_out_as_bench_does():
    matmul = labs.get("matmul")
    chosen, notes = cli_profile.choose(matmul, matmul.complete({}), None, "all", "cpu")
    assert "naive" in {variant.name for variant in chosen}
    assert any(note.endswith(": computes product aat only") for note in notes)
    assert any("tensor_cores" in note and "which this cpu device lacks" in note for note in notes)


def test_without_a_showcase_both_ends_of_the_ladder_are_taken(capsys):
    reduce = labs.get("reduce")
    case = reduce.complete({"op": "sum", "along": "cols"})
    chosen, (more,) = cli_profile.choose(reduce, case, None, None, "cpu")
    assert [variant.name for variant in chosen] == ["cols_global", "cols_shared"]
    assert more == "1 more with --variants all"
    assert "the profile is of cols_global and cols_shared; 1 more" in capsys.readouterr().err


@pytest.mark.parametrize("words", [
    "matmul --n 64", "radixsort --n 3000", "bitonic --n 3000", "solve --n 64",
])  # fmt: skip
def test_a_showcase_moves_more_memory_than_its_cure(words):
    """Those with bank conflicts have a test of their own below."""
    found = counted(*words.split())
    first, cure = (one["variant"] for one in found["variants"])
    moved = dict.fromkeys((first, cure), 0)
    for kernel in found["kernels"]:
        moved[kernel["variant"]] += kernel["global_sectors"]
    assert moved[first] > 1.5 * moved[cure]


@pytest.mark.parametrize(
    ("words", "banks", "expected"),
    [
        ("histogram --n 20000", 32, {"shared_atomic": 6, "privatized": 1}),
        ("matmul --aat --n 64", 32, {"aat_conflict": 8, "aat_padded": 2, "aat_padded_32": 1}),
        ("matmul --aat --n 64", 16, {"aat_conflict": 16, "aat_padded": 1, "aat_padded_32": 1}),
        ("transpose --n 64", 32, {"naive": 0, "tiled": 32, "tiled_padded": 1}),
        ("transpose --n 64", 16, {"naive": 0, "tiled": 16, "tiled_padded": 1}),
        ("reduce --rows --n 64", 32, {"rows_shared": 32, "rows_shared_padded": 1}),
        ("scan --n 3000", 32, {"blelloch": 32, "blelloch_padded": 1}),
        ("scan --n 3000", 16, {"blelloch": 16}),
    ],
)
def test_padding(words, banks, expected):
    found = counted(*words.split(), "--variants", ",".join(expected), "--banks", banks)
    assert degrees(found) == expected


def test_the_histogram_layouts():
    names = ("per_thread_64_linear", "per_thread_64", "per_thread_64_banks32")
    words = ("histogram", "--bins", 64, "--n", 50_000, "--variants", ",".join(names))
    worst = {
        banks: {
            row["variant"]: row["conflict_degree_max"]
            for row in counted(*words, "--banks", banks)["accesses"]
            if row["file"].endswith("byte_counters.cuh") and row["access"] == "load"
            if row["space"] == "shared"
        }
        for banks in (16, 32)
    }
    assert worst[16]["per_thread_64"] == 1
    assert worst[32] == {**worst[32], "per_thread_64": 2, "per_thread_64_banks32": 1}
    assert min(worst[16]["per_thread_64_linear"], worst[32]["per_thread_64_linear"]) > 2


def test_coalesced_and_not():
    found = counted("transpose", "--n", 128, "--variants", "naive,tiled_padded")
    sectors = {
        (row["variant"], row["access"]): (row["sectors_per_request"], row["efficiency"])
        for row in found["accesses"]
        if row["space"] == "global"
    }
    assert sectors == {
        ("naive", "load"): (4, 1),
        ("naive", "store"): (32, 0.125),
        ("tiled_padded", "load"): (4, 1),
        ("tiled_padded", "store"): (4, 1),
    }


def test_divergence_goes_away():
    names = ("interleaved_modulo", "interleaved_strided")
    found = counted("reduce", "--n", 4096, "--variants", ",".join(names))
    shares = {
        name: max(row["divergence"] for row in found["branches"] if row["variant"] == name)
        for name in names
    }
    assert shares["interleaved_modulo"] > 3 * shares["interleaved_strided"]


def test_data_decide_about_conflicts(tmp_path):
    data = tmp_path / "in.bin"
    same, spread = bytes(4096), bytes(range(256)) * 16
    answers = []
    for content in (same, spread):
        data.write_bytes(struct.pack("<i", len(content)) + content)
        done = run("histogram", "--data", data, "--variants", "shared_atomic")
        assert done.returncode == 0, done.stderr
        answers.append(" ".join(done.stdout.split()))
    assert "bank conflicts: no; up to 32 lanes of an atomic meet in one word" in answers[0]
    assert "bank conflicts: no" in answers[1]
    assert "meet in one word" not in answers[1]
    # Classes 0, 32, 64, ...: 8 counters of one bank, 4 lanes for each.
    content = bytes(32 * (i % 8) for i in range(4096))
    data.write_bytes(struct.pack("<i", len(content)) + content)
    found = counted("histogram", "--data", data, "--variants", "shared_atomic")
    assert degrees(found) == {"shared_atomic": 8}


def test_a_sample_of_the_blocks():
    found = counted("reduce", "--n", 65_536, "--variants", "sequential", "--blocks", 4)
    (kernel,) = found["kernels"]
    assert kernel["blocks"] == 256 + 1
    assert kernel["blocks_traced"] == 4 + 1
    done = run("reduce", "--n", 65_536, "--variants", "sequential", "--blocks", 4)
    assert "5 of 257 blocks traced" in done.stdout


@pytest.mark.parametrize(
    ("lab", "variant"), [("radixsort", "split_1bit"), ("solve", "complete_pivot")]
)
def test_the_slowest_variants_take_seconds_at_their_default_size(lab, variant):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted(lab, "--variants", variant)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 20  # of a processor, however busy the machine is


def test_a_file_of_ones_own(tmp_path):
    own = tmp_path / "own.cu"
    own.write_text((source.kernels_dir() / "transpose" / "tiled.cu").read_text(encoding="utf-8"))
    found = counted("transpose", "--n", 64, "--kernel", own)
    assert degrees(found) == {"own.cu": 32}
    assert {row["file"] for row in found["accesses"]} == {str(own)}
    done = run("transpose", "--kernel", own, "--variants", "tiled")
    assert done.returncode == 2


def words_in_a_bank(lanes, width):
    """The most words that one of 32 banks has to give, from the addresses of a request."""
    words = {
        word
        for address in lanes
        if address is not None
        for word in range(address // 4, (address + width - 1) // 4 + 1)
    }
    return max(Counter(word % 32 for word in words).values())


def test_the_page_is_written_whole_and_has_the_addresses_that_conflict(tmp_path):
    page = tmp_path / "page.html"
    done = run("reduce", "--n", 4096, "--variants", "interleaved_strided", "--html", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    played = [json.loads(one) for one in re.findall(r"data-shown='([^']*)'", html.unescape(text))]
    load, store = (one["steps"] for one in played if "bytes" in one)
    assert [words_in_a_bank(step["lanes"], 4) for step in load] == list(LADDER)
    # Thread t of the first warp stores values[2 * s * t], for s = 1, 2, 4, ..., 128.
    strides = {
        after - before
        for step in store
        for before, after in itertools.pairwise(step["lanes"])
        if None not in (before, after)
    }
    assert strides == {4 * 2 * s for s in (1, 2, 4, 8, 16, 32, 64)}
    assert [32 - step["lanes"].count(None) for step in store] == [32, 32, 32, 16, 8, 4, 2, 1]


def test_the_page_has_the_ways_of_a_branch_that_splits_warps(tmp_path):
    page = tmp_path / "page.html"
    done = run("reduce", "--n", 1023, "--variants", "interleaved_modulo", "--html", page)
    assert done.returncode == 0, done.stderr
    text = html.unescape(page.read_text(encoding="utf-8"))
    played = [json.loads(one) for one in re.findall(r"data-shown='([^']*)'", text)]
    tree = max((one for one in played if "lines" in one), key=lambda one: len(one["steps"]))
    inside, behind = tree["lines"]
    assert behind == inside + 1
    # At each level, which the block's 8 warps reach together, thread t works if t % (2 * s) == 0.
    found = [way for step in tree["steps"] for way in step["times"] * [step["lanes"]]]
    assert found == [
        [int((warp * 32 + lane) % (2 * s) != 0) for lane in range(32)]
        for s in (1, 2, 4, 8, 16, 32, 64, 128)
        for warp in range(8)
    ]


def test_the_old_rule_has_no_sliders(tmp_path):
    page = tmp_path / "page.html"
    assert run("transpose", "--n", 64, "--banks", 16, "--html", page).returncode == 0
    assert "data-shown=" not in page.read_text(encoding="utf-8")


def test_the_old_rule_is_no_rule_of_a_gpu():
    done = run("reduce", "--banks", 16, "--compare-devices")
    assert done.returncode == 2
    assert "a GPU has 32 banks" in done.stderr


def test_a_gpu_without_ncu_is_refused_at_once(tmp_path):
    done = run("reduce", "--device", "cuda", env={**os.environ, "PATH": str(tmp_path)})
    if done.returncode == 0:
        pytest.skip("ncu is installed beside the toolkit")
    assert done.returncode == 4
    assert "Nsight Compute" in done.stderr


def test_both_compilers_count_the_same():
    pytest.importorskip("ziglang", reason="the other compiler is an extra")
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compare with")
    for words in ("reduce --n 4096 --variants interleaved_strided", "scan --n 3000"):
        found = [
            counted(*words.split(), env={**os.environ, "CXX": compiler})
            for compiler in ("g++", f"{sys.executable} -m ziglang c++")
        ]
        by_line = [sorted(one["accesses"], key=json.dumps) for one in found]
        assert by_line[0] == by_line[1]


# The page ----------------------------------------------------------------------------------------


class Checker(html.parser.HTMLParser):
    """Notes what is open, and what refers to elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.wrong = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in ("meta", "br", "wbr", "link", "img", "input"):
            self.open.append(tag)
        if "id" in given:
            self.ids.add(given["id"])
        self.links += [given[name] for name in ("href", "src") if name in given]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_needs_nothing_else():
    text = profile_page.page([profiled()])
    checker = Checker()
    checker.feed(text)
    assert not checker.open
    assert not checker.wrong
    assert checker.links == ["#d0-interleaved_strided"]
    assert checker.links[0][1:] in checker.ids
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert not re.search(r"https?://|\$\{|\$[a-z]", text)
    assert text.count('<i style="height') + text.count("<i class=one") == len(LADDER)


def test_the_page_escapes_what_it_shows():
    found = profiled(input='<script>alert("x")</script> & more')
    assert "<script>alert" not in profile_page.page([found])


def test_comments_over_several_lines_stay_comments():
    lines = profile_page._highlighted('int a; /* one\ntwo */ int b;\nx = "/*"; // c')
    assert lines[0].endswith('<span class="c">/* one</span>')
    assert lines[1].startswith('<span class="c">two */</span>')
    assert '<span class="k">int</span> b;' in lines[1]


# Two devices -------------------------------------------------------------------------------------


def test_counts_side_by_side():
    cpu = profiled()
    whole = trace(blocks=64, blocks_traced=64)
    cuda = profiled(whole, device="cuda", device_name="a GPU")
    grid = compare.grid(cpu, cuda)
    assert [row[2] for row in grid.rows] == list(compare.QUANTITIES.values())
    # 64 of 4096 blocks were traced on the one side, all 64 on the other.
    assert grid.rows[0][3:] == ["131,072", "2,048", "+6300.0"]
    same = compare.grid(profiled(whole), cuda)
    assert {row[5] for row in same.rows} == {"+0.0"}


def test_deviations_have_their_cause_beside_them():
    here = trace(
        blocks=64,
        blocks_traced=64,
        accesses=(shared(TREE, "load", 100, 400, 4), shared(TREE, "store", 50, 50)),
    )
    wide = dataclasses.replace(shared(TREE, "load", 25, 100), bytes_per_lane=16)
    there = dataclasses.replace(here, accesses=(wide, here.accesses[1]), branches=())
    grid = compare.grid(profiled(here), profiled(there, device="cuda", device_name="a GPU"))
    merged, _, predicated = grid.notes
    assert merged.startswith("interleaved_strided, wavefronts, shared memory: The compiler merges")
    assert merged.endswith("shared loads: 100 of 4 bytes by the source; 25 of 16 bytes on the GPU")
    assert "The machine code has no branch there" in predicated
    assert predicated.endswith("by the source, no branch on the GPU")


def test_a_page_of_two_devices():
    cuda = profiled(device="cuda", device_name="a GPU")
    checker = Checker()
    checker.feed(profile_page.page([profiled(), cuda]))
    assert not checker.open
    assert not checker.wrong
    assert checker.links == ["#d0-interleaved_strided", "#d1-interleaved_strided"]
    assert {link[1:] for link in checker.links} <= checker.ids


def test_an_empty_input_is_refused(tmp_path):
    path = tmp_path / "in.bin"
    path.write_bytes(bytes(4))
    reduce = labs.get("reduce")
    with pytest.raises(UsageError, match="nothing to compute"):
        subject.from_file(reduce, reduce.complete({}), path)
