"""The ladders of each lab for its README.md, a lesson: prose, new lines, measurements."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cudalab import explain, labs
from cudalab.bench.document import Document
from cudalab.labs import registry
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.labs.sizes import in_words
from cudalab.language import source
from cudalab.learn import path as learn
from cudalab.output.page import Drawing, Heading, Text
from tools import results
from tools.studies import ladders as measured_ladders
from tools.studies import lessons
from tools.studies.ladders import SIDES, Side

INTRODUCTION = """\
Each rung of a ladder has one idea more than the one before. A section below says what the idea is,
shows the lines that are new (`+`), and what is left to improve. "Times as fast" compares a rung
with the same one on every device: the one before it in the ladder that computes the same case. A
lossy rung computes less than others and is compared with none. Lines are those of the variant's own
file, and with the headers that it includes; `cudalab show --whole {lab} VARIANT` prints them as one
file. What the host launches is in
[`cudalab/labs/{lab}/plans.py`](../../cudalab/labs/{lab}/plans.py).
"""
GENERATED = "<!-- This file is generated: python -m tools.generate -->\n"


@dataclass(frozen=True)
class Times:
    """Milliseconds of a lab's variants in one measured table."""

    device: str
    size: str
    note: str  # what was measured
    ms: dict[str, float]

    @property
    def short(self) -> str:
        """The model without its maker and its memory: H100."""
        return self.device.removeprefix("NVIDIA ").partition(" ")[0]

    @property
    def column(self) -> str:
        """The heading of its column."""
        return f"{self.short}, ms"


def pages() -> Iterator[tuple[Path, str]]:
    """Each lab's README.md and its text; and what `cudalab learn` tells of measurements."""
    for lab in labs.names():
        yield results.ROOT / "kernels" / lab / "README.md", page(lab)
    gains = {step.name: worth for step in learn.steps() if (worth := worth_of(step.text))}
    yield learn.GAINS, json.dumps(gains, indent=1) + "\n"


def worth_of(step: learn.Text) -> tuple[str, str] | None:
    """The first GPU on which a step's rung was measured, and its gain there."""
    if not step.rung:
        return None
    rung = registry.find(labs.get(step.lab), step.rung)
    case = case_of(step.lab, rung.ladder)
    rungs = ladders(registry.variants(labs.get(step.lab)))[rung.ladder]
    before = next(before for one, before in with_the_one_before(rungs, case) if one == rung)
    for measured in times_of_ladder(step.lab, rung.ladder, rungs):
        if gain := times_as_fast(before, rung, measured):
            return measured.short, gain
    return None


def page(lab: str) -> str:
    """The ladders of one lab, the main one first: the problem, the tables, and each rung."""
    of_device = times_by_device(lab)
    parts = [f"# {lab}\n\n{labs.summary(lab)}.\n", *problem(lab), INTRODUCTION.format(lab=lab)]
    for name, rungs in ladders(registry.variants(labs.get(lab))).items():
        parts.append(f"## {name[:1].upper()}{name[1:]}\n" if name else "## The ladder\n")
        case, sizes = case_of(lab, name), sizes_of(lab, name)
        times = times_of_ladder(lab, name, rungs)
        parts.append(table(rungs, times, case))
        parts += [f"{measured.device}: {measured.note}.\n" for measured in times]
        parts += not_measured(rungs, case, of_device, times)
        parts += at_other_sizes(rungs, of_device, sizes[1:])
        for rung, before in with_the_one_before(rungs, case):
            parts += section(rung, before, times)
    parts.append(GENERATED)
    return "\n".join(parts)


def problem(lab: str) -> Iterator[str]:
    """The beginning of the lab's topic of `cudalab explain`, up to its first drawing."""
    topic = labs.get(lab).teaching.topic
    for part in explain.page(topic):
        match part:
            case Text():
                yield from (f"{lessons.escaped(each)}\n" for each in part.paragraphs)
            case Heading():
                yield f"**{lessons.escaped(part.text)}**\n"
            case Drawing():
                yield "\n".join(["```text", *part.lines, "```\n"])
                break
    yield f"`cudalab explain {topic}` goes on from here.\n"


