"""Results of bench as JSON: written, read, checked, compared. docs/bench.md has the form."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab import __version__
from cudalab.bench import stats
from cudalab.bench.measure import COLD, Status
from cudalab.errors import InputError, UsageError
from cudalab.formats import output_file, write_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cudalab.bench.bounds import Work
    from cudalab.bench.measure import Row

    Json = dict[str, Any]

SCHEMA = "cudalab-bench/1"
THRESHOLD = 0.05  # a smaller change of a median is none
EMULATED = "emulated"

NUMBER = (int, float)
OPTIONAL_NUMBER = (int, float, type(None))
OPTIONAL_OBJECT = (dict, type(None))

# The keys of each object and the types of their values. docs/bench.md says what they mean.
DOCUMENT = {"schema": str, "environment": dict, "conditions": dict, "tables": list}
ENVIRONMENT = {
    "date": str,
    "device": str,
    "device_name": str,
    "emulated": bool,
    "properties": dict,
    "copy_gb_per_s": NUMBER,
    "clock_mhz": OPTIONAL_NUMBER,
    "driver": str,
    "versions": dict,
    "commit": str,
    "platform": str,
    "other_processes": list,
}
CONDITIONS = {"caches": list, "time_limit_s": NUMBER, "seed": int}
TABLE = {
    "lab": str,
    "case": dict,
    "size": str,
    "dist": str,
    "work": dict,
    "ceiling": dict,
    "sweep": list,
    "rows": list,
    "end_to_end": OPTIONAL_OBJECT,
    "notes": list,
}
WORK = {"items": int, "read_bytes": int, "write_bytes": int, "flops": int}
CEILING = {"gb_per_s": NUMBER, "gflop_per_s": OPTIONAL_NUMBER}
END_TO_END = {"variant": str, "stages_ms": dict}
ROW = {
    "name": str,
    "kind": str,
    "device": str,
    "emulated": bool,
    "cache": str,
    "clock": str,
    "status": str,
    "reason": str,
    "summary": str,
    "order": NUMBER,
    "defines": dict,
    "rounds": list,
    "samples_ms": list,
    "clocks_mhz": list,
    "discarded": list,
    "statistics": OPTIONAL_OBJECT,
    "bound": OPTIONAL_OBJECT,
    "course_ms": str,
    "below": OPTIONAL_OBJECT,
    "first": OPTIONAL_OBJECT,
    "baselines": dict,
    "notes": list,
    "warnings": list,
}
STATISTICS = {
    "median_ms": NUMBER,
    "min_ms": NUMBER,
    "noise": NUMBER,
    "error": NUMBER,
    "runs": int,
    "items_per_s": NUMBER,
    "gb_per_s": NUMBER,
    "gflop_per_s": OPTIONAL_NUMBER,
    "of_ceiling": OPTIONAL_NUMBER,
}
BOUND = {"ms": NUMBER, "reason": str}
RATIO = {"name": str, "ratio": NUMBER, "low": NUMBER, "high": NUMBER}


# Writing -----------------------------------------------------------------------------------------


def environment(
    device: str,
    properties: Mapping[str, str | int | float],
    copy_gb_per_s: float,
    other_processes: Sequence[str],
) -> Json:
    """What a time depends on besides the program; nothing that names the machine or its user."""
    shown = {label: _without_path(value) for label, value in properties.items()}
    name = next(str(value) for label, value in properties.items() if label.lower() == "name")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device,
        "device_name": name,
        "emulated": device == "cpu",
        "properties": shown,
        "copy_gb_per_s": copy_gb_per_s,
        "clock_mhz": None,
        "driver": str(properties.get("driver", "")),
        "versions": _versions(),
        "commit": _commit(),
        "platform": f"{platform.system()} {platform.machine()}",
        "other_processes": list(other_processes),
    }


def _without_path(value: str | float) -> str | int | float:
    return re.sub(r"\s*\([^)]*/[^)]*\)", "", value) if isinstance(value, str) else value


def _versions() -> dict[str, str]:
    found = {"cudalab": __version__, "python": platform.python_version()}
    for name in ("numpy", "pycuda", "cupy", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The checkout's commit, with a + where files differ from it; empty outside of one."""
    if "CUDALAB_COMMIT" in os.environ:
        return os.environ["CUDALAB_COMMIT"]
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        commit = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit + ("+" if changed else "")


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", root, *args], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def document(environment: Json, conditions: Json, tables: Sequence[Json]) -> Json:
    """All of a run."""
    return {
        "schema": SCHEMA,
        "environment": environment,
        "conditions": conditions,
        "tables": list(tables),
    }


