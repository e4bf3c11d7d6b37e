"""Points for speed: who takes the time, of what, and for how long."""

from __future__ import annotations

import itertools
import queue
import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from checking import CHEATS, ROOT, checked, kernel

from cudalab import labs
from cudalab.backends.cpu.device import CpuDevice
from cudalab.backends.cpu.meter import CpuMeter
from cudalab.bench import measure as bench
from cudalab.bench import measured
from cudalab.checker import cases, judge
from cudalab.checker.cases import Speed
from cudalab.checker.options import Settings
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Outcome
from cudalab.checker.submit import speed, tasks
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.verdicts import Status, Why
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.language import source


def timing(lab, size=10, *, time_limit_s=2.0, rule=None):
    """What is timed of a lab's usual case."""
    settings = Settings(1, time_limit_s=time_limit_s)
    rule = rule or Speed()
    return speed._Timing(lab=lab, case=lab.complete({}), size=size, settings=settings, rule=rule)


@pytest.mark.parametrize(
    ("points", "ours_ms", "rounds"),
    [
        (0, (1.0, 1.5), speed.MIN_ROUNDS),  # nothing depends on them
        (4, (1.0, 1.1), speed.MIN_ROUNDS),  # all points, either way
        (4, (1.0, 1.5), speed.MAX_ROUNDS),  # all, or not quite
        (4, (5.1, 5.9), speed.MIN_ROUNDS),  # none, either way
    ],
)
def test_samples_are_taken_while_points_depend_on_them(points, ours_ms, rounds, tmp_path):
    rule = Speed(points, full=1.2, zero=5)
    timed = timing(labs.get("reduce"), time_limit_s=60, rule=rule)
    times = itertools.cycle(ours_ms)
    inputs = speed._Inputs(timed, tmp_path)
    ours, _ = timed.in_turn(lambda _: next(times), lambda _: 1.0, inputs)
    assert len(ours) == rounds


def test_a_kernel_far_from_points_is_not_sampled_for_long(tmp_path):
    timed = timing(labs.get("reduce"), time_limit_s=0, rule=Speed(zero=5))
    for ours_ms, rounds in ((9.9, speed.MIN_ROUNDS), (10.1, 1)):
        seen = []
        ours, theirs = timed.in_turn(
            lambda path, ms=ours_ms, seen=seen: seen.append(path.read_bytes()) or ms,
            lambda _: 1.0,
            speed._Inputs(timed, tmp_path),
        )
        assert len(ours) == len(theirs) == rounds
        assert len(set(seen)) == rounds  # no input twice


def test_a_kernel_that_is_too_slow_has_no_points_and_is_right(tmp_path, monkeypatch):
    lab = labs.get("reduce")
    path = kernel(tmp_path, "reduce", "sequential")
    text = path.read_text()
    begin = text.index('extern "C" __global__')
    body = text.index("{", begin) + 1
    spin = "\n    volatile unsigned more = n;\n    while (more > 500000) {\n    }\n"
    path.write_text(text[:body] + spin + text[body:])
    monkeypatch.setattr(speed, "GIVE_UP_S", 0.3)
    mine = Kernel(lab=lab, path=path, sandbox=sandbox.choose("auto"), device="cpu", label="my.cu")
    plan = replace(cases.public(lab, {}, mine.variant, quick=True), speed=Speed(points=5))
    report = judge.check(lab, mine, plan, mine.sandbox, Settings(seed=3, sanitize=False))
    assert report.passed, report.stages
    right = len(plan.tests)
    assert (report.points, report.max_points) == (right, right + 5)
    assert report.stages[-1].says == "stopped after 0 s: too slow for points for speed"


def test_points_for_speed_that_nobody_can_reach():
    words = ("reduce", "--variant", "sequential", "--device", "cpu", "--quick", "--no-sanitize")
    report = checked(*words, "--speed-points", "5", "--no-time", status=0)
    assert report["points"] == report["max_points"] == len(report["tests"])
    no_reference = ("--reference", "rows_shared")
    report = checked(*words, *no_reference, status=0)
    assert report["stages"][-1]["status"] == "skipped"
    report = checked(*words, *no_reference, "--speed-points", "5", status=1)
    assert report["stages"][-1]["status"] == "broken"


