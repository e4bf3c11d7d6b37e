"""The time of a submission and of a reference variant, measured alternately on one machine.

A kernel file computes on command in a worker, with another input for each sample, and every answer
is judged. On the CPU device it runs in the worker's process, so the grader takes the time; on a GPU
it runs nothing on the host, and the worker takes the device's own time, as `cudalab bench` does. A
program is timed from start to end, and so is the reference.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from cudalab.backends import DEVICES, choose_device, facts
from cudalab.bench import stats
from cudalab.checker import cases
from cudalab.checker.explain.diagnose import examine, is_right
from cudalab.checker.options import Settings
from cudalab.checker.submit import reports
from cudalab.checker.submit.kernel import TIMING_LIMITS, Kernel, own_kernel
from cudalab.checker.submit.session import copy_input
from cudalab.checker.submit.submission import OURS, Command, Submission, Trial, failure, last_line
from cudalab.checker.verdicts import SpeedResult, Stage, Status, Why
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words

RoundTimes = tuple[dict[int, float], dict[int, float]]  # of both, in milliseconds by round

MIN_ROUNDS, MAX_ROUNDS = 5, 50
HOPELESS = 2  # times slower than a submission without points for speed
GIVE_UP_S = 10.0  # for one run of a kernel, unless the reference is slow, too
ENOUGH_S = 30.0  # of sampling: then no more samples, however few there are
START_S, STEP_S = 60.0, 60.0  # until a worker must be ready, and have finished a command
KEY_BYTES = 16  # of a command: its reply repeats them
# Begin the last words of a process that the machine failed; no code of a GPU's kernel writes there.
MACHINES = ("cudalab.errors.NoDeviceError", "cudalab.errors.ToolchainError")
DISHONEST = (Why.WRONG, Why.FOREIGN)  # reasons to fail while times are taken that cost all points
KERNELS_BY = {
    "device": "kernels, by the device's clock",
    "host": "kernels on the CPU device, by the grader's clock: no GPU's speed",
}


class _TooSlow(Exception):  # noqa: N818 - a verdict
    """It was stopped; that costs the points for speed, but it is right."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:.0f} s: too slow for points for speed")


class _Failed(Exception):  # noqa: N818 - a verdict
    def __init__(self, why: Why, says: str) -> None:
        super().__init__(says)
        self.why, self.says = why, says


def measure(
    lab: Lab, submission: Submission, case: Case, plan: cases.Plan, size: Size, settings: Settings
) -> tuple[SpeedResult | None, Stage]:
    """The stage `time`. CudalabError if the reference cannot be measured."""
    device = submission.device if submission.device in DEVICES else choose_device()
    if plan.speed.reference:
        reference = registry.find(lab, plan.speed.reference)
    else:  # it may require what the device can have; a worker reports what is missing
        on_gpu = facts(device).driver
        features = _gpu_features(device) if on_gpu else DEVICES[device].load().possible_features
        reference = registry.default(lab, case, device, features)
    registry.check_applies(reference, lab, case)
    timing = _Timing(lab=lab, case=case, size=size, settings=settings, rule=plan.speed)
    try:
        if isinstance(submission, Kernel):
            with closing(own_kernel(lab, reference, device, submission.threads)) as kernel:
                kernel.begin()  # compiles where it is timed, which is no risk
                times = timing.kernels(submission, kernel)
            what = KERNELS_BY[facts(device).clock]
        else:
            times = timing.whole_programs(submission, reference.name, device)
            what = "whole programs from start to end, by the grader's clock"
    except _TooSlow as error:
        return None, Stage("time", Status.PASSED, says=str(error))
    except _Failed as error:
        cost = 1.0 if error.why in DISHONEST else 0.0
        return None, Stage("time", Status.FAILED, says=error.says, why=error.why, cost=cost)
    ours, theirs = times
    ratio = stats.ratio(ours, theirs)
    speed = plan.speed
    result = SpeedResult(
        reference=reference.name,
        size=in_words(size),
        ms=stats.median(list(ours.values())),
        reference_ms=stats.median(list(theirs.values())),
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        points=speed.points * speed.earned(ratio.value),
        max_points=speed.points,
        full=speed.full,
        zero=speed.zero,
        rounds=len(ours),
        what=what,
    )
    says = f"{result.ms:.4g} ms, {reference.name} takes {result.reference_ms:.4g} ms"
    return result, Stage("time", Status.PASSED, says=says)


