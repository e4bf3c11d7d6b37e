"""Charts outside of pages: bars of counts as text in the terminal, and files of pictures.

An .svg is drawn by svg.py; .png and .pdf need matplotlib, which only this module imports, and only
when it draws.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from cudalab.errors import CudalabError, NoDeviceError, UsageError, install_command
from cudalab.output import svg
from cudalab.output.charts import Changes, Columns, Ladder, OverSizes

Array = np.ndarray[Any, Any]

ROWS = 32  # maximum lines of a chart in text; if there are more classes, neighbours share a line
WIDTH = 100  # for a file or a pipe, unless COLUMNS is set
SVG = ".svg"
PICTURES = (SVG, ".png", ".pdf")
TERMINAL = "-"  # the meaning of `--plot` without a file
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Bars:
    """A histogram to draw: counts[i] elements in class i, of `values` neighbouring values each."""

    title: str
    axis: str  # the title of the classes' axis
    counts: Array
    firsts: list[int]  # the first value of each class, then the end of the last one


def check_target(target: str) -> None:
    """Raise an error, before anything is computed, if `target` cannot be drawn."""
    if target == TERMINAL:
        return
    if Path(target).suffix.lower() not in PICTURES:
        raise UsageError(
            f"cannot draw into {target}: the name must end in {', '.join(PICTURES)}",
            hint="--plot without a name draws in the terminal",
        )
    if Path(target).suffix.lower() != SVG:
        _matplotlib()


def draw(bars: Bars, target: str) -> None:
    """Draw on stderr (`TERMINAL`) or into a file."""
    if target == TERMINAL:
        encoding = sys.stderr.encoding or "ascii"
        sys.stderr.write(text(bars, stderr_width(), blocks=_can_encode(_EIGHTHS, encoding)))
    else:
        picture(bars, Path(target))


def text(bars: Bars, width: int, rows: int = ROWS, *, blocks: bool = True) -> str:
    """A chart in lines of at most `width` characters; with `blocks`, bars have eighths."""
    # Neighbouring classes are added up so that at most `rows` are left.
    starts = np.arange(0, len(bars.counts), -(-len(bars.counts) // rows))
    counts = np.add.reduceat(bars.counts.astype(np.int64), starts)
    firsts = [*(bars.firsts[i] for i in starts.tolist()), bars.firsts[-1]]
    labels = [
        str(first) if last == first else f"{first}-{last}"
        for first, last in zip(firsts, (f - 1 for f in firsts[1:]), strict=False)
    ]
    numbers = [f"{count:,}" for count in counts]
    label_width = max(len(bars.axis), *map(len, labels))
    number_width = max(len("count"), *map(len, numbers))
    room = max(width - label_width - number_width - 4, 1)
    max_count = max(int(counts.max()), 1)
    lines = [bars.title[:width], f"{bars.axis:>{label_width}}  {'count':>{number_width}}"]
    for label, number, count in zip(labels, numbers, counts.tolist(), strict=True):
        bar = _bar(count, max_count, room, blocks=blocks)
        lines.append(f"{label:>{label_width}}  {number:>{number_width}}  {bar}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def picture(bars: Bars, path: Path) -> None:
    """Write a bar chart; the suffix of `path` chooses the format."""
    if path.suffix.lower() == SVG:
        labels = [str(first) for first in bars.firsts[:-1]]
        columns = Columns(bars.title, bars.axis, labels, bars.counts.tolist())
        _write(path, svg.file([columns]).encode())
        return
    _, figure_type = _matplotlib()
    figure = figure_type(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.stairs(bars.counts, bars.firsts, fill=True)
    axes.set(title=bars.title, xlabel=bars.axis, ylabel="count", xlim=(0, bars.firsts[-1]))
    _write(path, _saved(figure, path))


def _saved(figure: Any, path: Path) -> bytes:
    """The bytes of a .png or .pdf; without a date, equal charts give equal bytes."""
    kind = path.suffix.lower().removeprefix(".")
    target = BytesIO()
    metadata = {"CreationDate": None} if kind == "pdf" else None
    figure.savefig(target, format=kind, dpi=150, metadata=metadata)
    return target.getvalue()


def _write(path: Path, picture: bytes) -> None:
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None


# Charts of results ------------------------------------------------------------------------------

# In black and white, lines differ by their marks and dashes, bars by their hatching.
MARKS = "os^vDPX*<>phd8"
DASHES = ("-", "--", "-.", ":")
VARIANT_COLOR, BASELINE_COLOR = "#4477aa", "#ddddcc"
INK = "#222222"
CHART_WIDTH = 9.0  # inches
MAX_TICKS = 10  # up to this number of sizes, each has its own tick
TITLE_CHARACTERS = 90  # characters of a title that fit in the width
LEGEND_LINES = 14  # lines of the legend that fit beside a chart of the usual height


def write_charts(charts: Sequence[OverSizes | Ladder | Changes], path: Path) -> None:
    """Write one picture with all charts, top to bottom; the suffix of `path` chooses the format."""
    if not charts:
        raise CudalabError("there is nothing to draw", hint="no row has a time")
    if path.suffix.lower() == SVG:
        _write(path, svg.file(charts).encode())
        return
    mpl, figure_type = _matplotlib()
    heights = [_height(chart) for chart in charts]
    with mpl.rc_context({"hatch.linewidth": 0.6}):
        figure = figure_type(figsize=(CHART_WIDTH, sum(heights)), layout="constrained")
        all_axes = figure.subplots(len(charts), squeeze=False, height_ratios=heights)
        for axes, chart in zip(all_axes[:, 0], charts, strict=True):
            if isinstance(chart, Ladder):
                _draw_ladder(axes, chart)
            elif isinstance(chart, Changes):
                _draw_changes(axes, chart)
            else:
                _draw_over_sizes(axes, chart)
        picture = _saved(figure, path)
    _write(path, picture)


def _height(chart: OverSizes | Ladder | Changes) -> float:
    """The height in inches: room for every bar, or for the legend."""
    if isinstance(chart, Ladder):
        return 1.2 + 0.3 * len(chart.rungs)
    if isinstance(chart, Changes):
        return 1.2 + 0.3 * len(chart.rows)
    return 4.2 + 0.22 * max(len(chart.lines) - LEGEND_LINES, 0)


def _draw_over_sizes(axes: Any, chart: OverSizes) -> None:
    axes.set_title(fill(chart.title, TITLE_CHARACTERS), loc="left", fontsize="medium")
    axes.set(xscale="log", yscale="log", xlabel=chart.x_label, ylabel=chart.y_label)
    for number, line in enumerate(chart.lines):
        axes.errorbar(
            line.x,
            line.y,
            # On a logarithmic scale an error bar must stay above zero.
            yerr=[[min(s, 0.9 * y) for s, y in zip(line.spread, line.y, strict=True)], line.spread],
            label=line.label,
            marker=MARKS[number % len(MARKS)],
            linestyle=DASHES[number % len(DASHES)],
            markerfacecolor="white" if line.baseline else None,
            markersize=5,
            linewidth=1.2,
            capsize=2,
        )
    if chart.floor:
        axes.plot(
            chart.floor.x, chart.floor.y, label=chart.floor.label, color=INK, linestyle=(0, (1, 2))
        )
    places = sorted({x for line in chart.lines for x in line.x})
    if len(places) <= MAX_TICKS:
        axes.set_xticks(places, [_size_text(x) for x in places])
        axes.set_xticks([], minor=True)
    axes.grid(which="major", linewidth=0.4, alpha=0.6)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small", frameon=False)


def _size_text(x: float) -> str:
    """A size as text; large powers of two are written as powers."""
    n = int(x)
    return f"$2^{{{n.bit_length() - 1}}}$" if n >= 4096 and n & (n - 1) == 0 else f"{n:,}"


def _draw_ladder(axes: Any, chart: Ladder) -> None:
    for place, rung in enumerate(chart.rungs):
        value = rung.value or 0.0
        axes.barh(
            place,
            value,
            height=0.7,
            color=BASELINE_COLOR if rung.baseline else VARIANT_COLOR,
            edgecolor=INK,
            linewidth=0.8,
            hatch="///" if rung.baseline else None,
        )
        axes.annotate(
            rung.text,
            (value, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
    axes.set_title(fill(chart.title, TITLE_CHARACTERS), loc="left", fontsize="medium")
    axes.set_yticks(range(len(chart.rungs)), [rung.label for rung in chart.rungs])
    axes.invert_yaxis()  # the first rung on top
    label = chart.x_label
    if chart.ceiling:
        limit, name = chart.ceiling
        axes.axvline(limit, color=INK, linestyle="--", linewidth=1.2)
        label += f"; dashed: {name}"
    axes.set(xlabel=label, xlim=(0, 1.2 * chart.longest))  # with room for the texts


def _draw_changes(axes: Any, chart: Changes) -> None:
    axes.axvspan(-chart.band, chart.band, color=INK, alpha=0.08, linewidth=0)
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, row in enumerate(chart.rows):
        low, high = row.interval
        reach = [[row.percent - low], [high - row.percent]]
        axes.errorbar(row.percent, place, xerr=reach, fmt="o", color=VARIANT_COLOR, capsize=3)
        axes.annotate(
            row.text, (1, place), (6, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    axes.set_title(fill(chart.title, TITLE_CHARACTERS), loc="left", fontsize="medium")
    axes.set_yticks(range(len(chart.rows)), [row.label for row in chart.rows])
    low, high = chart.ends
    room = 0.03 * (high - low)
    axes.set(xlabel=chart.x_label, xlim=(low - room, high + room))
    axes.set_ylim(len(chart.rows) - 0.4, -0.6)  # the first row on top


def stderr_width() -> int:
    """The width of stderr: COLUMNS, else the terminal's width, else WIDTH."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(2).columns or WIDTH
    except OSError:
        return WIDTH


def _bar(count: int, max_count: int, room: int, *, blocks: bool) -> str:
    """A bar, `room` characters long for `max_count`; a count above zero is always visible."""
    if not blocks:
        return "#" * max(count * room // max_count, min(count, 1))
    eighths = max(count * room * 8 // max_count, min(count, 1))
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _can_encode(characters: str, encoding: str) -> bool:
    try:
        characters.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _matplotlib() -> tuple[Any, Any]:
    """The module and its Figure, which needs no display (pyplot would look for one)."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise NoDeviceError(
            "matplotlib, which draws .png and .pdf, is not installed",
            hint=f"{install_command('plot')}, or a file called .svg, which does not need it",
        ) from None
    return mpl, Figure
