"""Measures: checks the answers, takes samples in turn, and checks the answers again. No printing.

All candidates are measured in one loop, A B A B ..., so that a falling clock or a busy machine
affects all of them. A row gets no time if its answer is wrong, if it changed its inputs, or if its
time cannot be true.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cudalab.backends import facts
from cudalab.backends.base import Buffer, Device
from cudalab.backends.meter import Meter, QueueMeter, Timer
from cudalab.bench import measured, stats
from cudalab.errors import CudalabError
from cudalab.formats import as_bytes
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Array, Case, HostInputs
from cudalab.system.machine import usable_cores

OnProgress = Callable[[float, Sequence["Entry"]], None]

POISON = 0xA5
ENOUGH_SAMPLES = 30  # with fewer, a small error is not trusted if the time limit allows more
TARGET_ERROR = 0.005  # relative standard error of the median at which a row has settled
COMPARED_BYTES = 1 << 26
HASHED_BYTES = 1 << 23
HOLD_TRIES = 3  # a busy host may enqueue too slowly for one

NOT_HELD = "it waits for the device, or fills its queue: the time includes these waits"


@dataclass(kw_only=True)
class Candidate:
    """One way to compute the answer from inputs that are on the device already."""

    name: str
    kind: str  # "variant" or "baseline"
    run: Callable[[], None]  # enqueues or computes one answer; repeatable
    answer: Callable[[], Array]  # a copy of the output on the host
    poison: Callable[[], None]  # fills the output with 0xA5 bytes
    reads_back: bool = False  # waits for results between launches: cannot be held
    device: str = "cuda"  # "cuda" or "cpu": where it computes
    answer_bytes: int = 0  # the size of the output; 0 if unknown
    notes: list[str] = field(default_factory=list)
    precision: str = ""  # if narrower than the lab's: a lossy variant


@dataclass
class Entry:
    """A row being measured and its candidate, or None if there is nothing to run."""

    row: measured.Row
    candidate: Candidate | None = None
    spent_s: float = 0.0

    @property
    def alive(self) -> bool:
        """Whether it still has to be measured."""
        return self.candidate is not None and self.row.status is measured.Status.UNFINISHED

    def settled(self) -> bool:
        """Whether more samples would add nothing."""
        samples = list(self.row.valid_samples().values())
        return len(samples) >= ENOUGH_SAMPLES and stats.error(samples) <= TARGET_ERROR


class Sampler:
    """Takes samples on one device."""

    def __init__(
        self, device: Device, meter: Meter, now: Callable[[], float] = time.perf_counter
    ) -> None:
        """`now` is the host's clock in seconds."""
        self.device, self.meter = device, meter
        self.queue = meter if isinstance(meter, QueueMeter) else None
        self.now = now
        self.best_mhz = 0.0  # so far

    def clock(self) -> float | None:
        """The device's current clock, if it has one; the highest is stored in `best_mhz`."""
        if self.queue is None:
            return None
        mhz = self.queue.clock_mhz()
        self.best_mhz = max(self.best_mhz, mhz)
        return mhz

    def sample(self, candidate: Candidate, cache: str, number: int) -> measured.Sample:
        """Time one computation: from flushed caches, or right after another one (hot)."""
        if candidate.device != self.device.name:
            self.device.synchronize()  # so that nothing else runs meanwhile
            if cache == measured.HOT:
                candidate.run()
            self.device.synchronize()
            began = self.now()
            candidate.run()
            self.device.synchronize()
            ms = 1e3 * (self.now() - began)
        elif candidate.reads_back or self.queue is None:
            ms = self._timed(candidate, cache).ms
        else:
            ms = self._held(candidate, cache, self.queue)
        return measured.Sample(number, ms, self.clock())

    def _held(self, candidate: Candidate, cache: str, queue: QueueMeter) -> float:
        """Hold the queue until all is enqueued; measure without holding it if that fails."""
        for _ in range(HOLD_TRIES):
            with queue.held() as hold:
                timer = self._timed(candidate, cache)
            ms = timer.ms
            if not hold.expired:
                return ms
        candidate.reads_back = True
        candidate.notes.append(NOT_HELD)
        return self._timed(candidate, cache).ms

    def _timed(self, candidate: Candidate, cache: str) -> Timer:
        """Time one computation between two events, after preparing the caches."""
        if cache == measured.HOT:
            candidate.run()
        else:
            self.meter.flush()
        timer = self.meter.timer()
        timer.start()
        candidate.run()
        timer.stop()
        return timer


class Judge:
    """Judges answers, and whether the inputs have been changed."""

    def __init__(
        self, lab: Lab, inputs: HostInputs, case: Case, device: Device, buffers: dict[str, Buffer]
    ) -> None:
        """`buffers` hold `inputs` on the device."""
        self.lab, self.inputs, self.case = lab, inputs, case
        self.device, self.buffers = device, buffers
        # Precisions and digests of right answers, which need no second comparison.
        self._right: set[tuple[str, bytes]] = set()

    def mistake(self, candidate: Candidate) -> str | None:
        """A message about what is wrong with the candidate's answer; None if it is right."""
        answer = np.ascontiguousarray(candidate.answer())
        seen = candidate.precision, _digest(as_bytes(answer))
        if seen in self._right:
            return None
        difference = self.lab.compare_at(candidate.precision, answer, self.inputs, self.case)
        if difference is None:
            self._right.add(seen)
            return None
        untouched = bool((answer.reshape(-1).view(np.uint8) == POISON).all())
        return "the output was not written" if untouched else str(difference)

    def modified(self) -> str | None:
        """The first input that has been changed; all inputs are restored."""
        changed = None
        for name, buffer in self.buffers.items():
            original = np.ascontiguousarray(self.inputs.arrays[name])
            if not _equal(self.device.chunks(buffer), as_bytes(original)):
                changed = changed or name
                self.device.copy(original, buffer)
        return changed


