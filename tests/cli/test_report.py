"""The lab report: what is filled in, what stays blank, and the two kinds of files."""

from __future__ import annotations

import dataclasses
import html.parser
import json
import re
import sys

import click.testing
import numpy as np
import pytest
from bench_documents import document, row, table
from traced import profiled

from cudalab import labs
from cudalab.backends.cpu.meter import CpuMeter
from cudalab.bench import choice
from cudalab.bench.charts import intensities, rooflines
from cudalab.bench.document import Merged, as_json, load, merged
from cudalab.bench.report import content, pages
from cudalab.cli import bench as commands
from cudalab.cli.work import report_measurements
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.microscope.document import document as profile_document
from cudalab.microscope.document import to_json
from cudalab.output import charts
from cudalab.output.grid import Grid

REDUCE = labs.get("reduce")


def measured(**changed):
    """Two sizes of two variants of the lab and one of a student's, beside NumPy."""
    rows = [
        [
            row("sequential", 4.0 * scale, order=3, course="10.62"),
            row("first_add_on_load", 2.0 * scale, order=4),
            row("my.cu", 3.0 * scale, order=9),
            row("numpy", 1.0 * scale, kind="baseline", device="cpu"),
        ]
        for scale in (1, 4)
    ]
    return document(table(rows[0], n=1024), table(rows[1], n=4096), **changed)


def swept():
    rows = [
        row(f"sequential[THREADS_PER_BLOCK={n}]", ms, defines={"THREADS_PER_BLOCK": n})
        for n, ms in [(32, 2.0), (64, 1.0), (128, None)]
    ]
    return document(table(rows, sweep=["THREADS_PER_BLOCK"]))


def built(found=None, **changed):
    run = found if isinstance(found, Merged) else Merged(found or measured(), [])
    return content.build(source(run.document, differing=run.differing, **changed))


def source(document, **changed):
    return content.Source(lab=REDUCE, document=document, **changed)


def headings(blocks, level):
    return [b.text for b in blocks if isinstance(b, content.Heading) and b.level == level]


def section(blocks, title):
    """The blocks below a heading, up to the next of its level."""
    start = next(i for i, b in enumerate(blocks) if getattr(b, "text", None) == title)
    level = blocks[start].level
    found = []
    for block in blocks[start + 1 :]:
        if isinstance(block, content.Heading) and block.level <= level:
            break
        found.append(block)
    return found


def tables_of(blocks):
    return [block for block in blocks if isinstance(block, Grid)]


# Content -----------------------------------------------------------------------------------------


def test_sections():
    blocks = built()
    assert headings(blocks, 1) == ["Lab report: reduce"]
    assert headings(blocks, 2) == [
        "Task",
        "Hardware and software",
        "Method",
        "Results",
        "Roofline",
        "Samples of input and output",
        "Conclusions",
    ]


def test_the_device_s_table():
    device, software = section(built(), "Hardware and software")
    assert ["multiprocessors", "4"] in device.rows
    assert ["copy, memory to memory, measured (GB/s)", "100.0"] in device.rows
    assert ["cudalab", "1"] in software.rows


def test_emulated_times_are_labelled():
    blocks = built(measured(device="cpu", name="Test CPU"))
    said, *_ = section(blocks, "Hardware and software")
    assert "say nothing about a GPU" in said
    assert all("emulated" in b.title for b in section(blocks, "Results") if isinstance(b, Grid))


def test_the_method_is_the_variants_own_comment():
    blocks = built()
    assert headings(section(blocks, "Method"), 3) == [
        "sequential",
        "first_add_on_load",
        "my.cu",
        "How times were taken",
    ]
    path = registry.find(REDUCE, "first_add_on_load").path
    comment = content.description(path.read_text(encoding="utf-8"))
    first = section(blocks, "first_add_on_load")
    assert first[0] == "what first_add_on_load does."
    said, _, for_programmers = " ".join(comment.split()).partition(" Macros from outside: ")
    assert "T (element type)" in for_programmers
    assert " ".join(first[1:-1]) == said
    assert first[-1] == "Compiled with THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 512."


def test_a_student_s_kernel_is_for_the_student_to_describe():
    said, blank = section(built(), "my.cu")
    assert isinstance(said, str)
    assert isinstance(blank, content.Blank)


