"""The measuring loop and its statistics, with a scripted device: exact numbers, no real time."""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import cudalab
from hypothesis import given
from hypothesis import strategies as st

from cudalab import labs
from cudalab.backends import GPU
from cudalab.backends.base import DeviceInfo
from cudalab.bench import choice, measure, measured, stats
from cudalab.bench.measure import Candidate, Entry, Judge, Sampler
from cudalab.bench.measured import COLD, HOT, Plan, Row, Sample, Status
from cudalab.errors import CudalabError, KernelError, UsageError
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.labs.teaching import Work
from cudalab.system import exclusive

LAB = labs.get("reduce")
CASE = LAB.complete({})
BROKEN = Path(__file__).parents[1] / "broken" / "bench"

# Statistics ---------------------------------------------------------------------------------------


def test_median_noise_and_error_of_samples():
    samples = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert stats.median(samples) == 3
    assert stats.noise(samples) == pytest.approx((4 - 2) / 1.349 / 3)
    assert stats.error(samples) == pytest.approx(1.2533 * (4 - 2) / 1.349 / 3 / 5**0.5)


def test_one_sample_has_no_known_noise():
    assert stats.noise([1.0]) == stats.error([]) == float("inf")


def test_one_slow_sample_does_not_make_noise():
    assert stats.noise([1.0] * 20 + [100.0]) == 0


def test_outliers_are_far_from_what_is_typical():
    assert stats.outliers([1.0, 1.1, 0.9, 1.0, 1.05, 9.0]) == [5]
    assert stats.outliers([1.0, 1.0, 1.0, 1.0, 1.05]) == []
    assert stats.outliers([1.0, 1.0, 1.0, 1.0, 1.5]) == [4]
    assert stats.outliers([1.0, 9.0]) == []


def test_a_constant_ratio_is_known_exactly_when_samples_are_pairs():
    one = dict(enumerate([1.0, 7.0, 2.0, 9.0, 4.0, 3.0]))
    two = {r: 2 * ms for r, ms in one.items()}
    assert stats.ratio(two, one) == stats.Ratio(2, 2, 2)
    assert stats.ratio(one, two).decided


def test_the_same_samples_in_other_rounds_are_no_pairs():
    one = [1.0, 7.0, 2.0, 9.0, 4.0, 3.0]
    found = stats.independent_ratio([2 * ms for ms in one], one, 0.95)
    assert found.value == 2
    assert found.low < 1 < found.high
    assert not found.decided


def test_equal_samples_have_no_winner():
    found = stats.ratio(dict.fromkeys(range(9), 1.0), dict.fromkeys(range(9), 1.0))
    assert found == stats.Ratio(1, 1, 1)
    assert not found.decided


def test_the_interval_is_the_same_at_every_call():
    one = dict(enumerate([1.0, 1.1, 0.9, 1.2, 1.0, 1.3, 0.8]))
    two = dict(enumerate([1.5, 1.6, 1.7, 1.4, 1.5, 1.5, 1.6]))
    found = stats.ratio(two, one)
    assert found == stats.ratio(two, one)
    assert found.value == 1.5
    assert 1.1 < found.low < 1.5 < found.high < 1.9
    assert found.inverse() == stats.Ratio(1 / 1.5, 1 / found.high, 1 / found.low)


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12),
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12),
)
def test_the_ratio_lies_in_its_interval(one, two):
    found = stats.ratio(dict(enumerate(one)), dict(enumerate(two)))
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(stats.median(one) / stats.median(two))


def test_rounds_of_one_row_only_count_too():
    """A row that takes long has fewer samples than the others of its table."""
    long = dict(enumerate([1.5] * 6))
    short = dict(enumerate([2.0] * 6 + [1.0] * 20))
    assert stats.ratio(long, short) == stats.Ratio(1.5, 1.5, 1.5)
    assert stats.ratio(short, long) == stats.Ratio(1 / 1.5, 1 / 1.5, 1 / 1.5)