def section(rung: Variant, before: Variant | None, times: list[Times]) -> Iterator[str]:
    """What a rung teaches: its idea, its new lines, its gain and its limits."""
    yield f"### {rung.name}\n"
    yield f"{lessons.escaped(rung.summary)}.\n"
    if rung.adds:
        yield f"*New: {lessons.escaped(rung.adds)}.*\n"
    names = {one.name for one in registry.variants(labs.get(rung.lab))}
    yield from (f"{linked(paragraph, names)}\n" for paragraph in lessons.prose(rung))
    path, lines = lessons.excerpt(rung, before)
    if lines:
        against = f", against `{before.name}`" if before else ""
        link = f"[`{path}`]({path})"
        yield "\n".join([f"From {link}{against}:\n", "```diff", *lines, "```\n"])
    if gains := list(filter(None, (gain(before, rung, measured) for measured in times))):
        yield f"Measured: {'; '.join(gains)}.\n"
    if named := lessons.paper(rung):
        yield f"{named}\n"


def linked(text: str, names: Collection[str]) -> str:
    """Text in which the names of a lab's variants, if they have an underscore, are links."""
    written = {name.replace("_", r"\_"): f"[`{name}`](#{name})" for name in names if "_" in name}
    words = re.compile(r"(?<![\w/`])\w+(?:\\_\w+)+(?![\w/`(])")
    return words.sub(lambda found: written.get(found[0], found[0]), text)


def gain(before: Variant | None, rung: Variant, measured: Times) -> str:
    """A rung's time on a device, and how it compares with the rung before."""
    now, factor = in_figures(measured.ms.get(rung.name)), times_as_fast(before, rung, measured)
    if not now:
        return ""
    compared = f", {factor} times as fast as `{before.name}`" if before and factor else ""
    return f"{now} ms on {measured.short}{compared}"


def sides_of(lab: str, ladder: str) -> list[Side]:
    """How a ladder beside the main one is measured, first as its table shows."""
    return [side for side in SIDES if side.lab == lab and ladder in side.ladders]


def case_of(lab: str, ladder: str) -> Case:
    """The case in which a ladder is measured."""
    sides = sides_of(lab, ladder)
    return labs.get(lab).complete(sides[0].case if sides else {})


def sizes_of(lab: str, ladder: str) -> list[str]:
    """The sizes at which a ladder is measured that are not those of the main ladder."""
    return [in_words(side.size, ",") for side in sides_of(lab, ladder) if side.size]


def not_measured(
    rungs: list[Variant], case: Case, devices: Iterable[str], times: list[Times]
) -> Iterator[str]:
    """A sentence for each GPU on which rungs have no time yet."""
    for device in devices:
        ms = next((one.ms for one in times if one.device == device), {})
        missing = [f"`{one.name}`" for one in rungs if one.computes(case) and one.name not in ms]
        if missing:
            yield f"Not measured on {device}: {', '.join(missing)}.\n"


def ladders(variants: list[Variant]) -> dict[str, list[Variant]]:
    """The variants by ladder, in teaching order; the main ladder, without a name, comes first."""
    named: dict[str, list[Variant]] = {"": []}
    for variant in variants:
        named.setdefault(variant.ladder, []).append(variant)
    return {name: rungs for name, rungs in named.items() if rungs}


@cache
def times_by_device(lab: str) -> dict[str, list[Times]]:
    """The measured tables of a lab by GPU, the oldest first."""
    of_device: dict[str, list[Times]] = {}
    for document in measured_ladders.stored():
        of_device.setdefault(document.environment.device_name, []).extend(times_of(lab, document))
    return of_device


def times_of_ladder(lab: str, ladder: str, rungs: list[Variant]) -> list[Times]:
    """The table of a ladder on each GPU that has one."""
    size = "".join(sizes_of(lab, ladder)[:1])
    tables = (of_ladder(rungs, each, size) for each in times_by_device(lab).values())
    return list(filter(None, tables))


def times_of(lab: str, stored: Document) -> Iterator[Times]:
    """The tables of a stored run of `cudalab bench` that measure `lab`."""
    environment = stored.environment
    for measured in stored.tables:
        if measured.lab == lab:
            case = " ".join(value for value in measured.case.values() if isinstance(value, str))
            note = f"the median at n = {measured.size}, {case}; "
            note += f"commit `{environment.commit}`, {environment.date[:10]}"
            ms = {row.name: figures.median_ms for row, figures in measured.timed}
            yield Times(environment.device_name, measured.size, note, ms)


