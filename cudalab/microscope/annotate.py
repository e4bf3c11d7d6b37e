"""A profile laid out for a terminal: tables, and the source with numbers beside its lines.

`show` prints what the others lay out.
"""

# ruff: noqa: RUF001, RUF003 - × is a multiplication sign on purpose
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from cudalab.backends.trace import Access
from cudalab.language import source
from cudalab.microscope.document import Document, access_costs, document
from cudalab.microscope.profile import (
    BANKS,
    IN_SECTORS,
    KernelProfile,
    Line,
    Profile,
    VariantProfile,
    ideal_passes,
    passes,
    ratio,
)
from cudalab.output.grid import Column, Grid, percent
from cudalab.output.listing import BAD, GOOD, QUIET, Cell, Listing, Row

BAR = 8  # columns of the bar beside a line
CODE = 44  # columns for the source; if the margin leaves fewer, it is made narrower
NEEDED, WASTED = "█", "░"
STEPS_SHOWN = 16
DEEP = 25  # columns; no block is indented as deeply
OFTEN = 0.05  # of the warps at a branch; a branch that splits fewer is ignored


# Numbers as text ----------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """A number with one decimal, or none for a whole number."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def share(part: float | None) -> str:
    """Percent, with one decimal below ten; 0 for nothing."""
    return "0" if part == 0 else percent(part)


def traced(kernel: KernelProfile) -> str:
    """A text about how many blocks were traced."""
    trace = kernel.trace
    if kernel.whole:
        return f"all {trace.blocks:,} blocks traced" if trace.blocks > 1 else "its block traced"
    return f"{trace.blocks_traced:,} of {trace.blocks:,} blocks traced"


def launch(kernel: KernelProfile) -> str:
    """The launch configuration, as CUDA writes it."""
    grid, block = (_dim(dim) for dim in (kernel.trace.grid, kernel.trace.block))
    times = f"{kernel.launches:,} launches, the first " if kernel.launches > 1 else ""
    return f"{times}<<<{grid}, {block}>>>"


def _dim(dim: tuple[int, int, int]) -> str:
    x, y, z = dim
    return f"{x:,}" if y == z == 1 else f"({x}, {y})" if z == 1 else f"({x}, {y}, {z})"


# Tables ------------------------------------------------------------------------------------------


def summary_grid(document: Document) -> Grid:
    """A line for each kernel."""
    rows = [
        [
            one.variant,
            one.kernel,
            f"{one.launches:,}",
            f"{one.blocks_traced:,} / {one.blocks:,}",
            number(ratio(one.global_sectors, one.global_requests)),
            percent(one.global_efficiency),
            f"{one.shared_wavefronts / one.shared_requests:.2f}" if one.shared_requests else "",
            f"{one.conflict_degree_max}" if one.conflict_degree_max else "",
            share(one.divergence),
            f"{one.barriers:,}" if one.barriers else "",
            f"{one.arithmetic_intensity:.2f}" if one.arithmetic_intensity else "",
        ]
        for one in document.kernels
    ]
    partly = any(one.blocks_traced < one.blocks for one in document.kernels)
    columns = [
        Column("variant", right=False),
        Column("kernel", right=False),
        Column("launches", 1),
        Column("traced", 8 if partly else 2),
        Column("sectors", 7),
        Column("useful %", 8),
        Column("wavefronts", 6),
        Column("conflict", 8),
        Column("split %", 7),
        Column("barriers", 4),
        Column("flop/byte", 5),
    ]
    title = f"{document.lab}: {document.input}, {document.device} device, {BANKS[document.banks]}"
    failed = [f"{one.variant}: {one.failed}" for one in document.variants if one.failed]
    return Grid(title, columns, rows, notes=[*failed, *document.notes]).without_empty()


def access_grid(variant: VariantProfile, kernel: KernelProfile) -> Grid:
    """A line for each memory access of a kernel."""
    rows = []
    accesses = sorted(
        kernel.trace.accesses,
        key=lambda a: (a.place.file != variant.label, a.place.file, a.place.line),
    )
    for access in accesses:
        costs = access_costs(access)
        shared, memory = access.space == "shared", access.space in IN_SECTORS
        rows.append(
            [
                ("" if access.place.file == variant.label else access.place.file.rpartition("/")[2])
                + f":{access.place.line}",
                f"{access.kind} {access.space}",
                access.buffer or "",
                f"{access.bytes_per_lane}",
                f"{access.requests:,}",
                number(costs.lanes_per_request),
                f"{number(costs.sectors_per_request)} ({number(costs.ideal_sectors_per_request)})"
                if memory
                else "",
                percent(costs.efficiency),
                f"{costs.wavefronts_per_request:.2f}" if shared and access.requests else "",
                f"{access.conflict_degree_max}" if shared else "",
                f"{access.conflict_degree_mean:.2f}" if shared else "",
                f"{access.same_address_max} (mean {access.same_address_mean:.1f})"
                if access.kind == "atomic"
                else "",
            ]
        )
    columns = [
        Column("line", right=False),
        Column("access", right=False),
        Column("of", 4, right=False),
        Column("bytes", 3),
        Column("requests", 6),
        Column("lanes", 4),
        Column("sectors (ideal)", 8),
        Column("useful %", 7),
        Column("wavefronts", 5),
        Column("conflict", 8),
        Column("mean", 6),
        Column("same word", 7),
    ]
    title = f"{kernel.name} {launch(kernel)}, {traced(kernel)}: accesses to memory"
    return Grid(title, columns, rows, notes=[besides_memory(kernel)]).without_empty()