def test_inputs_that_keep_a_gpu_busy_fit_into_the_box():
    for name in labs.names():
        lab = labs.get(name)
        size = lab.teaching.timed_size(lab.complete({}), "cuda")
        elements = size[0] * size[1] if isinstance(size, tuple) else size
        matrices = size * size if name in ("matmul", "solve") else elements
        assert (
            8 * matrices <= speed.TIMING_LIMITS.output_bytes <= speed.TIMING_LIMITS.disk_bytes / 2
        ), name


def test_a_kernel_is_loaded_once():
    """So that what it keeps in variables is there when the next input comes, on any device."""

    class Loads:
        name = "a device that loads each time"

        def compile(self, kernel, defines, arch=None):
            return [kernel.label, defines, arch]

    device = tasks.LoadsOnce(Loads())
    kernel = source.Source(Path("my.cu"), "my.cu", "text")
    first = device.compile(kernel, {"T": "int"}, arch=None)
    assert device.compile(kernel, {"T": "int"}, arch=None) is first
    assert device.compile(kernel, {"T": "float"}, arch=None) is not first
    assert device.name == "a device that loads each time"


@pytest.mark.cuda
def test_on_a_gpu(tmp_path):
    path = kernel(tmp_path, "reduce", "sequential")
    report = checked(
        "reduce", "--kernel", path, "--device", "cuda", "--reference", "sequential",
        "--speed-points", 10, status=0,
    )  # fmt: skip
    assert [s["name"] for s in report["stages"]] == ["compile", "correct", "time"]
    assert report["speed"]["points"] > 9
    assert "device's clock" in report["speed"]["what"]


# The GPU's way of measuring, on the CPU device ---------------------------------------------------


class Channel:
    """Both ends of a worker's pipes."""

    def __init__(self):
        self.commands, self.replies, self.seen = queue.Queue(), queue.Queue(), []

    def read(self):
        line = self.commands.get()
        _, _, command = line.partition(" ")  # behind its key
        if command.startswith("input"):
            self.seen.append(Path(command.removeprefix("input ")).read_bytes())
        return line

    def reply(self, text):
        self.replies.put(text)


class Worker(threading.Thread):
    """A worker that takes the time itself, as on a GPU, in a thread of this process."""

    def __init__(self, path, folder, *, trusted=False):
        super().__init__(daemon=True)
        self.lab, self.path, self.channel = labs.get("reduce"), path, Channel()
        self.trusted, self.device, self.name, self.ended = trusted, "cuda", path.name, False
        self.box = SimpleNamespace(path=folder)

    def run(self):
        spec = {"mode": "time", "device": "cuda", "cases": [self.lab.complete({})]}
        variant = registry.read_header(self.path, self.lab, "my.cu")
        with CpuDevice() as cpu, closing(tasks.Outputs(spec)) as outputs:
            device = tasks.LoadsOnce(cpu)
            tasks.serve(self.lab, variant, device, spec, self.channel, outputs)
        self.channel.reply("")

    @contextmanager
    def timing(self, _case):
        self.start()
        yield self
        self.join(10)

    def send(self, line):
        self.channel.commands.put(line)

    def reply(self, seconds):
        return self.channel.replies.get(timeout=seconds)

    def has_reply(self):
        return not self.channel.replies.empty()

    def end(self, _line, _limits):
        self.ended = True


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Makes a worker that judges kernels of `reduce` as on a GPU."""
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return lambda path, **options: Worker(ROOT / path, tmp_path, **options)


def test_each_sample_on_a_gpu_has_an_input_of_its_own(served, monkeypatch):
    """And the time is the device's: the worker tells it, since no code of the kernel runs there."""

    def sample(_, candidate, cache, number):
        candidate.run()
        assert cache == measured.COLD
        return measured.Sample(number, 0.125)

    monkeypatch.setattr(bench.Sampler, "sample", sample)
    ours = served("cudalab/checker/cheats/remembers_many.cu")
    theirs = served("kernels/reduce/serial.cu", trusted=True)
    times = timing(ours.lab, 3000, time_limit_s=0.1).kernels(ours, theirs)
    assert [set(each.values()) for each in times] == [{0.125}] * 2
    assert len(times[0]) == len(times[1]) >= speed.MIN_ROUNDS
    assert ours.channel.seen == theirs.channel.seen
    assert len(set(ours.channel.seen)) == len(times[0]) + 1  # the first runs are not counted


