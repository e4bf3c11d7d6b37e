"""The course's lab report, from the results of bench: what was measured is filled in.

A report is a list of blocks; `markdown` and `html` turn them into a file. What a student must find
out stays blank.
"""

from __future__ import annotations

import base64
import html as escaping
import json
import re
import tempfile
from dataclasses import dataclass, field, replace
from inspect import cleandoc
from typing import TYPE_CHECKING

import numpy as np

from cudalab import labs
from cudalab.bench import bounds, grids
from cudalab.bench.charts import charts
from cudalab.bench.measure import COLD, HOT
from cudalab.errors import NoDeviceError, UsageError
from cudalab.formats import InputStream, output_file, write_all
from cudalab.labs import registry
from cudalab.labs.base import Inputs
from cudalab.microscope.annotate import summary_grid
from cudalab.microscope.profile import SCHEMA as PROFILE
from cudalab.output.grid import Column, Grid
from cudalab.output.plots import chart_bytes, check_target
from cudalab.verify import in_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cudalab.bench.results import Json
    from cudalab.labs.base import Array, Case, Lab, Size
    from cudalab.labs.header import Variant
    from cudalab.output.plots import Chart

SAMPLE_SIZES: dict[str, Size] = {"matmul": 2, "solve": 2, "transpose": (2, 3), "histogram": 20}
SAMPLE_SIZE = 8
SAMPLE_SEED = 1
SHOWN_BYTES = 64
SHOWN_ELEMENTS = 32
MATRICES = ("matmul", "solve", "transpose")  # their size is an order
# The define that is swept where a variant has it, and its values.
SHAPES = {
    "THREADS_PER_BLOCK": ["32", "64", "128", "256", "512", "1024"],
    "TILE": ["8", "16", "32"],
    "TILE_DIM": ["16", "32", "64"],
}
FOLLOWS = "ITEMS_PER_BLOCK"  # in proportion to the threads, unless it is that of a scan inside
FEW_THREADS = 32  # a block of fewer is no block of a GPU
DIFFERS = "differs: each table says it"  # of files of several runs


# Blocks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heading:
    """The title (level 1), a section (2), a part of one (3)."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines as they are."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table with its title and notes."""

    grid: Grid


@dataclass(frozen=True)
class Picture:
    """A chart."""

    chart: Chart


@dataclass(frozen=True)
class Blank:
    """Room for the student's own words."""

    prompt: str


Block = Heading | Text | Code | Table | Picture | Blank


@dataclass(frozen=True)
class Source:
    """What a report is made of."""

    lab: Lab
    document: Json  # of bench, with the tables of this lab only
    profile: str | None = None  # as `cudalab profile` printed it, or its JSON
    pictures: bool = True


def build(source: Source) -> list[Block]:
    """The whole report. UsageError when there is nothing to report."""
    lab, document = source.lab, source.document
    tables = document["tables"]
    if not tables:
        raise UsageError(
            f"the results have no table of {lab.name}", hint=f"`cudalab bench {lab.name} --json`"
        )
    blocks: list[Block] = [
        Heading(1, f"Lab report: {lab.name}"),
        Text(f"{labs.summary(lab.name)}."),
        Blank("Name, group, date:"),
        Heading(2, "Task"),
        *_paragraphs(cleandoc(type(lab).__doc__ or "")),
        *_system(document),
        Heading(2, "Method"),
        *_method(lab, tables),
        Heading(3, "How times were taken"),
        Text(_discipline(document)),
        *_results(document, pictures=source.pictures),
    ]
    if source.profile is not None:
        blocks += [Heading(2, "Profile"), *_profile(source.profile)]
    blocks += _samples(lab, tables[0])
    blocks += [Heading(2, "Conclusions")]
    for question in questions(tables):
        blocks += [Heading(3, question), Blank("")]
    return blocks


def _profile(text: str) -> list[Block]:
    """The JSON of `cudalab profile` as a table and sentences, other text as it is."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("schema") != PROFILE:
        return [Code(text.rstrip())]
    said = [Text(f"{one['variant']}: {one['verdict']}.") for one in found["variants"]]
    return [Table(summary_grid(found)), *said]


def _paragraphs(text: str) -> list[Block]:
    """Lines joined to paragraphs; indented ones stay as they are."""
    found: list[Block] = []
    for part in text.split("\n\n"):
        lines = part.strip("\n").splitlines()
        if lines and all(line.startswith("  ") for line in lines):
            found.append(Code("\n".join(lines)))
        elif lines:
            found.append(Text(" ".join(line.strip() for line in lines)))
    return found


def _system(document: Json) -> list[Block]:
    """The device's table and the versions of the software."""
    environment = document["environment"]
    emulated = environment["emulated"]
    notes = []
    if environment["other_processes"]:
        notes.append("other processes on the GPU: " + ", ".join(environment["other_processes"]))
    found: list[Block] = [
        Heading(2, "Hardware and software"),
        Table(_pairs("Device", _differing(_device(environment), document), notes)),
        Table(_pairs("Software", _differing(_software(environment), document), [])),
    ]
    if emulated:
        found.insert(
            1,
            Text(
                "The kernels ran on the CPU device, which emulates a GPU: their times say nothing "
                "about a GPU and are never compared with one."
            ),
        )
    return found