def besides_memory(kernel: KernelProfile) -> str:
    """A text about branches, barriers, warp operations and arithmetic, as far as traced."""
    sums, trace = kernel.totals(), kernel.trace
    blocks, warps = max(trace.blocks_traced, 1), max(trace.warps_traced, 1)
    parts = [f"branches: {number(sums.branches / warps)} a warp"]
    if sums.branches:
        parts[0] += f", {share(sums.divergence)} % split"
    parts.append(f"barriers: {number(sums.barriers / blocks)} a block")
    if sums.warp_operations:
        parts.append(f"warp operations: {number(sums.warp_operations / warps)} a warp")
    parts += [f"{kind} operations: {count:,}" for kind, count in sums.operations.items()]
    return "; ".join(parts)


# Annotated source --------------------------------------------------------------------------------


def listings(variant: VariantProfile, kernel: KernelProfile, width: int = 100) -> list[Listing]:
    """The kernel's source, file by file: the variant's own first. `width` is the screen's."""
    lines = kernel.lines()
    whole = sum(line.passes for line in lines.values())
    highest = max((line.passes for line in lines.values()), default=0.0)
    columns = columns_of(lines.values())
    if len(_head(columns, bar=True)) + CODE > width:  # the bar shows the waste as well
        columns = [column for column in columns if column.head != "useful"]
    files = sorted({place.file for place in lines}, key=lambda file: (file != variant.label, file))
    result = []
    for file in files:
        if file not in variant.texts:
            continue
        listing = Listing(file, _head(columns, bar=whole > 0))
        code = source.lines_of(source.blank_comments(variant.texts[file], literals=False))
        here = {place.line: line for place, line in lines.items() if place.file == file}
        shown = list(_shown(variant.texts[file], set(here)))
        for number_, before in zip(shown, [0, *shown], strict=False):
            if before and number_ > before + 1:
                listing.rows.append(Row(remark="   ⋮"))
            line = here.get(number_)
            margin = _margin(number_, line, columns, whole, highest)
            accesses = len(code[number_ - 1].strip()) if line and line.accesses else 0
            listing.rows.append(Row(margin, number_, whole=accesses))
            if line:
                listing.rows.extend(Row(remark=f"     └ {text}") for text in remarks(line))
        result.append(listing)
    return result


@dataclass(frozen=True)
class MarginColumn:
    head: str
    width: int
    text: Callable[[Line], str]
    bad: Callable[[Line], bool]


def _of(line: Line, *spaces: str) -> list[Access]:
    return [access for access in line.accesses if access.space in spaces and access.requests]


def _sectors(line: Line) -> str:
    accesses = _of(line, *IN_SECTORS)
    if not accesses:
        return ""
    requests = sum(access.requests for access in accesses)
    actual = sum(access.sectors for access in accesses) / requests
    return f"{number(actual)} ({number(sum(a.ideal_sectors for a in accesses) / requests)})"


def _useful(line: Line) -> str:
    accesses = _of(line, *IN_SECTORS)
    actual = sum(passes(access) for access in accesses)
    return f"{percent(sum(map(ideal_passes, accesses)) / actual)}%" if actual else ""


def _conflict(line: Line) -> str:
    degree = max((access.conflict_degree_max for access in _of(line, "shared")), default=0)
    return f"{degree}-way" if degree > 1 else "none" if degree else ""


def _same_word(line: Line) -> str:
    highest = max((a.same_address_max for a in line.accesses if a.kind == "atomic"), default=0)
    return str(highest) if highest else ""


def _split(line: Line) -> float | None:
    executed = sum(branch.executions for branch in line.branches)
    return sum(branch.divergent for branch in line.branches) / executed if executed else None


def _divergent(line: Line) -> str:
    split = _split(line)
    return "" if split is None else f"{share(split)}%"


def _wastes(line: Line) -> bool:
    accesses = _of(line, *IN_SECTORS)
    return sum(map(passes, accesses)) > 1.5 * sum(map(ideal_passes, accesses))


COLUMNS = (
    MarginColumn("sectors", 8, _sectors, _wastes),
    MarginColumn("useful", 6, _useful, _wastes),
    MarginColumn("banks", 6, _conflict, lambda line: _conflict(line).endswith("way")),
    MarginColumn("meet", 4, _same_word, lambda line: _same_word(line) not in ("", "1")),
    MarginColumn("split", 5, _divergent, lambda line: (_split(line) or 0) > OFTEN),
)


