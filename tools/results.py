"""Reading and writing docs/results: the files, their names, the machine and the commit."""

import datetime as dt
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cudalab.backends import facts, open_device
from cudalab.bench.results import commit

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "results"


def read(path: Path) -> Json:
    """The document in a file."""
    document: Json = json.loads(path.read_text(encoding="utf-8"))
    return document


def read_all(kind: str) -> list[Json]:
    """The documents of one folder of docs/results, in the order of their names."""
    return [read(path) for path in sorted((FOLDER / kind).glob("*.json"))]


def write(path: Path, document: Json, *, indent: int = 1) -> None:
    """Write a file, and its folder where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_rows(path: Path, head: Json, rows: list[Json], key: str = "rows") -> None:
    """Write a file of `head` and, under `key`, a line for each of `rows`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    text = json.dumps({**head, key: []}, indent=1)
    path.write_text(text.replace(f'"{key}": []', f'"{key}": [\n{lines}\n ]') + "\n", "utf-8")


def table(columns: list[str], rows: Iterable[list[str]], *, numbers: int = 0) -> str:
    """A table in Markdown, whose last columns are `numbers`, set flush right."""
    lines = [columns, ["---"] * (len(columns) - numbers) + ["---:"] * numbers, *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def slug(name: str) -> str:
    """The name of a device's file, without its ending."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def machine(device: str) -> dict[str, str]:
    """The device that is measured, its driver, the date and the commit."""
    with open_device(device) as opened:
        info = opened.info()
    cores = f", {info.cores} cores" if facts(device).on_host else ""
    return {
        "device": info.name + cores,
        "driver": info.driver,
        "date": today(),
        "commit": commit(),
    }


def write_timed(path: Path, rows: list[Json]) -> None:
    """Write times that this machine's processor took, and how much else it had to do."""
    write_rows(path, {**machine("cpu"), "load": round(os.getloadavg()[0], 1)}, rows)


def timed_on(stored: Json, unit: str = "") -> str:
    """The line above a table of such times."""
    return f"{stored['device']}, {stored['date']}, load {stored['load']}{unit}:\n\n"


def today() -> str:
    """The date, such as 2026-01-31."""
    return dt.datetime.now(dt.UTC).date().isoformat()
