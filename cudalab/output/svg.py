"""Draws charts as SVG, for pages and for files; no other package is needed.

Text and axes have the colour of the text around the picture, and the other colours stand out on
white as on black, so a picture suits a light and a dark page.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from html import escape
from textwrap import wrap

from cudalab.output.charts import Changes, Chart, Columns, Ladder, Line, OverSizes, Roofline

WIDTH = 560  # of every picture, in its own unit, which is a pixel if nothing scales it
PLOT_HEIGHT = 250
LETTER = 6.6  # mean width of a letter of the 12-pixel font
LINE_HEIGHT = 17
BAR_HEIGHT = 22
TITLE_LETTERS = 72  # letters of a bold title that fit in the width
FONT = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"

HALO = ' style="paint-order:stroke;stroke:var(--card,#fff);stroke-width:4px"'

# In black and white, lines differ by their marks and dashes, bars by their outlines.
COLORS = ("#3b7dd8", "#d2691e", "#2f9156", "#9a5fd0", "#d64550", "#1c8f9c", "#a07a10")
MARKS = (
    "M-3.5 0c0-4.66 7-4.66 7 0c0 4.66-7 4.66-7 0z",  # circle
    "M-3-3h6v6h-6z",  # square
    "M0-4.2l4 7.2h-8z",  # triangle
    "M0-4.5l4.5 4.5-4.5 4.5-4.5-4.5z",  # diamond
    "M0 4.2l4-7.2h-8z",  # triangle on its tip
)
DASHES = ("", "7 3", "2 3", "8 3 2 3")
NARROW = 4.0  # the minimum ratio of an axis' ends
FEW_TICKS = 3  # if powers of ten give fewer, values between them are marked too
MAX_TICKS = 8  # if there are more sizes, powers of ten are marked instead
MAX_COLUMN_LABELS = 12


def picture(chart: Chart) -> str:
    """An SVG element for a page; the page shows the title."""
    body, height = _drawn(chart)
    return (
        f'<svg role="img" aria-label="{escape(chart.title)}" viewBox="0 0 {WIDTH} {height:.1f}" '
        f'style="font:{FONT}">{body}</svg>'
    )


def file(charts: Sequence[Chart]) -> str:
    """A file of its own: all charts with their titles, on white."""
    parts, top = [], 0.0
    for chart in charts:
        lines = wrap(chart.title, TITLE_LETTERS)
        for line in lines:
            top += LINE_HEIGHT
            parts.append(_text(0, top, line, bold=True))
        body, height = _drawn(chart)
        parts.append(f'<g transform="translate(0 {top + 8:.1f})">{body}</g>')
        top += height + 30
    frame = f'<rect x="-12" y="-8" width="{WIDTH + 24}" height="{top + 8:.1f}" fill="#fff"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 24}" height="{top + 8:.0f}" '
        f'viewBox="-12 -8 {WIDTH + 24} {top + 8:.1f}" style="color:#1d1f24;font:{FONT}">'
        + "".join([frame, *parts])
        + "</svg>\n"
    )


def _drawn(chart: Chart) -> tuple[str, float]:
    """The elements of a chart, and their height."""
    if isinstance(chart, OverSizes):
        return _over_sizes(chart)
    if isinstance(chart, Ladder):
        return _ladder(chart)
    if isinstance(chart, Changes):
        return _changes(chart)
    return _columns(chart) if isinstance(chart, Columns) else _roofline(chart)


# Shapes ------------------------------------------------------------------------------------------


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False, halo: bool = False
) -> str:
    """A text; a halo sets it off from the lines behind it."""
    look = "" if anchor == "start" else f' text-anchor="{anchor}"'
    look += ' font-weight="600"' if bold else ""
    look += HALO if halo else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="currentColor"{look}>{escape(text)}</text>'


def _room(x: float, text: str) -> float:
    """Where a text begins that shall stand at x, but not run off the right edge."""
    return max(0, min(x, WIDTH - LETTER * len(text)))


def _stroke(path: str, color: str = "currentColor", *, dashes: str = "", width: float = 1) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{dashed}/>'


def _faint(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.18"/>'


def _mark(x: float, y: float, number: int, *, hollow: bool) -> str:
    color = COLORS[number % len(COLORS)]
    fill = "none" if hollow else color
    return (
        f'<path d="{MARKS[number % len(MARKS)]}" transform="translate({x:.1f} {y:.1f})" '
        f'fill="{fill}" stroke="{color}" stroke-width="1.4"/>'
    )


# Axes --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """Maps the values from `low` to `high` to pixels."""

    low: float
    high: float
    begin: float
    end: float
    _: KW_ONLY
    log: bool = True

    def at(self, value: float) -> float:
        """The place of a value; values outside are moved to the nearest end."""
        value = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round values between both ends."""
        if not self.log:
            step = _round_step((self.high - self.low) / 4)
            first, last = math.ceil(self.low / step), int(self.high / step * (1 + 1e-9))
            return [i * step for i in range(first, last + 1)]
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ticks: list[float] = []
        for factors in ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 7)):
            every = (k * 10.0**exponent for exponent in exponents for k in factors)
            ticks = [tick for tick in every if self.low <= tick * (1 + 1e-9) and tick <= self.high]
            if len(ticks) >= FEW_TICKS:
                break
        return ticks


