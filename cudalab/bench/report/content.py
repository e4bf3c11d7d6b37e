"""The content of a report: results are filled in, and the student's conclusions stay blank."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import cleandoc

import numpy as np

from cudalab import labs
from cudalab.bench import document, grids
from cudalab.bench.charts import charts, intensities, rooflines
from cudalab.bench.document import Document, Environment, Row, Table, device_facts, software_facts
from cudalab.bench.measured import COLD, HOT
from cudalab.errors import UsageError
from cudalab.formats import InputStream, write_all
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Array, Case, HostInputs
from cudalab.microscope.annotate import summary_grid
from cudalab.microscope.document import SCHEMA as PROFILE
from cudalab.microscope.document import Document as Profile
from cudalab.microscope.document import from_json
from cudalab.output.charts import Chart
from cudalab.output.grid import Column, Grid


@dataclass(frozen=True)
class Heading:
    """The title (level 1), or the heading of a section (2) or subsection (3)."""

    level: int
    text: str


@dataclass(frozen=True)
class Code:
    """Preformatted lines."""

    text: str


@dataclass(frozen=True)
class Blank:
    """Space for the student's own text."""

    prompt: str


Block = Heading | str | Code | Grid | Chart | Blank  # a part of a report; a string is a paragraph

ABOUT_ROOFLINES = (
    "Each point is a row of the table. The roof is what the device was measured to copy from "
    "memory to memory and, if operations are counted, the peak of its units. To the right: fewer "
    "bytes for the same work. Up: better use of the memory. A point above the roof finds part of "
    "its bytes in a cache."
)
ABOUT_PREDICTIONS = (
    "Nobody measured these times: a model expects them, from counts of the CPU device and from the "
    "GPU's numbers. The last columns name the parts of the GPU that need the most time."
)
FOR_PROGRAMMERS = "Macros from outside:"  # begins the last paragraph of a kernel's description
DIFFERS = "differs: each table says it"  # for files of several runs


@dataclass(frozen=True, kw_only=True)
class Source:
    """The data that a report is made from."""

    lab: Lab
    document: Document  # of bench, with only this lab's tables
    differing: list[str] = field(default_factory=list)  # facts that its runs do not share
    profile: str | None = None  # the text or the JSON of `cudalab profile`
    predicted: Grid | None = None  # of `cudalab predict`
    pictures: bool = True  # whether they can be shown


def build(source: Source) -> list[Block]:
    """All blocks of a report. UsageError if there is nothing to report."""
    lab, tables = source.lab, source.document.tables
    if not tables:
        raise UsageError(
            f"the results have no table of {lab.name}", hint=f"`cudalab bench {lab.name} --json`"
        )
    profile = profile_in(source.profile)
    blocks: list[Block] = [
        Heading(1, f"Lab report: {lab.name}"),
        f"{labs.summary(lab.name)}.",
        Blank("Name, group, date:"),
        Heading(2, "Task"),
        *_paragraphs(cleandoc(type(lab).__doc__ or "")),
        *_system(source.document.environment, source.differing),
        Heading(2, "Method"),
        *_method(lab, tables),
        Heading(3, "How times were taken"),
        _discipline(source.document.conditions.caches),
        *_results(source.document),
        *(_roofline(source.document, profile) if source.pictures else []),
    ]
    if source.predicted:
        blocks += [Heading(2, "Prediction"), ABOUT_PREDICTIONS, source.predicted]
    if source.profile is not None:
        blocks += [Heading(2, "Profile")]
        if profile is None:
            blocks += [Code(source.profile.rstrip())]
        else:
            verdicts = [f"{one.variant}: {one.verdict}." for one in profile.variants]
            blocks += [summary_grid(profile), *verdicts]
    blocks += samples(lab, tables[0])
    blocks += [Heading(2, "Conclusions")]
    for question in questions(tables):
        blocks += [Heading(3, question), Blank("")]
    return blocks


def profile_in(text: str | None) -> Profile | None:
    """The profile in the JSON of `cudalab profile`; None for any other text."""
    try:
        parsed = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(parsed, dict) or parsed.get("schema") != PROFILE:
        return None
    return from_json(parsed)


