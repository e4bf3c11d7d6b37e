"""Tables and highlighted source on stdout; the only module that imports rich."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDTH = 100  # of a file or a pipe, where COLUMNS does not say


def console() -> Console:
    """Stdout: as wide as the terminal; NO_COLOR and pipes get plain text."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH
    return Console(width=width, highlight=False, emoji=False, markup=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; columns that are empty in every row are left out."""
    rows = list(rows)
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    grid = Table(title=Text(title, style="bold"), title_justify="left", header_style="bold")
    for i in used:
        grid.add_column(columns[i], overflow="fold", no_wrap=columns[i] == "variant")
    for row in rows:
        grid.add_row(*(Text(row[i]) for i in used))
    console().print(grid)


def properties(title: str, values: Mapping[str, str | int | float]) -> None:
    """Print a table of labels and values."""
    grid = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for label, value in values.items():
        grid.add_row(label, Text(value if isinstance(value, str) else f"{value:,}"))
    console().print(grid)


def cuda_source(text: str) -> None:
    """Print highlighted CUDA C++, with line numbers."""
    console().print(Syntax(text, "cuda", line_numbers=True, word_wrap=True))