def _device(environment: Json) -> dict[str, str]:
    """What was declared and measured of the device, by its label."""
    found = {label: _value(value) for label, value in environment["properties"].items()}
    found["copy, memory to memory, measured (GB/s)"] = f"{environment['copy_gb_per_s']:,.1f}"
    if environment["clock_mhz"]:
        found["clock under way, measured (MHz)"] = f"{environment['clock_mhz']:,.0f}"
    return found


def _software(environment: Json) -> dict[str, str]:
    """Versions and the date, by their labels."""
    found = {"system": environment["platform"], **environment["versions"]}
    if environment["commit"]:
        found["commit"] = environment["commit"]
    return {**found, "measured on": environment["date"]}


def _differing(found: dict[str, str], document: Json) -> dict[str, str]:
    """No value where that of several runs differs."""
    return found | {label: DIFFERS for label in document.get("differing", []) if label in found}


def _pairs(title: str, found: Mapping[str, str], notes: list[str]) -> Grid:
    columns = [Column("property", right=False), Column("value", right=False)]
    return Grid(title, columns, [[*pair] for pair in found.items()], notes)


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}"


# Method ------------------------------------------------------------------------------------------


def _method(lab: Lab, tables: Sequence[Json]) -> list[Block]:
    """Each variant that was measured, in the words of its own file."""
    known = {variant.name: variant for variant in registry.variants(lab)}
    measured: dict[str, Json] = {}
    for table in tables:
        for row in table["rows"]:
            if row["kind"] == "variant":
                measured.setdefault(row["name"].partition("[")[0], row)
    blocks: list[Block] = []
    for name, row in sorted(measured.items(), key=lambda item: item[1]["order"]):
        blocks += [Heading(3, name), Text(f"{row['summary']}.")]
        variant = known.get(name)
        if variant is None:
            blocks.append(Blank("What this kernel does, and why:"))
        else:
            blocks += _paragraphs(description(variant.path.read_text(encoding="utf-8")))
            if variant.defines:
                chosen = ", ".join(f"{k} = {v}" for k, v in variant.defines.items())
                blocks.append(Text(f"Its macros: {chosen}."))
    return blocks


def description(text: str) -> str:
    """The comment at the top of a .cu, behind its header."""
    lines = iter(text.splitlines())
    for line in lines:  # the header
        if line.startswith("// /// cudalab"):
            break
    for line in lines:
        if line.rstrip() == "// ///":
            break
    said = []
    for line in lines:
        if not line.startswith("//"):
            break
        said.append(line.removeprefix("//").removeprefix(" ").rstrip())
    return "\n".join(said).strip("\n")


def _discipline(document: Json) -> str:
    caches = document["conditions"]["caches"]
    state = {
        (COLD,): "Before each sample the caches were flushed.",
        (HOT,): "The caches were as the run before had left them.",
    }.get(
        tuple(caches),
        "Cold: the caches were flushed before each sample; hot: as the run before had left them.",
    )
    return (
        "Each answer was checked against a reference on the host before and after timing, on an "
        "output that had been filled with other bytes; the inputs were checked to be unchanged. "
        f"{state} All rows of a table were sampled in turn. Times are medians; ± is the standard "
        "deviation as the quartiles tell it. A ratio is given where its 95 % interval leaves out "
        "1, else there is no winner. The time is that of the kernels, without copies to and from "
        "the device, unless a table says otherwise."
    )


# Results -----------------------------------------------------------------------------------------


def _results(document: Json, *, pictures: bool) -> list[Block]:
    """Tables over variants and n, then over launch shapes, with their charts."""
    environment = document["environment"]
    plain = [table for table in document["tables"] if not table["sweep"]]
    swept = [table for table in document["tables"] if table["sweep"] and _timed(table)]
    blocks: list[Block] = []
    if plain:
        blocks += [Heading(2, "Results"), *_tables(plain, environment)]
        blocks += map(Table, grids.summaries({**document, "tables": plain}))
        if pictures:
            blocks += map(Picture, charts({**document, "tables": plain}))
    if swept:
        blocks += [Heading(2, "Launch shapes"), *_tables(swept, environment)]
        if pictures:
            blocks += map(Picture, charts({**document, "tables": swept}))
    return blocks


