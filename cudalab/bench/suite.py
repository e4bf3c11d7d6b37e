"""What one call of bench measures: a table for each lab, case and size. No printing."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cudalab.backends import emulated
from cudalab.backends.meter import open_meter
from cudalab.bench import bounds, measure, results
from cudalab.bench.document import Ceiling, Conditions, Document, EndToEnd, Table
from cudalab.bench.measure import Candidate, Entry, Plan, Row, Sampler, Status
from cudalab.errors import CudalabError, ExitCode, UsageError
from cudalab.labs import registry
from cudalab.labs.teaching import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cudalab.backends.base import Device
    from cudalab.bench.measure import Data
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size
    from cudalab.system.records import Scalar

    Chosen = tuple[list[Variant], list[str]]  # variants, and why others are left out

BUDGET_S = 20.0  # of sampling in a call that does not say; compiling and checking come on top
MOST_TABLE_S = 10.0
LEAST_TABLE_S = 1.0
MOST_COMBINATIONS = 1000
SAVE_EVERY_S = 2.0
ALL = "all"

# Define -> values: numbers, products of numbers and defines, or ~DEFINE: in proportion to it.
Sweep = dict[str, list[str]]


def joined(given: Iterable[tuple[str, list[str]]]) -> Sweep:
    """The values of each define; one that is named twice has those of both."""
    found: Sweep = {}
    for name, values in given:
        found[name] = list(dict.fromkeys([*found.get(name, []), *values]))
    return found


class Progress(Protocol):
    """Where the progress is shown."""

    def begin(self, what: str) -> None: ...
    def step(self, what: str) -> None: ...
    def update(self, done: float, estimate: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of bench is to measure."""

    labs: list[tuple[Lab, Case]]
    sizes: list[Size] | None = None  # None: each lab's own
    variants: str | None = None  # "all", names, or None: the first rung and the default
    kernel: Path | None = None
    dist: str | None = None
    seed: int = 0
    baselines: tuple[str, ...] = ()
    sweep: Sweep = field(default_factory=dict)
    caches: tuple[str, ...] = (measure.COLD,)
    time_limit_s: float | None = None  # for each table


