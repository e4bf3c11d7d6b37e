"""Measures the tables of one call of bench, one for each lab, case and size. No printing."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cudalab.backends.base import Device
from cudalab.backends.meter import open_meter
from cudalab.bench import candidates, choice, measure, measured, results
from cudalab.bench.candidates import Data
from cudalab.bench.document import Ceiling, Conditions, Document, EndToEnd, Table
from cudalab.bench.measure import Candidate, Entry, Sampler
from cudalab.bench.measured import Plan, Row, Status
from cudalab.errors import CudalabError, ExitCode, UsageError, nearest
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from cudalab.labs.teaching import Work

BUDGET_S = 20.0  # for sampling by default; compiling and checking are not included
MAX_TABLE_S = 10.0
MIN_TABLE_S = 1.0
SAVE_EVERY_S = 2.0


class Progress(Protocol):
    """Shows the progress."""

    def begin(self, what: str) -> None: ...
    def step(self, what: str) -> None: ...
    def update(self, done: float, estimate: str) -> None: ...


class Suite:
    """Measures the tables of a request on one device; `document` holds the results so far."""

    def __init__(
        self,
        device: Device,
        request: choice.Request,
        progress: Progress,
        save: Callable[[Document], None],
        busy: Sequence[str] = (),
        *,
        copy_gb_per_s: float | None = None,
    ) -> None:
        """`save` is called with the document whenever it has grown.

        `copy_gb_per_s` is the device's copy rate; None: it is measured.
        """
        self.device, self.request, self.progress = device, request, progress
        self._save, self._saved = save, 0.0
        self.sampler = Sampler(device, open_meter(device))
        info = device.info()
        self.peaks = measured.peaks(info)
        self.declared_mhz = info.clock_mhz or 0
        self.sampler.clock()
        self.jobs = [
            (lab, case, size, self._chosen(lab, case))
            for lab, case, size in choice.jobs(request, device.name)
        ]
        limit = request.time_limit_s or min(
            max(BUDGET_S / len(self.jobs), MIN_TABLE_S), MAX_TABLE_S
        )
        self.plan = Plan(limit, request.time_limit_s is not None, tuple(busy))
        copy = copy_gb_per_s or self.sampler.meter.bandwidth()
        self.document = Document(
            environment=results.environment(device.name, info, copy, busy),
            conditions=Conditions(list(request.caches), limit, request.seed),
            tables=[],
        )
        self.exit_codes: set[int] = set()

    def tables(self) -> Iterator[Table]:
        """Measure one table after the other."""
        for lab, case, size, chosen in self.jobs:
            with tempfile.TemporaryDirectory(prefix="cudalab-bench-") as folder:
                yield self._table(lab, case, size, chosen, Path(folder))

    def _table(
        self, lab: Lab, case: Case, size: Size, chosen: choice.Chosen, folder: Path
    ) -> Table:
        dist = lab.distribution(self.request.dist)
        table = Table(
            lab=lab.name,
            case=choice.shown_case(lab, case),
            size=in_words(size, ","),
            dist=dist,
            work=Work(0, 0, 0),
            ceiling=self._ceiling(),
            sweep=choice.free_defines(self.request.sweep),
            rows=[],
            end_to_end=None,
            notes=chosen[1],
        )
        self.document.tables.append(table)
        self.progress.begin(table.heading())
        self.progress.step("input")
        data = candidates.make_data(lab, case, size, dist, self.request.seed, self.device, folder)
        entries = _Entries(self, lab, case, data, table)
        for variant in chosen[0]:
            entries.add_variant(variant)
        if not self.request.sweep:
            for name in self.request.baselines:
                entries.add_baseline(name)
        self._measure(entries)
        if not self.request.sweep:
            table.end_to_end = self._end_to_end(lab, case, entries, data)
        # In a sweep, failures do not count if any combination works.
        # A library's wrong answer is a result, not a failure of the run.
        codes = {entry.row.exit_code for entry in entries.all if entry.row.kind == "variant"}
        some = any(entry.row.status is Status.OK for entry in entries.all)
        self.exit_codes |= (
            codes & {0, int(ExitCode.WRONG_ANSWER)} if self.request.sweep and some else codes
        )
        self.keep(entries, now=True)
        return table

    def _ceiling(self) -> Ceiling:
        """The measured copy rate, and the peak of the units at the measured clock."""
        gflop_per_s = None
        if self.sampler.best_mhz and self.declared_mhz:
            gflop_per_s = self.peaks.flops / 1e9 * self.sampler.best_mhz / self.declared_mhz
        return Ceiling(self.document.environment.copy_gb_per_s, gflop_per_s)

    def _measure(self, entries: _Entries) -> None:
        judge = measure.Judge(
            entries.lab, entries.data.inputs, entries.case, self.device, entries.data.buffers
        )

        def on_progress(done: float, _: Sequence[Entry]) -> None:
            self.progress.update(done, entries.estimate())
            self.keep(entries)

        try:
            measure.measure(entries.all, self.sampler, judge, self.plan, on_progress)
        finally:
            self.keep(entries, now=True)

    def _end_to_end(self, lab: Lab, case: Case, entries: _Entries, data: Data) -> EndToEnd | None:
        """Measure the device's default from file to file, or the fastest variant without it."""
        right = [e for e in entries.all if e.row.status is Status.OK and e.row.comparable]
        if not right:
            return None
        defaults = [e for e in right if e.variant and e.variant.is_default_on(self.device.name)]
        best = min(defaults or right, key=lambda entry: min(entry.row.valid_samples().values()))
        assert best.variant is not None
        self.progress.step("end to end")
        try:
            stages = candidates.end_to_end(lab, best.variant, self.device, case, data.path)
        except CudalabError as error:
            entries.table.notes.append(f"end to end: {error.message}")
            return None
        return EndToEnd(best.row.name, stages)

    def keep(self, entries: _Entries, *, now: bool = False) -> None:
        """Update the document, and save it, but not too often unless `now`."""
        if not now and time.monotonic() < self._saved + SAVE_EVERY_S:
            return
        table = entries.table
        table.work = entries.work()
        table.ceiling = self._ceiling()
        table.rows = results.rows_of(
            [entry.row for entry in entries.all],
            table.work,
            table.ceiling,
            ladder=not self.request.sweep,
        )
        self.document.environment = replace(
            self.document.environment, clock_mhz=self.sampler.best_mhz or None
        )
        self._save(self.document)
        self._saved = time.monotonic()

    def _chosen(self, lab: Lab, case: Case) -> choice.Chosen:
        """The variants to measure, in teaching order, and why others are left out."""
        variants, notes = choice.choose(lab, case, self.request.variants, self.device)
        if self.request.kernel:
            variants.append(choice.own_variant(lab, case, self.request.kernel))
        variants = [variant.on(self.device) for variant in variants]
        if not self.request.sweep:
            return variants, notes
        swept = []
        for variant in variants:
            missing = [name for name in self.request.sweep if name not in variant.defines]
            if missing:
                notes.append(f"{variant.name} is left out: it does not define {missing[0]}")
            else:
                swept += choice.combinations(variant, self.request.sweep)
        if not swept:
            defined = dict.fromkeys(name for variant in variants for name in variant.defines)
            raise UsageError(
                f"no variant of {lab.name} here defines {', '.join(self.request.sweep)}",
                hint=f"{nearest(next(iter(self.request.sweep)), defined)} "
                f"(`cudalab show {lab.name} VARIANT` prints what a variant defines)",
            )
        return swept, notes