def _timed(table: Json) -> bool:
    return any(row["statistics"] for row in table["rows"])


def _tables(tables: Sequence[Json], environment: Json) -> list[Block]:
    return [Table(one) for table in tables for one in grids.of_table(table, environment)]


def questions(tables: Sequence[Json]) -> list[str]:
    """What the student must answer, as far as the results bear on it."""
    plain = [table for table in tables if not table["sweep"]]
    series = {json.dumps([t["case"], t["dist"]]) for t in plain}
    sizes = {json.dumps([t["case"], t["dist"], t["size"]]) for t in plain}
    variants = {r["name"] for t in plain for r in t["rows"] if r["kind"] == "variant"}
    asked = []
    if len(variants) > 1:
        asked.append("Which variant is fastest, and which of its steps made the difference?")
    asked.append("What limits the fastest variant: memory, arithmetic, launches, barriers?")
    if len(sizes) > len(series):
        asked.append("How does the time grow with n, and where does the order of variants change?")
    if any(table["sweep"] and _timed(table) for table in tables):
        asked.append("Which launch shape is best, and why?")
    if any(row["kind"] == "baseline" for table in plain for row in table["rows"]):
        asked.append("What does the library do that these variants do not?")
    return [*asked, "What was not as expected?", "Conclusions"]


# Samples -----------------------------------------------------------------------------------------


def _samples(lab: Lab, table: Json) -> list[Block]:
    """A small input, as bytes and as numbers, and the right answer to it."""
    case = lab.complete(table["case"])
    dist = table["dist"]
    size = SAMPLE_SIZES.get(lab.name, SAMPLE_SIZE)
    if lab.name == "reduce" and case.get("along") != "all":
        size = (2, 4)
    if case.get("shape"):
        size = (2, 3) if case.get("product") == "aat" else (2, 3, 2)
    stream = b"".join(bytes(piece) for piece in lab.generate(case, size, dist, SAMPLE_SEED))
    inputs = read_back(lab, case, stream)
    answer = lab.reference(inputs, case)
    first = next(iter(inputs.arrays.values()))
    if answer.dtype.kind == "f" and answer.dtype != first.dtype:
        answer = answer.astype(first.dtype)  # the reference is more accurate than an answer
    numbers = [f"{name} = {value}" for name, value in inputs.params.items() if name != "stream"]
    arrays = [
        f"{name} =" + ("\n" if array.ndim > 1 else " ") + shown(array)
        for name, array in inputs.arrays.items()
        if isinstance(array, np.ndarray)
    ]
    return [
        Heading(2, "Samples of input and output"),
        Text(
            f"An input of {len(stream)} bytes, distribution {dist}, seed {SAMPLE_SEED}; the first "
            "bytes, then what they mean:"
        ),
        Code("\n".join([dump(stream), "", *numbers, *arrays])),
        Text(f"The right answer, {answer.nbytes} bytes without a header:"),
        Code("\n".join([dump(answer.tobytes()), "", shown(answer)])),
    ]


def read_back(lab: Lab, case: Case, stream: bytes) -> Inputs:
    """What a lab reads from a stream."""
    with tempfile.TemporaryFile() as file:
        write_all(file.fileno(), [stream], "sample")
        file.seek(0)
        announced = lab.read(InputStream(file.fileno(), "sample"), case)
        arrays = {name: np.array(in_memory(data)) for name, data in announced.arrays.items()}
    return Inputs({**arrays}, announced.params)


def dump(data: bytes) -> str:
    """The first bytes in hexadecimal, 16 a line, with their offsets."""
    lines = [
        f"{at:04x}  {data[at : at + 16].hex(' ')}"
        for at in range(0, min(len(data), SHOWN_BYTES), 16)
    ]
    if len(data) > SHOWN_BYTES:
        lines.append(f"...   {len(data) - SHOWN_BYTES:,} more")
    return "\n".join(lines)


def shown(array: Array) -> str:
    """All elements of a small array; of a large one those that are not zero, if they are few."""
    flat = array.reshape(-1)
    if flat.size > SHOWN_ELEMENTS:
        places = np.flatnonzero(flat)
        if len(places) <= SHOWN_ELEMENTS:
            listed = ", ".join(f"[{i}] = {flat[i]}" for i in places)
            return f"{listed}; the others of {flat.size} are 0"
    return np.array2string(array, separator=", ", threshold=SHOWN_ELEMENTS, max_line_width=96)


# What is measured for a report ------------------------------------------------------------------