def _paragraphs(text: str) -> list[Block]:
    """Lines joined to paragraphs; indented lines stay unchanged."""
    result: list[Block] = []
    for part in text.split("\n\n"):
        lines = part.strip("\n").splitlines()
        if lines and all(line.startswith("  ") for line in lines):
            result.append(Code("\n".join(lines)))
        elif lines:
            result.append(" ".join(line.strip() for line in lines))
    return result


def _system(environment: Environment, differing: Sequence[str]) -> list[Block]:
    """The device's table and the versions of the software."""
    busy = environment.other_processes
    notes = ["other processes on the GPU: " + ", ".join(busy)] if busy else []
    unknown = dict.fromkeys(differing, DIFFERS)
    emulated = (
        "The kernels ran on the CPU device, which emulates a GPU: their times say nothing "
        "about a GPU and are never compared with one."
    )
    return [
        Heading(2, "Hardware and software"),
        *([emulated] if environment.emulated else []),
        _pairs("Device", device_facts(environment), unknown, notes),
        _pairs("Software", software_facts(environment), unknown, []),
    ]


def _pairs(
    title: str, facts: Mapping[str, str], unknown: Mapping[str, str], notes: list[str]
) -> Grid:
    columns = [Column("property", right=False), Column("value", right=False)]
    rows = [[label, unknown.get(label, value)] for label, value in facts.items()]
    return Grid(title, columns, rows, notes=notes)


# Method ------------------------------------------------------------------------------------------


def _method(lab: Lab, tables: Sequence[document.Table]) -> list[Block]:
    """A description of each measured variant, from the comment in its file."""
    known = {variant.name: variant for variant in registry.variants(lab)}
    measured: dict[str, Row] = {}
    for row in (row for table in tables for row in table.rows):
        if row.kind == "variant":
            measured.setdefault(row.variant, row)
    blocks: list[Block] = []
    for name, row in sorted(measured.items(), key=lambda item: item[1].order):
        blocks += [
            Heading(3, f"{name} ({row.precision})" if row.precision else name),
            f"{row.summary}.",
        ]
        variant = known.get(name)
        if variant is None:
            blocks.append(Blank("What this kernel does, and why:"))
            continue
        described = description(variant.path.read_text(encoding="utf-8"))
        blocks += _paragraphs(described.partition(FOR_PROGRAMMERS)[0])
        if variant.defines:
            macros = ", ".join(f"{name} = {value}" for name, value in variant.defines.items())
            blocks.append(f"Compiled with {macros}.")
    return blocks


def description(text: str) -> str:
    """The comment at the top of a .cu file, after its header."""
    lines = iter(text.splitlines())
    for line in lines:  # the header
        if line.startswith("// /// cudalab"):
            break
    for line in lines:
        if line.rstrip() == "// ///":
            break
    comment = []
    for line in lines:
        if not line.startswith("//"):
            break
        comment.append(line.removeprefix("//").removeprefix(" ").rstrip())
    return "\n".join(comment).strip("\n")


def _discipline(caches: Sequence[str]) -> str:
    states: dict[tuple[str, ...], str] = {
        (COLD,): "Before each sample the caches were flushed.",
        (HOT,): "The caches were as the run before had left them.",
    }
    both = "Cold: the caches were flushed before each sample; hot: as the run before had left them."
    state = states.get(tuple(caches), both)
    return (
        "Each answer was checked against a reference on the host before and after timing, on an "
        "output that had been filled with other bytes; the inputs were checked to be unchanged. "
        f"{state} All rows of a table were sampled in turn. Times are medians; ± is the standard "
        "deviation as the quartiles tell it. A ratio is given where its 95 % interval leaves out "
        "1, else there is no winner. The time is that of the kernels, without copies to and from "
        "the device, unless a table says otherwise."
    )


# Results -----------------------------------------------------------------------------------------


