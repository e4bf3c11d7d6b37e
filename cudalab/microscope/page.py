"""A profile as one self-contained HTML page: `cudalab profile --html FILE`."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cudalab.backends.trace import Access, Branch
from cudalab.language import source
from cudalab.microscope import annotate, compare
from cudalab.microscope.document import document
from cudalab.microscope.profile import BANKS, KernelProfile, Line, Profile, VariantProfile
from cudalab.output import web
from cudalab.output.grid import Grid
from cudalab.output.web import escaped

STEPS_DRAWN = 64
PLAYED_BANKS = 32  # of a warp's request; the rule for half warps has no picture
RIGHT = ' class="r"'
USEFUL = "useful %"  # the column with bars
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


LEGEND = """\
<p><span class="key n"></span>needed <span class="key w"></span>wasted.
A <b>pass</b> moves 128 bytes: a wavefront of shared memory, or four 32-byte sectors of global
memory. <b>sectors</b>: a request of one warp, in parentheses the fewest for its bytes.
<b>banks</b>: the worst request's conflict. <b>meet</b>: the most lanes of one atomic that hit the
same word. <b>split</b>: of the warps that reached a branch, those that took both sides.</p>
<p>The slider below a line goes through its steps, in the first block traced: above are the 32 lanes
of a warp, hollow if they take no part, below the banks or the 32-byte sectors that they use, or the
ways on which a branch sends them, one after the other.</p>
<p class="keys"><kbd>n</kbd> <kbd>p</kbd> next and previous line by cost, <kbd>t</kbd> to the
top.</p>"""


def page(profiles: Sequence[Profile]) -> str:
    """The page of one device, or of several devices one after the other."""
    first = profiles[0]
    body = []
    if len(profiles) > 1:
        body.append(web.table(compare.grid(*profiles[:2])))
    for number, one in enumerate(profiles):
        prefix = f"d{number}-"
        if len(profiles) > 1:
            body.append(f"<h2>{escaped(one.device)} device: {escaped(one.device_name)}</h2>")
        body += [_summary(one, prefix), *(_variant(v, prefix, one.banks) for v in one.variants)]
        body += [f'<p class="soft">{escaped(note)}</p>' for note in one.notes]
    case = ", ".join(f"{axis} {value}" for axis, value in first.case.items())
    subtitle = [first.input, case, BANKS[first.banks], f"{first.device}: {first.device_name}"]
    return web.page(
        f"Profile: {first.lab}", " · ".join(filter(None, subtitle)), body, footer=LEGEND
    )


def _summary(profile: Profile, prefix: str) -> str:
    """The table of all kernels; a variant's name links to its section."""
    grid = annotate.summary_grid(document(profile))
    cells = {}
    for number, row in enumerate(grid.rows):
        name = web.breakable(row[0])
        cells[number, 0] = f'<a href="#{escaped(prefix + row[0])}">{name}</a>'
    cells |= _meters(grid)
    return web.table(replace(grid, title="", notes=[]), cells)


def _meters(grid: Grid) -> dict[tuple[int, int], str]:
    """A bar in front of each percentage of useful bytes."""
    titles = [column.title for column in grid.columns]
    if USEFUL not in titles:
        return {}
    column = titles.index(USEFUL)
    return {
        (number, column): (
            f'<span class="meter"><i style="width:{float(row[column]):.0f}%"></i></span>'
            f"<b>{escaped(row[column])}</b>"
        )
        for number, row in enumerate(grid.rows)
        if row[column]
    }


def _variant(variant: VariantProfile, prefix: str, banks: int) -> str:
    conflict = variant.worst_conflict
    yes = " yes" if conflict and conflict[1].conflict_degree_max > 1 else ""
    verdict = variant.verdict
    parts = [
        f'<section><h2 id="{escaped(prefix + variant.name)}">{escaped(variant.name)}</h2>',
        f'<p class="soft">{escaped(variant.summary)}.</p>',
        f'<p class="answer{yes}">{escaped(verdict[:1].upper() + verdict[1:])}.</p>',
        *(_kernel(variant, kernel, banks) for kernel in variant.kernels),
        "</section>",
    ]
    return "\n".join(parts)


