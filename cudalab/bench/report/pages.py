"""Writes a report as Markdown with pictures in separate files, or as one HTML file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from cudalab.bench.report.content import Blank, Block, Code, Heading, Source, build
from cudalab.formats import output_file, write_all
from cudalab.output import svg, web
from cudalab.output.charts import Chart
from cudalab.output.grid import Grid

_CODE = re.compile(r"`([^`]+)`")


@dataclass
class Pictures:
    """The charts of a Markdown file, in files beside it."""

    stem: str
    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, chart: Chart) -> str:
        """Add a picture; return its file name."""
        name = f"{self.stem}-{len(self.files) + 1}.svg"
        self.files[name] = svg.file([chart]).encode()
        return name


def markdown(blocks: Sequence[Block], pictures: Pictures | None = None) -> str:
    """The report as Markdown; charts are left out if pictures cannot be stored."""
    parts = []
    for block in blocks:
        match block:
            case Heading(level, text):
                parts.append(f"{'#' * level} {text}")
            case str(text):
                parts.append(_markdown_text(text))
            case Code(text):
                parts.append(f"```\n{text}\n```")
            case Grid() as grid:
                parts.append(_markdown_table(grid))
            case Blank(prompt):
                parts.append(f"{prompt} ______".strip())
            case chart:
                if pictures:
                    parts.append(f"![{_markdown_text(chart.title)}]({pictures.add(chart)})")
    return "\n\n".join(parts) + "\n"


def _markdown_text(text: str) -> str:
    """A text with Markdown's characters escaped, except underscores in words and what is code."""
    parts = _CODE.split(text)  # code is every other part
    parts[::2] = [re.sub(r"[\\`*\[\]<>#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", one) for one in parts[::2]]
    parts[1::2] = [f"`{one}`" for one in parts[1::2]]
    return "".join(parts)


def _markdown_table(grid: Grid) -> str:
    def cells(texts: Sequence[str]) -> str:
        return "| " + " | ".join(_markdown_text(text).replace("|", "\\|") for text in texts) + " |"

    rules = " | ".join("---:" if column.right else "---" for column in grid.columns)
    lines = [f"**{_markdown_text(grid.title)}**", "", cells([c.title for c in grid.columns])]
    lines += [f"| {rules} |", *map(cells, grid.rows)]
    if grid.notes:
        lines += ["", *(f"* {_markdown_text(' '.join(note.split()))}" for note in grid.notes)]
    return "\n".join(lines)


def html(blocks: Sequence[Block]) -> str:
    """The report as one self-contained HTML file, with editable blanks."""
    title, subtitle, rest = _head(blocks)
    body = []
    for are_charts, run in groupby(rest, lambda block: isinstance(block, Chart)):
        if are_charts:
            body.append(web.pictures([block for block in run if isinstance(block, Chart)]))
        else:
            body += map(_html, run)
    return web.page(title, subtitle, body, column=True)


def _head(blocks: Sequence[Block]) -> tuple[str, str, Sequence[Block]]:
    """The title, the text below it, and all other blocks."""
    match blocks:
        case [Heading(1, title), str(subtitle), *rest]:
            return title, subtitle, rest
    return "Lab report", "", blocks


def _html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{web.escaped(text)}</h{level}>"
        case str(text):
            return "<p>" + _CODE.sub(r"<code>\1</code>", web.escaped(text)) + "</p>"
        case Code(text):
            return f"<pre>{web.escaped(text)}</pre>"
        case Grid() as grid:
            return web.table(grid)
        case Blank(prompt):
            before = f"<p>{web.escaped(prompt)}</p>\n" if prompt else ""
            return f'{before}<div class="blank" contenteditable="true"></div>'
        case chart:
            return web.picture(chart)


def write(source: Source, path: Path | None) -> None:
    """Write the report to `path`, with the pictures of Markdown beside it; stdout has none.

    The suffix .html or .htm makes one file of it all.
    """
    blocks = build(replace(source, pictures=path is not None))
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


def _replace(path: Path, data: bytes) -> None:
    with output_file(path) as fd:
        write_all(fd, [data], str(path))