def columns_of(lines: Iterable[Line]) -> list[MarginColumn]:
    """The columns that are not empty in all lines."""
    lines = list(lines)
    return [column for column in COLUMNS if any(column.text(line) for line in lines)]


def _head(columns: Sequence[MarginColumn], *, bar: bool) -> str:
    cells = ["line", *(["passes".ljust(BAR + 5)] if bar else [])]
    return " ".join([*cells, *(column.head.rjust(column.width) for column in columns)])


def _margin(
    number_: int, line: Line | None, columns: Sequence[MarginColumn], whole: float, highest: float
) -> tuple[Cell, ...]:
    cells = [Cell(f"{number_:4}", QUIET)]
    if whole:
        cells.append(Cell(" "))
        cells += _bar(line, highest)
        share = f"{percent(line.passes / whole)}%" if line and line.passes else ""
        cells.append(Cell(share.rjust(5)))
    for column in columns:
        text = column.text(line) if line else ""
        style = (BAD if column.bad(line) else GOOD) if line and text else ""
        cells.append(Cell(" " + text.rjust(column.width), style))
    return tuple(cells)


def _bar(line: Line | None, highest: float) -> list[Cell]:
    """A bar of the needed part, then the waste; the most expensive line has a full bar."""
    if line is None or not line.passes:
        return [Cell(" " * BAR)]
    full = max(round(BAR * line.passes / highest), 1)
    needed = min(max(round(full * line.ideal_passes / line.passes), 1), full)
    return [
        Cell(NEEDED * needed, GOOD),
        Cell(WASTED * (full - needed), BAD),
        Cell(" " * (BAR - full)),
    ]


def remarks(line: Line) -> Iterator[str]:
    """Remarks about costs that change from step to step of a loop, and about splits."""
    kinds_by_text: dict[str, list[str]] = {}
    for access in line.accesses:
        shared = access.space == "shared"
        costs = [number(step.conflict_degree if shared else step.sectors) for step in access.steps]
        if len(set(costs)) > 1:
            what = "conflict degree" if shared else "sectors a request"
            kinds = kinds_by_text.setdefault(f"{what} by step: {shortened(costs)}", [])
            if access.kind not in kinds:
                kinds.append(access.kind)
    for text, kinds in kinds_by_text.items():
        yield f"{', '.join(kinds)}: {text}"
    if (_split(line) or 0) > OFTEN:
        yield sides(line)


def sides(line: Line) -> str:
    """How many lanes took each side of a line's branches when a warp split."""
    divergent = sum(branch.divergent for branch in line.branches)
    if not divergent:
        return ""
    first = sum(branch.lanes_first for branch in line.branches) / divergent
    second = sum(branch.lanes_second for branch in line.branches) / divergent
    return f"split: {number(first)} and {number(second)} lanes on the two sides"


def shortened(values: Sequence[str]) -> str:
    """A long series with equal neighbours counted and its end cut off."""
    if len(values) <= STEPS_SHOWN:
        return " ".join(values)
    runs = [(value, len(list(same))) for value, same in groupby(values)]
    shown = [value if count == 1 else f"{value} (×{count})" for value, count in runs]
    return " ".join(shown[:STEPS_SHOWN]) + (" ..." if len(shown) > STEPS_SHOWN else "")


def _shown(text: str, marked: set[int]) -> Iterable[int]:
    """The marked lines, and all lines of the functions that contain them."""
    shown = set(marked)
    for first, last in functions(text):
        if any(first <= line <= last for line in marked):
            shown.update(range(first, last + 1))
    return sorted(line for line in shown if 1 <= line <= len(source.lines_of(text)))


def shallow(text: str) -> str:
    """The text with very deeply indented lines, below a long head, moved to the left."""
    return "\n".join(
        " " * 8 + line.lstrip() if line.startswith(" " * DEEP) else line
        for line in source.lines_of(text)
    )


def functions(text: str) -> Iterator[tuple[int, int]]:
    """The first and last line of each outermost pair of braces, with its head."""
    depth, first = 0, 0
    for number_, line in enumerate(source.lines_of(source.blank_comments(text)), 1):
        code = line.strip()
        if depth == 0 and (not code or code.startswith("#") or code.endswith(";")):
            first = 0
            continue
        first = first or number_
        depth += line.count("{") - line.count("}")
        if depth == 0 and "}" in line:
            yield first, number_
            first = 0


def show(profile: Profile) -> None:
    """Print the table of all kernels, the verdicts on conflicts, and each kernel line by line."""
    from cudalab.output import code, terminal  # noqa: PLC0415 - a report and a page need no rich

    terminal.grid(summary_grid(document(profile)))
    terminal.lines([*(f"{variant.name}: {variant.verdict}" for variant in profile.variants), ""])
    width = terminal.console().width
    for variant in profile.variants:
        if variant.kernels:
            heading = f"{variant.name}: {variant.summary}" if variant.summary else variant.name
            terminal.lines([heading, ""])
        for kernel in variant.kernels:
            terminal.grid(access_grid(variant, kernel))
            for one in listings(variant, kernel, width):
                code.listing(one, shallow(variant.texts[one.label]))