def _digest(data: memoryview) -> bytes:
    """A hash of the hashes of pieces, which are computed on all cores."""
    pieces = (data[at : at + HASHED_BYTES] for at in range(0, len(data), HASHED_BYTES))
    with ThreadPoolExecutor(usable_cores()) as pool:
        digests = b"".join(pool.map(lambda piece: hashlib.blake2b(piece).digest(), pieces))
    return hashlib.blake2b(digests).digest()


def _equal(chunks: Iterator[memoryview], original: memoryview) -> bool:
    """Whether all bytes are equal; all chunks are read in any case."""
    same, position = True, 0
    for chunk in chunks:
        for at in range(0, len(chunk), COMPARED_BYTES):
            piece = chunk[at : at + COMPARED_BYTES]
            theirs = original[position : position + len(piece)]
            same = same and np.array_equal(_words(piece), _words(theirs))
            position += len(piece)
    return same and position == len(original)


def _words(data: memoryview) -> Array:
    """The bytes as an array of 64-bit words if possible, for speed."""
    return np.frombuffer(data, np.uint8 if len(data) % 8 else np.uint64)


# The loop ----------------------------------------------------------------------------------------


def measure(
    entries: Sequence[Entry],
    sampler: Sampler,
    judge: Judge,
    plan: measured.Plan,
    on_progress: OnProgress = lambda _done, _entries: None,
) -> None:
    """Check, sample in turn, and check again. In the end each entry's row has its status.

    `on_progress` is called after each check and each round, with the completed part of the work.
    """
    for number, entry in enumerate(entries):
        _guarded(entry, sampler, partial(_check, entry, judge))
        on_progress(0.1 * (number + 1) / len(entries), entries)
    _sample_in_turn(
        [entry for entry in entries if entry.alive], sampler, plan, on_progress, entries
    )
    changed = judge.modified()
    remaining = [entry for entry in entries if entry.alive]
    for entry in remaining:
        _guarded(entry, sampler, partial(_check, entry, judge, sampler))
    if changed and not any(entry.row.status is measured.Status.WRONG for entry in remaining):
        for entry in remaining:
            entry.row.refuse(
                measured.Status.INVALID,
                f"a kernel changed the input {changed} during timing",
                measured.WRONG,
            )
    for entry in entries:
        measured.finish(entry.row, sampler.best_mhz, plan)
    on_progress(1.0, entries)


def _guarded(entry: Entry, sampler: Sampler, work: Callable[[], None]) -> None:
    """Do `work`. An expected failure ends this row, a lost device the whole measurement."""
    if not entry.alive:
        return
    try:
        work()
    except CudalabError as error:
        measured.refuse_for(entry.row, error)
        sampler.device.synchronize()


def _check(entry: Entry, judge: Judge, sampler: Sampler | None = None) -> None:
    """Compute with a poisoned output and judge it; by `sampler`, as samples have been taken."""
    candidate = entry.candidate
    assert candidate is not None
    candidate.poison()
    if sampler:
        sampler.sample(candidate, entry.row.cache, -1)
    else:
        candidate.run()
    when = "after timing: " if sampler else ""
    entry.row.notes = list(dict.fromkeys(candidate.notes))
    mistake = judge.mistake(candidate)
    changed = judge.modified()
    if changed:
        entry.row.refuse(
            measured.Status.WRONG, f"{when}it modified its input {changed}", measured.WRONG
        )
    elif mistake:
        entry.row.refuse(measured.Status.WRONG, when + mistake, measured.WRONG)
    if entry.row.status is measured.Status.WRONG:
        entry.row.samples.clear()


def _sample_in_turn(
    remaining: list[Entry],
    sampler: Sampler,
    plan: measured.Plan,
    on_progress: OnProgress,
    entries: Sequence[Entry],
) -> None:
    """Take one sample of each row per round, until all have settled or spent their time."""
    share = plan.time_limit_s / max(len(remaining), 1)
    number = 0
    while True:
        active = [
            entry
            for entry in remaining
            if entry.alive
            and (
                len(entry.row.samples) < measured.MIN_SAMPLES
                or (entry.spent_s < share and len(entry.row.samples) < measured.MAX_SAMPLES)
            )
        ]
        if all(entry.settled() for entry in active):
            return
        for entry in active:
            _guarded(entry, sampler, partial(_take, entry, sampler, number))
        number += 1
        spent = sum(entry.spent_s for entry in remaining) / plan.time_limit_s
        on_progress(0.1 + 0.85 * min(spent, 1.0), entries)


def _take(entry: Entry, sampler: Sampler, number: int) -> None:
    assert entry.candidate is not None
    began = sampler.now()
    sample = sampler.sample(entry.candidate, entry.row.cache, number)
    entry.row.samples.append(sample)
    entry.row.clock = clock_of(entry.candidate, sampler.device.name)
    entry.spent_s += sampler.now() - began


def clock_of(candidate: Candidate, device: str) -> str:
    """The clock that times the candidate on `device`: the device's or the host's."""
    return facts(device).clock if candidate.device == device else "host"