def _round_step(minimum: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least `minimum`."""
    power = 10.0 ** math.floor(math.log10(minimum))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= minimum * (1 - 1e-9))


def _log_axis(values: Iterable[float], begin: float, end: float) -> _Axis:
    """A logarithmic axis with some room around the values."""
    values = list(values)
    low, high = min(values), max(values)
    room = max((high / low) ** 0.06, 1.25, (NARROW / (high / low)) ** 0.5)
    return _Axis(low / room, high * room, begin, end)


def tick_text(value: float) -> str:
    """A tick in few letters: large powers of two, and large and tiny numbers, as powers."""
    whole = round(value)
    if whole >= 4096 and whole == value and whole & (whole - 1) == 0:
        return f"2{_superscript(whole.bit_length() - 1)}"
    if value and not 1e-3 <= value < 1e4:
        factor, exponent = f"{value:.2e}".split("e")
        power = f"10{_superscript(int(exponent))}"
        factor = factor.rstrip("0").rstrip(".")
        return power if factor == "1" else f"{factor}·{power}"
    return f"{value:,.0f}" if value == whole else f"{value:.3g}"


def _superscript(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _frame(
    x: _Axis, y: _Axis, x_ticks: Sequence[float], labels: tuple[str, str], bottom: float
) -> list[str]:
    """Grid lines, the texts of the ticks and the labels of both axes; y's label is on top."""
    parts = []
    for value in x_ticks:
        at = x.at(value)
        parts.append(_faint(f"M{at:.1f} {y.end:.1f}V{bottom:.1f}"))
        parts.append(_text(at, bottom + 16, tick_text(value), anchor="middle"))
    for value in y.ticks():
        at = y.at(value)
        parts.append(_faint(f"M{x.begin:.1f} {at:.1f}H{x.end:.1f}"))
        parts.append(_text(x.begin - 6, at + 4, tick_text(value), anchor="end"))
    parts.append(_stroke(f"M{x.begin:.1f} {y.end:.1f}V{bottom:.1f}H{x.end:.1f}"))
    parts.append(_text(x.end, bottom + 33, labels[0], anchor="end"))
    parts.append(_text(0, 10, labels[1]))
    return parts


# Charts ------------------------------------------------------------------------------------------

LEFT, TOP = 46.0, 20.0


def _over_sizes(chart: OverSizes) -> tuple[str, float]:
    """Lines with error bars; the legend is below."""
    lines = chart.lines + ([chart.floor] if chart.floor else [])
    sizes = sorted({value for line in chart.lines for value in line.x})
    x = _log_axis(sizes, LEFT, WIDTH - 8)
    bottom = TOP + PLOT_HEIGHT
    y = _log_axis((value for line in lines for value in line.y), bottom, TOP)
    ticks = sizes if len(sizes) <= MAX_TICKS else x.ticks()
    parts = _frame(x, y, ticks, (chart.x_label, chart.y_label), bottom)
    entries = []
    for number, line in enumerate(chart.lines):
        parts += _line(line, number, x, y)
        entries.append((line.label, _sample(number, hollow=line.baseline)))
    if chart.floor:
        parts.append(_stroke(_path(chart.floor, x, y), dashes="1 3", width=1.5))
        entries.append((chart.floor.label, _stroke("M0 -4H26", dashes="1 3", width=1.5)))
    legend, height = _legend(entries, bottom + 54)
    return "".join([*parts, *legend]), height


def _path(line: Line, x: _Axis, y: _Axis) -> str:
    places = [f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in zip(line.x, line.y, strict=True)]
    return "M" + "L".join(places)


def _line(line: Line, number: int, x: _Axis, y: _Axis) -> list[str]:
    color = COLORS[number % len(COLORS)]
    parts = [_stroke(_path(line, x, y), color, dashes=DASHES[number % len(DASHES)], width=1.4)]
    for value, middle, spread in zip(line.x, line.y, line.spread, strict=True):
        at, low, high = x.at(value), y.at(middle - spread), y.at(middle + spread)
        bar = f"M{at - 3:.1f} {low:.1f}h6m-3 0V{high:.1f}m-3 0h6"
        parts.append(_stroke(bar, color))
        parts.append(_mark(at, y.at(middle), number, hollow=line.baseline))
    return parts


def _sample(number: int, *, hollow: bool) -> str:
    """A piece of a line, for the legend."""
    color, dashes = COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]
    return _stroke("M0 -4H26", color, dashes=dashes, width=1.4) + _mark(
        13, -4, number, hollow=hollow
    )