class Suite:
    """Measures the tables of a request on one device; `document` holds what there is so far."""

    def __init__(
        self,
        device: Device,
        request: Request,
        progress: Progress,
        save: Callable[[Document], None],
        busy: Sequence[str] = (),
    ) -> None:
        """`save` is called with the document whenever there is more to keep."""
        self.device, self.request, self.progress = device, request, progress
        self._save, self._saved = save, 0.0
        self.sampler = Sampler(device, open_meter(device))
        info = device.info()
        self.peaks = bounds.peaks(info)
        self.declared_mhz = info.clock_mhz or 0
        self.sampler.clock()
        self.jobs = [
            (lab, case, size, self._chosen(lab, case))
            for lab, case, size in jobs(request, device.name)
        ]
        limit = request.time_limit_s or min(
            max(BUDGET_S / len(self.jobs), LEAST_TABLE_S), MOST_TABLE_S
        )
        self.plan = Plan(limit, request.time_limit_s is not None, tuple(busy))
        self.document = Document(
            environment=results.environment(
                device.name, info, self.sampler.meter.bandwidth(), busy
            ),
            conditions=Conditions(list(request.caches), limit, request.seed),
            tables=[],
        )
        self.exit_codes: set[int] = set()

    def tables(self) -> Iterator[Table]:
        """Measure one table after the other."""
        for lab, case, size, chosen in self.jobs:
            with tempfile.TemporaryDirectory(prefix="cudalab-bench-") as folder:
                yield self._table(lab, case, size, chosen, Path(folder))

    def _table(self, lab: Lab, case: Case, size: Size, chosen: Chosen, folder: Path) -> Table:
        dist = self.request.dist or lab.distributions[0]
        table = Table(
            lab=lab.name,
            case=shown_case(lab, case),
            size="x".join(f"{d:,}" for d in (size if isinstance(size, tuple) else (size,))),
            dist=dist,
            work=Work(0, 0, 0),
            ceiling=self._ceiling(),
            sweep=free_defines(self.request.sweep),
            rows=[],
            end_to_end=None,
            notes=chosen[1],
        )
        self.document.tables.append(table)
        self.progress.begin(table.heading())
        self.progress.step("input")
        data = measure.make_data(lab, case, size, dist, self.request.seed, self.device, folder)
        entries = _Entries(self, lab, case, data, table)
        for variant in chosen[0]:
            entries.add_variant(variant)
        if not self.request.sweep:
            for name in self.request.baselines:
                entries.add_baseline(name)
        self._measure(entries)
        if not self.request.sweep:
            table.end_to_end = self._end_to_end(lab, case, entries, data)
        self.exit_codes |= self._exit_codes(entries)
        self.keep(entries, now=True)
        return table

    def _exit_codes(self, entries: _Entries) -> set[int]:
        """In a sweep some combinations cannot run: that is an answer, as long as one can."""
        codes = {entry.row.exit_code for entry in entries.found}
        some = any(entry.row.status is Status.OK for entry in entries.found)
        return codes & {0, int(ExitCode.WRONG_ANSWER)} if self.request.sweep and some else codes

    def _ceiling(self) -> Ceiling:
        """The measured copy, and the peak of the units at the clock that was measured."""
        gflop_per_s = None
        if self.sampler.best_mhz and self.declared_mhz:
            gflop_per_s = self.peaks.flops / 1e9 * self.sampler.best_mhz / self.declared_mhz
        return Ceiling(self.document.environment.copy_gb_per_s, gflop_per_s)

    def _measure(self, entries: _Entries) -> None:
        judge = measure.Judge(
            entries.lab, entries.data.inputs, entries.case, self.device, entries.data.buffers
        )

        def tell(done: float, _: Sequence[Entry]) -> None:
            self.progress.update(done, entries.estimate())
            self.keep(entries)

        try:
            measure.measure(entries.found, self.sampler, judge, self.plan, tell)
        finally:
            self.keep(entries, now=True)

    def _end_to_end(self, lab: Lab, case: Case, entries: _Entries, data: Data) -> EndToEnd | None:
        """Of the device's default, where it is in the table, else of the fastest."""
        right = [e for e in entries.found if e.row.status is Status.OK and e.row.comparable]
        if not right:
            return None
        defaults = [e for e in right if e.variant and e.variant.is_default_on(self.device.name)]
        best = min(defaults or right, key=lambda entry: min(entry.row.kept().values()))
        assert best.variant is not None
        self.progress.step("end to end")
        try:
            stages = measure.end_to_end(lab, best.variant, self.device, case, data.path)
        except CudalabError as error:
            entries.table.notes.append(f"end to end: {error.message}")
            return None
        return EndToEnd(best.row.name, stages)

    def keep(self, entries: _Entries, *, now: bool = False) -> None:
        """Bring the document up to date; save it now, or when the last time is a while ago."""
        if not now and time.monotonic() < self._saved + SAVE_EVERY_S:
            return
        table = entries.table
        table.work = entries.work()
        table.ceiling = self._ceiling()
        table.rows = results.rows_of(
            [entry.row for entry in entries.found],
            table.work,
            table.ceiling,
            ladder=not self.request.sweep,
        )
        self.document.environment = replace(
            self.document.environment, clock_mhz=self.sampler.best_mhz or None
        )
        self._save(self.document)
        self._saved = time.monotonic()

    def _chosen(self, lab: Lab, case: Case) -> Chosen:
        """The variants to measure in teaching order, and why others are left out."""
        variants, notes = choose(lab, case, self.request.variants, self.device)
        if self.request.kernel:
            variants.append(own_variant(lab, case, self.request.kernel))
        if not self.request.sweep:
            return variants, notes
        swept = []
        for variant in variants:
            missing = [name for name in self.request.sweep if name not in variant.defines]
            if missing:
                notes.append(f"{variant.name} is left out: it does not define {missing[0]}")
            else:
                swept += combinations(variant, self.request.sweep)
        if not swept:
            raise UsageError(
                f"no variant of {lab.name} here defines {', '.join(self.request.sweep)}",
                hint=f"`cudalab show {lab.name} VARIANT` prints what a variant defines",
            )
        return swept, notes


@dataclass
class _VariantEntry(Entry):
    """An entry that knows the variant, for the run from file to file."""

    variant: Variant | None = None