def default_sizes(lab: Lab, case: Case, device: str) -> list[Size]:
    """Three sizes up to the one that bench takes."""
    most = bounds.default_size(lab.name, case, device)
    if not isinstance(most, int):
        return [most]
    matrix = lab.name in MATRICES or case.get("along", "all") != "all"
    steps = (4, 2, 1) if matrix else (16, 4, 1)
    return [max(most // step, 1) for step in steps]


def launch_shapes(variant: Variant) -> dict[str, list[str]] | None:
    """A sweep over the variant's block or tile size; None where it has none to change.

    The items of a block stay in proportion to its threads. Where tiles of BM x BN and registers
    decide how many threads there are, no single number can be changed.
    """
    defines = variant.defines
    if "BM" in defines or _number(defines, "THREADS_PER_BLOCK", FEW_THREADS) < FEW_THREADS:
        return None
    name = next((name for name in SHAPES if isinstance(defines.get(name), int)), None)
    if name is None:
        return None
    sweep = {name: SHAPES[name]}
    each, rest = divmod(_number(defines, FOLLOWS, 0), _number(defines, name, 1))
    if name == "THREADS_PER_BLOCK" and "SCAN_THREADS" not in defines and each and not rest:
        sweep[FOLLOWS] = [f"{each}*{name}"]
    return sweep


def _number(defines: Mapping[str, int | str], name: str, otherwise: int) -> int:
    value = defines.get(name)
    return value if isinstance(value, int) else otherwise


def swept_variants(lab: Lab, case: Case, device: str, features: frozenset[str]) -> list[Variant]:
    """The first variant of the ladder that has a launch shape, and a default that has one."""
    able = [
        variant
        for variant in registry.variants(lab)
        if variant.computes(case) and not variant.missing(features) and launch_shapes(variant)
    ]
    usual = next((variant for variant in able if device in variant.default), None)
    chosen = {variant.name: variant for variant in (*able[:1], usual) if variant}
    return list(chosen.values())


def merged(documents: Sequence[Json], lab: str) -> Json:
    """The tables of `lab` from several files; where their runs differ, a note of each says how.

    `differing` names in what. UsageError if they are from different devices.
    """
    first = documents[0]
    for document in documents[1:]:
        for key in ("device", "device_name"):
            one, other = first["environment"][key], document["environment"][key]
            if one != other:
                raise UsageError(
                    f"the files are results of different devices: {one} and {other}",
                    hint="a report is about one device",
                )
    runs = [one for one in documents if any(table["lab"] == lab for table in one["tables"])]
    runs = runs or [first]
    facts = [_facts(run) for run in runs]
    differing = [
        label
        for label in dict.fromkeys(label for known in facts for label in known)
        if len({known.get(label) for known in facts}) > 1
    ]
    tables = []
    for run, known in zip(runs, facts, strict=True):
        said = "; ".join(f"{label}: {known.get(label, 'unknown')}" for label in differing)
        notes = [f"the run of this table: {said}"] if said else []
        tables += [
            {**table, "notes": [*table["notes"], *notes]}
            for table in run["tables"]
            if table["lab"] == lab
        ]
    busy = [text for run in runs for text in run["environment"]["other_processes"]]
    caches = [cache for run in runs for cache in run["conditions"]["caches"]]
    return {
        **runs[0],
        "environment": {**runs[0]["environment"], "other_processes": [*dict.fromkeys(busy)]},
        "conditions": {**runs[0]["conditions"], "caches": [*dict.fromkeys(caches)]},
        "tables": tables,
        "differing": differing,
    }


def _facts(run: Json) -> dict[str, str]:
    """What the times of a run depend on, by its label."""
    conditions = run["conditions"]
    return {
        **_device(run["environment"]),
        **_software(run["environment"]),
        "time limit of a table (s)": f"{conditions['time_limit_s']:g}",
        "seed": str(conditions["seed"]),
    }


# Files -------------------------------------------------------------------------------------------


@dataclass
class Pictures:
    """The charts of a Markdown file, which lie beside it."""

    stem: str
    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, chart: Chart) -> str:
        """Keep the picture; its name."""
        name = f"{self.stem}-{len(self.files) + 1}.png"
        self.files[name] = chart_bytes([chart], "png")
        return name


def markdown(blocks: Sequence[Block], pictures: Pictures | None = None) -> str:
    """The report as Markdown; charts are left out where there is no place for pictures."""
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
    """Characters that mean something escaped; an underscore within a word means nothing."""
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
    """The report as one HTML file that needs nothing else; blanks can be filled in there."""
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
    """Write the report to `path`, pictures of a Markdown file beside it; to stdout without them.

    The suffix .html or .htm makes one file of it all. Returns what is left out and why.
    """
    said = []
    pictures = path is not None
    if pictures:
        try:
            check_target("chart.png")
        except NoDeviceError as error:
            said.append(f"no pictures: {error.message}; pip install 'cudalab[plot]'")
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
    return said


def _replace(path: Path, data: bytes) -> None:
    with output_file(path) as fd:
        write_all(fd, [data], str(path))
