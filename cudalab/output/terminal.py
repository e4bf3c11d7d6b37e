"""Tables and highlighted source on stdout; the only module that imports rich."""

from __future__ import annotations

import codecs
import os
import sys
from io import TextIOWrapper
from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from cudalab.errors import CudalabError
from cudalab.output.page import Commands, Drawing, Heading
from cudalab.output.page import Table as Columns
from cudalab.output.page import Text as Prose

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from cudalab.output.grid import Grid
    from cudalab.output.listing import Listing
    from cudalab.output.page import Part

_BELOW: dict[str, Any] = {"subsequent_indent": "      ", "break_long_words": False}
_INDENTED: dict[str, Any] = {"initial_indent": "  ", "subsequent_indent": "    "}
WIDTH = 100  # of a file or a pipe, where COLUMNS does not say
PROSE = 80  # columns of text that reads well
FINDINGS_SHOWN = 3  # of one kind, each with its lines
_PLAIN = {
    **dict(zip("─└·█░⋮…µ×−–—≤≥→∞", "-+.#...ux---<>>i", strict=True)),  # noqa: RUF001
    **{power: f"^{digit}" for digit, power in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "±": "+-",
}
LEAST_CELL = 16  # columns of text that may be wrapped in a cell; with less, rows become paragraphs


def _plain(error: UnicodeError) -> tuple[str, int]:
    """For the codecs: what stands for characters that an encoding does not have."""
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in missing), error.end


codecs.register_error("plain", _plain)