class _Entries:
    """The rows of a table, and what makes them."""

    def __init__(self, suite: Suite, lab: Lab, case: Case, data: Data, table: Table) -> None:
        self.suite, self.lab, self.case, self.data, self.table = suite, lab, case, data, table
        self.found: list[_VariantEntry] = []
        self._answer_bytes = 0

    def work(self) -> Work:
        """What the table's computation is at least."""
        return self.lab.teaching.work(self.data.inputs, self.case, self._answer_bytes)

    def add_variant(self, variant: Variant) -> None:
        """Compile it; what cannot run is a row with the reason."""
        suite = self.suite
        suite.progress.step(variant.name)
        row = Row(
            variant.name,
            device=suite.device.name,
            emulated=emulated(suite.device.name),
            clock="host" if emulated(suite.device.name) else "device",
            summary=variant.summary,
            order=variant.order,
            ladder=variant.ladder,
            defines=dict(variant.defines),
            precision=variant.precision,
        )
        course = self.lab.teaching.course_time(variant.name, self.case)
        row.course = str(course) if course else ""
        try:
            candidate = measure.variant_candidate(
                self.lab, variant, suite.sampler, self.data, self.case
            )
        except CudalabError as error:
            measure.refuse_for(row, error)
            self.found.append(_VariantEntry(row))
            suite.device.synchronize()
        else:
            flops = self.lab.teaching.own_flops(variant.dispatch, self.data.inputs)
            tensor = "tensor_cores" in variant.requires
            self._add(row, candidate, flops, tensor_cores=tensor, variant=variant)
        suite.keep(self, now=True)

    def add_baseline(self, name: str) -> None:
        """A library's way to compute the same."""
        from cudalab.bench import baselines  # noqa: PLC0415 - few runs need it

        suite, data = self.suite, self.data
        reason = baselines.why_not(name, self.lab, self.case, suite.device.name)
        if reason:
            self.table.notes.append(f"left out: {reason}")
            return
        suite.progress.step(name)
        try:
            found = baselines.baselines(
                self.lab, suite.sampler, data.inputs, self.case, data.buffers, [name]
            )
        except CudalabError as error:
            row = Row(name, kind="baseline", device=suite.device.name)
            row.refuse(Status.SKIPPED, error.message)
            self.found.append(_VariantEntry(row))
            return
        for candidate in found:
            row = Row(candidate.name, kind="baseline", device=candidate.device)
            row.clock = measure.clock_of(candidate, suite.device.name)
            self._add(row, candidate, 0, tensor_cores=False)
        suite.keep(self, now=True)

    def _add(
        self,
        row: Row,
        candidate: Candidate,
        flops: int,
        *,
        tensor_cores: bool,
        variant: Variant | None = None,
    ) -> None:
        """One entry for each state of the caches; the host's have only one."""
        suite = self.suite
        self._answer_bytes = self._answer_bytes or candidate.answer_bytes
        on_device = candidate.device == suite.device.name
        for cache in suite.request.caches if on_device else suite.request.caches[:1]:
            one = replace(row, cache=cache, samples=[], discarded=[], notes=[], warnings=[])
            if on_device:
                one.bound = bounds.bound(
                    self.work(),
                    flops,
                    suite.peaks,
                    hot=cache == measure.HOT,
                    tensor_cores=tensor_cores,
                )
            self.found.append(_VariantEntry(one, candidate, variant=variant))

    def estimate(self) -> str:
        """The fastest row so far."""
        timed = [
            (sum(kept) / len(kept), entry.row)
            for entry in self.found
            if not entry.row.precision and (kept := list(entry.row.kept().values()))
        ]
        if not timed:
            return "checking"
        ms, row = min(timed, key=lambda one: one[0])
        return f"{len(row.samples)} rounds, best {row.name} {ms:.4g} ms"


# Choosing ----------------------------------------------------------------------------------------


def check(request: Request, device: str) -> None:
    """UsageError for what cannot be measured, as far as that is known before the device is open."""
    for lab, case in request.labs:
        if request.variants not in (None, ALL):
            named(lab, case, request.variants)
        if request.kernel:
            own_variant(lab, case, request.kernel)
    for lab, case, size in jobs(request, device):
        # Drawn is the first piece only, a header. Every number is a size, so a small one will do.
        shape = size if isinstance(size, tuple) else 1
        next(iter(lab.generate(case, shape, request.dist or lab.distributions[0], request.seed)))


def jobs(request: Request, device: str) -> list[tuple[Lab, Case, Size]]:
    """What each table is about."""
    return [
        (lab, case, size)
        for lab, case in request.labs
        for size in request.sizes or [lab.teaching.bench_size(case, device)]
    ]


def named(lab: Lab, case: Case, names: str) -> list[Variant]:
    """The variants with these names, in teaching order. UsageError if one is not for the case."""
    found = [registry.find(lab, name.strip()) for name in names.split(",")]
    for variant in found:
        registry.check_applies(variant, lab, case)
    return sorted(found, key=lambda variant: (variant.order, variant.name))