def test_what_slows_both_down_cancels_in_the_rounds_of_both():
    mixed = np.random.default_rng(0).permutation(20)  # without a period
    both = {r: 1.0 + 0.1 * float(mixed[r] % 5) for r in range(20)}
    one = {r: 2 * ms for r, ms in both.items()} | {20: 2.4}
    paired = stats.ratio(one, both)
    apart = stats.independent_ratio(list(one.values()), list(both.values()), 0.95)
    assert paired.value == apart.value
    assert paired.high - paired.low < (apart.high - apart.low) / 2


# A device that takes the time it is told ---------------------------------------------------------


class Memory:
    def __init__(self, array):
        self.array = array
        self.shape, self.dtype, self.nbytes = array.shape, array.dtype, array.nbytes


class ScriptedTimer:
    def __init__(self, device):
        self.device, self.ms = device, 0.0

    def start(self):
        self.device.log.append("start")
        self.began = self.device.now_ms

    def stop(self):
        self.device.log.append("stop")
        self.ms = self.device.now_ms - self.began


class Hold:
    expired = False


class ScriptedDevice:
    """Time passes only where the script says so."""

    name, facts = "cuda", GPU
    features = frozenset({"sm_90"})

    def __init__(self, clocks=()):
        self.now_ms, self.log = 0.0, []
        self.clocks = iter(clocks) if clocks else itertools.repeat(1000.0)
        self.expiring = 0  # of the next holds

    def now(self):
        return self.now_ms / 1e3

    def flush(self):
        self.log.append("flush")
        self.now_ms += 1  # must not be charged to anybody

    @contextmanager
    def held(self):
        self.log.append("hold")
        hold = Hold()
        yield hold
        hold.expired = self.expiring > 0
        self.expiring -= 1
        self.log.append("release")

    def timer(self):
        return ScriptedTimer(self)

    def fill(self, buffer, value):
        buffer.array.view(np.uint8)[...] = value

    def bandwidth(self):
        return 100.0

    def synchronize(self):
        pass

    def clock_mhz(self):
        return next(self.clocks)

    def chunks(self, buffer):
        yield buffer.array.reshape(-1).view(np.uint8).data

    def copy(self, source, target):
        target.array.reshape(-1).view(np.uint8)[:] = np.asarray(source).reshape(-1).view(np.uint8)


INPUTS = HostInputs({"x": np.arange(10, dtype=np.int32)}, {"n": 10})
ANSWER = np.array([45], np.int32)


class Script:
    """A candidate whose runs take the milliseconds of a script, and answer what they should."""

    def __init__(self, device, name, times, *, answers=None, reads_back=False, on="cuda"):
        self.device, self.times = device, itertools.chain(times, itertools.repeat(times[-1]))
        self.answers = itertools.chain(answers or [], itertools.repeat(ANSWER))
        self.out = np.zeros(1, np.int32)
        self.runs = 0
        self.candidate = Candidate(
            name=name,
            kind="variant",
            run=self.run,
            answer=self.out.copy,
            poison=self.poison,
            reads_back=reads_back,
            device=on,
        )

    def run(self):
        self.device.log.append(self.candidate.name)
        self.device.now_ms += next(self.times)
        answer = next(self.answers)
        self.runs += 1
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            self.out[:] = answer

    def poison(self):
        self.device.log.append("poison")
        self.out.view(np.uint8)[:] = measure.POISON


@pytest.fixture
def device():
    return ScriptedDevice()


def rows_of(device, *scripts, plan=None, caches=(COLD,), bound=None):
    entries = [
        Entry(Row(script.candidate.name, cache=cache, bound=bound), script.candidate)
        for script in scripts
        for cache in caches
    ]
    buffers = {"x": Memory(INPUTS.arrays["x"].copy())}
    judge = Judge(LAB, INPUTS, CASE, device, buffers)
    measure.measure(entries, Sampler(device, device, device.now), judge, plan or Plan(1.0))
    return [entry.row for entry in entries]


# The loop -----------------------------------------------------------------------------------------


def test_a_sample_is_flushed_held_and_timed_by_the_device(device):
    script = Script(device, "a", [3.0])
    sample = Sampler(device, device, device.now).sample(script.candidate, COLD, 7)
    assert sample == Sample(7, 3.0, 1000.0)
    assert device.log == ["hold", "flush", "start", "a", "stop", "release"]


