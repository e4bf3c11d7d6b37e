"""Tables, pages and verdicts on stdout. Only code.py and live.py import rich, too."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Mapping, Sequence
from io import TextIOWrapper
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cudalab.errors import CudalabError
from cudalab.output.page import Commands, Drawing, Heading, Part
from cudalab.output.page import Table as Columns
from cudalab.output.page import Text as Prose
from cudalab.output.prose import MAX_WIDTH, continued, filled, is_pipe

if TYPE_CHECKING:
    from cudalab.output.grid import Grid
    from cudalab.output.listing import Cell

_BELOW: dict[str, Any] = {"subsequent_indent": "      ", "break_long_words": False}
_INDENTED: dict[str, Any] = {"initial_indent": "  ", "subsequent_indent": "    "}
UNLIMITED = 1_000_000  # columns of a file or a pipe, unless COLUMNS is set
MIN_PROSE = 40  # minimum width of a summary in a table
_PLAIN = {
    **dict(zip("─└·█░⋮…µ×−–—≤≥→∞", "-+.#...ux---<>>i", strict=True)),  # noqa: RUF001
    **{power: f"^{digit}" for digit, power in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "±": "+-",
}
MIN_CELL = 16  # width to which cells may be wrapped; below that, rows become paragraphs
LOOKS = {"good": "green", "bad": "red", "alarm": "bold red", "quiet": "dim", "": ""}
MARKS = {"ok": "green", "FAILED": "bold red", "BROKEN": "bold red", "-": "dim"}


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding does not have (an error handler for `codecs`)."""
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in missing), error.end


codecs.register_error("plain", _plain)


def console() -> Console:
    """Stdout, as wide as the terminal; NO_COLOR and pipes get plain text, and pipes whole lines.

    Characters that its encoding lacks are replaced. CudalabError if it is closed.
    """
    if sys.stdout is None:
        raise CudalabError("stdout is closed")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="plain")
    return Console(
        width=UNLIMITED if is_pipe() else None, highlight=False, emoji=False, markup=False
    )


