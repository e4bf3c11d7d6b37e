"""Charts of results: their data, and that a picture of them can be read without colours."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from bench_documents import document, row, table

from cudalab.bench.charts import charts, draw, ladder, over_shapes
from cudalab.errors import CudalabError, NoDeviceError
from cudalab.output import plots


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
    assert isinstance(over, plots.OverSizes)
    assert (over.x_label, over.y_label) == ("n", "ms")
    assert [(line.label, line.x, line.y, line.baseline) for line in over.lines] == [
        ("slow", [1024, 4096], [4, 16], False),
        ("fast", [1024, 4096], [2, 4], False),
        ("numpy", [1024], [8], True),
    ]
    assert over.lines[0].spread == pytest.approx([0.04 / 1.349 * 1.5, 0.16 / 1.349 * 1.5])
    assert isinstance(steps, plots.Ladder)
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
        ("slow", "16.00 ms"),
        ("fast", "4.000 ms"),
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


def test_nothing_to_draw():
    with pytest.raises(CudalabError, match="nothing to draw") as caught:
        plots.chart_bytes(charts(document(table([row("wrong", None)]))), "png")
    assert caught.value.hint == "no row has a time"


# Pictures ----------------------------------------------------------------------------------------


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NoDeviceError, match="matplotlib"):
        draw(two_sizes(), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize(("name", "starts"), [("a.png", b"\x89PNG"), ("b.SVG", b"<?xml")])
def test_the_suffix_chooses_the_format(tmp_path, name, starts):
    path = tmp_path / name
    draw(two_sizes(), path)
    assert path.read_bytes().startswith(starts)


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_results_give_the_same_bytes(kind):
    one, two = (plots.chart_bytes(charts(two_sizes()), kind) for _ in range(2))
    assert one == two


@pytest.mark.usefixtures("matplotlib")
def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(CudalabError, match="cannot be written"):
        draw(two_sizes(), tmp_path / "none" / "a.png")


def drawn(chart, draw):
    """The axes on which a chart is drawn."""
    _, figure_type = plots._matplotlib()
    axes = figure_type().add_subplot()
    draw(axes, chart)
    return axes


@pytest.mark.usefixtures("matplotlib")
def test_lines_differ_without_colours():
    names = [f"v{i}" for i in range(len(plots.MARKS) * 2)]
    tables = [table([row(name, n / 1024) for name in names], n=n) for n in (1024, 2048)]
    over, _ = charts(document(*tables))
    axes = drawn(over, plots._draw_over_sizes)
    lines = [container.lines[0] for container in axes.containers]
    assert len(lines) == len(names)
    looks = {(line.get_marker(), line.get_linestyle()) for line in lines[: len(plots.MARKS)]}
    assert len(looks) == len(plots.MARKS)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


@pytest.mark.usefixtures("matplotlib")
def test_noise_larger_than_a_time_stays_on_the_scale():
    line = plots.Line("noisy", [1.0, 2.0], [1.0, 2.0], [5.0, 0.1])
    axes = drawn(plots.OverSizes("t", "n", "ms", [line]), plots._draw_over_sizes)
    (bars,) = axes.containers[0].lines[2]
    lowest = min(low for (_, low), _ in bars.get_segments())
    assert lowest == pytest.approx(0.1)


@pytest.mark.usefixtures("matplotlib")
def test_baselines_are_hatched_and_the_ceiling_is_dashed():
    document_ = document(table([row("tree", 1.0), row("cub", 0.5, kind="baseline")]))
    axes = drawn(charts(document_)[0], plots._draw_ladder)
    assert [bar.get_hatch() for bar in axes.patches] == [None, "///"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["tree", "cub"]
    (ceiling,) = axes.get_lines()
    assert ceiling.get_linestyle() == "--"
    assert set(ceiling.get_xdata()) == {100}
    assert "dashed: measured copy, 100 GB/s" in axes.get_xlabel()
    assert axes.yaxis_inverted()


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize(("times", "scale"), [((1.0, 2.0), "linear"), ((1.0, 4000.0), "log")])
def test_a_wide_range_takes_a_logarithmic_scale(times, scale):
    rungs = [plots.Rung(str(t), 1 / t, "") for t in times]
    axes = drawn(
        plots.Ladder("t", "GB/s", [*rungs, plots.Rung("wrong", None, "WRONG")]), plots._draw_ladder
    )
    assert axes.get_xscale() == scale
    assert axes.get_xlim()[1] > 1
    assert "WRONG" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(
    ("size", "text"), [(1000, "1,000"), (32, "32"), (1 << 20, "$2^{20}$"), (3 << 20, "3,145,728")]
)
def test_names_of_sizes(size, text):
    assert plots._size_text(float(size)) == text