def test_a_hot_sample_follows_a_run_of_the_same(device):
    script = Script(device, "a", [9.0, 3.0])
    assert Sampler(device, device, device.now).sample(script.candidate, HOT, 0).ms == 3
    assert device.log == ["hold", "a", "start", "a", "stop", "release"]


def test_a_step_that_reads_back_is_not_held(device):
    script = Script(device, "a", [3.0], reads_back=True)
    assert Sampler(device, device, device.now).sample(
        script.candidate, COLD, 0
    ).ms == pytest.approx(3)
    assert device.log == ["flush", "start", "a", "stop"]
    assert measure.clock_of(script.candidate, "cuda") == "device"


def test_the_host_s_own_work_is_neither_held_nor_flushed(device):
    script = Script(device, "numpy", [3.0], on="cpu")
    assert Sampler(device, device, device.now).sample(
        script.candidate, COLD, 0
    ).ms == pytest.approx(3)
    assert device.log == ["numpy"]


def test_a_hold_that_expires_is_tried_again(device):
    """Another process kept the host from its work: that says nothing of the candidate."""
    device.expiring = measure.HOLD_TRIES - 1
    script = Script(device, "a", [7.0] * measure.HOLD_TRIES + [3.0])
    (row,) = rows_of(device, script)
    assert device.log.count("hold") >= measure.HOLD_TRIES - 1 + len(row.samples)
    assert list(row.valid_samples().values()) == pytest.approx([3.0] * len(row.samples))
    assert row.notes == []
    assert not script.candidate.reads_back


def test_what_outlasts_every_hold_is_held_no_more(device):
    device.expiring = 1000
    script = Script(device, "a", [3.0])
    (row,) = rows_of(device, script)
    assert device.log.count("hold") == measure.HOLD_TRIES
    assert row.clock == "device"
    assert row.notes == [measure.NOT_HELD]
    assert list(row.valid_samples().values()) == pytest.approx([3.0] * len(row.samples))


def test_samples_are_taken_in_turn(device):
    rows_of(device, Script(device, "a", [1.0]), Script(device, "b", [2.0]))
    runs = [entry for entry in device.log if entry in "ab"]
    assert runs[:2] == ["a", "b"]  # the first check
    assert runs[2:-2] == ["a", "b"] * measure.ENOUGH_SAMPLES
    assert runs[-2:] == ["a", "b"]  # the second


def test_steady_samples_stop_when_enough_are_wanted(device):
    (row,) = rows_of(device, Script(device, "a", [1.0]))
    assert row.status is Status.OK
    assert [sample.ms for sample in row.samples] == [1.0] * measure.ENOUGH_SAMPLES
    assert [sample.round for sample in row.samples] == list(range(measure.ENOUGH_SAMPLES))


def test_noisy_samples_go_on_until_the_time_is_spent(device):
    noisy = Script(device, "a", [9.0, *[7.0, 14.0] * 500])  # 8 and 15 ms with the flush
    (row,) = rows_of(device, noisy, plan=Plan(1.0))
    assert len(row.samples) == 88  # 43 pairs are 989 ms, and one sample more 997
    assert row.warnings == ["noisy: a longer --time-limit takes more samples"]


def test_every_row_has_five_samples_whatever_they_cost(device):
    slow, fast = Script(device, "slow", [5000.0]), Script(device, "fast", [1.0])
    rows = rows_of(device, slow, fast, plan=Plan(0.2))
    assert [len(row.samples) for row in rows] == [5, measure.ENOUGH_SAMPLES]


def test_a_slow_row_does_not_spend_the_time_of_the_others(device):
    slow, fast = Script(device, "slow", [39.0]), Script(device, "fast", [*[4.0, 8.0] * 999])
    rows = rows_of(device, slow, fast, plan=Plan(1.0))
    assert [len(row.samples) for row in rows] == [13, 72]  # half a second each


