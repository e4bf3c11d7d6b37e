"""Writes a report as Markdown with pictures in separate files, or as one HTML file."""

from __future__ import annotations

import base64
import html as escaping
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cudalab.bench.report.blocks import Blank, Code, Heading, Picture, Table, Text
from cudalab.bench.report.content import build
from cudalab.errors import NoDeviceError, install_command
from cudalab.formats import output_file, write_all
from cudalab.output.plots import chart_bytes, check_target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cudalab.bench.report.blocks import Block
    from cudalab.bench.report.content import Source
    from cudalab.output.grid import Grid
    from cudalab.output.plots import Chart


@dataclass
class Pictures:
    """The charts of a Markdown file, in files beside it."""

    stem: str
    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, chart: Chart) -> str:
        """Add a picture; return its file name."""
        name = f"{self.stem}-{len(self.files) + 1}.png"
        self.files[name] = chart_bytes([chart], "png")
        return name


def markdown(blocks: Sequence[Block], pictures: Pictures | None = None) -> str:
    """The report as Markdown; charts are left out if pictures cannot be stored."""
    parts = []
    for block in blocks:
        match block:
            case Heading(level, text):
                parts.append(f"{'#' * level} {text}")
            case Text(text):
                parts.append(_markdown_text(text))
            case Code(text):
                parts.append(f"```\n{text}\n```")
            case Table(grid):
                parts.append(_markdown_table(grid))
            case Picture(chart):
                if pictures:
                    parts.append(f"![{_markdown_text(chart.title)}]({pictures.add(chart)})")
            case Blank(prompt):
                parts.append(f"{prompt} ______".strip())
    return "\n\n".join(parts) + "\n"


def _markdown_text(text: str) -> str:
    """A text with Markdown's characters escaped, except underscores within words."""
    return re.sub(r"[\\`*\[\]<>#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)


def _markdown_table(grid: Grid) -> str:
    def cells(texts: Sequence[str]) -> str:
        return "| " + " | ".join(_markdown_text(text).replace("|", "\\|") for text in texts) + " |"

    rules = " | ".join("---:" if column.right else "---" for column in grid.columns)
    lines = [f"**{_markdown_text(grid.title)}**", "", cells([c.title for c in grid.columns])]
    lines += [f"| {rules} |", *map(cells, grid.rows)]
    if grid.notes:
        lines += ["", *(f"* {_markdown_text(' '.join(note.split()))}" for note in grid.notes)]
    return "\n".join(lines)


STYLE = """
body { font: 16px/1.5 serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #222; }
h1, h2, h3 { font-family: sans-serif; line-height: 1.2; }
table { border-collapse: collapse; font-size: 14px; margin: 1em 0; }
caption { text-align: left; font-weight: bold; padding-bottom: 4px; }
th, td { border: 1px solid #999; padding: 2px 8px; text-align: left; }
th.right, td.right { text-align: right; font-variant-numeric: tabular-nums; }
td.best { font-weight: bold; }
tr.faint { color: #777; }
.wide { overflow-x: auto; }
ul.notes { font-size: 14px; margin-top: -0.5em; }
pre { background: #f4f4f4; padding: 8px; overflow-x: auto; font-size: 13px; }
img { max-width: 100%; }
.blank { border: 1px dashed #888; min-height: 5em; padding: 4px 8px; }
@media print { body { margin: 0; max-width: none; } h2, h3 { break-after: avoid; } }
"""


def html(blocks: Sequence[Block]) -> str:
    """The report as one self-contained HTML file, with editable blanks."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Lab report")
    body = []
    for block in blocks:
        match block:
            case Heading(level, text):
                body.append(f"<h{level}>{_html(text)}</h{level}>")
            case Text(text):
                body.append(f"<p>{_html(text)}</p>")
            case Code(text):
                body.append(f"<pre>{_html(text)}</pre>")
            case Table(grid):
                body.append(_html_table(grid))
            case Picture(chart):
                data = base64.b64encode(chart_bytes([chart], "svg")).decode()
                alt = _html(chart.title)
                body.append(f'<p><img alt="{alt}" src="data:image/svg+xml;base64,{data}"></p>')
            case Blank(prompt):
                before = f"<p>{_html(prompt)}</p>\n" if prompt else ""
                body.append(f'{before}<div class="blank" contenteditable="true"></div>')
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{_html(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _html(text: str) -> str:
    return escaping.escape(text)


def _html_table(grid: Grid) -> str:
    def cell(tag: str, text: str, column: int, best: str = "") -> str:
        kinds = ("right " if grid.columns[column].right else "") + best
        kind = f' class="{kinds.strip()}"' if kinds else ""
        return f"<{tag}{kind}>{_html(text)}</{tag}>"

    head = "".join(cell("th", column.title, i) for i, column in enumerate(grid.columns))
    lines = []
    for number, row in enumerate(grid.rows):
        faint = ' class="faint"' if number in grid.faint else ""
        cells = [
            cell("td", text, i, "best" if (number, i) in grid.best else "")
            for i, text in enumerate(row)
        ]
        lines.append(f"<tr{faint}>{''.join(cells)}</tr>")
    notes = "".join(f"<li>{_html(note)}</li>" for note in grid.notes)
    return (
        f'<div class="wide"><table>\n<caption>{_html(grid.title)}</caption>\n<tr>{head}</tr>\n'
        + "\n".join(lines)
        + "\n</table></div>"
        + (f'\n<ul class="notes">{notes}</ul>' if notes else "")
    )


def write(source: Source, path: Path | None) -> list[str]:
    """Write the report to `path`, with the pictures of Markdown beside it; stdout has none.

    The suffix .html or .htm makes one file of it all. Returns what is left out and why.
    """
    notes = []
    pictures = path is not None
    if pictures:
        try:
            check_target("chart.png")
        except NoDeviceError as error:
            notes.append(f"no pictures: {error.message}; {install_command('plot')}")
            pictures = False
    blocks = build(replace(source, pictures=pictures))
    if path is None:
        write_all(1, [markdown(blocks).encode()], "stdout")
    elif path.suffix.lower() in (".html", ".htm"):
        _replace(path, html(blocks).encode())
    else:
        beside = Pictures(path.stem)
        text = markdown(blocks, beside)
        for name, data in beside.files.items():
            _replace(path.with_name(name), data)
        _replace(path, text.encode())
    return notes


def _replace(path: Path, data: bytes) -> None:
    with output_file(path) as fd:
        write_all(fd, [data], str(path))