def of_ladder(rungs: list[Variant], measured: list[Times], size: str = "") -> Times | None:
    """The table that has the most rungs of a ladder; of several that of its size, then the last."""

    def merit(times: Times) -> tuple[int, bool]:
        return sum(rung.name in times.ms for rung in rungs), times.size == size

    best = max(reversed(measured), key=merit, default=None)
    return best if best and merit(best)[0] else None


def at_other_sizes(
    rungs: list[Variant], of_device: dict[str, list[Times]], sizes: list[str]
) -> Iterator[str]:
    """A sentence for each further size at which all rungs of a ladder were measured, as last."""
    names = [rung.name for rung in rungs]
    for device, measured in of_device.items():
        whole = {each.size: each for each in measured if each.ms.keys() >= set(names)}
        for times in (whole[size] for size in sizes if size in whole):
            said = ", ".join(f"`{name}` {in_figures(times.ms[name])} ms" for name in names)
            yield f"{device}: {times.note}: {said}.\n"


def table(rungs: list[Variant], times: list[Times], case: Case) -> str:
    """A line for each rung of a ladder."""
    columns = ["rung"]
    for measured in times:
        columns += [measured.column, "times as fast"]
    columns += ["lines", "with headers"]
    lines = []
    for rung, before in with_the_one_before(rungs, case):
        own, whole = lines_of(rung)
        link = f"[`{rung.name}`](#{rung.name})"
        if rung.precision:
            link += f" ({rung.precision}: lossy)"
        cells = [link]
        for measured in times:
            now = in_figures(measured.ms.get(rung.name))
            cells.append(now if rung.computes(case) else "another case")
            cells.append(times_as_fast(before, rung, measured))
        lines.append([*cells, str(own), f"{whole:,}"])
    return results.table(columns, lines, numbers=len(columns) - 1)


def with_the_one_before(
    rungs: list[Variant], case: Case
) -> Iterator[tuple[Variant, Variant | None]]:
    """Each rung of a ladder and the one that its time is compared with, on every device.

    A lossy rung computes less than others, so its time is compared with none.
    """
    before: Variant | None = None
    for rung in rungs:
        yield rung, None if rung.precision else before
        if rung.computes(case) and not rung.precision:
            before = rung


def times_as_fast(before: Variant | None, rung: Variant, measured: Times) -> str:
    """How many times as fast as the rung before it a rung is, if both were measured."""
    was, now = measured.ms.get(before.name if before else ""), measured.ms.get(rung.name)
    return f"{was / now:.2f}" if was and now else ""


def in_figures(ms: float | None) -> str:
    """A time in three figures, or nothing."""
    return f"{ms:#.3g}".rstrip(".") if ms else ""


def lines_of(rung: Variant) -> tuple[int, int]:
    """The number of lines of the variant's file, and of all the files that it is made of."""
    lines = _lines_by_file(rung.path)
    return lines[rung.path.resolve()], sum(lines.values())


def built_on(rung: Variant) -> Variant | None:
    """The rung that a reader knows before this one and that has most in common with it.

    It stands before it in its ladder; or it is shorter and stands in another ladder of its lab; or,
    for the first rung of a lab, it is shorter and of another lab.
    """
    own, whole = _lines_by_file(rung.path), lines_of(rung)[1]
    lab = registry.variants(labs.get(rung.lab))
    others = [each for each in labs.names() if each != rung.lab]
    candidates = [
        one
        for one in lab
        if (one.order < rung.order if one.ladder == rung.ladder else lines_of(one)[1] < whole)
    ]
    if rung == lab[0]:
        candidates = [
            one
            for each in others
            for one in registry.variants(labs.get(each))
            if lines_of(one)[1] < whole
        ]

    def in_common(one: Variant) -> float:
        lines = _lines_by_file(one.path)
        return sum(lines[file] for file in own.keys() & lines) / sum((own | lines).values())

    best = max(candidates, key=in_common, default=None)
    return best if best and in_common(best) else None


def added_lines(rung: Variant) -> int:
    """How many lines more a rung stands on than the one that it is built on."""
    before = built_on(rung)
    return lines_of(rung)[1] - (lines_of(before)[1] if before else 0)


@cache
def _lines_by_file(path: Path) -> dict[Path, int]:
    """The number of lines of a variant's file, and of each file that it includes."""
    files = source.load(path, path.name).files
    return {file.resolve(): len(file.read_text("utf-8").splitlines()) for file in files}
