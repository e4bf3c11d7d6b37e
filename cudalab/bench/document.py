"""The document of bench: what one run measured, and its JSON, which docs/bench.md describes.

Tables, charts and reports are made from it, so a stored file gives the same output as the run that
wrote it. The fields are the keys of the JSON, in the same order.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cudalab.bench.measured import COLD, HOT, Bound, Status
from cudalab.errors import InputError, UsageError
from cudalab.labs.teaching import Work
from cudalab.system import records
from cudalab.system.records import Scalar

SCHEMA = "cudalab-bench/1"
EMULATED = "emulated"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What a time depends on besides the program. Nothing names the machine or its user."""

    date: str
    device: str
    device_name: str
    emulated: bool
    properties: dict[str, Scalar]
    copy_gb_per_s: float
    clock_mhz: float | None
    driver: str
    versions: dict[str, str]
    commit: str
    platform: str
    other_processes: list[str]

    @property
    def device_text(self) -> str:
        """The device, and whether times on it are emulated."""
        return device_text(self.device_name, emulated=self.emulated)


def device_text(name: str, *, emulated: bool) -> str:
    """The text for a device in a title."""
    return f"CPU device, {EMULATED}: {name}" if emulated else name


@dataclass(frozen=True)
class Conditions:
    """The conditions of a run."""

    caches: list[str]
    time_limit_s: float
    seed: int


@dataclass(frozen=True)
class Ceiling:
    """The device's measured copy rate, and the peak of its units at the measured clock."""

    gb_per_s: float
    gflop_per_s: float | None


@dataclass(frozen=True)
class EndToEnd:
    """The times of one variant from file to file."""

    variant: str
    stages_ms: dict[str, float]


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as another row, with the confidence interval."""

    name: str  # the other row's
    ratio: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether one of the two is faster: the interval does not include 1."""
        return not self.low <= 1 <= self.high


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The figures of a row whose answer is right."""

    median_ms: float
    min_ms: float
    noise: float
    error: float
    runs: int
    items_per_s: float
    gb_per_s: float
    gflop_per_s: float | None
    of_ceiling: float | None

    @property
    def rate(self) -> float:
        """GFLOP/s if operations are counted, else GB/s."""
        return self.gb_per_s if self.gflop_per_s is None else self.gflop_per_s


@dataclass(frozen=True, kw_only=True)
class Row:
    """The measurement of one variant or baseline."""

    name: str
    kind: str
    precision: str = ""  # empty, or the format that a lossy variant rounds its inputs to
    device: str
    emulated: bool
    cache: str
    clock: str
    status: Status
    reason: str
    summary: str
    order: float
    defines: dict[str, int | str]
    rounds: list[int]
    samples_ms: list[float]
    clocks_mhz: list[float]
    discarded: list[int]
    statistics: Statistics | None
    bound: Bound | None
    course_ms: str
    notes: list[str]
    warnings: list[str]
    below: Speedup | None = None
    first: Speedup | None = None
    baselines: dict[str, Speedup] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name as tables show it: a lossy variant with its precision."""
        return f"{self.name} ({self.precision})" if self.precision else self.name

    @property
    def comparable(self) -> bool:
        """Whether its time may be compared: a lossy variant computes less than the others."""
        return self.kind == "variant" and not self.precision

    @property
    def variant(self) -> str:
        """The name without the defines of a sweep."""
        return self.name.partition("[")[0]

    def valid_samples(self) -> dict[int, float]:
        """The milliseconds of the samples that were not discarded, by round."""
        discarded = set(self.discarded)
        pairs = enumerate(zip(self.rounds, self.samples_ms, strict=True))
        return {number: ms for i, (number, ms) in pairs if i not in discarded}


@dataclass(kw_only=True)
class Table:
    """The rows of one lab, case, size and distribution."""

    lab: str
    case: dict[str, Scalar]
    size: str
    dist: str
    work: Work
    ceiling: Ceiling
    sweep: list[str]
    rows: list[Row]
    end_to_end: EndToEnd | None
    notes: list[str]

    def heading(self, *, size: str | None = None) -> str:
        """What the table measures: the lab, its case, size and distribution.

        `size` replaces the table's own size; an empty one is left out.
        """
        shown = self.size if size is None else size
        case = [f"{name} {value}" for name, value in self.case.items()]
        sizes = [f"n = {shown}"] if shown else []
        return f"{self.lab}: {', '.join([*case, *sizes, self.dist])}"

    @property
    def series(self) -> str:
        """A key that is equal for tables that differ only in their size."""
        return json.dumps([self.lab, self.case, self.dist])

    @property
    def by_flops(self) -> bool:
        """Whether rates count operations, not bytes."""
        return bool(self.work.flops)

    @property
    def timed(self) -> list[tuple[Row, Statistics]]:
        """The rows that have a time, with their statistics."""
        return [(row, row.statistics) for row in self.rows if row.statistics]

    @property
    def limit(self) -> float | None:
        """The ceiling in GFLOP/s or GB/s; None if it is not known."""
        return self.ceiling.gflop_per_s if self.by_flops else self.ceiling.gb_per_s

    def caches(self) -> list[str]:
        """The states of the caches in which the table was measured.

        A variant that cannot run has a single row for all states, which does not count.
        """
        count = Counter(row.name for row in self.rows)
        counted = [row for row in self.rows if row.statistics or count[row.name] > 1]
        states = {row.cache for row in counted or self.rows}
        return [cache for cache in (COLD, HOT) if cache in states]


def cache_text(tables: Sequence[Table]) -> str:
    """The states of the caches in which any of `tables` was measured, for a title."""
    states = {cache for table in tables for cache in table.caches()} or {COLD}
    return " and ".join(cache for cache in (COLD, HOT) if cache in states) + " cache"


@dataclass(kw_only=True)
class Document:
    """The complete results of a run."""

    schema: str = SCHEMA
    environment: Environment
    conditions: Conditions
    tables: list[Table]

    def series(self) -> list[list[Table]]:
        """The tables grouped by series: tables of a group differ only in size. No sweeps."""
        groups: dict[str, list[Table]] = {}
        for table in self.tables:
            if not table.sweep:
                groups.setdefault(table.series, []).append(table)
        return list(groups.values())


# Files -------------------------------------------------------------------------------------------


def as_json(document: Document) -> str:
    """The JSON with each list of numbers on one line, for human readers."""
    text = json.dumps(asdict(document), indent=1, ensure_ascii=False, allow_nan=False)
    numbers = re.compile(r"\[\s+((?:-?[\d.e+-]+,\s+)*-?[\d.e+-]+)\s+\]")
    return numbers.sub(lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text) + "\n"


def load(path: Path) -> Document:
    """Read a document. InputError names the part that violates docs/bench.md."""
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: is not JSON: {error}") from None
    try:
        return from_json(parsed)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from None


def from_json(parsed: object) -> Document:
    """The document in parsed JSON. InputError names the key that is wrong."""
    schema = parsed.get("schema") if isinstance(parsed, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"schema {schema!r}, expected {SCHEMA!r}",
            hint="a file that `cudalab bench --json FILE` wrote",
        )
    document = records.read(Document, parsed)
    for number, table in enumerate(document.tables):
        for index, row in enumerate(table.rows):
            if len(row.rounds) != len(row.samples_ms):
                raise InputError(
                    f"tables[{number}].rows[{index}]: as many rounds as samples are expected"
                )
    return document


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
        tables += [
            replace(table, notes=[*table.notes, *notes]) for table in run.tables if table.lab == lab
        ]
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