@pytest.mark.parametrize("name", labs.names())
def test_every_variant_has_a_description(name):
    for variant in registry.variants(labs.get(name)):
        text = content.description(variant.path.read_text(encoding="utf-8"))
        assert len(text.split()) > 15, variant.label
        assert "///" not in text
        assert "summary" not in text.splitlines()[0]


def test_description():
    text = (
        "// /// cudalab\n// order = 1\n// ///\n//\n// The idea.\n//\n//     code\nint x;\n// no\n"
    )
    assert content.description(text) == "The idea.\n\n    code"
    assert content.description("// /// cudalab\n// ///\n__global__ void f() {}\n") == ""


def test_indented_lines_stay_as_they_are():
    blocks = content._paragraphs("One\ntwo.\n\n  a = b\n  c = d\n\nThree.")
    assert blocks == [
        "One two.",
        content.Code("  a = b\n  c = d"),
        "Three.",
    ]


@pytest.mark.parametrize(
    ("caches", "said"),
    [
        (["cold"], "Before each sample the caches were flushed."),
        (["hot"], "The caches were as the run before had left them."),
        (["cold", "hot"], "Cold: the caches were flushed before each sample; hot:"),
    ],
)
def test_how_times_were_taken(caches, said):
    (text,) = section(built(measured(caches=caches)), "How times were taken")
    assert said in text


def test_tables_of_each_size_and_over_n():
    titles = [b.title for b in tables_of(section(built(), "Results"))]
    assert len(titles) == 3
    assert "n = 1,024" in titles[0]
    assert "n = 4,096" in titles[1]
    assert "over n" in titles[2]


def test_launch_shapes_have_a_section_of_their_own():
    both = merged([measured(), swept()], "reduce")
    (shapes,) = tables_of(section(built(both), "Launch shapes"))
    assert [column.title for column in shapes.columns] == ["variant", "32", "64", "128"]
    assert "1.000 *" in shapes.rows[0]
    assert "Which launch shape is best, and why?" in headings(built(both), 3)
    assert "Launch shapes" not in headings(built(), 2)


def test_a_sweep_of_which_nothing_ran_is_left_out():
    rows = [row("lu[TILE=8]", None, defines={"TILE": 8})]
    nothing = document(table(rows, sweep=["TILE"]))
    blocks = built(merged([measured(), nothing], "reduce"))
    assert "Launch shapes" not in headings(blocks, 2)
    assert "Which launch shape is best, and why?" not in headings(blocks, 3)


def test_questions_follow_what_was_measured():
    asked = content.questions(measured().tables)
    assert len(asked) == 6
    assert asked[-1] == "Conclusions"
    one = content.questions(document(table([row("sequential", 1.0)])).tables)
    assert len(one) == 3
    blocks = built()
    conclusions = section(blocks, "Conclusions")
    assert [type(b) for b in conclusions] == [content.Heading, content.Blank] * 6


def test_a_profile_where_there_is_one():
    assert "Profile" not in headings(built(), 2)
    (profile,) = section(built(profile="loads 12\nstores 3\n"), "Profile")
    assert profile == content.Code("loads 12\nstores 3")


def test_a_profile_as_json_becomes_a_table():
    found = json.dumps(to_json(profile_document(profiled())))
    grid, said = section(built(profile=found), "Profile")
    assert isinstance(grid, Grid)
    assert grid.rows[0][:2] == ["interleaved_strided", "reduce_blocks"]
    assert said.startswith("interleaved_strided: bank conflicts: yes, up to 8-way")


def counts(**changed):
    """A profile of `sequential` at the case of `measured`."""
    case = measured().tables[0].case
    found = profiled(case=case, items=1000, **changed)
    found.variants[0].name = "sequential"
    return profile_document(found)


def test_a_roofline_at_the_minimum_work():
    picture, *said, commands = section(built(), "Roofline")
    chart = picture
    assert (chart.x_label, chart.y_label) == (
        "elements per byte of the minimum work",
        "10⁹ elements/s",
    )
    assert [point.label for point in chart.points] == [
        "sequential", "first_add_on_load", "my.cu", "numpy",
    ]  # fmt: skip
    assert {point.x for point in chart.points} == {4096 / 16_388}
    assert chart.points[0].y == pytest.approx(4096 / 16e-3 / 1e9)
    assert chart.roof == charts.Roof(100, None, ("measured copy, 100 GB/s",))
    assert "those of the minimum work" in said[-1]
    assert "cudalab profile reduce --variants all --json" in commands.text