@dataclass(frozen=True, kw_only=True)
class _Timing:
    """What is timed: a case at a size; and the rule for points."""

    lab: Lab
    case: Case
    size: Size
    settings: Settings
    rule: cases.Speed

    def kernels(self, submission: Kernel, reference: Kernel) -> RoundTimes:
        """Time two workers that compute on command."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cudalab-time-")))
            inputs = _Inputs(self, folder)
            ours, theirs = (
                stack.enter_context(_Worker(kernel, self.case, self.lab))
                for kernel in (submission, reference)
            )
            # The first run of each is slow: page faults, new threads.
            usual_s = theirs.sample(inputs.number(0)) / 1e3
            slowest = max(GIVE_UP_S, HOPELESS * self.rule.zero * usual_s)
            sample = partial(ours.sample, give_up_s=slowest)
            sample(inputs.number(0))
            return self.in_turn(sample, theirs.sample, inputs)

    def whole_programs(self, submission: Submission, reference: str, device: str) -> RoundTimes:
        """Time the submission and `cudalab LAB --variant`, each from start to end."""
        lab, case = self.lab, self.case
        command = [sys.executable, "-P", "-m", "cudalab", lab.name, *lab.words(case)]
        command += ["--variant", reference, "--device", device]
        env = {"PYTHONPATH": OURS.imports.path()} | {
            name: os.environ[name] for name in ("XDG_CACHE_HOME", "HOME") if name in os.environ
        }
        reference_command = Command(command, OURS, device=device, extra_env=env)
        memory_bytes = TIMING_LIMITS.memory_bytes
        limits = replace(self.settings.limits, output_bytes=1 << 30, memory_bytes=memory_bytes)
        with tempfile.TemporaryDirectory(prefix="cudalab-time-") as folder:
            inputs = _Inputs(self, Path(folder))
            first = Trial(case, inputs.number(0), TIMING_LIMITS)
            if not reference_command.attempt(first).outcome.ok:
                raise CudalabError(
                    f"the reference {reference} could not be run on the {device} device"
                )

            def ours(path: Path) -> float:
                attempt = submission.attempt(Trial(case, path, limits))
                if attempt.why:
                    raise _Failed(attempt.why, f"during timing: {attempt.says}")
                for answer in attempt.answers:
                    if not is_right(lab, case, path, answer):
                        verdict = examine(lab, case, path, answer)
                        raise _Failed(Why.WRONG, f"wrong during timing: {verdict.lines[0]}")
                return 1e3 * attempt.outcome.seconds

            def theirs(path: Path) -> float:
                attempt = reference_command.attempt(Trial(case, path, limits))
                return 1e3 * attempt.outcome.seconds

            return self.in_turn(ours, theirs, inputs)

    def in_turn(
        self, ours: Callable[[Path], float], theirs: Callable[[Path], float], inputs: _Inputs
    ) -> RoundTimes:
        """Sample both alternately, each time with an input that neither has seen before.

        Fewer samples are enough for one that is far from points: `zero` times the reference's time;
        for one that takes long; and where more would change no points.
        """
        times: RoundTimes = ({}, {})
        began, rule = time.monotonic(), self.rule
        for number in range(MAX_ROUNDS):
            spent = time.monotonic() - began
            hopeless = all(ms > HOPELESS * rule.zero * times[1][i] for i, ms in times[0].items())
            few = 1 if hopeless or spent > ENOUGH_S else MIN_ROUNDS
            if number >= few and spent > self.settings.time_limit_s:
                break
            if number and number % MIN_ROUNDS == 0 and _settled(times, rule):
                break
            path = inputs.number(number + 1)
            pairs = [(ours, times[0]), (theirs, times[1])]
            for sample, into in pairs[:: 1 if number % 2 else -1]:  # A B B A: none is always first
                into[number] = sample(path)
        return times


def _settled(times: RoundTimes, rule: cases.Speed) -> bool:
    """Whether no points depend on more samples."""
    if not rule.points:
        return True
    ratio = stats.ratio(*times)
    return rule.earned(ratio.low) == rule.earned(ratio.high)


class _Inputs:
    """Different inputs of one size, drawn one by one: it is no use to remember an answer."""

    def __init__(self, timing: _Timing, folder: Path) -> None:
        self._timing, self._path, self._number = timing, folder / "input.bin", -1

    def number(self, number: int) -> Path:
        """The file of an input; it replaces the one before."""
        if number != self._number:
            lab, size = self._timing.lab, self._timing.size
            dist = lab.teaching.timed_dist or lab.distributions[0]
            test = cases.Test(f"timing {number}", size, dist)
            (drawn,) = cases.seeds([test], self._timing.settings.seed)
            lab.write_file(self._path, self._timing.case, size, dist, drawn)
            self._number = number
        return self._path


class _Worker:
    """A process with a loaded kernel, controlled through pipes."""

    def __init__(self, kernel: Kernel, case: Case, lab: Lab) -> None:
        self.kernel, self.case, self.lab = kernel, case, lab
        self._judged = False

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        try:
            self._session = self._stack.enter_context(self.kernel.timing(self.case))
        except OSError as error:
            raise self._failed(Why.CRASH, str(error)) from None
        self._stack.callback(self._end)
        self._copy = self._session.box.path / "timed.bin"
        try:
            self._expect("ready", START_S)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def sample(self, path: Path, give_up_s: float = STEP_S) -> float:
        """The milliseconds of one run on an input; the answer is judged, a reference's once."""
        input_file = path if self.kernel.trusted else copy_input(path, self._copy)
        self._command(f"input {input_file}")
        self._command("poison")
        began = time.perf_counter()
        try:
            measured = self._command("run", give_up_s)
        except _Failed:
            if time.perf_counter() - began >= give_up_s:
                raise _TooSlow(give_up_s) from None
            raise
        ms = 1e3 * (time.perf_counter() - began)
        if facts(self.kernel.device).clock == "device":
            ms = float(measured)
        if not (self.kernel.trusted and self._judged):
            self._judge(path)
            self._judged = True
        return ms

    def _judge(self, path: Path) -> None:
        """Judge the answer to the input in `path`."""
        self._command("answer")
        try:
            answer = reports.read_regular(
                self._session.box.path / reports.OUT / reports.ANSWER, TIMING_LIMITS.output_bytes
            )
        except reports.UnreadableError as error:
            raise self._failed(Why.WRONG, f"there was no answer: {error}") from None
        if not is_right(self.lab, self.case, path, answer):
            verdict = examine(self.lab, self.case, path, answer)
            raise self._failed(Why.WRONG, "; ".join(verdict.lines[:2]))

    def _command(self, line: str, seconds: float = STEP_S) -> str:
        if self._session.has_reply():  # nothing was asked
            raise self._failed(Why.FOREIGN, "it replied in the place of the grader's own process")
        key = secrets.token_hex(KEY_BYTES)
        self._session.send(f"{key} {line}")
        answer, _, rest = self._expect("ok", seconds).partition(" ")
        if not secrets.compare_digest(answer.encode(), key.encode()):
            raise self._failed(Why.FOREIGN, "it replied in the place of the grader's own process")
        return rest

    def _expect(self, word: str, seconds: float) -> str:
        """Wait for a reply that begins with `word`; what follows the word."""
        reply = self._session.reply(seconds)
        answer, _, rest = reply.partition(" ")
        if answer != word:
            outcome, _ = self._session.end(reply, TIMING_LIMITS)
            broken = failure(outcome)
            last = last_line(outcome)
            if last.startswith(MACHINES) and not facts(self.kernel.device).on_host:
                raise CudalabError(f"no time could be taken: {last.partition(': ')[2]}")
            says = f"it crashed: {last}" if broken.why in (Why.EXIT, Why.CRASH) else broken.says
            raise self._failed(broken.why or Why.CRASH, says)
        return rest

    def _failed(self, why: Why, says: str) -> Exception:
        """The submission's failure; that of the reference is nobody's."""
        if self.kernel.trusted:
            return CudalabError(f"the reference {self.kernel.name} could not be measured: {says}")
        return _Failed(why, f"during timing: {says}")

    def _end(self) -> None:
        if not self._session.ended:
            self._session.send("end")
            self._session.end(self._session.reply(STEP_S), TIMING_LIMITS)
        self._copy.unlink(missing_ok=True)


def _gpu_features(device: str) -> frozenset[str]:
    """The GPU's features, from another process: a context here would occupy GPU memory."""
    program = (
        "from cudalab.backends import open_device\n"
        f"with open_device({device!r}) as device: print(' '.join(device.features))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": OURS.imports.path()},
    )
    return frozenset(done.stdout.split()) if done.returncode == 0 else frozenset()
