"""Pages for a browser: one file each, which needs no other. web.css and web.js are part of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.output import svg
from cudalab.output.charts import Chart

if TYPE_CHECKING:
    from cudalab.output.grid import Grid

ESSENTIAL = 8  # a column whose `keep` is less is not shown on a phone


def page(
    title: str, subtitle: str, body: Iterable[str], footer: str = "", *, column: bool = False
) -> str:
    """A page. `title` and `subtitle` are plain text, the other parts are HTML.

    A page that is mostly text is one `column` in the middle of the screen.
    """
    here = Path(__file__)
    style = here.with_suffix(".css").read_text(encoding="utf-8")
    script = here.with_suffix(".js").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escaped(title)}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            f"<body{_kind('column' if column else '')}>",
            f"<header>\n<h1>{escaped(title)}</h1>",
            f'<p class="soft">{escaped(subtitle)}</p>\n</header>',
            "<main>",
            *body,
            "</main>",
            f"<footer>\n{footer}\n</footer>" if footer else "",
            f"<script>\n{script}</script>",
            "</body>",
            "</html>\n",
        ]
    )


def escaped(shown: object) -> str:
    """Plain text as HTML."""
    return escape(str(shown))


def table(grid: Grid, cells: Mapping[tuple[int, int], str] | None = None) -> str:
    """A table with its title and notes; `cells` has HTML for some cells, by row and column."""
    cells = cells or {}
    looks = [
        ("r " if column.right else "") + ("spare" if column.keep < ESSENTIAL else "")
        for column in grid.columns
    ]
    head = "".join(
        f"<th{_kind(look)}>{breakable(column.title)}</th>"
        for column, look in zip(grid.columns, looks, strict=True)
    )
    rows = []
    for number, row in enumerate(grid.rows):
        shown = "".join(
            f"<td{_kind(look + (' best' if (number, i) in grid.best else ''))}>"
            f"{cells.get((number, i)) or breakable(content)}</td>"
            for i, (look, content) in enumerate(zip(looks, row, strict=True))
        )
        rows.append(f"<tr{_kind('faint' if number in grid.faint else '')}>{shown}</tr>")
    droppable = [column.title for column in grid.columns if column.keep < ESSENTIAL]
    left_out = f"no room here for: {escaped(', '.join(droppable))}"  # on a narrow screen alone
    return "".join(
        [
            f'<p class="title">{escaped(grid.title)}</p>\n' if grid.title else "",
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>',
            "\n".join(rows),
            "</tbody></table></div>",
            f'\n<p class="narrow">{left_out}</p>' if droppable else "",
            notes(grid.notes),
        ]
    )


def notes(texts: Iterable[str]) -> str:
    """Remarks below a table."""
    items = "".join(f"<li>{escaped(one)}</li>" for one in texts)
    return f'\n<ul class="notes">{items}</ul>' if items else ""


def pictures(charts: Sequence[Chart]) -> str:
    """Charts with their titles, side by side if there is room."""
    return f'<div class="pictures">{"".join(map(picture, charts))}</div>'


def picture(chart: Chart) -> str:
    caption = f"<figcaption>{escaped(chart.title)}</figcaption>\n" if chart.title else ""
    return f"<figure>{caption}{svg.picture(chart)}</figure>"


def _kind(names: str) -> str:
    return f' class="{names.strip()}"' if names.strip() else ""


def breakable(name: str) -> str:
    """Text that may be broken after the underscores of a name."""
    return escaped(name).replace("_", "_<wbr>")
