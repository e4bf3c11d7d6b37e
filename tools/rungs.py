"""The ladders of each lab for its README.md: headers, lengths of files and stored measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudalab import labs
from cudalab.bench.document import load
from cudalab.labs import registry
from cudalab.language import source
from tools import results

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cudalab.bench.document import Document
    from cudalab.labs.header import Variant

INTRODUCTION = """\
The rungs of each ladder in order, one idea each. A rung is compared with the last one before it
that was measured: that runs on the device and computes the case. Lines are those of the variant's
own file, and with the headers that it includes (`cudalab show --whole {lab} VARIANT` prints them as
one file). What the host launches is in
[`cudalab/labs/{lab}/plans.py`](../../cudalab/labs/{lab}/plans.py).

This file is generated: `python -m tools.generate`.
"""


@dataclass(frozen=True)
class Times:
    """Milliseconds of a lab's variants in one measured table."""

    column: str  # its heading
    note: str  # what was measured
    ms: dict[str, float]


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
        times = list(filter(None, (of_ladder(rungs, list(times_of(lab, one))) for one in stored)))
        parts.append(table(rungs, times))
        parts += [f"{measured.column}: {measured.note}.\n" for measured in times]
    return "\n".join(parts)


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
            yield Times(f"{environment.device_name}, ms", note, ms)


def of_ladder(rungs: list[Variant], measured: list[Times]) -> Times | None:
    """The table that has the most rungs of a ladder; of several the last: its own case and size."""

    def count(times: Times) -> int:
        return sum(rung.name in times.ms for rung in rungs)

    best = max(reversed(measured), key=count, default=None)
    return best if best and count(best) else None


def table(rungs: list[Variant], times: list[Times]) -> str:
    """A line for each rung of a ladder."""
    columns = ["rung", "idea", "adds to the rung before", "lines", "with headers"]
    for measured in times:
        columns += [measured.column, "times as fast"]
    lines = []
    for number, rung in enumerate(rungs):
        own, whole = lines_of(rung)
        link = f"[`{rung.name}`]({rung.path.name})"
        if rung.precision:
            link += f" ({rung.precision}: lossy)"
        cells = [link, rung.summary, rung.adds, str(own), f"{whole:,}"]
        for measured in times:
            cells += [time(rung, measured), step(rungs[:number], rung, measured)]
        lines.append(cells)
    return results.table(columns, lines, numbers=len(columns) - 3)


def lines_of(rung: Variant) -> tuple[int, int]:
    """The number of lines of the variant's file, and of all the files that it is made of."""
    files = source.load(rung.path, rung.label).files
    own, *included = (len(file.read_text("utf-8").splitlines()) for file in files)
    return own, own + sum(included)


def time(rung: Variant, measured: Times) -> str:
    """The time of a rung, if it was measured in this case."""
    ms = measured.ms.get(rung.name)
    return f"{ms:#.3g}".rstrip(".") if ms else ""


def step(below: list[Variant], rung: Variant, measured: Times) -> str:
    """How many times as fast as the rung before it a rung is.

    That is the last one below it that was measured: it runs on the device and computes the case. A
    lossy rung computes less than others, so its time is compared with none.
    """
    was = [measured.ms[one.name] for one in below if one.name in measured.ms and not one.precision]
    now = measured.ms.get(rung.name)
    return f"{was[-1] / now:.2f}" if was and now and not rung.precision else ""