def test_the_output_is_poisoned_before_both_checks(device):
    rows_of(device, Script(device, "a", [1.0]))
    assert device.log[:2] == ["poison", "a"]
    last = len(device.log) - 1 - device.log[::-1].index("poison")
    assert device.log[last:] == ["poison", "hold", "flush", "start", "a", "stop", "release"]


def test_a_wrong_answer_is_never_timed(device):
    wrong = np.array([44], np.int32)
    row, other = rows_of(
        device, Script(device, "a", [1.0], answers=[wrong]), Script(device, "b", [1.0])
    )
    assert (row.status, row.samples, row.exit_code) == (Status.WRONG, [], 3)
    assert row.reason == "1 of 1 elements differ\n  [0] expected 45, got 44"
    assert other.status is Status.OK


def test_a_kernel_that_does_nothing_is_wrong(device):
    (row,) = rows_of(device, Script(device, "a", [1.0], answers=[None]))
    assert (row.status, row.reason) == (Status.WRONG, "the output was not written")


def test_an_answer_that_goes_wrong_while_timing_has_no_time(device):
    answers = [ANSWER, *[None] * 1000]
    (row,) = rows_of(device, Script(device, "a", [1.0], answers=answers))
    assert (row.status, row.samples) == (Status.WRONG, [])
    assert row.reason == "after timing: the output was not written"


class Spoiler(Script):
    """Changes its input, from a given run on."""

    def __init__(self, device, name, buffer, first, last=10**9):
        super().__init__(device, name, [1.0])
        self.buffer, self.spoils = buffer, range(first, last)

    def run(self):
        if self.runs in self.spoils:
            self.buffer.array[3] += 1
        super().run()


def spoiled(device, first, last=10**9):
    buffer = Memory(INPUTS.arrays["x"].copy())
    spoiler = Spoiler(device, "a", buffer, first, last)
    entries = [Entry(Row("a"), spoiler.candidate)]
    honest = Script(device, "b", [1.0])
    entries.append(Entry(Row("b"), honest.candidate))
    judge = Judge(LAB, INPUTS, CASE, device, {"x": buffer})
    measure.measure(entries, Sampler(device, device, device.now), judge, Plan(1.0))
    assert (buffer.array == INPUTS.arrays["x"]).all()  # restored
    return [entry.row for entry in entries]


def test_a_changed_input_is_wrong_and_is_restored_for_the_others(device):
    row, other = spoiled(device, first=0)
    assert (row.status, row.reason) == (Status.WRONG, "it modified its input x")
    assert other.status is Status.OK


@pytest.mark.parametrize("precision", ["bf16", ""])
def test_a_lossy_answer_is_right_at_its_own_precision_only(device, precision):
    lab = labs.get("matmul")
    ones = np.ones((4, 4), np.float32)
    inputs = HostInputs({"a": ones * 1.001, "b": ones}, {"m": 4, "k": 4, "n": 4})
    judge = Judge(lab, inputs, lab.complete({}), device, {})
    product = ones * 4  # 1.001 is 1 in bfloat16
    for name in (precision, "bf16", precision):  # what is right once is not right for all
        candidate = Candidate(
            name="a",
            kind="variant",
            run=lambda: None,
            answer=product.copy,
            poison=lambda: None,
            precision=name,
        )
        mistake = judge.mistake(candidate)
        assert (mistake is None) == (name == "bf16"), mistake


def test_an_input_changed_later_is_found_after_timing(device):
    row, other = spoiled(device, first=5)
    assert row.reason == "after timing: it modified its input x"
    assert other.status is Status.OK


def test_an_input_changed_by_nobody_knows_whom_spoils_all(device):
    rows = spoiled(device, first=5, last=6)
    reason = "a kernel changed the input x during timing"
    assert [(row.status, row.reason) for row in rows] == [(Status.INVALID, reason)] * 2


def test_a_failure_ends_its_row_only(device):
    crash = Script(device, "a", [1.0], answers=[ANSWER, ANSWER, KernelError("stopped")])
    refusal = Script(device, "b", [1.0], answers=[CudalabError("A is singular")])
    rows = rows_of(device, crash, refusal, Script(device, "c", [1.0]))
    assert [(row.status, row.reason, row.exit_code) for row in rows] == [
        (Status.FAILED, "stopped", 1),
        (Status.SKIPPED, "A is singular", 0),
        (Status.OK, "", 0),
    ]


