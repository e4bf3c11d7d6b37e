"""Bars of counts: as text for a terminal, as a picture by matplotlib. Neither is needed to run."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.errors import CudalabError, NoDeviceError, UsageError

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

ROWS = 32  # lines of a drawing in text; neighbouring classes share one where there are more
WIDTH = 100  # of a file or a pipe, where COLUMNS does not say
PICTURES = (".png", ".svg")
TERMINAL = "-"  # what `--plot` without a file means
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Bars:
    """A histogram to draw: counts[i] elements in class i, of `values` neighbouring values each."""

    title: str
    axis: str  # what the classes are classes of
    counts: Array
    firsts: list[int]  # the first value of each class, then the end of the last


def check_target(target: str) -> None:
    """Find out before anything is computed that `target` cannot be drawn."""
    if target == TERMINAL:
        return
    if Path(target).suffix.lower() not in PICTURES:
        raise UsageError(
            f"cannot draw into {target}: the name must end in {' or '.join(PICTURES)}",
            hint="--plot without a name draws in the terminal",
        )
    _matplotlib()


def draw(bars: Bars, target: str) -> None:
    """Draw on stderr (`TERMINAL`) or into a file."""
    if target == TERMINAL:
        encoding = sys.stderr.encoding or "ascii"
        sys.stderr.write(text(bars, stderr_width(), blocks=_can_encode(_EIGHTHS, encoding)))
    else:
        picture(bars, Path(target))


def text(bars: Bars, width: int, rows: int = ROWS, *, blocks: bool = True) -> str:
    """Lines of at most `width` characters: values, count, a bar; `blocks` draws eighths."""
    counts, firsts = _grouped(bars.counts, bars.firsts, rows)
    labels = [
        str(first) if last == first else f"{first}-{last}"
        for first, last in zip(firsts, (f - 1 for f in firsts[1:]), strict=False)
    ]
    numbers = [f"{count:,}" for count in counts]
    label_width = max(len(bars.axis), *map(len, labels))
    number_width = max(len("count"), *map(len, numbers))
    room = max(width - label_width - number_width - 4, 1)
    most = max(int(counts.max()), 1)
    lines = [bars.title[:width], f"{bars.axis:>{label_width}}  {'count':>{number_width}}"]
    for label, number, count in zip(labels, numbers, counts.tolist(), strict=True):
        bar = _bar(count, most, room, blocks=blocks)
        lines.append(f"{label:>{label_width}}  {number:>{number_width}}  {bar}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def picture(bars: Bars, path: Path) -> None:
    """Write a bar chart; the suffix of `path` chooses the format."""
    mpl, figure_type = _matplotlib()
    figure = figure_type(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.stairs(bars.counts, bars.firsts, fill=True)
    axes.set(title=bars.title, xlabel=bars.axis, ylabel="count", xlim=(0, bars.firsts[-1]))
    # No date and no random names inside: the same histogram gives the same file.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
    try:
        with mpl.rc_context({"svg.hashsalt": "cudalab"}):
            figure.savefig(path, dpi=150, metadata=metadata)
    except OSError as error:
        raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None


def stderr_width() -> int:
    """COLUMNS, else the terminal's width, else WIDTH."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(2).columns or WIDTH
    except OSError:
        return WIDTH


def _grouped(counts: Array, firsts: list[int], rows: int) -> tuple[Array, list[int]]:
    """Add up neighbouring classes until there are at most `rows`."""
    per_row = -(-len(counts) // rows)
    starts = np.arange(0, len(counts), per_row)
    sums = np.add.reduceat(counts.astype(np.int64), starts)
    return sums, [*(firsts[i] for i in starts.tolist()), firsts[-1]]


def _bar(count: int, most: int, room: int, *, blocks: bool) -> str:
    """A bar of `room` characters for `most`; a count that is not zero shows."""
    if not blocks:
        return "#" * max(count * room // most, min(count, 1))
    eighths = max(count * room * 8 // most, min(count, 1))
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
            "a picture is drawn by matplotlib, which is not installed",
            hint="pip install 'cudalab[plot]', or --plot without a file name",
        ) from None
    return mpl, Figure