def test_without_pictures_there_is_no_roofline(capfdbinary):
    pages.write(source(measured()), None)
    text = capfdbinary.readouterr().out.decode()
    assert "Roofline" not in text
    assert "![" not in text


def test_a_roofline_with_the_bytes_of_a_profile():
    found = counts()
    requested = found.requested_bytes()
    # 64 of 4096 blocks were traced: 576 requests of 32 lanes and 4 bytes.
    assert requested == {"sequential": 576 * 32 * 4 * 64}
    blocks = section(built(profile=json.dumps(to_json(found))), "Roofline")
    (point,) = blocks[0].points
    assert (point.label, point.x) == ("sequential", 1000 / requested["sequential"])
    assert "Not profiled: first_add_on_load, my.cu, numpy." in blocks[-1]


def test_a_roofline_of_operations_has_a_flat_part():
    flops = 2 * 1024**2
    found = document(table([row("naive", 1.0)], lab="matmul", flops=flops))
    (chart,) = rooflines(found, None)
    assert (chart.x_label, chart.y_label) == ("flop per byte of the minimum work", "GFLOP/s")
    assert chart.roof == charts.Roof(
        100, 50, ("measured copy, 100 GB/s", "peak of the units, 50 GFLOP/s")
    )
    assert chart.points[0].y == pytest.approx(flops / 1e6)


@pytest.mark.parametrize("changed", [{"case": {"op": "max"}}, {"items": 0}, {"lab": "scan"}])
def test_a_profile_of_something_else_tells_no_bytes(changed):
    found = dataclasses.replace(counts(), **changed)
    assert intensities(measured().tables[0], found) == {}


def test_json_of_something_else_is_text():
    (code,) = section(built(profile='{"schema": "else"}'), "Profile")
    assert code == content.Code('{"schema": "else"}')


def test_nothing_to_report():
    with pytest.raises(UsageError, match="no table of reduce"):
        built(document())


# Samples -----------------------------------------------------------------------------------------


def cases():
    for name in labs.names():
        lab = labs.get(name)
        yield name, {}
        for axis, values in lab.axes.items():
            if axis not in lab.derived:
                yield from ((name, {axis: value}) for value in values[1:])
    yield from (("matmul", {"shape": True, "product": p}) for p in ("ab", "aat", "abt"))
    yield "histogram", {"bins": 7}


@pytest.mark.parametrize(("name", "given"), list(cases()))
def test_a_sample_s_answer_is_right(name, given):
    """The shown bytes are those of an input and of its answer."""
    lab = labs.get(name)
    case = lab.complete(given)
    stored = {k: v for k, v in case.items() if isinstance(v, str | int | float | bool)}
    made = dataclasses.replace(
        table([row("any", 1.0)], lab=name, **stored), dist=lab.distributions[0]
    )
    _, said, given_code, answered, answer_code = content.samples(lab, made)
    size = int(re.search(r"An input of (\d+) bytes", said)[1])
    assert size <= 200
    stream = undumped(given_code.text)
    assert len(stream) == min(size, content.SHOWN_BYTES)
    answer_size = int(re.search(r"answer, (\d+) bytes", answered)[1])
    answer = undumped(answer_code.text)
    if len(stream) == size and len(answer) == answer_size:
        inputs = content.read_back(lab, case, stream)
        dtype = next(iter(inputs.arrays.values())).dtype if name != "histogram" else np.uint32
        assert lab.compare(np.frombuffer(answer, dtype), inputs, case) is None


def undumped(text):
    lines = [line for line in text.split("\n\n")[0].splitlines() if not line.startswith("...")]
    return b"".join(bytes.fromhex(line[6:]) for line in lines)


def test_dump():
    assert content.dump(bytes(range(18))) == (
        "0000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n0010  10 11"
    )
    assert content.dump(bytes(100)).splitlines()[-1] == "...   36 more"
    assert content.dump(b"") == ""