def test_the_same_bytes_are_compared_once(device, monkeypatch):
    compared = []
    monkeypatch.setattr(type(LAB), "compare", lambda *args: compared.append(args))
    rows_of(device, Script(device, "a", [1.0]), Script(device, "b", [1.0]))
    assert len(compared) == 1


# Verdicts -----------------------------------------------------------------------------------------


def test_throttled_samples_are_discarded():
    device = ScriptedDevice([1800.0] * 3 + [900.0] + [1800.0] * 1000)
    (row,) = rows_of(device, Script(device, "a", [1.0, 1.0, 1.0, 1.0, 2.0, 1.0]))
    assert row.discarded == [3]
    assert len(row.valid_samples()) == measure.ENOUGH_SAMPLES - 1
    assert set(row.valid_samples().values()) == {1.0}
    assert row.warnings == [
        "the clock was below 85 % of the best in some samples: they are discarded"
    ]


def test_never_are_all_samples_discarded():
    device = ScriptedDevice([2000.0] + [900.0] * 1000)
    (row,) = rows_of(device, Script(device, "a", [1.0]))
    assert row.discarded == []
    assert row.status is Status.OK
    assert row.warnings[0].endswith("none is discarded, too few would be left")


def test_the_best_clock_is_that_of_the_session():
    device = ScriptedDevice([1000.0] * 1000)
    sampler = Sampler(device, device, device.now)
    sampler.best_mhz = 2000.0
    sample = sampler.sample(Script(device, "a", [1.0]).candidate, COLD, 0)
    assert (sample.mhz, sampler.best_mhz) == (1000, 2000)


def finished(samples, plan=None, **options):
    row = Row("a", samples=[Sample(i, ms) for i, ms in enumerate(samples)], **options)
    measured.finish(row, 0.0, plan or Plan())
    return row


def test_an_impossible_time_is_invalid():
    bound = measured.Bound(1.0, "1,000 bytes at the memory's peak of 1 MB/s")
    row = finished([0.5] * 9, bound=bound)
    assert row.status is Status.INVALID
    assert row.exit_code == 3
    assert row.reason == (
        "0.5 ms cannot be true: at least 1 ms for 1,000 bytes at the memory's peak of 1 MB/s"
    )
    assert finished([0.98] * 9, bound=bound).status is Status.OK


def test_a_time_of_nothing_is_invalid():
    assert finished([0.0] * 9).reason == "0 ms: nothing was timed"


def test_a_slow_first_sample_matters_among_few():
    few = finished([9.0] + [1.0] * 6)
    assert few.warnings == ["the first sample was slow: a longer --time-limit takes more samples"]
    assert finished([9.0] + [1.0] * 30).warnings == []


@pytest.mark.parametrize(
    ("plan", "options", "advice"),
    [
        (Plan(busy=("python (7)",)), {}, "end the other processes on the GPU (python (7))"),
        (Plan(), {"emulated": True}, "other programs keep the processor busy"),
        (Plan(), {}, "a longer --time-limit takes more samples"),
        (
            Plan(limit_chosen=True),
            {"clock": "host"},
            "the host's clock includes all that the host does: close other programs",
        ),
        (
            Plan(limit_chosen=True),
            {},
            "is another program using the GPU, or does its clock change?",
        ),
    ],
)
def test_advice_fits_what_was_done_already(plan, options, advice):
    row = finished([1.0, 1.4, 1.0, 1.4, 1.0, 1.4], plan, **options)
    assert row.warnings == [f"noisy: {advice}"]


# Bounds, work and sizes ---------------------------------------------------------------------------

H100 = DeviceInfo(
    name="H100",
    cores=132,
    clock_mhz=1980,
    capability=(9, 0),
    dram_gbs=3352.0,
    l2_bytes=50 * 2**20,
)


def test_cold_input_beyond_l2_comes_from_memory():
    peaks = measured.peaks(H100)
    n = 1 << 28
    found = measured.bound(Work(n, 4 * n, 4), 0, peaks, hot=False, tensor_cores=False)
    assert found.ms == pytest.approx(4 * n / 3352e6)
    assert found.reason == "1,073,741,824 bytes at the memory's peak of 3,352 GB/s"