@pytest.mark.parametrize("trusted", [False, True])
def test_a_wrong_answer_while_it_is_timed(trusted, served, tmp_path, monkeypatch):
    """It fails the submission; a reference that fails is nobody's failure."""
    monkeypatch.setattr(CpuMeter, "flush", lambda _: None)
    cheat = "empty" if trusted else "remembers"  # one is wrong at once, one from the fourth run on
    ours = served(f"cudalab/checker/cheats/{cheat}.cu", trusted=trusted)
    case, error = ours.lab.complete({}), CudalabError if trusted else speed._Failed
    inputs = speed._Inputs(timing(ours.lab, 3000), tmp_path)
    said = "the reference empty.cu could not be measured" if trusted else "during timing"

    def samples(one):
        for number in range(4):
            one.sample(inputs.number(number))

    with (
        speed._Worker(ours, case, ours.lab) as one,
        pytest.raises(error, match=f"{said}: 1 of 1 elements differ"),
    ):
        samples(one)


@pytest.mark.parametrize(("why", "cost"), [(Why.WRONG, 1), (Why.FOREIGN, 1), (Why.TIME, 0)])
def test_an_answer_that_is_wrong_while_it_is_timed_costs_all_points(why, cost, monkeypatch):
    def fail(*_):
        raise speed._Failed(why, "during timing")

    monkeypatch.setattr(speed._Timing, "kernels", fail)
    lab = labs.get("reduce")
    mine = speed.own_kernel(lab, registry.find(lab, "serial"), "cpu")
    plan = cases.Plan(())
    result, stage = speed.measure(lab, mine, lab.complete({}), plan, 10, Settings(seed=1))
    assert (result, stage.status, stage.why, stage.cost) == (None, Status.FAILED, why, cost)


def test_samples_that_take_long_are_few(tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(speed.time, "monotonic", lambda: next(clock))
    timed = timing(labs.get("reduce"), rule=Speed(zero=5))
    ours, _ = timed.in_turn(lambda _: 1.0, lambda _: 1.0, speed._Inputs(timed, tmp_path))
    assert len(ours) == 1  # 40 s are enough; there would be five


@pytest.mark.cuda
@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_answers_that_are_kept_by_input_earn_nothing_on_a_gpu(sandbox):
    report = checked(
        "reduce", "--kernel", CHEATS / "remembers_many.cu", "--device", "cuda", "--quick",
        "--reference", "global_halving", "--speed-points", 10, "--sandbox", sandbox, status=0,
    )  # fmt: skip
    assert report["speed"]["points"] == 0
    assert report["seconds"] < 60


@pytest.mark.parametrize("forged", ["ok", "ok 0123456789abcdef0123456789abcdef"])
def test_a_reply_that_nobody_asked_for(served, forged):
    """A kernel that writes to the grader's pipe cannot shift the replies."""
    ours = served("kernels/reduce/serial.cu")
    theirs = served("kernels/reduce/serial.cu", trusted=True)
    ours.channel.replies.put("ready")
    ours.channel.replies.put(forged)
    with pytest.raises(speed._Failed, match="in the place of the grader's own") as failed:
        timing(ours.lab, 3000, time_limit_s=0.1).kernels(ours, theirs)
    assert failed.value.why is Why.FOREIGN


def test_a_reply_needs_the_key_of_its_command(served):
    """One that comes in time, in the place of the worker's own, has none or another."""

    class Forges:
        def has_reply(self):
            return False

        def send(self, line):
            self.key = line.partition(" ")[0]

        def reply(self, _):
            return f"ok {self.key[::-1]} 1.5"

    ours = served("kernels/reduce/serial.cu")
    worker = speed._Worker(ours, ours.lab.complete({}), ours.lab)
    worker._session = Forges()
    with pytest.raises(speed._Failed, match="in the place of the grader's own"):
        worker._command("run")


def test_a_machine_that_cannot_start_a_compiler_is_no_fault_of_a_kernel():
    class Ended:
        def reply(self, _):
            return ""

        def end(self, *_):
            text = "cudalab.errors.NoDeviceError: nvcc cannot be run: no more processes"
            return Outcome(status=1, stderr=f"Traceback\n{text}\n"), None

    worker = object.__new__(speed._Worker)
    worker._session = Ended()
    worker.kernel = SimpleNamespace(device="cuda", trusted=False)
    with pytest.raises(CudalabError, match="no time could be taken: nvcc cannot be run"):
        worker._expect("ready", 1)
    worker.kernel.device = "cpu"  # where the submission may have written that
    with pytest.raises(speed._Failed, match="it crashed"):
        worker._expect("ready", 1)