def rows_of(rows: Sequence[Row], work: Work, ceiling: Json, *, ladder: bool = True) -> list[Json]:
    """Every row with its statistics and, on a `ladder`, with its place among the others."""
    right = [row for row in rows if row.status is Status.OK] if ladder else []
    return [
        _row(row, work, ceiling)
        | (_relations(row, right) if any(row is one for one in right) else _NO_RELATIONS)
        for row in rows
    ]


_NO_RELATIONS: Json = {"below": None, "first": None, "baselines": {}}


def _row(row: Row, work: Work, ceiling: Json) -> Json:
    statistics = None
    if row.status is Status.OK:
        kept = list(row.kept().values())
        ms = stats.median(kept)
        gb_per_s = 1e-6 * work.bytes / ms
        gflop_per_s = 1e-6 * work.flops / ms if work.flops else None
        most = ceiling["gflop_per_s"] if work.flops else ceiling["gb_per_s"]
        reached = gflop_per_s if work.flops else gb_per_s
        by_host = row.device == "cpu" and not row.emulated
        statistics = {
            "median_ms": ms,
            "min_ms": min(kept),
            "noise": stats.noise(kept),
            "error": stats.error(kept),
            "runs": len(kept),
            "items_per_s": 1e3 * work.items / ms,
            "gb_per_s": gb_per_s,
            "gflop_per_s": gflop_per_s,
            # NumPy on the host beside a GPU has not the GPU's ceiling.
            "of_ceiling": reached / most if most and reached and not by_host else None,
        }
    return {
        "name": row.name,
        "kind": row.kind,
        "device": row.device,
        "emulated": row.emulated,
        "cache": row.cache,
        "clock": row.clock,
        "status": str(row.status),
        "reason": row.reason,
        "summary": row.summary,
        "order": row.order,
        "defines": dict(row.defines),
        "rounds": [sample.round for sample in row.samples],
        "samples_ms": [sample.ms for sample in row.samples],
        "clocks_mhz": [sample.mhz for sample in row.samples if sample.mhz is not None],
        "discarded": list(row.discarded),
        "statistics": statistics,
        "bound": {"ms": row.bound.ms, "reason": row.bound.reason} if row.bound else None,
        "course_ms": row.course,
        "notes": list(row.notes),
        "warnings": list(row.warnings),
    }


def _relations(row: Row, right: Sequence[Row]) -> Json:
    """How many times faster than the rung below, the first rung and each baseline."""
    if row.kind != "variant":
        return _NO_RELATIONS
    ladder = [other for other in right if other.kind == "variant" and other.cache == row.cache]
    # The host has no cold and hot; of a baseline with both, the same.
    baselines = [other for other in right if other.kind == "baseline"]
    baselines.sort(key=lambda other: other.cache == row.cache)
    place = next(i for i, other in enumerate(ladder) if other is row)
    return {
        "below": _times(ladder[place - 1], row) if place else None,
        "first": _times(ladder[0], row) if place else None,
        "baselines": {other.name: _times(other, row) for other in baselines},
    }


def _times(other: Row, row: Row) -> Json:
    ratio = stats.ratio(other.kept(), row.kept())
    return {"name": other.name, "ratio": ratio.value, "low": ratio.low, "high": ratio.high}


def save(path: Path, text: str) -> None:
    """Replace the file in one step: a reader, and a crash, never see half of it."""
    with output_file(path) as fd:
        write_all(fd, [text.encode()], str(path))


def as_json(document: Json) -> str:
    """One line for each list of numbers: such a file can be read and compared by eye."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    numbers = re.compile(r"\[\s+((?:-?[\d.e+-]+,\s+)*-?[\d.e+-]+)\s+\]")
    return numbers.sub(lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text) + "\n"


# Reading -----------------------------------------------------------------------------------------


def load(path: Path) -> Json:
    """A file's document. InputError names what is not as docs/bench.md says."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: is not JSON: {error}") from None
    try:
        return check(found)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from None


