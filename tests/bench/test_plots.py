"""Charts of results: their data, and that a picture of them can be read without colours."""

from __future__ import annotations

import itertools
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from bench_documents import document, row, table

from cudalab.bench.charts import changes, charts, draw, draw_changes, ladder, over_shapes
from cudalab.bench.comparison import compare
from cudalab.errors import CudalabError, NoDeviceError
from cudalab.output import charts as data
from cudalab.output import plots, svg


@pytest.fixture
def matplotlib():
    return pytest.importorskip("matplotlib", reason="needs matplotlib: pip install -e '.[plot]'")


def two_sizes(**changed):
    small = [row("slow", 4.0), row("fast", 2.0), row("numpy", 8.0, kind="baseline", device="cpu")]
    large = [row("slow", 16.0), row("fast", 4.0), row("wrong", None)]
    return document(table(small, n=1024), table(large, n=4096), **changed)


def sweep(values, **defines):
    rows = [
        row(f"tree[THREADS={threads}]", ms, defines={"THREADS": threads, **defines})
        for threads, ms in values
    ]
    return table(rows, sweep=["THREADS"])


# Data --------------------------------------------------------------------------------------------


def test_times_over_n_and_the_last_ladder():
    over, steps = charts(two_sizes())
    assert isinstance(over, data.OverSizes)
    assert (over.x_label, over.y_label) == ("n", "ms")
    assert [(line.label, line.x, line.y, line.baseline) for line in over.lines] == [
        ("slow", [1024, 4096], [4, 16], False),
        ("fast", [1024, 4096], [2, 4], False),
        ("numpy", [1024], [8], True),
    ]
    assert over.lines[0].spread == pytest.approx([0.04 / 1.349 * 1.5, 0.16 / 1.349 * 1.5])
    assert isinstance(steps, data.Ladder)
    assert "n = 4,096" in steps.title


def test_the_floor_is_a_copy_of_the_same_bytes():
    over, _ = charts(two_sizes())
    assert over.floor.label == "copy of the same bytes"
    assert over.floor.x == [1024, 4096]
    # 4 bytes an item and 4 of the answer at 100 GB/s.
    assert over.floor.y == pytest.approx([4100 / 100e6, 16_388 / 100e6])


def test_a_ladder_of_rates():
    made = ladder(two_sizes().tables[1], two_sizes().environment)
    assert made.x_label == "GB/s"
    assert made.ceiling == (100, "measured copy, 100 GB/s")
    gigabytes = 16_388 / 1e9
    assert [(rung.label, rung.text) for rung in made.rungs] == [
        ("slow", "0.00102 GB/s"),
        ("fast", "0.0041 GB/s"),
        ("wrong", "WRONG"),
    ]
    assert [rung.value for rung in made.rungs[:2]] == pytest.approx(
        [gigabytes / 16e-3, gigabytes / 4e-3]
    )
    assert made.rungs[2].value is None


def test_a_ladder_of_operations():
    flops = 2 * 1024**2
    made = ladder(table([row("naive", 1.0)], lab="matmul", flops=flops), document().environment)
    assert made.x_label == "GFLOP/s"
    assert made.rungs[0].value == pytest.approx(flops / 1e6)
    assert made.ceiling == (50, "peak of the units, 50 GFLOP/s")


def test_cold_and_hot_are_told_apart():
    rows = [row("tree", 2.0), row("tree", 1.0, cache="hot")]
    (made,) = charts(document(table(rows), caches=("cold", "hot")))
    assert [rung.label for rung in made.rungs] == ["tree (cold)", "tree (hot)"]


def test_emulated_times_are_labelled():
    made = two_sizes(device="cpu", name="Test CPU")
    assert all("CPU device, emulated: Test CPU" in chart.title for chart in charts(made))


def test_shapes_are_measured_in_elements():
    tables = [
        replace(table([row("tile", 1.0)], n=n), size=size) for n, size in [(6, "2x3"), (2, "1x2")]
    ]
    over, _ = charts(document(*tables))
    assert over.x_label == "elements"
    assert over.lines[0].x == [2, 6]


def test_other_cases_are_other_charts():
    tables = [table([row("tree", 1.0)], op=op) for op in ("sum", "max")]
    assert len(charts(document(*tables))) == 2