def test_shown():
    assert content.shown(np.array([1, 2])) == "[1, 2]"
    counts = np.zeros(256, np.uint32)
    counts[[3, 200]] = 5, 7
    assert content.shown(counts) == "[3] = 5, [200] = 7; the others of 256 are 0"
    assert "..." in content.shown(np.arange(100))


# Files -------------------------------------------------------------------------------------------


def test_markdown():
    text = pages.markdown(built())
    assert text.startswith("# Lab report: reduce\n\nReduces an array")
    assert "| variant | median ms |" in text
    assert "| sequential | 4.000 |" in text
    assert "```\n0000  08 00 00 00" in text
    assert "### Conclusions\n\n______\n" in text
    assert not re.search(r"\n{3}", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b", "a_b"),
        ("_a_", r"\_a\_"),
        ("2 * 3", r"2 \* 3"),
        ("s[i] < `x[i]` or `", r"s\[i\] \< `x[i]` or \`"),
        ("a\\b", r"a\\b"),
    ],
)
def test_what_markdown_would_misread_is_escaped(text, expected):
    assert pages._markdown_text(text) == expected


class Page(html.parser.HTMLParser):
    """Checks that tags are closed in order; keeps the text."""

    VOID = ("meta", "img", "br", "wbr")

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.attributes = [], "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html_needs_nothing_else():
    blocks = built(profile="<b>&amp;</b>")
    page = Page(pages.html(blocks))
    assert "Lab report: reduce" in page.text
    assert "<b>&amp;</b>" in page.text
    links = [a for tag, a in page.attributes if {"src", "href"} & a.keys()]
    assert links == []
    blanks = [a for _, a in page.attributes if a.get("class") == "blank"]
    assert len(blanks) == sum(isinstance(block, content.Blank) for block in blocks)
    assert all(blank["contenteditable"] == "true" for blank in blanks)
    cells = [
        a for tag, a in page.attributes if tag == "td" and a.get("class", "").split()[:1] == ["r"]
    ]
    assert cells


def test_html_carries_its_pictures(tmp_path):
    path = tmp_path / "report.html"
    pages.write(source(measured()), path)
    assert list(tmp_path.iterdir()) == [path]
    page = Page(path.read_text(encoding="utf-8"))
    pictures = [a["aria-label"] for tag, a in page.attributes if tag == "svg"]
    assert pictures == [b.title for b in built() if isinstance(b, charts.Chart)]
    assert len(pictures) == 3