def _legend(entries: Sequence[tuple[str, str]], top: float) -> tuple[list[str], float]:
    """The entries in as many columns as fit, and where they end."""
    widest = 34 + LETTER * max(len(label) for label, _ in entries) + 14
    columns = max(int((WIDTH - LEFT) // widest), 1)
    rows = -(-len(entries) // columns)
    parts = []
    for number, (label, sample) in enumerate(entries):
        column, row = divmod(number, rows)
        left, at = LEFT + column * (WIDTH - LEFT) / columns, top + row * LINE_HEIGHT
        parts.append(f'<g transform="translate({left:.1f} {at:.1f})">{sample}</g>')
        parts.append(_text(left + 34, at, label))
    return parts, top + rows * LINE_HEIGHT - 8


def _ladder(chart: Ladder) -> tuple[str, float]:
    """Bars with their texts; baselines are hollow."""
    left = min(
        max((len(rung.label) for rung in chart.rungs), default=0) * LETTER + 16, 0.45 * WIDTH
    )
    texts = max((len(rung.text) for rung in chart.rungs), default=0) * LETTER + 10
    axis = _Axis(0, chart.longest, left, WIDTH - texts, log=False)
    bottom = BAR_HEIGHT * len(chart.rungs) + 6.0
    parts = []
    label = chart.x_label
    if chart.ceiling:
        value, name = chart.ceiling
        parts.append(_stroke(f"M{axis.at(value):.1f} 0V{bottom:.1f}", dashes="5 3", width=1.4))
        label += f"; dashed: {name}"
    for place, rung in enumerate(chart.rungs):
        top = 3.0 + BAR_HEIGHT * place
        end = axis.at(rung.value) if rung.value else left
        fill = 'fill="none"' if rung.baseline else f'fill="{COLORS[0]}"'
        parts.append(_text(left - 8, top + 14, rung.label, anchor="end"))
        parts.append(
            f'<rect x="{left:.1f}" y="{top + 2:.1f}" width="{end - left:.1f}" '
            f'height="{BAR_HEIGHT - 6}" {fill} stroke="{COLORS[0]}"/>'
        )
        if rung.range:
            low, end = map(axis.at, rung.range)
            middle = top + 2 + (BAR_HEIGHT - 6) / 2
            parts.append(
                _stroke(f"M{low:.1f} {middle:.1f}H{end:.1f}m0 -4v8M{low:.1f} {middle - 4:.1f}v8")
            )
        parts.append(_text(end + 6, top + 14, rung.text, halo=True))
    parts.append(_stroke(f"M{left:.1f} 0V{bottom:.1f}"))
    if not label:
        return "".join(parts), bottom + 4
    for value in axis.ticks():
        at = axis.at(value)
        parts.append(_stroke(f"M{at:.1f} {bottom:.1f}v4"))
        parts.append(_text(at, bottom + 17, tick_text(value), anchor="middle"))
    parts.append(_stroke(f"M{left:.1f} {bottom:.1f}H{axis.end:.1f}"))
    parts.append(_text(_room(left, label), bottom + 34, label))
    return "".join(parts), bottom + 42


def _changes(chart: Changes) -> tuple[str, float]:
    """Dots with intervals around 0, over a band of changes that count as none."""
    left = min(max(len(row.label) for row in chart.rows) * LETTER + 16, 0.5 * WIDTH)
    texts = max(len(row.text) for row in chart.rows) * LETTER + 10
    axis = _Axis(*chart.ends, left, WIDTH - texts, log=False)
    bottom = BAR_HEIGHT * len(chart.rows) + 6.0
    begin, end = axis.at(-chart.band), axis.at(chart.band)
    band = f'x="{begin:.1f}" y="0" width="{end - begin:.1f}" height="{bottom:.1f}"'
    parts = [
        f'<rect {band} fill="currentColor" fill-opacity="0.08"/>',
        _stroke(f"M{axis.at(0):.1f} 0V{bottom:.1f}"),
    ]
    for place, row in enumerate(chart.rows):
        middle = 3.0 + BAR_HEIGHT * (place + 0.5)
        low, high = map(axis.at, row.interval)
        parts.append(_text(left - 8, middle + 4, row.label, anchor="end"))
        bar = f"M{low:.1f} {middle:.1f}H{high:.1f}m0 -4v8M{low:.1f} {middle - 4:.1f}v8"
        parts.append(_stroke(bar, COLORS[0], width=1.4))
        parts.append(_mark(axis.at(row.percent), middle, 0, hollow=False))
        parts.append(_text(axis.end + 8, middle + 4, row.text))
    for value in axis.ticks():
        parts.append(_stroke(f"M{axis.at(value):.1f} {bottom:.1f}v4"))
        text = f"{float(f'{value:.3g}'):+,g}" if abs(value) < 1e6 else f"{value:+.3g}"
        text = text if value else "0"
        parts.append(_text(axis.at(value), bottom + 17, text, anchor="middle"))
    parts.append(_stroke(f"M{left:.1f} {bottom:.1f}H{axis.end:.1f}"))
    parts.append(_text(_room(axis.begin, chart.x_label), bottom + 34, chart.x_label))
    return "".join(parts), bottom + 42


def _columns(chart: Columns) -> tuple[str, float]:
    """Columns with their counts above them, if there is room for texts."""
    step = WIDTH / max(len(chart.labels), 1)
    tallest = max(*chart.counts, 1)
    texts = step > 4 * LETTER
    every = -(-len(chart.labels) // MAX_COLUMN_LABELS)
    bottom = TOP + PLOT_HEIGHT / 2
    gap = min(3.0, step / 8)
    parts = []
    for number, (label, count) in enumerate(zip(chart.labels, chart.counts, strict=True)):
        height = (bottom - TOP) * count / tallest
        left, middle = number * step, (number + 0.5) * step
        parts.append(
            f'<rect x="{left + gap:.1f}" y="{bottom - height:.1f}" width="{step - 2 * gap:.1f}" '
            f'height="{height:.1f}" fill="{COLORS[0]}"/>'
        )
        if texts and count:
            parts.append(_text(middle, bottom - height - 4, f"{count:,}", anchor="middle"))
        if number % every == 0:
            parts.append(_text(middle, bottom + 16, label, anchor="middle"))
    if not texts:
        parts.append(_text(0, 10, f"max. {tallest:,}"))
    parts.append(_stroke(f"M0 {bottom:.1f}H{WIDTH}"))
    parts.append(_text(WIDTH, bottom + 33, chart.x_label, anchor="end"))
    return "".join(parts), bottom + (40 if chart.x_label else 22)


def _roofline(chart: Roofline) -> tuple[str, float]:
    """Points with their names to the right, below a roof of two straight lines."""
    roof, points = chart.roof, chart.points
    names = LETTER * max(len(point.label) for point in points) + 34
    bottom = TOP + max(PLOT_HEIGHT, LINE_HEIGHT * len(points) + 20)
    ridge = [roof.flat / roof.slope] if roof.flat else []
    x = _log_axis([*(point.x for point in points), *ridge], LEFT, WIDTH - names)
    highest = [roof.at(point.x) for point in points]
    y = _log_axis([*(point.y for point in points), *highest], bottom, TOP)
    parts = _frame(x, y, x.ticks(), (chart.x_label, chart.y_label), bottom)
    corners = [max(x.low, y.low / roof.slope), *ridge, x.high]
    path = "L".join(f"{x.at(at):.1f} {y.at(roof.at(at)):.1f}" for at in sorted(corners))
    parts.append(_stroke(f"M{path}", width=1.6))
    at_right = sorted(range(len(points)), key=lambda i: -points[i].y)
    places = _apart([y.at(points[i].y) + 4 for i in at_right], LINE_HEIGHT - 3, bottom)
    for place, number in zip(places, at_right, strict=True):
        point = points[number]
        left, at = x.at(point.x), y.at(point.y)
        parts.append(_faint(f"M{left + 5:.1f} {at:.1f}L{x.end + 4:.1f} {place - 4:.1f}h6"))
        for mark in ((left, at), (x.end + 15, place - 4)):
            parts.append(_mark(*mark, number, hollow=point.baseline))
        parts.append(_text(x.end + 24, place, point.label))
    parts.append(_stroke(f"M{LEFT:.1f} {bottom + 48:.1f}h26", width=1.6))
    parts.append(_text(LEFT + 34, bottom + 52, ", ".join(roof.names)))
    return "".join(parts), bottom + 60


def _apart(places: Sequence[float], distance: float, bottom: float) -> list[float]:
    """Ascending places, moved so that neighbours are `distance` apart and none is below."""
    result: list[float] = []
    for place in places:
        result.append(max(place, result[-1] + distance) if result else place)
    limit = bottom
    for i in reversed(range(len(result))):
        result[i] = min(result[i], limit)
        limit = result[i] - distance
    return result