def test_a_sweep_is_drawn_over_its_define():
    (over,) = charts(document(sweep([(32, 4.0), (64, 2.0), (128, None)])))
    assert over.x_label == "THREADS"
    assert [(line.label, line.x, line.y) for line in over.lines] == [("tree", [32, 64], [4, 2])]


def test_a_sweep_of_two_defines_has_a_line_for_each_of_the_first():
    rows = [
        row(f"tree[A={a} B={b}]", a * b, defines={"A": a, "B": b}) for a in (1, 2) for b in (3, 4)
    ]
    made = over_shapes(table(rows, sweep=["A", "B"]), document().environment)
    assert made.x_label == "B"
    assert [(line.label, line.x, line.y) for line in made.lines] == [
        ("tree A=1", [3, 4], [3, 4]),
        ("tree A=2", [3, 4], [6, 8]),
    ]


def test_a_sweep_has_a_line_for_each_state_of_the_caches():
    rows = [
        row(f"tree[T={t}]", t * scale, defines={"T": t}, cache=cache)
        for t in (1, 2)
        for cache, scale in (("cold", 4), ("hot", 2))
    ]
    made = over_shapes(table(rows, sweep=["T"]), document().environment)
    assert [(line.label, line.x, line.y) for line in made.lines] == [
        ("tree (cold)", [1, 2], [4, 8]),
        ("tree (hot)", [1, 2], [2, 4]),
    ]
    assert made.title.endswith("; cold and hot cache")


@pytest.mark.parametrize("values", [[(32, 1.0)], [("a", 1.0), ("b", 2.0)], [(32, None)]])
def test_what_is_no_sweep_over_numbers_is_not_drawn(values):
    assert charts(document(sweep(values))) == []


def test_changes_are_dots_with_their_intervals_around_zero(tmp_path):
    old, new = (
        document(table([row("tree", ms), row("gone", gone)]))
        for ms, gone in ((1.0, 2.0), (1.5, None))
    )
    comparison = compare(old, new, 0.1)
    (tree,) = changes(comparison, new.environment).rows
    assert tree.percent == pytest.approx(50)
    low, high = tree.interval
    assert low <= tree.percent <= high
    assert tree.text == "+50.0 %  SLOWER"
    draw_changes(comparison, new.environment, tmp_path / "a.svg")
    picture = (tmp_path / "a.svg").read_text(encoding="utf-8")
    texts = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]*)<', picture)
    places = {text: float(x) for x, text in texts}
    assert places["-20"] < places["0"] < places["+20"]
    assert "grey: changes of up to 10 %" in picture


def test_nothing_to_draw(tmp_path):
    with pytest.raises(CudalabError, match="nothing to draw") as caught:
        draw(document(table([row("wrong", None)])), tmp_path / "a.svg")
    assert caught.value.hint == "no row has a time"


