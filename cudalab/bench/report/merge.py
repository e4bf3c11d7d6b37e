"""Merges several runs of bench into one document for a report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cudalab.bench.document import Document, Environment, Table
from cudalab.errors import UsageError


@dataclass(frozen=True)
class Merged:
    """The tables of one lab."""

    document: Document
    differing: list[str]  # labels of facts in which the runs differ


def merged(documents: Sequence[Document], lab: str) -> Merged:
    """The tables of `lab` from several files. If their runs differ, each table has a note.

    UsageError if they are from different devices.
    """
    _check_one_device(documents)
    runs = [one for one in documents if any(table.lab == lab for table in one.tables)]
    runs = runs or [documents[0]]
    facts = [
        {
            **device_facts(run.environment),
            **software_facts(run.environment),
            "time limit of a table (s)": f"{run.conditions.time_limit_s:g}",
            "seed": str(run.conditions.seed),
        }
        for run in runs
    ]
    labels = dict.fromkeys(label for known in facts for label in known)
    differing = [label for label in labels if len({known.get(label) for known in facts}) > 1]
    tables = []
    for run, known in zip(runs, facts, strict=True):
        values = "; ".join(f"{label}: {known.get(label, 'unknown')}" for label in differing)
        notes = [f"the run of this table: {values}"] if differing else []
        tables += _noted([table for table in run.tables if table.lab == lab], notes)
    return Merged(replace(_conditions_of_all(runs), tables=tables), differing)


def _conditions_of_all(runs: Sequence[Document]) -> Document:
    """The first run, with the cache states and the other processes of all runs."""
    first = runs[0]
    busy = dict.fromkeys(process for run in runs for process in run.environment.other_processes)
    caches = dict.fromkeys(cache for run in runs for cache in run.conditions.caches)
    return replace(
        first,
        environment=replace(first.environment, other_processes=list(busy)),
        conditions=replace(first.conditions, caches=list(caches)),
    )


def _check_one_device(documents: Sequence[Document]) -> None:
    first = documents[0].environment
    for other in (document.environment for document in documents[1:]):
        pairs = ((first.device, other.device), (first.device_name, other.device_name))
        for one, another in pairs:
            if one != another:
                raise UsageError(
                    f"the files are results of different devices: {one} and {another}",
                    hint="a report is about one device",
                )


def _noted(tables: Sequence[Table], notes: list[str]) -> list[Table]:
    return [replace(table, notes=[*table.notes, *notes]) for table in tables]


def device_facts(environment: Environment) -> dict[str, str]:
    """Declared and measured properties of the device, by label."""
    facts = {
        label: f"{value:,}" if isinstance(value, int | float) else str(value)
        for label, value in environment.properties.items()
    }
    facts["copy, memory to memory, measured (GB/s)"] = f"{environment.copy_gb_per_s:,.1f}"
    if environment.clock_mhz:
        facts["clock under way, measured (MHz)"] = f"{environment.clock_mhz:,.0f}"
    return facts


def software_facts(environment: Environment) -> dict[str, str]:
    """Versions and the date, by label."""
    facts = {"system": environment.platform, **environment.versions}
    if environment.commit:
        facts["commit"] = environment.commit
    return {**facts, "measured on": environment.date}