def _results(document: Document) -> list[Block]:
    """Tables over variants and n, then over launch shapes, with their charts."""
    plain = replace(document, tables=[table for table in document.tables if not table.sweep])
    swept = replace(
        document, tables=[table for table in document.tables if table.sweep and table.timed]
    )
    blocks: list[Block] = []
    if plain.tables:
        blocks += [Heading(2, "Results"), *grids.grids(plain)]
        blocks += charts(plain)
    if swept.tables:
        blocks += [Heading(2, "Launch shapes"), *grids.grids(swept)]
        blocks += charts(swept)
    return blocks


def _roofline(document: Document, profile: Profile | None) -> list[Block]:
    """The rooflines, and where their points and roofs come from."""
    drawn = rooflines(document, profile)
    if not drawn:
        return []
    blocks: list[Block] = [Heading(2, "Roofline"), *drawn, ABOUT_ROOFLINES]
    plain = [table for table in document.tables if not table.sweep]
    if profile and any(intensities(table, profile) for table in plain):
        names = {row.variant for table in plain for row, _ in table.timed}
        missing = ", ".join(sorted(names - profile.requested_bytes().keys()))
        counted = (
            "The bytes are those that the threads request from global memory, as profiled with "
            f"{profile.input}."
        )
        return [*blocks, counted + (f" Not profiled: {missing}." if missing else "")]
    lab = plain[0].lab
    return [
        *blocks,
        (
            "The bytes are those of the minimum work: the input read once, the answer written "
            "once. These commands take what each variant really requests:"
        ),
        Code(
            f"cudalab profile {lab} --variants all --json profile.json\n"
            f"cudalab report {lab} --profile profile.json -o report.html"
        ),
    ]


def questions(tables: Sequence[document.Table]) -> list[str]:
    """The questions to the student that concern these results."""
    plain = [table for table in tables if not table.sweep]
    sizes = {(table.series, table.size) for table in plain}
    rows = [row for table in plain for row in table.rows]
    result = []
    if len({row.name for row in rows if row.kind == "variant"}) > 1:
        result.append("Which variant is fastest, and which of its steps made the difference?")
    result.append("What limits the fastest variant: memory, arithmetic, launches, barriers?")
    if len(sizes) > len({table.series for table in plain}):
        result.append("How does the time grow with n, and where does the order of variants change?")
    if any(table.sweep and table.timed for table in tables):
        result.append("Which launch shape is best, and why?")
    if any(row.kind == "baseline" for row in rows):
        result.append("What does the library do that these variants do not?")
    return [*result, "What was not as expected?", "Conclusions"]


SAMPLE_SEED = 1
SHOWN_BYTES = 64
SHOWN_ELEMENTS = 32


def samples(lab: Lab, table: Table) -> list[Block]:
    """A small input and its right answer, as bytes and as numbers."""
    case = lab.complete(dict(table.case))
    dist = table.dist
    size = lab.teaching.sizes(case).sample
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
    ]
    return [
        Heading(2, "Samples of input and output"),
        (
            f"An input of {len(stream)} bytes, distribution {dist}, seed {SAMPLE_SEED}; the first "
            "bytes, then what they mean:"
        ),
        Code("\n".join([dump(stream), "", *numbers, *arrays])),
        f"The right answer, {answer.nbytes} bytes without a header:",
        Code("\n".join([dump(answer.tobytes()), "", shown(answer)])),
    ]


def read_back(lab: Lab, case: Case, stream: bytes) -> HostInputs:
    """The inputs that a lab reads from a stream."""
    with tempfile.TemporaryFile() as file:
        write_all(file.fileno(), [stream], "sample")
        file.seek(0)
        return lab.read(InputStream(file.fileno(), "sample"), case).load().copy()


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
    """All elements of a small array, or the nonzero elements of a large one if they are few."""
    flat = array.reshape(-1)
    if flat.size > SHOWN_ELEMENTS:
        places = np.flatnonzero(flat)
        if len(places) <= SHOWN_ELEMENTS:
            listed = ", ".join(f"[{i}] = {flat[i]}" for i in places)
            return f"{listed}; the others of {flat.size} are 0"
    return np.array2string(array, separator=", ", threshold=SHOWN_ELEMENTS, max_line_width=96)