# Pictures ----------------------------------------------------------------------------------------


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for name in ("a.png", "a.pdf"):
        with pytest.raises(NoDeviceError, match="matplotlib") as caught:
            draw(two_sizes(), tmp_path / name)
        assert "a file called .svg" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
    draw(two_sizes(), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<svg")


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize(
    ("name", "starts"), [("a.png", b"\x89PNG"), ("b.SVG", b"<svg"), ("c.pdf", b"%PDF")]
)
def test_the_suffix_chooses_the_format(tmp_path, name, starts):
    path = tmp_path / name
    draw(two_sizes(), path)
    first = path.read_bytes()
    assert first.startswith(starts)
    draw(two_sizes(), path)  # the same results give the same bytes
    assert path.read_bytes() == first


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_folder_that_is_not_there(tmp_path, suffix):
    with pytest.raises(CudalabError, match="cannot be written"):
        draw(two_sizes(), tmp_path / "none" / f"a{suffix}")


@pytest.mark.usefixtures("matplotlib")
def test_matplotlib_paints_all_that_an_svg_shows_where_it_shows_it():
    drawing = svg.file(charts(two_sizes()))
    root = ET.fromstring(drawing)  # noqa: S314 - it is ours
    figure = plots.figure_of(drawing)
    (axes,) = figure.axes
    elements = [element.tag.rpartition("}")[2] for element in root.iter()]
    painted = [type(patch).__name__ for patch in axes.patches]
    assert painted.count("Rectangle") == elements.count("rect")
    assert painted.count("PathPatch") == elements.count("path")
    assert [text.get_text() for text in axes.texts] == [
        element.text for element in root.iter() if element.tag.endswith("text")
    ]
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert axes.get_xlim() == (left, left + width)
    assert axes.get_ylim() == (top + height, top)  # downwards
    frame = axes.get_window_extent()
    for artist in (*axes.patches, *axes.texts):
        box = artist.get_window_extent()
        assert frame.x0 - 1 <= box.x0
        assert box.x1 <= frame.x1 + 1
        assert frame.y0 - 1 <= box.y0
        assert box.y1 <= frame.y1 + 1


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("mark", svg.MARKS)
def test_marks_are_closed_and_around_their_middle(mark):
    from matplotlib.path import Path  # noqa: PLC0415 - an extra

    points, codes = plots._outline(mark)
    assert codes[-1] == Path.CLOSEPOLY
    (left, top), (right, bottom) = Path(points, codes).get_extents().get_points()
    assert left == pytest.approx(-right)
    assert 6 <= right - left <= 9
    assert 6 <= bottom - top <= 9


@pytest.mark.usefixtures("matplotlib")
def test_a_path_of_all_commands():
    points, _ = plots._outline("M1 2h3v-1m0 -4H0V9l1 1-2 2L5 5c1 1 2 2 3 0z")
    assert points == [
        (1, 2), (4, 2), (4, 1), (4, -3), (0, -3), (0, 9), (1, 10), (-1, 12), (5, 5),
        (6, 6), (7, 7), (8, 5), (8, 5),
    ]  # fmt: skip


def test_svg_bars_are_as_long_as_their_values():
    rungs = [data.Rung("a", 1.0, "1 GB/s"), data.Rung("b", 270.0, "270 GB/s")]
    drawing, _ = svg._ladder(data.Ladder("t", "GB/s", rungs))
    short, long = map(float, re.findall(r'<rect [^>]*width="([\d.]+)"', drawing))
    assert long / 270 == pytest.approx(short, abs=0.1)


def test_svg_ranges_are_on_the_scale_of_their_bars():
    rungs = [data.Rung("a", 2.0, "2 ms", range=(1.0, 4.0))]
    drawing, _ = svg._ladder(data.Ladder("t", "ms", rungs))
    start, width = map(float, re.search(r'<rect x="([\d.]+)".*?width="([\d.]+)"', drawing).groups())
    low, high = map(float, re.search(r'd="M([\d.]+) [\d.]+H([\d.]+)m', drawing).groups())
    assert (low - start, high - start) == pytest.approx((width / 2, 2 * width), abs=0.2)


# SVG ---------------------------------------------------------------------------------------------

ALL_KINDS = [
    *charts(two_sizes()),
    data.Ladder("few", "", [data.Rung("a <b>", 3, "3 %")], full=100),
    data.Ladder("none", "GB/s", []),
    data.Columns("few", "class", ["≤ 1", "> 1"], [0, 3]),
    data.Columns("many", "byte", [str(i) for i in range(256)], [i % 7 for i in range(256)]),
    data.Roofline(
        "a & b",
        "flop/byte",
        "GFLOP/s",
        [data.Point("one", 0.25, 10.0), data.Point("two", 8.0, 900.0, baseline=True)],
        roof=data.Roof(100.0, 1000.0, ("copy", "peak")),
    ),
]


def elements(chart):
    """The elements of a chart, parsed."""
    return list(ET.fromstring(svg.picture(chart)).iter())  # noqa: S314 - our own


def words(chart):
    return [element.text for element in elements(chart) if element.tag == "text"]


@pytest.mark.parametrize("chart", ALL_KINDS, ids=lambda chart: f"{type(chart).__name__}")
def test_a_picture_is_well_formed_and_within_its_frame(chart):
    root, *inside = elements(chart)
    _, _, width, height = (float(n) for n in root.get("viewBox").split())
    assert root.get("aria-label") == chart.title
    for element in inside:
        if element.tag == "text":
            assert element.get("fill") == "currentColor"
            assert 0 <= float(element.get("x")) <= width
            assert 0 <= float(element.get("y")) <= height
        for at in re.findall(r"[ML](\S+) (\S+?)(?=[A-Za-z]|$)", element.get("d", "")):
            if element.get("transform") is None and element.get("fill") == "none":
                x, y = map(float, at)
                assert -10 <= x <= width
                assert -10 <= y <= height
        if element.tag == "rect":
            assert float(element.get("width")) >= 0
            assert float(element.get("height")) >= 0


def test_a_picture_names_all_that_it_shows():
    over, steps = charts(two_sizes())
    assert {"slow", "fast", "numpy", "copy of the same bytes", "n", "ms"} <= set(words(over))
    assert {"1,024", "2¹²"} <= set(words(over))
    shown = words(steps)
    assert {"slow", "0.00102 GB/s", "wrong", "WRONG"} <= set(shown)
    assert "GB/s; dashed: measured copy, 100 GB/s" in shown


def test_lines_of_an_svg_differ_without_colours():
    """The legend has each line's dashes and mark."""
    lines = [data.Line(f"v{i}", [1.0, 2.0], [1.0, 2.0], [0.0, 0.0]) for i in range(20)]
    chart = data.OverSizes("t", "n", "ms", lines)
    samples = [element for element in elements(chart) if element.tag == "g"]
    looks = {(line.get("stroke-dasharray"), mark.get("d")) for line, mark in samples}
    assert len(looks) == len(samples) == 20


def test_noise_larger_than_a_time_stays_in_the_frame():
    line = data.Line("noisy", [1.0, 2.0], [1.0, 2.0], [5.0, 0.1])
    _, *inside = elements(data.OverSizes("t", "n", "ms", [line]))
    bottom = svg.TOP + svg.PLOT_HEIGHT
    (bar, _) = [e.get("d") for e in inside if "m-3 0V" in e.get("d", "")]
    low, high = (float(n) for n in re.findall(r"^M\S+ (\S+)h.*V(\S+?)m", bar)[0])
    assert (low, high) == (bottom, svg.TOP)


def test_points_lie_below_the_roof_where_they_should():
    chart = ALL_KINDS[-1]
    assert chart.roof.at(0.25) == 25
    assert chart.roof.at(100.0) == 1000
    assert data.Roof(100.0, None, ("copy",)).at(100.0) == 10_000
    heights = {e.text: float(e.get("y")) for e in elements(chart) if e.tag == "text"}
    assert heights["two"] < heights["one"]


def test_names_of_points_do_not_overlap():
    points = [data.Point(f"v{i}", 1.0, 5.0) for i in range(30)]
    chart = data.Roofline("t", "x", "y", points, roof=data.Roof(100.0, None, ("copy",)))
    heights = sorted(float(e.get("y")) for e in elements(chart) if (e.text or "").startswith("v"))
    assert min(b - a for a, b in itertools.pairwise(heights)) > 11


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1000, "1,000"), (4096, "2¹²"), (1e4, "10⁴"), (6.4e7, "6.4·10⁷"),
     (2e-5, "2·10⁻⁵")],
)  # fmt: skip
def test_ticks(value, text):
    assert svg.tick_text(value) == text


def test_a_narrow_axis_has_ticks_too():
    for low, high in ((4.1, 6.9), (1.0, 9.0), (0.5, 5e6)):
        axis = svg._log_axis([low, high], 0, 100)
        assert 2 <= len(axis.ticks()) <= 10
        assert all(axis.low <= tick * 1.001 and tick <= axis.high for tick in axis.ticks())


def test_a_file_has_the_titles_on_white(tmp_path):
    path = tmp_path / "a.svg"
    draw(two_sizes(), path)
    root, frame, *rest = ET.parse(path).iter()  # noqa: S314 - our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert frame.get("fill") == "#fff"
    shown = " ".join(e.text for e in rest if e.tag.endswith("text"))
    assert charts(two_sizes())[1].title in shown


@pytest.mark.parametrize("classes", [1, 32, 33, 100, 256])
def test_neighbouring_classes_share_a_line_if_there_are_many(classes):
    bars = plots.Bars("title", "byte", np.ones(classes, np.int64), list(range(classes + 1)))
    _, _, *lines = plots.text(bars, 80).splitlines()
    assert len(lines) <= plots.ROWS
    assert sum(int(line.split()[1]) for line in lines) == classes
    assert lines[-1].split()[0].rpartition("-")[2] == str(classes - 1)
