"""The ladders of each lab for its README.md: headers, lengths of files and stored measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudalab import labs
from cudalab.bench.document import load
from cudalab.labs import registry
from cudalab.language import source
from tools import results
from tools.studies.ladders import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cudalab.bench.document import Document
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case

INTRODUCTION = """\
The rungs of each ladder in order, one idea each. "Times as fast" compares a rung with the same one
on every device: the one before it in the ladder that computes the same case. A lossy rung computes
less than others and is compared with none. Lines are those of the variant's own file, and with the
headers that it includes (`cudalab show --whole {lab} VARIANT` prints them as one file). What the
host launches is in [`cudalab/labs/{lab}/plans.py`](../../cudalab/labs/{lab}/plans.py).

This file is generated: `python -m tools.generate`.
"""


@dataclass(frozen=True)
class Times:
    """Milliseconds of a lab's variants in one measured table."""

    device: str
    note: str  # what was measured
    ms: dict[str, float]

    @property
    def column(self) -> str:
        """The heading of its column."""
        return f"{self.device}, ms"


def pages() -> Iterator[tuple[Path, str]]:
    """Each lab's README.md and its text."""
    for lab in labs.names():
        yield results.ROOT / "kernels" / lab / "README.md", page(lab)


def page(lab: str) -> str:
    """The ladders of one lab, the main one first."""
    stored = [load(path) for path in sorted((results.FOLDER / "bench").glob("*.json"))]
    parts = [f"# {lab}\n\n{labs.summary(lab)}.\n", INTRODUCTION.format(lab=lab)]
    for name, rungs in ladders(registry.variants(labs.get(lab))).items():
        parts.append(f"## {name[:1].upper()}{name[1:]}\n" if name else "## The ladder\n")
        case = case_of(lab, name)
        times = list(filter(None, (of_ladder(rungs, list(times_of(lab, one))) for one in stored)))
        parts.append(table(rungs, times, case))
        parts += [f"{measured.column}: {measured.note}.\n" for measured in times]
        parts += not_measured(rungs, case, stored, times)
    return "\n".join(parts)


def case_of(lab: str, ladder: str) -> Case:
    """The case in which a ladder is measured."""
    sides = (side for side in SIDES if side.lab == lab and ladder in side.ladders)
    side = next(sides, None)
    return labs.get(lab).complete(side.case if side else {})


def not_measured(
    rungs: list[Variant], case: Case, stored: list[Document], times: list[Times]
) -> Iterator[str]:
    """A sentence for each GPU on which rungs have no time yet."""
    for document in stored:
        device = document.environment.device_name
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


def times_of(lab: str, stored: Document) -> Iterator[Times]:
    """The tables of a stored run of `cudalab bench` that measure `lab`."""
    environment = stored.environment
    for measured in stored.tables:
        if measured.lab == lab:
            case = " ".join(value for value in measured.case.values() if isinstance(value, str))
            note = f"the median at n = {measured.size}, {case}; "
            note += f"commit `{environment.commit}`, {environment.date[:10]}"
            ms = {row.name: figures.median_ms for row, figures in measured.timed}
            yield Times(environment.device_name, note, ms)


def of_ladder(rungs: list[Variant], measured: list[Times]) -> Times | None:
    """The table that has the most rungs of a ladder; of several the last: its own case and size."""

    def count(times: Times) -> int:
        return sum(rung.name in times.ms for rung in rungs)

    best = max(reversed(measured), key=count, default=None)
    return best if best and count(best) else None


def table(rungs: list[Variant], times: list[Times], case: Case) -> str:
    """A line for each rung of a ladder."""
    columns = ["rung", "idea", "adds to the rung before", "lines", "with headers"]
    for measured in times:
        columns += [measured.column, "times as fast"]
    lines = []
    for rung, before in with_the_one_before(rungs, case):
        own, whole = lines_of(rung)
        link = f"[`{rung.name}`]({rung.path.name})"
        if rung.precision:
            link += f" ({rung.precision}: lossy)"
        cells = [link, rung.summary, rung.adds, str(own), f"{whole:,}"]
        for measured in times:
            now = in_figures(measured.ms.get(rung.name))
            cells.append(now if rung.computes(case) else "another case")
            cells.append(step(before, rung, measured))
        lines.append(cells)
    return results.table(columns, lines, numbers=len(columns) - 3)


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


def step(before: Variant | None, rung: Variant, measured: Times) -> str:
    """How many times as fast as the rung before it a rung is, if both were measured."""
    was, now = measured.ms.get(before.name if before else ""), measured.ms.get(rung.name)
    return f"{was / now:.2f}" if was and now else ""


def in_figures(ms: float | None) -> str:
    """A time in three figures, or nothing."""
    return f"{ms:#.3g}".rstrip(".") if ms else ""


def lines_of(rung: Variant) -> tuple[int, int]:
    """The number of lines of the variant's file, and of all the files that it is made of."""
    files = source.load(rung.path, rung.label).files
    own, *included = (len(file.read_text("utf-8").splitlines()) for file in files)
    return own, own + sum(included)