def test_hot_input_may_come_from_l2_in_part():
    peaks = measured.peaks(H100)
    n = 1 << 28
    hot = measured.bound(Work(n, 4 * n, 4), 0, peaks, hot=True, tensor_cores=False)
    assert hot.ms == pytest.approx((4 * n - 50 * 2**20) / 3352e6)


def test_input_that_fits_l2_may_come_from_there():
    peaks = measured.peaks(H100)
    small = Work(1 << 20, 4 << 20, 4 << 20)
    found = measured.bound(small, 0, peaks, hot=False, tensor_cores=False)
    assert found.ms == pytest.approx((8 << 20) / (128 * 132 * 1980e6) * 1e3)


def test_operations_are_bound_by_the_units_they_use():
    peaks = measured.peaks(H100)
    assert peaks.flops == pytest.approx(2 * 128 * 132 * 1980e6)
    product = Work(4096**2, 2 * 4 * 4096**2, 4 * 4096**2, 2 * 4096**3)
    plain = measured.bound(product, product.flops, peaks, hot=False, tensor_cores=False)
    tensor = measured.bound(product, product.flops, peaks, hot=False, tensor_cores=True)
    assert plain.ms == pytest.approx(1e3 * 2 * 4096**3 / peaks.flops)
    assert "units for float32" in plain.reason
    assert tensor.ms < plain.ms / 10


def test_a_driver_that_tells_no_bandwidth_gives_no_bound_from_it():
    peaks = measured.peaks(replace(H100, dram_gbs=0.0))
    big = Work(1 << 28, 1 << 30, 4)
    assert "L2" in measured.bound(big, 0, peaks, hot=False, tensor_cores=False).reason


def test_the_fastest_that_was_measured_on_an_h100_is_possible():
    # docs of the device: CUB reduces 2^28 int32 in 359 µs, copies run at 3007 GB/s.
    peaks = measured.peaks(H100)
    n = 1 << 28
    assert measured.bound(Work(n, 4 * n, 4), 0, peaks, hot=False, tensor_cores=False).ms < 0.359
    # a product of order 4096 at 134 TFLOP/s on tensor cores, 53 TFLOP/s without
    order = 4096
    product = Work(order**2, 8 * order**2, 4 * order**2, 2 * order**3)
    for rate, tensor in ((53e12, False), (134e12, True)):
        least = measured.bound(product, product.flops, peaks, hot=False, tensor_cores=tensor)
        assert least.ms < 1e3 * product.flops / rate


def test_work_of_a_lab_counts_its_input_and_answer():
    found = LAB.teaching.work(INPUTS, CASE, 4)
    assert (found.items, found.read_bytes, found.write_bytes, found.flops) == (10, 40, 4, 0)
    a = np.zeros((3, 5), np.float32)
    product = HostInputs({"a": a, "b": np.zeros((5, 2), np.float32)}, {"m": 3, "k": 5, "n": 2})
    assert labs.get("matmul").teaching.work(product, {}, 24) == Work(6, 100, 24, 60)


@pytest.mark.parametrize("name", labs.names())
def test_sizes_are_drawn_and_course_times_are_of_variants(name):
    lab = labs.get(name)
    sizes = lab.teaching.sizes(lab.complete({}))
    for size in (sizes.bench["cpu"], sizes.timed["cpu"], *sizes.sanitized, sizes.sample):
        assert next(iter(lab.generate(lab.complete({}), size, lab.distributions[0], 1)))
    for variant in lab.teaching.course_times:
        assert registry.find(lab, variant)


def test_the_course_s_times_are_of_its_own_case():
    matmul = labs.get("matmul").teaching
    assert str(matmul.course_time("naive", {"product": "ab"})) == "2484.06 / 2578"
    assert matmul.course_time("naive", {"product": "aat"}) is None
    assert matmul.course_time("uncoalesced", {"product": "ab"}) is None
    assert str(LAB.teaching.course_time("sequential", CASE)) == "10.62"
    assert LAB.teaching.course_time("sequential", CASE | {"op": "max"}) is None


