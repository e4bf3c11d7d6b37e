"""Compares two runs of bench, row by row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cudalab.bench import stats
from cudalab.bench.document import Document, Environment, Row, Table
from cudalab.bench.measured import COLD, Status
from cudalab.errors import UsageError

THRESHOLD = 0.05  # smaller relative changes of a median are ignored
# A difference needs more confidence than a factor in a table, because each false one sends somebody
# to look for its cause: one in a hundred comparisons of a kernel with itself, at most.
DIFFERENCE = 0.995
EQUIVALENCE = 0.90  # the confidence at which two one-sided tests have an error of 5 % each
SAME, FASTER, SLOWER, BROKEN = "SAME", "FASTER", "SLOWER", "BROKEN"
UNDECIDED = "UNDECIDED"  # the interval is too wide for any of these
ONLY_OLD, ONLY_NEW, NOT_TIMED = "only in the old", "only in the new", "not timed"
NO_SAMPLES = "no samples"  # one of the two has only statistics, which decide nothing
THREADS = "OS threads used"  # a property of the CPU device


class Key(NamedTuple):
    """Identifies what a row measures."""

    lab: str
    size: str
    table: str  # the heading of its table
    name: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How one row changed from an old run to a new one."""

    key: Key
    verdict: str
    old_ms: float | None = None
    new_ms: float | None = None
    change: stats.Ratio | None = None  # the new time to the old one

    @property
    def name(self) -> str:
        """The name of the row."""
        return self.key.name

    @property
    def percents(self) -> list[float]:
        """The change in percent, and both ends of its interval; empty if there is none."""
        one = self.change
        return [100 * (value - 1) for value in (one.value, one.low, one.high)] if one else []

    @property
    def regression(self) -> bool:
        """Whether the new run is worse."""
        return self.verdict in (SLOWER, BROKEN)


@dataclass
class Comparison:
    """The verdicts, and notes about different conditions."""

    verdicts: list[Verdict]
    notes: list[str] = field(default_factory=list)
    threshold: float = THRESHOLD  # smaller relative changes were ignored

    @property
    def regressions(self) -> int:
        """The number of rows that are worse."""
        return sum(verdict.regression for verdict in self.verdicts)

    @property
    def all_same(self) -> bool:
        """Whether every row, and there are some, is shown to be equivalent."""
        return bool(self.verdicts) and all(one.verdict == SAME for one in self.verdicts)


def compare(old: Document, new: Document, threshold: float = THRESHOLD) -> Comparison:
    """Compare row by row: `judged` says what each verdict takes.

    UsageError for results of different kinds of devices: emulated times say nothing about a GPU.
    """
    check_comparable(old, new.environment.device)
    before, after = _keyed(old), _keyed(new)
    verdicts = [_verdict(key, before.get(key), row, threshold) for key, row in after.items()]
    verdicts += [
        _verdict(key, row, None, threshold) for key, row in before.items() if key not in after
    ]
    notes = _differences(old, new)
    notes += _busy_notes(old.environment, "then") + _busy_notes(new.environment, "now")
    notes += _repeated_notes(old, "then") + _repeated_notes(new, "now")
    if unjudged := sum(one.verdict == NO_SAMPLES for one in verdicts):
        notes.append(f"not judged: {unjudged} rows have statistics only, without samples")
    if undecided := sum(one.verdict == UNDECIDED for one in verdicts):
        notes.append(
            f"{undecided} {UNDECIDED}: more than {100 * threshold:g} % is possible and not shown; "
            "a longer --time-limit narrows the interval"
        )
    if not set(before) & set(after):
        notes.append("no row is in both: were other labs, sizes or distributions measured?")
    return Comparison(verdicts, notes, threshold)


def check_comparable(old: Document, device: str) -> None:
    """UsageError for an old run on another kind of device than `device`."""
    was = old.environment.device
    if was != device:
        raise UsageError(
            f"results of the {was} device are not compared with those of the {device} device",
            hint="times on the CPU device are emulated: they say nothing about a GPU",
        )


def _differences(old: Document, new: Document) -> list[str]:
    """Differences in the conditions on which times depend."""
    then, now = old.environment, new.environment
    unknown = "unknown"
    facts = [
        ("device", then.device_name or unknown, now.device_name or unknown),
        ("driver", then.driver or unknown, now.driver or unknown),
        ("commit", then.commit or unknown, now.commit or unknown),
        (THREADS, then.properties.get(THREADS, unknown), now.properties.get(THREADS, unknown)),
        ("seed of the data", old.conditions.seed, new.conditions.seed),
    ]
    return [f"{label}: {one} then, {other} now" for label, one, other in facts if one != other]


def _busy_notes(environment: Environment, when: str) -> list[str]:
    busy = environment.other_processes
    return [f"other processes were on the GPU {when}: {', '.join(busy)}"] if busy else []


def _keyed(document: Document) -> dict[Key, Row]:
    """Rows by what they measure; the last one if several measure the same."""
    return {_key(table, row): row for table in document.tables for row in table.rows}


def _key(table: Table, row: Row) -> Key:
    hot = "" if row.cache == COLD else f" ({row.cache})"
    return Key(table.lab, table.size, table.heading(), row.name + hot)


def _repeated_notes(document: Document, when: str) -> list[str]:
    """Notes about rows that were measured more than once, one for each table."""
    keys = Counter(_key(table, row) for table in document.tables for row in table.rows)
    repeated: dict[str, list[str]] = {}
    for key, times in keys.items():
        if times > 1:
            repeated.setdefault(key.table, []).append(key.name)
    return [
        f"measured more than once {when}: {what}: {', '.join(names)}; the last is compared"
        for what, names in repeated.items()
    ]


def _verdict(key: Key, old: Row | None, new: Row | None, threshold: float) -> Verdict:
    was = old.statistics if old else None
    now = new.statistics if new else None
    change = None
    if old is None or new is None:
        verdict = ONLY_NEW if old is None else ONLY_OLD
    elif was is None or now is None:
        bad = was is not None and new.status in (Status.WRONG, Status.INVALID, Status.FAILED)
        verdict = BROKEN if bad else NOT_TIMED
    elif not (old.samples_ms and new.samples_ms):
        verdict = NO_SAMPLES
    else:
        before, after = (list(row.valid_samples().values()) for row in (old, new))
        verdict, change = judged(before, after, threshold)
    return Verdict(
        key=key,
        verdict=verdict,
        old_ms=was.median_ms if was else None,
        new_ms=now.median_ms if now else None,
        change=change,
    )


def judged(old: Sequence[float], new: Sequence[float], threshold: float) -> tuple[str, stats.Ratio]:
    """The verdict on two rows' samples, and the change with its interval.

    A difference is shown if the interval excludes 1, and counts if it exceeds the threshold and the
    noise: between two runs a busy machine may change by as much as within one of them. That there
    is none must be shown, too, by two one-sided tests (TOST): the change exceeds the threshold in
    neither direction. Their interval is narrower: each test has an error of 5 %.
    """
    change = stats.independent_ratio(new, old, DIFFERENCE)
    counts = 1 + max(threshold, *(stats.noise(samples) for samples in (old, new)))
    if change.decided and max(change.value, 1 / change.value) > counts:
        return SLOWER if change.value > 1 else FASTER, change
    within, limit = stats.independent_ratio(new, old, EQUIVALENCE), 1 + threshold
    same = 1 / limit <= within.low and within.high <= limit
    return SAME if same else UNDECIDED, change