def console() -> Console:
    """Stdout: as wide as the terminal; NO_COLOR and pipes get plain text.

    What its encoding has no characters for is written in others. CudalabError if it is closed.
    """
    if sys.stdout is None:
        raise CudalabError("stdout is closed")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="plain")
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH
    return Console(width=width, highlight=False, emoji=False, markup=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; columns that are empty in every row are left out, and so is one without rows.

    Where the screen is too narrow for it, each row becomes a paragraph.
    """
    rows = list(rows)
    if not rows:
        return
    target = console()
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    widths = [max(cell_len(text) for text in (columns[i], *(row[i] for row in rows))) for i in used]
    if sum(min(width, LEAST_CELL) + 3 for width in widths[1:]) + widths[0] + 4 > target.width:
        _paragraphs(title, [columns[i] for i in used], [[row[i] for i in used] for row in rows])
        return
    grid = Table(title=Text(title, style="bold"), title_justify="left", header_style="bold")
    for i in used:
        grid.add_column(columns[i], overflow="fold", no_wrap=columns[i] == "variant")
    for row in rows:
        grid.add_row(*(Text(row[i]) for i in used))
    target.print(grid)


def _paragraphs(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print each row's first cell, and below it the others, each with its column's title."""
    target = console()
    target.print(Text(title, style="bold"))
    for first, *others in rows:
        target.print(Text(first, style="bold"))
        for name, text in zip(columns[1:], others, strict=True):
            if text:
                target.print(Text(fill(f"{name}: {text}", target.width, **_INDENTED)))


def properties(title: str, values: Mapping[str, str | int | float]) -> None:
    """Print a table of labels and values."""
    grid = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for label, value in values.items():
        grid.add_row(label, Text(value if isinstance(value, str) else f"{value:,}"))
    console().print(grid)


def cuda_source(text: str, headers: Sequence[str]) -> None:
    """Print highlighted CUDA C++ with line numbers, and below it the headers that it includes."""
    console().print(Syntax(text, "cuda", line_numbers=True, word_wrap=True))
    if headers:
        console().print("\nIncluded (--whole prints them in their places):", style="bold")
    for header in headers:
        console().print(f"  {header}", markup=False, highlight=False)


# explain -----------------------------------------------------------------------------------------


def explanation(title: str, parts: Iterable[Part]) -> None:
    """Print a topic's page: text to the screen's width, or PROSE; drawings as they are."""
    target = console()
    width = min(target.width, PROSE)
    for part in (Heading(title + "\n"), *parts):
        if isinstance(part, Columns):
            shown = Table(box=SIMPLE_HEAD, header_style="bold", show_edge=False)
            for number, column in enumerate(part.columns):
                shown.add_column(column, overflow="fold", no_wrap=number == 0)
            for row in part.rows:
                shown.add_row(*map(Text, row))
            target.print(shown, width=width)
        else:
            for line in _lines_of(part, width):
                target.print(line, soft_wrap=True)
        if not isinstance(part, Heading):  # what it is above follows at once
            target.print()


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
    """Print text as it is; a long line goes on below."""
    for text in texts:
        console().print(Text(text))


def grid(found: Grid) -> None:
    """Print a table of results: what does not fit the width is left out, least important first.

    Where what is left does not fit either, it goes on below, in tables with the same first column.
    """
    target = console()
    kept, left_out = columns_that_fit(found, target.width)
    target.print(Text(fill(found.title, target.width, break_long_words=False), style="bold"))
    for part in parts_that_fit(found, kept, target.width):
        target.print(_part_of(found, part))
    notes = list(found.notes)
    if left_out:
        notes.append(f"no room here for: {', '.join(left_out)}")
    for note in notes:
        for number, line in enumerate(note.splitlines()):
            indent = "  " if number == 0 else "      "
            target.print(Text(fill(line, target.width, initial_indent=indent, **_BELOW)))
    target.print()


def _part_of(found: Grid, kept: Sequence[int]) -> Table:
    """These columns of a table."""
    shown = Table(header_style="bold")
    for i in kept:
        column = found.columns[i]
        shown.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for number, row in enumerate(found.rows):
        style = "dim" if number in found.faint else ""
        shown.add_row(
            *(Text(row[i], style="bold" if (number, i) in found.best else "") for i in kept),
            style=style,
        )
    return shown


def _widths(found: Grid) -> list[int]:
    """The widths of the columns, each with a space on both sides and a line."""
    return [
        max(cell_len(text) for text in (column.title, *(row[i] for row in found.rows))) + 3
        for i, column in enumerate(found.columns)
    ]


def parts_that_fit(found: Grid, kept: Sequence[int], width: int) -> list[list[int]]:
    """The columns `kept` in tables that fit into `width`, each with the first column."""
    widths = _widths(found)
    parts = [[kept[0]]]
    for i in kept[1:]:
        if len(parts[-1]) > 1 and sum(widths[k] for k in (*parts[-1], i)) + 1 > width:
            parts.append([kept[0]])
        parts[-1].append(i)
    return parts


def columns_that_fit(found: Grid, width: int) -> tuple[list[int], list[str]]:
    """The columns that fit into `width`, and the titles of the others."""
    widths = _widths(found)
    kept = list(range(len(widths)))
    droppable = sorted(
        (i for i in kept if found.columns[i].keep < 9), key=lambda i: (found.columns[i].keep, -i)
    )
    for i in droppable:
        if sum(widths[k] for k in kept) + 1 <= width:
            break
        kept.remove(i)
    return kept, [column.title for i, column in enumerate(found.columns) if i not in kept]


# profile, sanitize -------------------------------------------------------------------------------

_LOOKS = {"good": "green", "bad": "red", "quiet": "dim", "": ""}


def listing(found: Listing, text: str) -> None:
    """Print source with a margin; what does not fit the width is cut."""
    target = console()
    source = Syntax(text, "cuda", background_color="default").highlight(text).split("\n")
    target.print(Text(found.label, style="bold"))
    target.print(Text(found.head, style="dim"), soft_wrap=True)
    for row in found.rows:
        if row.remark:
            target.print(Text(row.remark, style="dim"), soft_wrap=True)
            continue
        line = Text()
        for cell in row.margin:
            line.append(cell.text, _LOOKS[cell.style])
        line.append("  ").append_text(source[row.line - 1])
        line.expand_tabs(4)
        target.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    target.print()


class Finding(Protocol):
    """What is printed of a finding: what happened and where, why it is wrong, and the cure."""

    @property
    def note(self) -> bool: ...
    @property
    def title(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def cure(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def code(self) -> str: ...
    @property
    def other_line(self) -> int | None: ...
    @property
    def other_code(self) -> str | None: ...


def findings(title: str, rows: Iterable[Finding]) -> None:
    """Print what `sanitize` found: what happened where, and once for all alike why and the cure."""
    target = console()
    width = min(target.width, PROSE + 10)
    groups: dict[tuple[bool, str, str, str], list[Finding]] = {}
    for row in rows:
        groups.setdefault((row.note, row.title, row.why, row.cure), []).append(row)

    def say(text: str, indent: str = "   ") -> None:
        layout: dict[str, Any] = {"initial_indent": indent, "subsequent_indent": "   "}
        text = fill(text, width, break_long_words=False, break_on_hyphens=False, **layout)
        target.print(Text(text), soft_wrap=True)

    target.print(Text(title, style="bold"), soft_wrap=True)
    for number, ((note, kind, why, cure), alike) in enumerate(groups.items(), 1):
        seen = sum(row.count for row in alike)
        times = f", seen {seen:,} times" if seen > 1 else ""
        target.print()
        head = f"{number}. {'note: ' if note else ''}{kind}{times}"
        target.print(Text(head, style="bold" if note else "bold red"), soft_wrap=True)
        different = list({row.what: row for row in reversed(alike)}.values())[::-1]
        for row in different[:FINDINGS_SHOWN]:
            say(row.what)
            for line, code in sorted({(row.line, row.code), _other_end(row)}):
                if code:
                    shown = Text(f"   {line:>6} | ", style="dim").append(code, "cyan")
                    target.print(shown, no_wrap=True, overflow="ellipsis", crop=True)
        if len(different) > FINDINGS_SHOWN:
            say(f"... and {len(different) - FINDINGS_SHOWN} more like these.")
        say(f"Why: {why}")
        say(f"Cure: {cure}")


def _other_end(row: Finding) -> tuple[int, str]:
    """The line and the source of a race's or barrier's other side, where that is shown."""
    return (row.other_line or row.line, row.other_code or row.code)


def verdict(
    head: str,
    rows: Iterable[tuple[str, str, str, str]],
    told: Iterable[tuple[str, Sequence[str]]],
    last: Iterable[str],
) -> None:
    """Print a check's verdicts: mark, name, what it was, what is said; then the explanations."""
    target = console()
    shown = Table(box=None, show_header=False, pad_edge=False)
    styles = {"ok": "green", "FAILED": "bold red", "BROKEN": "bold red", "-": "dim"}
    for column in range(4):
        shown.add_column(no_wrap=column < 2, overflow="fold")
    for mark, *words in rows:
        shown.add_row(Text(mark, style=styles.get(mark, "")), *map(Text, words))
    target.print(Text(head, style="bold"), shown)
    for title, texts in told:
        target.print(Text(f"\n{title}", style="bold"))
        for text in texts:
            _told(target, text)
    target.print()
    for text in last:
        style = "bold red" if "NO SANDBOX" in text else ""
        target.print(Text(fill(text, target.width, break_long_words=False), style=style))


def _told(target: Console, text: str) -> None:
    """A line below a title; a command stays on its line, however long: it is copied from there."""
    command = text.strip().startswith(("cudalab ", "see: ")) or text.endswith(".bin")
    if command or len(text) + 2 <= target.width:
        target.print(Text(f"  {text}"), soft_wrap=True)
        return
    indent = "  " + " " * (len(text) - len(text.lstrip()))
    target.print(
        Text(
            fill(
                text.strip(),
                target.width,
                initial_indent=indent,
                subsequent_indent=indent + "  ",
                break_long_words=False,
            )
        )
    )


class BenchProgress:
    """What bench is doing, on stderr: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, emoji=False, markup=False)
        self._live: Progress | None = None
        if self._console.is_terminal:
            self._live = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                TextColumn("{task.fields[estimate]}", markup=False),
                console=self._console,
                transient=True,
                refresh_per_second=4,  # it must not disturb what is measured
            )
            self._task = self._live.add_task("", total=1.0, estimate="")

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hide()

    def begin(self, what: str) -> None:
        """Say what is measured next."""
        if self._live:
            lab = what.partition(":")[0]  # a line has no room for more
            self._live.reset(self._task, description=lab, completed=0, estimate="")
            self._live.start()
        else:
            self._console.print(Text(what), soft_wrap=True)

    def update(self, done: float, estimate: str) -> None:
        """Show how far the table is, and the estimate at hand."""
        if self._live:
            self._live.update(self._task, completed=done, estimate=estimate)

    def step(self, what: str) -> None:
        """Say what is done within the table."""
        if self._live:
            self._live.update(self._task, estimate=what)
        else:
            self._console.print(Text(f"  {what}"), soft_wrap=True)

    def hide(self) -> None:
        """Clear the bar, so that a table can be printed."""
        if self._live:
            self._live.stop()