def own_variant(lab: Lab, case: Case, path: Path) -> Variant:
    """A student's file, called by its name."""
    own = registry.read_header(path, lab, str(path))
    registry.check_applies(own, lab, case)
    return replace(own, name=path.name)


def choose(lab: Lab, case: Case, wanted: str | None, device: Device) -> Chosen:
    """The variants that `--variants` means, and why others of `all` are left out."""
    everything = registry.variants(lab)
    if wanted is not None and wanted != ALL:
        found = named(lab, case, wanted)
        for variant in found:
            registry.check_features(variant, device.name, device.features)
        return found, []
    able: list[Variant] = []
    why: dict[str, list[str]] = {}
    for variant in everything:
        reason = left_out(variant, case, device)
        if reason:
            why.setdefault(reason, []).append(variant.name)
        else:
            able.append(variant)
    notes = [f"left out: {', '.join(names)}: {reason}" for reason, names in why.items()]
    if wanted == ALL:
        return able, notes
    ends = [v for v in able if v is able[0] or v.is_default_on(device.name)]
    others = len(able) - len(ends)
    return ends, [f"{others} more with --variants all"] if others else []


def left_out(variant: Variant, case: Case, device: Device) -> str | None:
    """Why `all` leaves the variant out, in words; None where it does not."""
    for axis, values in variant.applies.items():
        if case.get(axis) not in values:
            return f"computes {axis} {', '.join(values)} only"
    missing = variant.missing(device.features)
    if missing:
        return f"requires {', '.join(missing)}, which this {device.name} device lacks"
    return None


def combinations(variant: Variant, sweep: Mapping[str, Sequence[str]]) -> list[Variant]:
    """The variant with each combination of values for its defines."""
    count = prod(len(values) for values in sweep.values())
    if count > MOST_COMBINATIONS:
        raise UsageError(
            f"--sweep: {count:,} combinations are too many", hint=f"{MOST_COMBINATIONS:,} at most"
        )
    found = []
    for values in product(*sweep.values()):
        given = dict(zip(sweep, values, strict=True))
        defines: dict[str, int | str] = dict(variant.defines)
        defines |= {name: int(text) for name, text in given.items() if text.isdecimal()}
        for name, text in given.items():
            if text.startswith("~"):
                defines[name] = _in_proportion(name, text[1:], variant, defines)
            elif not text.isdecimal():
                defines[name] = _product(name, text, defines)
        label = " ".join(f"{name}={defines[name]}" for name in sweep)
        found.append(replace(variant, name=f"{variant.name}[{label}]", defines=defines))
    return found


def free_defines(sweep: Sweep) -> list[str]:
    """Those that have values of their own; the others follow from them."""
    free = [name for name, values in sweep.items() if all(v.isdecimal() for v in values)]
    return free or list(sweep)


def _product(name: str, text: str, defines: Mapping[str, int | str]) -> int:
    """A value such as 2*THREADS_PER_BLOCK."""
    value = 1
    for factor in text.split("*"):
        known = defines.get(factor.strip(), factor.strip())
        try:
            value *= int(known)
        except ValueError:
            raise UsageError(
                f"--sweep {name}: '{text}' is no number and no product of numbers and defines",
                hint="such as 32, 2*THREADS_PER_BLOCK, or ~THREADS_PER_BLOCK: in proportion to it",
            ) from None
    return value


def _in_proportion(
    name: str, other: str, variant: Variant, defines: Mapping[str, int | str]
) -> int:
    """The define as many times larger than in the header as `other` is."""
    if other not in variant.defines:
        raise UsageError(f"--sweep {name}: {variant.name} does not define {other}")
    return int(variant.defines[name]) * int(defines[other]) // int(variant.defines[other])


def exit_code(codes: set[int]) -> int:
    """A wrong answer before a failure before success."""
    wrong = int(ExitCode.WRONG_ANSWER)
    return wrong if wrong in codes else max(codes, default=0)


def shown_case(lab: Lab, case: Case) -> dict[str, Scalar]:
    """The axes of the case, and the options that are not as they always are."""
    usual = lab.complete({})
    axes = {axis: case[axis] for axis in lab.axes if axis not in lab.derived}
    rest = {
        name: value
        for name, value in case.items()
        if name not in lab.axes and value not in (None, usual.get(name))
    }
    return axes | rest


def case_of(lab: Lab, given: Mapping[str, Any]) -> Case:
    """The whole case. UsageError for what bench does not measure."""
    case = lab.complete(dict(given))
    if case.get("text"):
        raise UsageError("--text is not measured", hint="bench measures the binary streams")
    return case