def test_markdown_s_pictures_lie_beside_it(tmp_path):
    path = tmp_path / "out.md"
    pages.write(source(measured()), path)
    names = ["out-1.svg", "out-2.svg", "out-3.svg"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [*names, "out.md"]
    shown = re.findall(r"!\[.*\]\((.*)\)", path.read_text(encoding="utf-8"))
    assert shown == names


def test_pictures_need_no_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("out.md", "out.html"):
        pages.write(source(measured()), tmp_path / name)
        assert (tmp_path / name).stat().st_size


def test_a_phone_shows_the_columns_that_matter():
    """Others are hidden there, and a line below the table names them."""
    page = Page(pages.html(built()))
    heads = [a.get("class", "") for tag, a in page.attributes if tag == "th"]
    assert any("spare" in look for look in heads)
    assert any("spare" not in look for look in heads)
    assert "no room here for: min, runs" in page.text


# What is measured --------------------------------------------------------------------------------


def test_results_of_different_devices_are_not_mixed():
    with pytest.raises(UsageError, match="different devices: Test GPU and Other GPU"):
        merged([measured(), measured(name="Other GPU")], "reduce")


def test_tables_of_other_labs_are_left_out():
    other = document(table([row("naive", 1.0)], lab="transpose"))
    run = merged([other, measured(), swept()], "reduce")
    assert [t.lab for t in run.document.tables] == ["reduce"] * 3


def one_run(cache, **changed):
    rows = [row("sequential", 2.0, cache=cache), row("first_add_on_load", 1.0, cache=cache)]
    found = document(table(rows), caches=(cache,))
    return dataclasses.replace(found, environment=dataclasses.replace(found.environment, **changed))


def test_files_of_cold_and_hot_caches():
    blocks = built(merged([one_run("cold"), one_run("hot")], "reduce"))
    (text,) = section(blocks, "How times were taken")
    assert "Cold: the caches were flushed before each sample; hot:" in text
    *_, over_n = tables_of(section(blocks, "Results"))
    assert over_n.title.endswith("; cold and hot cache")
    assert [c.title for c in over_n.columns] == ["variant", "1,024 (cold)", "1,024 (hot)"]
    assert over_n.rows == [["sequential", "2.000", "2.000"], ["first_add_on_load", *["1.000"] * 2]]
    assert not any("grow with n" in question for question in headings(blocks, 3))


def test_what_differs_between_the_files_is_said_at_their_tables():
    one = one_run("cold", commit="1111111")
    other = one_run("cold", date="2026-02-01T12:00:00+00:00", copy_gb_per_s=90.0)
    other.conditions = dataclasses.replace(other.conditions, seed=7)
    blocks = built(merged([one, other], "reduce"))
    first, second, _ = tables_of(section(blocks, "Results"))
    copy = "copy, memory to memory, measured (GB/s)"
    assert first.notes[-1] == (
        f"the run of this table: {copy}: 100.0; commit: 1111111; "
        "measured on: 2026-01-31T12:00:00+00:00; seed: 0"
    )
    assert second.notes[-1] == (
        f"the run of this table: {copy}: 90.0; commit: unknown; "
        "measured on: 2026-02-01T12:00:00+00:00; seed: 7"
    )
    device, software = section(blocks, "Hardware and software")
    assert [copy, "differs: each table says it"] in device.rows
    assert ["commit", "differs: each table says it"] in software.rows
    assert ["cudalab", "1"] in software.rows


def test_files_that_do_not_differ_need_no_notes():
    run = merged([measured(), swept()], "reduce")
    assert all(t.notes == [] for t in run.document.tables)


@pytest.mark.parametrize(
    ("lab", "given", "device", "sizes"),
    [
        ("reduce", {}, "cpu", [1 << 16, 1 << 18, 1 << 20]),
        ("matmul", {}, "cpu", [64, 128, 256]),
        ("reduce", {"along": "rows"}, "cpu", [256, 512, 1024]),
    ],
)
def test_default_sizes(lab, given, device, sizes):
    lab = labs.get(lab)
    assert choice.default_sizes(lab, lab.complete(given), device) == sizes


def test_launch_shapes_keep_the_proportion():
    variant = registry.find(REDUCE, "first_add_on_load")
    assert choice.launch_shapes(variant) == {
        "THREADS_PER_BLOCK": ["32", "64", "128", "256", "512", "1024"],
        "ITEMS_PER_BLOCK": ["2*THREADS_PER_BLOCK"],
    }
    tiled = registry.find(labs.get("matmul"), "naive")
    assert choice.launch_shapes(tiled) == {"TILE": ["8", "16", "32"]}


@pytest.mark.parametrize(
    ("defines", "swept"),
    [
        ({"THREADS_PER_BLOCK": 256, "BM": 128}, None),
        ({"THREADS_PER_BLOCK": 1}, None),
        ({"OTHER": 3}, None),
        ({"THREADS_PER_BLOCK": 256, "ITEMS_PER_BLOCK": 100}, ["THREADS_PER_BLOCK"]),
        (
            {"THREADS_PER_BLOCK": 256, "ITEMS_PER_BLOCK": 512, "SCAN_THREADS": 256},
            ["THREADS_PER_BLOCK"],
        ),
        ({"TILE_DIM": 32}, ["TILE_DIM"]),
    ],
)
def test_which_launch_shapes_can_be_changed(defines, swept):
    usual = registry.find(REDUCE, "first_add_on_load")
    found = choice.launch_shapes(dataclasses.replace(usual, defines=defines))
    assert (list(found) if found else None) == swept


@pytest.mark.parametrize("name", labs.names())
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_lab_sweeps_something(name, device):
    lab = labs.get(name)
    case = lab.complete({})
    features = frozenset({"sm_75", "sm_80", "sm_90", "sm_90a"})
    found = choice.swept_variants(lab, case, device, features)
    assert 1 <= len(found) <= 2
    assert all(choice.launch_shapes(variant) for variant in found)


def invoke(*args):
    return click.testing.CliRunner().invoke(commands.report, [*map(str, args)])


def test_a_report_has_one_copy_rate(tmp_path, monkeypatch):
    rates = iter([4.7, 7.0, 9.0, 11.0])
    monkeypatch.setattr(CpuMeter, "bandwidth", lambda _: next(rates))
    numbers = tmp_path / "numbers.json"
    words = ("reduce", "--n", 1000, "--variants", "serial", "--device", "cpu", "--quiet")
    done = invoke(*words, "--time-limit", 0.05, "--json", numbers, "-o", tmp_path / "report.md")
    assert done.exit_code == 0, done.output
    found = load(numbers)
    assert len(found.tables) == 2  # over n, and over launch shapes
    assert {found.environment.copy_gb_per_s, *(t.ceiling.gb_per_s for t in found.tables)} == {4.7}


@pytest.fixture
def results_file(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(as_json(measured()), encoding="utf-8")
    return path


def test_from_results(tmp_path, results_file):
    out = tmp_path / "report.html"
    profile = tmp_path / "profile.txt"
    profile.write_text("branches 4\n", encoding="utf-8")
    done = invoke("reduce", "--from", results_file, "--profile", profile, "-o", out)
    assert done.exception is None, done.output
    assert "branches 4" in out.read_text(encoding="utf-8")


def test_results_without_the_lab(results_file):
    done = invoke("scan", "--from", results_file)
    assert isinstance(done.exception, UsageError)


def test_other_kinds_of_files(results_file, tmp_path):
    done = invoke("reduce", "--from", results_file, "-o", tmp_path / "report.pdf")
    assert isinstance(done.exception, UsageError)
    assert "report.pdf: a report is a file called .md or .html" in done.exception.message
    done = invoke("reduce", "--from", results_file, "--json", tmp_path / "new.json")
    assert "--from measures nothing" in done.exception.message
    assert done.exception.hint == "leave out --json"


def test_the_named_variants_are_swept(monkeypatch):
    made = []
    monkeypatch.setattr(
        report_measurements, "measure", lambda *_, **options: made.append(options) or 1
    )
    named = "cols_global,cols_shared,cols_strips"
    invoke("reduce", "--cols", "--variants", named, "--sweep", "A=1", "--sweep", "A=1,2")
    (options,) = made
    found = {key: options[key] for key in options if key not in ("device", "threads")}
    _, swept = report_measurements.requests(REDUCE, "cpu", frozenset(), **found)
    assert swept.sweep == {"A": ["1", "2"]}
    _, *shapes = report_measurements.requests(REDUCE, "cpu", frozenset(), **{**found, "sweep": ()})
    # cols_strips has no number of threads that can be changed alone.
    assert [request.variants for request in shapes] == ["cols_global", "cols_shared"]


@pytest.mark.usefixtures("lock_of_its_own")
def test_measured_on_the_spot(tmp_path, device_name):
    out, kept = tmp_path / "report.md", tmp_path / "kept.json"
    done = invoke(
        *("reduce", "--op", "max", "--n", "100,1000", "--variants", "sequential,warp_shuffle"),
        *("--sweep", "THREADS_PER_BLOCK=64,256", "--device", device_name),
        *("--time-limit", "0.01", "-o", out, "--json", kept),
    )
    assert done.exception is None, done.output
    document = load(kept)
    assert [(t.size, t.sweep) for t in document.tables] == [
        ("100", []),
        ("1,000", []),
        ("1,000", ["THREADS_PER_BLOCK"]),
    ]
    text = out.read_text(encoding="utf-8")
    assert "op max" in text
    assert "### warp_shuffle" in text
    assert "| numpy |" in text
    assert "## Launch shapes" in text
    again = tmp_path / "again.md"
    assert invoke("reduce", "--from", kept, "-o", again).exception is None
    assert again.read_text(encoding="utf-8").replace("again-", "report-") == text


def test_the_lab_s_own_options_are_offered():
    text = invoke("reduce", "--help").output
    assert "--op" in text
    assert "--rows" in text
    assert "--rows" not in invoke("scan", "--help").output.partition("Example")[0]