def check(found: Any) -> Json:
    """`found` if it is a document of this schema. InputError names the key that is wrong."""
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        schema = found.get("schema") if isinstance(found, dict) else None
        raise InputError(
            f"schema {schema!r}, expected {SCHEMA!r}",
            hint="a file that `cudalab bench --json FILE` wrote; docs/bench.md describes it",
        )
    _check_keys(found, DOCUMENT, "")
    _check_keys(found["environment"], ENVIRONMENT, "environment")
    _check_keys(found["conditions"], CONDITIONS, "conditions")
    for number, table in enumerate(found["tables"]):
        where = f"tables[{number}]"
        _check_keys(table, TABLE, where)
        _check_keys(table["work"], WORK, f"{where}.work")
        _check_keys(table["ceiling"], CEILING, f"{where}.ceiling")
        if table["end_to_end"] is not None:
            _check_keys(table["end_to_end"], END_TO_END, f"{where}.end_to_end")
        for index, row in enumerate(table["rows"]):
            _check_row(row, f"{where}.rows[{index}]")
    return found


def _check_row(row: Any, where: str) -> None:
    _check_keys(row, ROW, where)
    if row["status"] not in list(Status):
        raise InputError(f"{where}.status: {row['status']!r} is none of {', '.join(Status)}")
    parts = {"statistics": STATISTICS, "bound": BOUND, "below": RATIO, "first": RATIO}
    for name, keys in parts.items():
        if row[name] is not None:
            _check_keys(row[name], keys, f"{where}.{name}")
    for name, ratio in row["baselines"].items():
        _check_keys(ratio, RATIO, f"{where}.baselines.{name}")
    if len(row["rounds"]) != len(row["samples_ms"]):
        raise InputError(f"{where}: as many rounds as samples are expected")
    for name in ("rounds", "samples_ms", "clocks_mhz", "discarded"):
        if not all(isinstance(x, NUMBER) and not isinstance(x, bool) for x in row[name]):
            raise InputError(f"{where}.{name}: numbers are expected")


def _check_keys(found: Any, keys: Mapping[str, Any], where: str) -> None:
    if not isinstance(found, dict):
        raise InputError(f"{where}: an object is expected")
    for key, kind in keys.items():
        place = f"{where}.{key}".lstrip(".")
        if key not in found:
            raise InputError(f"{place}: is missing")
        value = found[key]
        wrong_bool = isinstance(value, bool) and kind is not bool
        if wrong_bool or not isinstance(value, kind):
            raise InputError(f"{place}: a {type(value).__name__} is not expected")
    for key in found:
        if key not in keys:
            raise InputError(f"{where}.{key}: is unknown".lstrip("."))


# Comparing two runs ------------------------------------------------------------------------------

SAME, FASTER, SLOWER, BROKEN = "SAME", "FASTER", "SLOWER", "BROKEN"
ONLY_OLD, ONLY_NEW, NOT_TIMED = "only in the old", "only in the new", "not timed"


@dataclass(frozen=True)
class Verdict:
    """What became of one row from an old run to a new one."""

    lab: str
    size: str
    table: str  # what was measured, in full
    name: str
    verdict: str
    old_ms: float | None = None
    new_ms: float | None = None
    change: stats.Ratio | None = None  # new to old

    @property
    def regression(self) -> bool:
        """Whether the new run is worse."""
        return self.verdict in (SLOWER, BROKEN)


@dataclass
class Comparison:
    """The verdicts, and what differs in the conditions."""

    verdicts: list[Verdict]
    notes: list[str] = field(default_factory=list)

    @property
    def regressions(self) -> int:
        """How many rows are worse."""
        return sum(verdict.regression for verdict in self.verdicts)


