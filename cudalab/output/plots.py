"""Charts outside of pages: bars of counts as text in the terminal, and files of pictures.

All pictures are drawn by svg.py; for .png and .pdf matplotlib paints what that has drawn. Only this
module imports it, and only then.
"""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from cudalab.errors import CudalabError, NoDeviceError, UsageError, install_command
from cudalab.output import svg
from cudalab.output.charts import Chart, Columns

Array = np.ndarray[Any, Any]

ROWS = 32  # maximum lines of a chart in text; if there are more classes, neighbours share a line
COLUMNS = 512  # maximum columns of a picture, likewise
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


def check_target(target: str, hint: str | None = None) -> None:
    """Raise an error, before anything is computed, if `target` cannot be drawn."""
    if target == TERMINAL:
        return
    if Path(target).suffix.lower() not in PICTURES:
        raise UsageError(
            f"cannot draw into {target}: the name must end in {', '.join(PICTURES)}", hint
        )
    if Path(target).suffix.lower() != SVG:
        _check_matplotlib()


def draw(bars: Bars, target: str) -> None:
    """Draw on stderr (`TERMINAL`) or into a file."""
    if target == TERMINAL:
        encoding = sys.stderr.encoding or "ascii"
        sys.stderr.write(text(bars, stderr_width(), blocks=_can_encode(_EIGHTHS, encoding)))
    else:
        picture(bars, Path(target))