def _kernel(variant: VariantProfile, kernel: KernelProfile, banks: int) -> str:
    head = f"{annotate.launch(kernel)}, {annotate.traced(kernel)}"
    grid = annotate.access_grid(variant, kernel)
    return "\n".join(
        [
            f'<h3 class="kernel">{escaped(kernel.name)}<small>{escaped(head)}</small></h3>',
            _tiles(kernel),
            *_source(variant, kernel, banks),
            f"<details><summary>{len(grid.rows)} accesses to memory, one by one</summary>",
            web.table(replace(grid, title=""), _meters(grid)),
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
        f"<div><dt>{escaped(title)}</dt>"
        f"<dd>{escaped(figure)} <small>{escaped(rest)}</small></dd></div>"
        for title, figure, rest in tiles
    ]
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _source(variant: VariantProfile, kernel: KernelProfile, banks: int) -> Iterable[str]:
    """The kernel's source files, with bars and numbers beside the lines."""
    lines = kernel.lines()
    whole = sum(line.passes for line in lines.values())
    peak = max((line.passes for line in lines.values()), default=0.0)
    columns = annotate.columns_of(lines.values())
    heads = ["line", *(["passes", ""] if whole else []), *(c.head for c in columns)]
    head = "".join(f"<th{'' if h == 'passes' else RIGHT}>{escaped(h)}</th>" for h in heads)
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
            is_played = line and line.passes > HOT * whole and banks == PLAYED_BANKS
            played = _played(line) if line and is_played else []
            below = [*map(_steps, _changing(line)), *map(_accesses_played, played)]
            below += map(_branch_played, _parting(line))
            rows += [
                f'<tr><td class="no" colspan="{len(heads)}"></td><td class="src">{part}</td></tr>'
                for part in below
            ]
        yield (
            f'<div class="scroll code"><table><thead><tr>{head}'
            f"<th>{escaped(listing.label)}</th></tr></thead>\n<tbody>" + "\n".join(rows)
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
        bar = share = ""
        if line and line.passes:
            width = 100 * line.passes / peak
            needed = width * min(line.ideal_passes / line.passes, 1.0)
            waste = f'<b style="width:{width - needed:.1f}%"></b>' if width - needed > 0.5 else ""
            bar = f'<div class="bar"><i style="width:{needed:.1f}%"></i>{waste}</div>'
            share = f"{100 * line.passes / whole:.0f} %"
            attributes = f' tabindex="0" data-cost="{line.passes:.0f}"'
            if waste and line.passes > HOT * whole:
                attributes += ' class="hot"'
        cells += [f"<td>{bar}</td>", f"<td{RIGHT}>{share}</td>"]
    for column in columns:
        text = column.text(line) if line else ""
        look = ("bad" if column.bad(line) else "good") if line and text else ""
        sides = annotate.sides(line) if line and column.head == "split" else ""
        title = f' title="{escaped(sides)}"' if sides else ""
        named = f'data-head="{column.head}"'  # a phone shows it beside the number
        cells.append(f'<td class="r {look}" {named}{title}>{escaped(text)}</td>')
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
        f"<span>{escaped(annotate.number(degree))}"
        f'<i{" class=one" if degree <= 1 else ""} style="height:{1.7 * degree / peak:.2f}rem"></i>'
        "</span>"
        for degree in degrees[:STEPS_DRAWN]
    )
    return f'<span class="steps">{bars}</span> <span class="c">conflict degree by step</span>'


def _played(line: Line) -> list[Access]:
    """Accesses that change from step to step or waste passes, without repeats."""
    result: dict[object, Access] = {}
    for access in line.accesses:
        wasteful = (
            access.conflict_degree_max > 1
            if access.space == "shared"
            else access.sectors > access.ideal_sectors
        )
        if (
            access.addresses
            and access.space in ("shared", "global")
            and (wasteful or len(access.steps) > 1)
        ):
            result.setdefault((access.space, access.addresses), access)
    return list(result.values())


def _accesses_played(access: Access) -> str:
    """A slider over an access's steps; web.js draws which bank or sector each lane goes to."""
    steps = [
        {"times": step.requests, "lanes": lanes}
        for step, lanes in zip(access.steps, access.addresses, strict=True)
    ][:STEPS_DRAWN]
    shown = {"shared": access.space == "shared", "bytes": access.bytes_per_lane, "steps": steps}
    return _player(" ".join(filter(None, [access.kind, access.space, access.buffer])), shown)


def _parting(line: Line | None) -> list[Branch]:
    """The branches that split a warp in a step that was kept."""
    return [
        branch
        for branch in (line.branches if line else [])
        if any(len({*step.ways} - {None}) > 1 for step in branch.steps)
    ]


def _branch_played(branch: Branch) -> str:
    """A slider over a branch's steps; web.js draws which lanes go which way, one after another."""
    steps = [{"times": step.executions, "lanes": step.ways} for step in branch.steps]
    return _player("branch", {"lines": branch.lines, "steps": steps[:STEPS_DRAWN]})


def _player(label: str, shown: dict[str, object]) -> str:
    steps = shown["steps"]
    assert isinstance(steps, list)
    return (
        f"<div class=\"player\" data-shown='{escaped(json.dumps(shown, separators=(',', ':')))}'"
        f' hidden><label>{escaped(label)} <input type="range" min="1" max="{len(steps)}" value="1">'
        '</label> <output></output><svg viewBox="0 0 648 140" role="img"></svg></div>'
    )


def _highlighted(text: str) -> list[str]:
    """Lines of CUDA C++ as HTML; a comment may span several lines."""
    lines, inside = [], False
    for line in source.lines_of(text):
        if inside:
            head, ends, rest = line.partition("*/")
            lines.append(f'<span class="c">{escaped(head + ends)}</span>' + _tokens(rest))
            inside = not ends
            continue
        opened = line.rfind("/*")
        inside = opened >= 0 and "*/" not in line[opened:] and "//" not in line[:opened]
        if inside:
            comment = f'<span class="c">{escaped(line[opened:])}</span>'
            lines.append(_tokens(line[:opened]) + comment)
        else:
            lines.append(_tokens(line))
    return lines


def _tokens(line: str) -> str:
    result, end = [], 0
    for match in _TOKEN.finditer(line):
        result.append(escaped(line[end : match.start()]))
        result.append(f'<span class="{match.lastgroup}">{escaped(match[0])}</span>')
        end = match.end()
    return "".join([*result, escaped(line[end:])])