def compare(old: Json, new: Json, threshold: float = THRESHOLD) -> Comparison:
    """Row by row: a change needs an interval without 1 and more than `threshold`.

    UsageError for results of different kinds of devices: emulated times say nothing about a GPU.
    """
    here, there = new["environment"], old["environment"]
    check_comparable(old, here["device"])
    notes = [
        f"{label}: {there[key] or 'unknown'} then, {here[key] or 'unknown'} now"
        for key, label in _COMPARED.items()
        if here[key] != there[key]
    ]
    notes += [
        f"{label}: {then} then, {now} now"
        for label, then, now in (
            (THREADS, *(where["properties"].get(THREADS, "unknown") for where in (there, here))),
            ("seed of the data", old["conditions"]["seed"], new["conditions"]["seed"]),
        )
        if then != now
    ]
    notes += _busy_notes(there, here)
    notes += [*_repeated_notes(old, "then"), *_repeated_notes(new, "now")]
    before, after = _keyed(old), _keyed(new)
    verdicts = [_verdict(key, before.get(key), row, threshold) for key, row in after.items()]
    verdicts += [
        _verdict(key, row, None, threshold) for key, row in before.items() if key not in after
    ]
    if not set(before) & set(after):
        notes.append("no row is in both: were other labs, sizes or distributions measured?")
    return Comparison(verdicts, notes)


def check_comparable(old: Json, device: str) -> None:
    """UsageError for an old run on another kind of device than `device`."""
    was = old["environment"]["device"]
    if was != device:
        raise UsageError(
            f"results of the {was} device are not compared with those of the {device} device",
            hint="times on the CPU device are emulated: they say nothing about a GPU",
        )


_COMPARED = {"device_name": "device", "driver": "driver", "commit": "commit"}
THREADS = "OS threads used"  # a property of the CPU device


def _busy_notes(there: Json, here: Json) -> list[str]:
    return [
        f"other processes were on the GPU {when}: {', '.join(found['other_processes'])}"
        for when, found in (("then", there), ("now", here))
        if found["other_processes"]
    ]


Key = tuple[str, str, str, str]  # lab, size, what was measured, row


def _keyed(document: Json) -> dict[Key, Json]:
    """Rows by what they measure; of several that measure the same, the last."""
    return {_key(table, row): row for table in document["tables"] for row in table["rows"]}


def _key(table: Json, row: Json) -> Key:
    hot = "" if row["cache"] == COLD else f" ({row['cache']})"
    return table["lab"], table["size"], heading(table), row["name"] + hot


def _repeated_notes(document: Json, when: str) -> list[str]:
    """Which rows were measured more than once, a line for each table."""
    keys = Counter(_key(table, row) for table in document["tables"] for row in table["rows"])
    repeated: dict[str, list[str]] = {}
    for (_, _, what, name), times in keys.items():
        if times > 1:
            repeated.setdefault(what, []).append(name)
    return [
        f"measured more than once {when}: {what}: {', '.join(names)}; the last is compared"
        for what, names in repeated.items()
    ]


def _verdict(key: Key, old: Json | None, new: Json | None, threshold: float) -> Verdict:
    was = old["statistics"] if old else None
    now = new["statistics"] if new else None
    ms = was["median_ms"] if was else None, now["median_ms"] if now else None
    if old is None or new is None:
        return Verdict(*key, ONLY_NEW if old is None else ONLY_OLD, *ms)
    if was is None or now is None:
        bad = was is not None and new["status"] in (Status.WRONG, Status.INVALID, Status.FAILED)
        return Verdict(*key, BROKEN if bad else NOT_TIMED, *ms)
    change = stats.independent_ratio(_kept(new), _kept(old))
    verdict = SAME
    if change.decided:
        if change.value > 1 + threshold:
            verdict = SLOWER
        elif 1 / change.value > 1 + threshold:
            verdict = FASTER
    return Verdict(*key, verdict, *ms, change)


def _kept(row: Json) -> list[float]:
    discarded = set(row["discarded"])
    return [ms for i, ms in enumerate(row["samples_ms"]) if i not in discarded]


def heading(table: Json, *, size: bool = True) -> str:
    """What a table measures: the lab, its case, size and distribution."""
    case = [f"{name} {value}" for name, value in table["case"].items()]
    sizes = [f"n = {table['size']}"] if size else []
    return f"{table['lab']}: {', '.join([*case, *sizes, table['dist']])}"
