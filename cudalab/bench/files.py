"""Results of bench as Markdown and CSV."""

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict

from cudalab.bench.document import EMULATED, Document, Environment, Row, Table
from cudalab.bench.grids import grids
from cudalab.output.grid import Grid
from cudalab.system.records import Scalar


def markdown(document: Document) -> str:
    """All tables as Markdown, after a description of the device."""
    tables = [line for grid in grids(document) for line in _table(grid)]
    return "\n".join([*device_lines(document.environment), *tables]).rstrip() + "\n"


def _table(grid: Grid) -> list[str]:
    heads = [column.title for column in grid.columns]
    rules = ["---:" if column.right else "---" for column in grid.columns]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in grid.rows]
    lines = [f"| {' | '.join(line)} |" for line in (heads, rules, *cells)]
    notes = ["", *(f"* {' '.join(text.split())}" for text in grid.notes)] if grid.notes else []
    return [f"### {grid.title}", "", *lines, *notes, ""]


def device_lines(environment: Environment) -> list[str]:
    """A description of the device in a few lines."""
    known = environment.properties
    first = [environment.device_text]
    labels = {
        **({} if environment.emulated else {"multiprocessors": "{} multiprocessors"}),
        "OS threads used": "{} OS threads",
        "clock (MHz)": "{} MHz at most",
        "peak memory bandwidth (GB/s)": "peak {} GB/s",
    }
    first += [text.format(known[label]) for label, text in labels.items() if label in known]
    first.append(f"copy measured {environment.copy_gb_per_s:,.0f} GB/s")
    if environment.clock_mhz:
        first.append(f"clock measured {environment.clock_mhz:,.0f} MHz")
    versions = ", ".join(f"{name} {version}" for name, version in environment.versions.items())
    driver = f"driver {environment.driver}; " if environment.driver else ""
    commit = f"; commit {environment.commit}" if environment.commit else ""
    lines = [", ".join(first), f"{driver}{versions}{commit}; {environment.date}"]
    if environment.other_processes:
        lines.append("other processes on the GPU: " + ", ".join(environment.other_processes))
    return [*lines, ""]


# fmt: off
CSV_COLUMNS = [
    "device", "device_name", "emulated", "lab", "case", "n", "dist",
    "row", "kind", "precision", "cache", "clock", "status",
    "median_ms", "min_ms", "noise", "runs", "items_per_s", "gb_per_s", "gflop_per_s", "of_ceiling",
    "times_below", "times_first", "baselines", "course_ms", "defines", "reason",
]
# fmt: on


def csv_text(document: Document) -> str:
    """CSV with one line for each row, and unrounded numbers."""
    target = io.StringIO()
    lines = csv.DictWriter(target, CSV_COLUMNS, lineterminator="\n")
    lines.writeheader()
    for table in document.tables:
        for row in table.rows:
            lines.writerow(_csv_row(document.environment, table, row))
    return target.getvalue()


def _csv_row(environment: Environment, table: Table, row: Row) -> dict[str, object]:
    figures = asdict(row.statistics) if row.statistics else {}
    return {
        "device": environment.device,
        "device_name": environment.device_name,
        "emulated": EMULATED if row.emulated else "",
        "lab": table.lab,
        "case": _pairs(table.case),
        "n": table.size.replace(",", ""),
        "dist": table.dist,
        "row": row.name,
        "kind": row.kind,
        "precision": row.precision,
        "cache": row.cache,
        "clock": row.clock,
        "status": row.status,
        **{name: figure for name, figure in figures.items() if name in CSV_COLUMNS},
        "times_below": row.below.ratio if row.below else "",
        "times_first": row.first.ratio if row.first else "",
        "baselines": _pairs({name: one.ratio for name, one in row.baselines.items()}),
        "course_ms": row.course_ms,
        "defines": _pairs(row.defines),
        "reason": row.reason,
    }


def _pairs(values: Mapping[str, Scalar]) -> str:
    return " ".join(f"{k}={v}" for k, v in values.items() if v is not None and v is not False)