@dataclass
class _VariantEntry(Entry):
    """An entry with its variant, for the run from file to file."""

    variant: Variant | None = None


class _Entries:
    """The entries of a table, and the methods that add them."""

    def __init__(self, suite: Suite, lab: Lab, case: Case, data: Data, table: Table) -> None:
        self.suite, self.lab, self.case, self.data, self.table = suite, lab, case, data, table
        self.all: list[_VariantEntry] = []
        self._answer_bytes = 0

    def work(self) -> Work:
        """The minimum work of the table's computation."""
        return self.lab.teaching.work(self.data.inputs, self.case, self._answer_bytes)

    def add_variant(self, variant: Variant) -> None:
        """Compile a variant and add its rows; one that cannot run gets a row with the reason."""
        suite = self.suite
        suite.progress.step(variant.name)
        row = Row(
            variant.name,
            device=suite.device.name,
            emulated=not suite.device.facts.gpu_times,
            clock=suite.device.facts.clock,
            summary=variant.summary,
            order=variant.order,
            ladder=variant.ladder,
            defines=dict(variant.defines),
            precision=variant.precision,
        )
        course = self.lab.teaching.course_time(variant.name, self.case)
        row.course = str(course) if course else ""
        try:
            candidate = candidates.variant_candidate(
                self.lab, variant, suite.sampler, self.data, self.case
            )
        except CudalabError as error:
            measured.refuse_for(row, error)
            self.all.append(_VariantEntry(row))
            suite.device.synchronize()
        else:
            flops = self.lab.teaching.own_flops(variant.dispatch, self.data.inputs)
            tensor = "tensor_cores" in variant.requires
            self._add(row, candidate, flops, tensor_cores=tensor, variant=variant)
        suite.keep(self, now=True)

    def add_baseline(self, name: str) -> None:
        """Add the rows of a library that computes the same answer."""
        from cudalab.bench import baselines  # noqa: PLC0415 - few runs need it

        suite, data = self.suite, self.data
        reason = baselines.why_not(name, self.lab, self.case, suite.device.name)
        if reason:
            self.table.notes.append(f"left out: {reason}")
            return
        suite.progress.step(name)
        try:
            candidates = baselines.baselines(
                self.lab, suite.sampler, data.inputs, self.case, data.buffers, [name]
            )
        except CudalabError as error:
            row = Row(name, kind="baseline", device=suite.device.name)
            row.refuse(Status.SKIPPED, error.message)
            self.all.append(_VariantEntry(row))
            return
        for candidate in candidates:
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
        """Add an entry for each state of the caches; for the host there is only one."""
        suite = self.suite
        self._answer_bytes = self._answer_bytes or candidate.answer_bytes
        on_device = candidate.device == suite.device.name
        for cache in suite.request.caches if on_device else suite.request.caches[:1]:
            one = replace(row, cache=cache, samples=[], discarded=[], notes=[], warnings=[])
            if on_device:
                one.bound = measured.bound(
                    self.work(),
                    flops,
                    suite.peaks,
                    hot=cache == measured.HOT,
                    tensor_cores=tensor_cores,
                )
            self.all.append(_VariantEntry(one, candidate, variant=variant))

    def estimate(self) -> str:
        """A text about the fastest row so far."""
        timed = [
            (sum(samples) / len(samples), entry.row)
            for entry in self.all
            if not entry.row.precision and (samples := list(entry.row.valid_samples().values()))
        ]
        if not timed:
            return "checking"
        ms, row = min(timed, key=lambda one: one[0])
        return f"{len(row.samples)} rounds, best {row.name} {ms:.4g} ms"