# Choosing -----------------------------------------------------------------------------------------


def names(found):
    return [variant.name for variant in found]


def test_all_means_all_that_compute_the_case(device):
    chosen, notes = choice.choose(LAB, CASE, "all", device)
    assert names(chosen) == [v.name for v in registry.variants(LAB) if v.computes(CASE)]
    assert [v.name for v in registry.variants(LAB) if v.applies.get("along") == ("cols",)] == [
        *("cols_global", "cols_shared", "cols_strips"),
    ]
    assert "left out: cols_global, cols_shared, cols_strips: computes along cols only" in notes


def test_what_the_device_lacks_is_left_out_with_the_reason(device):
    device.features = frozenset()
    _, notes = choice.choose(LAB, CASE, "all", device)
    assert not any("requires" in note for note in notes)
    needy = replace(registry.find(LAB, "single_pass"), requires=("clusters",))
    assert choice.left_out(needy, CASE, device.name, device.features) == (
        "requires clusters, which this cuda device lacks"
    )


def test_without_variants_the_ends_of_the_ladder(device):
    chosen, notes = choice.choose(LAB, CASE, None, device)
    everything = choice.choose(LAB, CASE, "all", device)[0]
    assert names(chosen) == [everything[0].name, registry.default(LAB, CASE, "cuda").name]
    assert notes == [f"{len(everything) - 2} more with --variants all"]


def test_a_named_variant_must_compute_the_case(device):
    with pytest.raises(UsageError, match="does not compute"):
        choice.choose(LAB, CASE, "rows_warp", device)
    assert names(choice.choose(LAB, CASE, "serial,sequential", device)[0]) == [
        "sequential",
        "serial",
    ]


def test_a_sweep_is_over_all_combinations():
    variant = registry.find(LAB, "first_add_on_load")
    sweep = {
        "THREADS_PER_BLOCK": ["32", "64"],
        "ITEMS_PER_BLOCK": ["2*THREADS_PER_BLOCK"],
    }
    found = choice.combinations(variant, sweep)
    assert [v.defines for v in found] == [
        {"THREADS_PER_BLOCK": 32, "ITEMS_PER_BLOCK": 64},
        {"THREADS_PER_BLOCK": 64, "ITEMS_PER_BLOCK": 128},
    ]
    assert found[0].name == "first_add_on_load[THREADS_PER_BLOCK=32 ITEMS_PER_BLOCK=64]"
    sweep["ITEMS_PER_BLOCK"] = ["~THREADS_PER_BLOCK"]
    assert [v.defines["ITEMS_PER_BLOCK"] for v in choice.combinations(variant, sweep)] == [64, 128]
    assert choice.free_defines(sweep) == ["THREADS_PER_BLOCK"]


@pytest.mark.parametrize("value", ["many", "2*LANES", "~LANES", "THREADS_PER_BLOCK+1"])
def test_a_sweep_value_that_means_nothing(value):
    with pytest.raises(UsageError, match="--sweep ITEMS_PER_BLOCK"):
        choice.combinations(registry.find(LAB, "sequential"), {"ITEMS_PER_BLOCK": [value]})


def test_a_sweep_of_too_many():
    values = [str(i) for i in range(1001)]
    with pytest.raises(UsageError, match="too many"):
        choice.combinations(registry.find(LAB, "sequential"), {"THREADS_PER_BLOCK": values})


# One at a time ------------------------------------------------------------------------------------


def test_a_second_bench_on_a_gpu_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(exclusive.tempfile, "gettempdir", lambda: str(tmp_path))
    with exclusive.alone("GPU-1/2"):
        with pytest.raises(exclusive.BusyError) as refused, exclusive.alone("GPU-1/2"):
            pass
        assert f"(process {os.getpid()})" in refused.value.message
        with exclusive.alone("GPU-2"):
            pass
    with exclusive.alone("GPU-1/2"):
        pass