def _unframed(rows: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> None:
    """Print a table for a pipe: a line for each row, in columns, with nothing behind the last."""
    target, count = console(), len(rows[0]) if rows else 0
    widths = [max(cell_len(row[i]) for row in rows) for i in range(count)]
    for row in rows:
        cells = []
        for i, text in enumerate(row):
            space = " " * (widths[i] - cell_len(text))
            cells.append(space + text if right and right[i] else text + space)
        target.print(Text("  ".join(cells).rstrip()), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, or nothing if it has no rows. Columns without any text are left out.

    If the screen is too narrow, each row becomes a paragraph.
    """
    rows = list(rows)
    if not rows:
        return
    target = console()
    columns, *rows = _without_empty(columns, rows)
    if is_pipe():
        target.print(Text(title), soft_wrap=True)
        _unframed([columns, *rows])
        return
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    if sum(min(width, MIN_CELL) + 3 for width in widths[1:]) + widths[0] + 4 > target.width:
        target.print(Text(title, style="bold"))
        _paragraphs(columns, rows)
        return
    grid = Table(title=Text(title, style="bold"), title_justify="left", header_style="bold")
    for name in columns:
        grid.add_column(name, overflow="fold", no_wrap=name == "variant")
    for row in rows:
        grid.add_row(*map(Text, row))
    target.print(grid)


def _without_empty(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The titles and the rows, without columns that are empty in all rows."""
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    return [[row[i] for i in used] for row in (columns, *rows)]


def _paragraphs(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the first cell of each row, and below it the others with their columns' titles."""
    target = console()
    for first, *others in rows:
        number = f"{columns[0]} " if first[:1].isdecimal() else ""
        target.print(Text(number + first, style="bold"))
        for name, text in zip(columns[1:], others, strict=True):
            if text:
                target.print(Text(fill(f"{name}: {text}", target.width, **_INDENTED)))


def catalogue(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], droppable: Sequence[str] = ()
) -> None:
    """Print a table of names with a summary, as wide as the terminal.

    Only the summary is wrapped; without room, `droppable` columns are left out in this order, and
    if that is not enough, each row becomes a paragraph. A pipe gets every column, unwrapped.
    """
    columns, *rows = _without_empty(columns, rows)
    widths = {
        name: max(map(cell_len, (name, *cells)))
        for name, *cells in zip(columns, *rows, strict=True)
    }
    target = console()
    if is_pipe():
        _unframed([columns, *rows])
        return
    needed = {name: min(w, MIN_PROSE) if name == "summary" else w for name, w in widths.items()}
    dropped = []
    for name in droppable:
        if name in needed and sum(needed.values()) + 3 * len(needed) > target.width:
            del needed[name]
            dropped.append(name)
    if sum(needed.values()) + 3 * len(needed) > target.width:
        target.print(Text(title, style="bold"))
        _paragraphs(columns, rows)
        return
    shown = Table(box=SIMPLE_HEAD, show_edge=False)
    shown.title, shown.title_justify = Text(title, style="bold"), "left"
    for name in needed:
        shown.add_column(name, overflow="fold", no_wrap=name != "summary")
    for row in rows:
        cells = zip(columns, row, strict=True)
        shown.add_row(*(Text(text) for name, text in cells if name in needed))
    _unpadded(target, shown)
    if dropped:
        target.print(Text(f"no room here for: {', '.join(dropped)}", style="dim"))


def _unpadded(target: Console, shown: Table, width: int | None = None) -> None:
    """Print a table that has no frame, without the spaces that fill its last column."""
    with target.capture() as printed:
        target.print(shown, width=width)
    for line in printed.get().splitlines():
        target.print(Text.from_ansi(line.rstrip()), soft_wrap=True)


def properties(title: str, values: Mapping[str, str | int | float]) -> None:
    """Print a table of labels and values."""
    texts = {
        label: value if isinstance(value, str) else f"{value:,}" for label, value in values.items()
    }
    target = console()
    if is_pipe():
        target.print(Text(title), soft_wrap=True)
        _unframed([*texts.items()])
        return
    grid = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for label, text in texts.items():
        grid.add_row(label, Text(text))
    target.print(grid)


# explain -----------------------------------------------------------------------------------------


def explanation(title: str, parts: Iterable[Part]) -> None:
    """Print a topic's page: text wrapped to the screen's width or MAX_WIDTH, drawings unchanged."""
    target = console()
    width = min(target.width, MAX_WIDTH)
    for part in (Heading(title + "\n"), *parts):
        if isinstance(part, Columns):
            _table_of_words(target, part, width)
        else:
            for line in _lines_of(part, width):
                target.print(line, soft_wrap=True)
        if not isinstance(part, Heading):  # no empty line below a heading
            target.print()


def _table_of_words(target: Console, part: Columns, width: int) -> None:
    """Print a table between two lines of text; as paragraphs where its words have no room."""
    first, *others = zip(part.columns, *part.rows, strict=True)
    words = [[word for text in texts for word in text.split()] for texts in others]
    widths = [max(map(cell_len, texts)) for texts in (first, *words)]
    if sum(widths) + 3 * len(widths) > width + 1:
        _paragraphs(part.columns, part.rows)
        return
    shown = Table(box=SIMPLE_HEAD, header_style="bold", show_edge=False)
    for column, least in zip(part.columns, widths, strict=True):
        shown.add_column(column, overflow="fold", no_wrap=column == first[0], min_width=least)
    for row in part.rows:
        shown.add_row(*map(Text, row))
    _unpadded(target, shown, width)


def _lines_of(part: Heading | Prose | Drawing | Commands, width: int) -> list[Text]:
    match part:
        case Heading(heading):
            end = "\n" if heading.endswith("\n") else ""
            return [Text(fill(heading, width, break_long_words=False) + end, style="bold")]
        case Prose(paragraphs):
            filled = [fill(each, width, break_long_words=False) for each in paragraphs]
            return [Text("\n\n".join(filled))]
        case Drawing(lines):
            return [Text(line) for line in lines]
        case Commands(lines):
            return [Text("See it happen", style="bold"), *(Text(f"  {line}") for line in lines)]


# bench -------------------------------------------------------------------------------------------


def lines(texts: Iterable[str]) -> None:
    """Print lines of text; long ones are wrapped."""
    target = console()
    for text in texts:
        target.print(Text(filled(text, 2, room=target.width)), soft_wrap=True)


def grid(results: Grid) -> None:
    """Print a table of results; columns that do not fit are dropped, least important first.

    If the required columns do not fit either, the table continues below, in parts that repeat the
    first column.
    """
    target = console()
    columns, dropped = columns_that_fit(results, target.width)
    target.print(Text(fill(results.title, target.width, break_long_words=False), style="bold"))
    if is_pipe():
        titles = [column.title for column in results.columns]
        _unframed([titles, *results.rows], [column.right for column in results.columns])
    else:
        for part in parts_that_fit(results, columns, target.width):
            target.print(_part_of(results, part))
    unneeded = {column.note for i, column in enumerate(results.columns) if i not in columns}
    notes = [note for note in results.notes if note not in unneeded]
    if dropped:
        notes.append(f"no room here for: {', '.join(dropped)}")
    for note in notes:
        for number, line in enumerate(note.splitlines()):
            indent = "  " if number == 0 else "      "
            target.print(Text(fill(line, target.width, initial_indent=indent, **_BELOW)))
    target.print()


def _part_of(results: Grid, columns: Sequence[int]) -> Table:
    """Some columns of a table, by their indices."""
    shown = Table(header_style="bold")
    for column in (results.columns[i] for i in columns):
        side: Literal["left", "right"] = "right" if column.right else "left"
        shown.add_column(Text(column.title), justify=side, no_wrap=True, overflow="ellipsis")
    for number, row in enumerate(results.rows):
        style = "dim" if number in results.faint else ""
        shown.add_row(
            *(Text(row[i], style="bold" if (number, i) in results.best else "") for i in columns),
            style=style,
        )
    return shown


def _widths(results: Grid) -> list[int]:
    """The widths of the columns, including a space on both sides and a line."""
    return [
        max(cell_len(text) for text in (column.title, *(row[i] for row in results.rows))) + 3
        for i, column in enumerate(results.columns)
    ]


def parts_that_fit(results: Grid, columns: Sequence[int], width: int) -> list[list[int]]:
    """Split columns into parts that fit into `width`, each with the first column."""
    widths = _widths(results)
    parts = [[columns[0]]]
    for i in columns[1:]:
        if len(parts[-1]) > 1 and sum(widths[k] for k in (*parts[-1], i)) + 1 > width:
            parts.append([columns[0]])
        parts[-1].append(i)
    return parts


def columns_that_fit(results: Grid, width: int) -> tuple[list[int], list[str]]:
    """The columns that fit into `width`, and the titles of the others."""
    widths = _widths(results)
    columns = list(range(len(widths)))
    droppable = sorted(
        (i for i in columns if results.columns[i].keep < 9),
        key=lambda i: (results.columns[i].keep, -i),
    )
    for i in droppable:
        if sum(widths[k] for k in columns) + 1 <= width:
            break
        columns.remove(i)
    return columns, [column.title for i, column in enumerate(results.columns) if i not in columns]


# check -------------------------------------------------------------------------------------------


def verdict(
    head: str,
    rows: Iterable[tuple[str, str, str, str]],
    explanations: Iterable[tuple[str, Sequence[str]]],
    last: Iterable[Cell],
) -> None:
    """Print a check's verdicts (mark, name, test, message), explanations and last lines."""
    target, rows = console(), list(rows)
    target.print(Text(filled(head, 2, room=target.width)), style="bold")
    if is_pipe():
        _unframed(rows)
    else:
        _marked(target, rows)
    for title, texts in explanations:
        target.print(Text(f"\n{filled(title, 2, room=target.width)}", style="bold"))
        for text in texts:
            _explanation_line(target, text)
    target.print()
    for cell in last:
        words = fill(cell.text, target.width, break_long_words=False)
        target.print(Text(words, style=LOOKS[cell.style]))


def _marked(target: Console, rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Print verdicts in columns; if the screen is too narrow, each as a sentence."""
    widths = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
    if sum(widths[:2]) + sum(min(width, MIN_CELL) for width in widths[2:]) + 3 > target.width:
        for mark, name, test, message in rows:
            sentence = ": ".join(word for word in (name, test, message) if word)
            line = Text(filled(f"{mark:<{widths[0]}} {sentence}", widths[0] + 3, room=target.width))
            line.stylize(MARKS.get(mark, ""), 0, len(mark))
            target.print(line, soft_wrap=True)
        return
    shown = Table(box=None, show_header=False, pad_edge=False)
    for column in range(4):
        shown.add_column(no_wrap=column < 2, overflow="fold")
    for mark, *words in rows:
        shown.add_row(Text(mark, style=MARKS.get(mark, "")), *map(Text, words))
    _unpadded(target, shown)


def _explanation_line(target: Console, text: str) -> None:
    """Print a line below a title; a command is wrapped so that a shell can still read it."""
    if len(text) + 2 <= target.width:
        target.print(Text(f"  {text}"), soft_wrap=True)
        return
    if text.strip().startswith(("cudalab ", "see: ")) or text.endswith(".bin"):
        target.print(Text(continued(f"  {text}", target.width)), soft_wrap=True)
        return
    indent = "  " + " " * (len(text) - len(text.lstrip()))
    layout: dict[str, Any] = {"initial_indent": indent, "subsequent_indent": indent + "  "}
    target.print(Text(fill(text.strip(), target.width, break_long_words=False, **layout)))