def text(bars: Bars, width: int, rows: int = ROWS, *, blocks: bool = True) -> str:
    """A chart in lines of at most `width` characters; with `blocks`, bars have eighths."""
    firsts, counts = _merged(bars, rows)
    labels = [
        str(first) if last == first else f"{first}-{last}"
        for first, last in zip(firsts, (f - 1 for f in firsts[1:]), strict=False)
    ]
    numbers = [f"{count:,}" for count in counts]
    label_width = max(len(bars.axis), *map(len, labels))
    number_width = max(len("count"), *map(len, numbers))
    room = max(width - label_width - number_width - 4, 1)
    max_count = max(*counts, 1)
    lines = [bars.title[:width], f"{bars.axis:>{label_width}}  {'count':>{number_width}}"]
    for label, number, count in zip(labels, numbers, counts, strict=True):
        bar = _bar(count, max_count, room, blocks=blocks)
        lines.append(f"{label:>{label_width}}  {number:>{number_width}}  {bar}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def picture(bars: Bars, path: Path) -> None:
    """Write a bar chart; the suffix of `path` chooses the format."""
    firsts, counts = _merged(bars, COLUMNS)
    labels = [str(first) for first in firsts[:-1]]
    write_charts([Columns(bars.title, bars.axis, labels, counts)], path)


def _merged(bars: Bars, most: int) -> tuple[list[int], list[int]]:
    """First values and counts of at most so many classes: neighbours are added up."""
    starts = np.arange(0, len(bars.counts), -(-len(bars.counts) // most))
    counts = np.add.reduceat(bars.counts.astype(np.int64), starts)
    return [*(bars.firsts[i] for i in starts.tolist()), bars.firsts[-1]], counts.tolist()


def write_charts(charts: Sequence[Chart], path: Path) -> None:
    """Write one picture with all charts, top to bottom; the suffix of `path` chooses the format."""
    if not charts:
        raise CudalabError("there is nothing to draw", hint="no row has a time")
    drawing, kind = svg.file(charts), path.suffix.lower()
    picture = drawing.encode() if kind == SVG else _painted(drawing, kind.removeprefix("."))
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None


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


# What svg.py has drawn, through matplotlib -------------------------------------------------------

PER_INCH = 96  # units of a drawing
POINT = 72 / PER_INCH  # of a unit
FONT_POINTS = 8.5  # in which matplotlib's font is as wide as svg.py assumes
PAPER, INK = "white", "#1d1f24"


def _check_matplotlib() -> None:
    """Raise NoDeviceError without matplotlib."""
    try:
        import matplotlib as mpl  # noqa: PLC0415, F401 - an extra, and slow to import
    except ImportError:
        raise NoDeviceError(
            "matplotlib, which draws .png and .pdf, is not installed",
            hint=f"{install_command('plot')}, or a file called .svg, which does not need it",
        ) from None


def _painted(drawing: str, kind: str) -> bytes:
    """The drawing as .png or .pdf; without a date, equal charts give equal bytes."""
    target = BytesIO()
    metadata = {"CreationDate": None} if kind == "pdf" else None
    figure_of(drawing).savefig(target, format=kind, dpi=2 * PER_INCH, metadata=metadata)
    return target.getvalue()


def figure_of(drawing: str) -> Any:
    """The figure of matplotlib for an SVG, as far as svg.py makes use of SVG."""
    _check_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - needs no display, as pyplot would

    root = ET.fromstring(drawing)  # noqa: S314 - it is ours
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    figure = Figure(figsize=(width / PER_INCH, height / PER_INCH), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(left, left + width), ylim=(top + height, top))
    axes.axis("off")
    for element in root:
        _paint(axes, element, 0.0, 0.0)
    return figure


def _paint(axes: Any, element: ET.Element, x: float, y: float) -> None:
    """Paint an element, and those in it, at a place."""
    from matplotlib import patches, path, patheffects, transforms  # noqa: PLC0415 - as above

    given = element.attrib
    if moved := re.fullmatch(r"translate\((\S+) (\S+)\)", given.get("transform", "")):
        x, y = x + float(moved[1]), y + float(moved[2])
    match element.tag.rpartition("}")[2]:
        case "g":
            for inner in element:
                _paint(axes, inner, x, y)
        case "text":
            halo = [patheffects.withStroke(linewidth=4 * POINT, foreground=PAPER)]
            axes.text(
                x + float(given["x"]), y + float(given["y"]), element.text or "", color=INK,
                fontsize=FONT_POINTS, parse_math=False,
                horizontalalignment={"middle": "center", "end": "right"}.get(
                    given.get("text-anchor", ""), "left"
                ),
                fontweight="bold" if "font-weight" in given else "normal",
                path_effects=halo if "style" in given else None,
            )  # fmt: skip
        case "rect":
            sides = (float(given[side]) for side in ("width", "height"))
            place = x + float(given["x"]), y + float(given["y"])
            axes.add_patch(patches.Rectangle(place, *sides, **_look(given)))
        case "path":
            shape = path.Path(*_outline(given["d"]))
            at = transforms.Affine2D().translate(x, y) + axes.transData
            axes.add_patch(patches.PathPatch(shape, transform=at, **_look(given)))


def _look(given: dict[str, str]) -> dict[str, Any]:
    """How a shape is filled and outlined."""

    def color(kind: str) -> tuple[str, float]:
        name = given.get(kind, "none")
        opacity = float(given.get(f"{kind}-opacity", "1"))
        return (INK if name == "currentColor" else name, opacity)

    width = float(given.get("stroke-width", "1"))
    dashes = [float(dash) / width for dash in given.get("stroke-dasharray", "").split()]
    return {
        "facecolor": color("fill"),
        "edgecolor": color("stroke"),
        "linewidth": POINT * width,
        "linestyle": (0, dashes) if dashes else "-",
    }


def _outline(commands: str) -> tuple[list[tuple[float, float]], list[Any]]:
    """The points of an SVG's path, and what matplotlib is to do at each."""
    from matplotlib.path import Path as Codes  # noqa: PLC0415 - as above

    actions = {"M": Codes.MOVETO, "C": Codes.CURVE4, "Z": Codes.CLOSEPOLY}
    points: list[tuple[float, float]] = [(0.0, 0.0)]
    codes: list[Any] = []
    for letter, text in re.findall(r"([A-Za-z])([^A-Za-z]*)", commands):
        command, is_relative = letter.upper(), letter.islower()
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", text)] or [0.0]
        count = {"H": 1, "V": 1, "Z": 1, "C": 6}.get(command, 2)  # of a point, or of a curve
        for at in range(0, len(numbers), count):
            here, given = points[-1], numbers[at : at + count]
            x, y = here if is_relative else (0.0, 0.0)
            match command:
                case "H":
                    new = [(x + given[0], here[1])]
                case "V":
                    new = [(here[0], y + given[0])]
                case "Z":
                    new = [here]
                case _:
                    pairs = zip(given[::2], given[1::2], strict=True)
                    new = [(x + right, y + down) for right, down in pairs]
            points += new
            codes += [actions.get(command, Codes.LINETO)] * len(new)
    return points[1:], codes