def test_the_lock_of_a_process_that_has_ended_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(exclusive.tempfile, "gettempdir", lambda: str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                           stdout=subprocess.PIPE, check=True)  # fmt: skip
    lock = tmp_path / "cudalab-bench-0.lock"
    lock.write_bytes(ended.stdout)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        release = threading.Timer(0.2, lambda: fcntl.flock(held, fcntl.LOCK_UN))
        release.start()
        with exclusive.alone("0"):
            pass
        release.join()
        monkeypatch.setattr(exclusive, "ENDING_S", 0.1)
        lock.write_bytes(ended.stdout)
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(exclusive.BusyError), exclusive.alone("0"):
            pass


def test_a_lock_of_another_user_is_held_too(tmp_path, monkeypatch):
    monkeypatch.setattr(exclusive.tempfile, "gettempdir", lambda: str(tmp_path))
    lock = tmp_path / "cudalab-bench-0.lock"
    lock.write_text("")
    opened = os.open

    def refuse_writing(path, flags, *mode):
        if flags & os.O_RDWR:
            raise PermissionError
        return opened(path, flags, *mode)

    monkeypatch.setattr(exclusive.os, "open", refuse_writing)
    with exclusive.alone("0"), pytest.raises(exclusive.BusyError), exclusive.alone("0"):
        pass


def test_other_processes_are_those_of_nvidia_smi(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '17, /usr/bin/train'\necho '{os.getpid()}, python'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert exclusive.other_processes("0") == ["train (17)"]
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert exclusive.other_processes("0") == []
    assert exclusive.visible_gpu() == "0"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert exclusive.visible_gpu() == ""


def test_visible_gpus(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho GPU-a\necho GPU-b\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert exclusive.visible_gpus() == ["GPU-a", "GPU-b"]
    for shown, gpus in {"1, GPU-b": ["1", "GPU-b"], "": [], "-1": []}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
        assert exclusive.visible_gpus() == gpus


# The real thing, on the CPU device ----------------------------------------------------------------


def run(*args):
    return cudalab("bench", *args, text=True, env=os.environ | {"COLUMNS": "120"})


@pytest.mark.usefixtures("lock_of_its_own")
@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("wrong", "1 of 1 elements differ"),
        ("modifies_input", "it modified its input x"),
        ("empty", "the output was not written"),
        ("only_once", "after timing: the output was not written"),
    ],
)
def test_a_broken_kernel_is_refused(device_name, kernel, reason):
    done = run(
        *("reduce", "--variants", "sequential", "--n", "1000", "--time-limit", "0.1"),
        *("--device", device_name, "--kernel", BROKEN / f"{kernel}.cu"),
    )
    assert done.returncode == 3, done.stderr
    assert f"{kernel}.cu: WRONG: {reason}" in done.stdout
    line = next(line for line in done.stdout.splitlines() if f"│ {kernel}.cu" in line)
    assert not any(character.isdigit() for character in line)
    assert "│ sequential" in done.stdout


@pytest.mark.usefixtures("lock_of_its_own")
def test_elements_are_checked_behind_a_computation_only(device_name):
    done = run(
        *("histogram", "--dtype", "uint32", "--bins", "64", "--n", "1000", "--time-limit", "0.1"),
        *("--variants", "privatized,privatized_tickets", "--device", device_name),
    )
    assert done.returncode == 0, done.stderr


def test_a_kernel_that_crashes_ends_with_words(tmp_path):
    crash = (BROKEN / "empty.cu").read_text(encoding="utf-8")
    crash = crash.replace("(const T*, const T*, T*,", "(const T*, const T*, T* out,")
    crash = crash.replace("{}", "{ *(volatile int*)8 = 1; out[0] = 1; }")
    own = tmp_path / "crash.cu"
    own.write_text(crash, encoding="utf-8")
    kept = tmp_path / "kept.json"
    done = run(
        *("reduce", "--variants", "sequential", "--n", "1000", "--time-limit", "0.1"),
        *("--device", "cpu", "--kernel", own, "--json", kept),
    )
    assert done.returncode == 1
    assert "segmentation fault" in done.stderr
    assert '"crash.cu"' in kept.read_text(encoding="utf-8")  # nothing measured before is lost
