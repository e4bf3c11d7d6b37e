"""A profile as one self-contained HTML page: `cudalab profile --html FILE`."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from cudalab.microscope import annotate, compare
from cudalab.microscope.document import document
from cudalab.microscope.profile import BANKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cudalab.backends.trace import Access
    from cudalab.microscope.profile import KernelProfile, Line, Profile, VariantProfile
    from cudalab.output.grid import Grid

STEPS_DRAWN = 64
HOT = 0.1  # a wasteful line with at least this share of a kernel's passes is marked

_WORDS = (
    "alignas|auto|bool|break|case|char|class|const|constexpr|continue|default|do|double|else|enum|"
    "extern|false|float|for|if|inline|int|long|namespace|operator|return|short|signed|sizeof|"
    "static|static_assert|struct|switch|template|true|typedef|typename|union|unsigned|using|void|"
    "volatile|while|size_t"
)
_TOKEN = re.compile(
    rf"""
    (?P<c>//.*|/\*.*?\*/)
  | (?P<v>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'
        |\b(?:0x[\da-fA-F]+|\d+\.?\d*(?:e[+-]?\d+)?)[uUlLfF]*\b)
  | (?P<u>\b__\w+|\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize|atomic\w+)\b)
  | (?P<k>^[ ]*\#[ ]*\w+|\b(?:{_WORDS})\b)
    """,
    re.VERBOSE,
)


def page(profiles: Sequence[Profile]) -> str:
    """The page of one device, or of several devices one after the other."""
    first = profiles[0]
    body = []
    if len(profiles) > 1:
        body.append(_plain(compare.grid(*profiles[:2])))
    for number, one in enumerate(profiles):
        prefix = f"d{number}-"
        if len(profiles) > 1:
            body.append(f"<h2>{_text(one.device)} device: {_text(one.device_name)}</h2>")
        body += [_summary(one, prefix), *(_variant(v, prefix) for v in one.variants)]
        body += [f'<p class="soft">{_text(note)}</p>' for note in one.notes]
    case = ", ".join(f"{axis} {value}" for axis, value in first.case.items())
    subtitle = [first.input, case, BANKS[first.banks], f"{first.device}: {first.device_name}"]
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=_text(f"Profile: {first.lab}"),
        subtitle=_text(" · ".join(filter(None, subtitle))),
        body="\n".join(body),
    )


def _text(text: object) -> str:
    return escape(str(text))


def _summary(profile: Profile, prefix: str) -> str:
    """The table of all kernels; a variant's name links to its section."""
    grid = annotate.summary_grid(document(profile))
    links = {variant.name: f"#{prefix}{variant.name}" for variant in profile.variants}
    rows = []
    for row in grid.rows:
        cells = [
            f'<td><a href="{_text(links[row[0]])}">{_text(row[0])}</a></td>',
            *(_cell(grid, i, row[i]) for i in range(1, len(row))),
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return _table(grid, rows)


def _table(grid: Grid, rows: Iterable[str]) -> str:
    head = "".join(
        f"<th{_right(column.right)}>{_text(column.title)}</th>" for column in grid.columns
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>'
        + "\n".join(rows)
        + "</tbody></table></div>"
    )


def _plain(grid: Grid) -> str:
    """A table without links."""
    rows = [
        f"<tr>{''.join(_cell(grid, i, row[i]) for i in range(len(row)))}</tr>" for row in grid.rows
    ]
    return _table(grid, rows)


def _right(right: bool) -> str:
    return ' class="r"' if right else ""


def _cell(grid: Grid, column: int, text: str) -> str:
    if grid.columns[column].title == "useful %" and text:
        meter = f'<span class="meter"><i style="width:{float(text):.0f}%"></i></span>'
        return f'<td class="r">{meter}<b>{_text(text)}</b></td>'
    return f"<td{_right(grid.columns[column].right)}>{_text(text)}</td>"


def _variant(variant: VariantProfile, prefix: str) -> str:
    conflict = variant.worst_conflict
    yes = " yes" if conflict and conflict[1].conflict_degree_max > 1 else ""
    verdict = variant.verdict
    parts = [
        f'<section><h2 id="{_text(prefix + variant.name)}">{_text(variant.name)}</h2>',
        f'<p class="soft">{_text(variant.summary)}.</p>',
        f'<p class="answer{yes}">{_text(verdict[:1].upper() + verdict[1:])}.</p>',
        *(_kernel(variant, kernel) for kernel in variant.kernels),
        "</section>",
    ]
    return "\n".join(parts)


def _kernel(variant: VariantProfile, kernel: KernelProfile) -> str:
    head = f"{annotate.launch(kernel)}, {annotate.traced(kernel)}"
    grid = annotate.access_grid(variant, kernel)
    return "\n".join(
        [
            f"<h3>{_text(kernel.name)}<small>{_text(head)}</small></h3>",
            _tiles(kernel),
            *_source(variant, kernel),
            f"<details><summary>{len(grid.rows)} accesses to memory, one by one</summary>",
            _plain(grid),
            *(f'<p class="soft">{_text(note)}.</p>' for note in grid.notes),
            "</details>",
        ]
    )


def _tiles(kernel: KernelProfile) -> str:
    """The main figures of a kernel."""
    sums = kernel.totals()
    tiles = []
    if sums.global_efficiency is not None:
        useful = f"{100 * sums.global_efficiency:.0f} %"
        tiles.append(("Global memory, useful bytes", useful, ""))
    if sums.shared_requests:
        degree = sums.conflict_degree_max
        mean = sums.shared_wavefronts / max(sums.shared_ideal_wavefronts, 1)
        tiles.append(
            (
                "Worst bank conflict",
                f"{degree}-way" if degree > 1 else "none",
                f"{mean:.2f} × the wavefronts",  # noqa: RUF001 - a multiplication sign
            )
        )
    if sums.branches:
        split = annotate.share(sums.divergence)
        tiles.append(("Branches that split a warp", f"{split} %", ""))
    if sums.barriers:
        each = sums.barriers / max(kernel.trace.blocks_traced, 1)
        tiles.append(("Barriers a block", annotate.number(each), ""))
    if sums.arithmetic_intensity:
        tiles.append(("Arithmetic intensity", f"{sums.arithmetic_intensity:.2f}", "flop/byte"))
    cells = [
        f"<div><dt>{_text(title)}</dt><dd>{_text(figure)} <small>{_text(rest)}</small></dd></div>"
        for title, figure, rest in tiles
    ]
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _source(variant: VariantProfile, kernel: KernelProfile) -> Iterable[str]:
    """The kernel's source files, with bars and numbers beside the lines."""
    lines = kernel.lines()
    whole = sum(line.passes for line in lines.values())
    peak = max((line.passes for line in lines.values()), default=0.0)
    columns = annotate.columns_of(lines.values())
    heads = ["line", *(["passes", ""] if whole else []), *(c.head for c in columns)]
    head = "".join(f"<th{_right(h != 'passes')}>{_text(h)}</th>" for h in heads)
    by_place = {(place.file, place.line): line for place, line in lines.items()}
    for listing in annotate.listings(variant, kernel):
        text = _highlighted(annotate.shallow(variant.texts[listing.label]))
        rows: list[str] = []
        last = 0
        for row in listing.rows:
            if not row.line:
                continue
            if rows and row.line > last + 1:
                rows.append(f'<tr class="gap"><td colspan="{len(heads) + 1}">⋮</td></tr>')
            last = row.line
            line = by_place.get((listing.label, row.line))
            rows.append(_row(row.line, line, text[row.line - 1], columns, whole, peak))
            rows += [
                f'<tr><td colspan="{len(heads)}"></td><td class="src">{_steps(access)}</td></tr>'
                for access in _changing(line)
            ]
        yield (
            f'<div class="scroll"><table class="code"><thead><tr>{head}'
            f"<th>{_text(listing.label)}</th></tr></thead>\n<tbody>" + "\n".join(rows)
        ) + "</tbody></table></div>"


def _row(
    number: int,
    line: Line | None,
    code: str,
    columns: Sequence[annotate.MarginColumn],
    whole: float,
    peak: float,
) -> str:
    cells = [f'<td class="no">{number}</td>']
    attributes = ""
    if whole:
        cells += ["<td>", "</td>", '<td class="r">', "</td>"]
        if line and line.passes:
            width = 100 * line.passes / peak
            needed = width * min(line.ideal_passes / line.passes, 1.0)
            waste = f'<b style="width:{width - needed:.1f}%"></b>' if width - needed > 0.5 else ""
            cells[1] += f'<div class="bar"><i style="width:{needed:.1f}%"></i>{waste}</div>'
            cells[3] += f"{100 * line.passes / whole:.0f} %"
            attributes = f' tabindex="0" data-cost="{line.passes:.0f}"'
            if waste and line.passes > HOT * whole:
                attributes += ' class="hot"'
    for column in columns:
        text = column.text(line) if line else ""
        look = ("bad" if column.bad(line) else "good") if line and text else ""
        sides = annotate.sides(line) if line and column.head == "split" else ""
        title = f' title="{_text(sides)}"' if sides else ""
        cells.append(f'<td class="r {look}"{title}>{_text(text)}</td>')
    cells.append(f'<td class="src">{code}</td>')
    return f"<tr{attributes}>{''.join(cells)}</tr>"


def _changing(line: Line | None) -> list[Access]:
    """Accesses to shared memory whose conflicts change from step to step, without repeats."""
    result: dict[tuple[float, ...], Access] = {}
    for access in line.accesses if line else []:
        degrees = tuple(step.conflict_degree for step in access.steps)
        if access.space == "shared" and len(set(degrees)) > 1:
            result.setdefault(degrees, access)
    return list(result.values())


def _steps(access: Access) -> str:
    """A small chart of the conflict degree at each step of a loop."""
    degrees = [step.conflict_degree for step in access.steps]
    peak = max(degrees)
    bars = "".join(
        f"<span>{_text(annotate.number(degree))}"
        f'<i{" class=one" if degree <= 1 else ""} style="height:{1.7 * degree / peak:.2f}rem"></i>'
        "</span>"
        for degree in degrees[:STEPS_DRAWN]
    )
    return f'<span class="steps">{bars}</span> <span class="c">conflict degree by step</span>'


def _highlighted(text: str) -> list[str]:
    """Lines of CUDA C++ as HTML; a comment may span several lines."""
    lines, inside = [], False
    for line in text.splitlines():
        if inside:
            head, ends, rest = line.partition("*/")
            lines.append(f'<span class="c">{_text(head + ends)}</span>' + _tokens(rest))
            inside = not ends
            continue
        opened = line.rfind("/*")
        inside = opened >= 0 and "*/" not in line[opened:] and "//" not in line[:opened]
        if inside:
            lines.append(_tokens(line[:opened]) + f'<span class="c">{_text(line[opened:])}</span>')
        else:
            lines.append(_tokens(line))
    return lines


def _tokens(line: str) -> str:
    result, end = [], 0
    for match in _TOKEN.finditer(line):
        result.append(_text(line[end : match.start()]))
        result.append(f'<span class="{match.lastgroup}">{_text(match[0])}</span>')
        end = match.end()
    return "".join([*result, _text(line[end:])])
