"""The time of a submission and of a reference variant, measured alternately on one machine.

On the CPU device a kernel file runs in the process that would time it, so the grader times it from
outside, with another input for each sample, and judges every answer. On a GPU a kernel file runs
nothing on the host, and `cudalab bench` measures both in one loop. A program is timed from start to
end, and so is the reference.
"""

from __future__ import annotations

import hashlib
import os
import select
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.backends import DEVICES, choose_device, emulated
from cudalab.bench import stats
from cudalab.checker import cases
from cudalab.checker.explain.diagnose import examine
from cudalab.checker.sandbox.sandbox import Limits, read_regular, tail
from cudalab.checker.submit.submission import OURS, Command, Kernel, Trial, own_kernel
from cudalab.checker.verdicts import SpeedResult, Stage, Status, Why
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.sizes import in_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from cudalab.checker.cases import Plan
    from cudalab.checker.settings import Settings
    from cudalab.checker.submit.submission import Submission
    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Case, Size

    Times = tuple[dict[int, float], dict[int, float]]  # of both, in milliseconds by round

INPUTS = 3  # different inputs, used in turn
MIN_ROUNDS, MAX_ROUNDS = 5, 50
START_S, STEP_S = 60.0, 60.0  # until a worker must be ready, and have finished a command
LIMITS = Limits(  # inputs that keep a GPU busy have 256 MiB, and are files
    seconds=300, cpu_seconds=1200, memory_bytes=8 << 30, output_bytes=1 << 30, disk_bytes=4 << 30
)


class _Failed(Exception):  # noqa: N818 - a verdict
    def __init__(self, why: Why, says: str) -> None:
        super().__init__(says)
        self.why, self.says = why, says


def measure(
    lab: Lab, submission: Submission, case: Case, plan: Plan, size: Size, settings: Settings
) -> tuple[SpeedResult | None, Stage]:
    """The stage `time`. CudalabError if the reference cannot be measured."""
    device = submission.device if submission.device in DEVICES else choose_device()
    reference = (
        registry.find(lab, plan.speed.reference)
        if plan.speed.reference
        else registry.default(lab, case, device, _features(device))
    )
    registry.check_applies(reference, lab, case)
    try:
        if isinstance(submission, Kernel):
            with ExitStack() as stack:
                reference_kernel = own_kernel(lab, reference, device, submission.threads)
                stack.callback(reference_kernel.close)
                reference_kernel.begin()  # compiles where it is timed, which is no risk
                if not emulated(device):
                    times = _by_bench(lab, submission, reference_kernel, case, size, settings)
                    what = "kernels, by the device's clock"
                else:
                    times = _from_outside(lab, submission, reference_kernel, case, size, settings)
                    what = "kernels on the CPU device, by the grader's clock: no GPU's speed"
        else:
            times = _whole_programs(lab, submission, reference.name, case, size, device, settings)
            what = "whole programs from start to end, by the grader's clock"
    except _Failed as error:
        return None, Stage("time", Status.FAILED, says=error.says, why=error.why)
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


def _from_outside(
    lab: Lab, submission: Kernel, reference: Kernel, case: Case, size: Size, settings: Settings
) -> Times:
    """Time two workers that compute on command, by the clock of this process."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cudalab-time-")))
        inputs = _inputs(lab, case, size, settings.seed, folder)
        workers = [
            stack.enter_context(_Worker(kernel, case, inputs, lab))
            for kernel in (submission, reference)
        ]
        for worker in workers:
            worker.sample(0)  # the first run is slow: page faults, new threads
        ours, theirs = (worker.sample for worker in workers)
        return _in_turn(ours, theirs, settings.time_limit_s)


def _in_turn(ours: Callable[[int], float], theirs: Callable[[int], float], seconds: float) -> Times:
    """Sample both alternately, each time with the next input."""
    times: Times = ({}, {})
    deadline = time.monotonic() + seconds
    for number in range(MAX_ROUNDS):
        if number >= MIN_ROUNDS and time.monotonic() > deadline:
            break
        for sample, into in zip((ours, theirs), times, strict=True):
            into[number] = sample(number % INPUTS)
    return times


class _Worker:
    """A process with a loaded kernel, controlled through pipes."""

    def __init__(self, kernel: Kernel, case: Case, inputs: list[Path], lab: Lab) -> None:
        self.kernel, self.case, self.inputs, self.lab = kernel, case, inputs, lab
        self._right: set[bytes] = set()
        self._answers = 0

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self.box = self._stack.enter_context(self.kernel.box())
        for number, path in enumerate(self.inputs):
            (self.box.path / f"input-{number}.bin").write_bytes(path.read_bytes())
        copies = [self.box.path / f"input-{number}.bin" for number in range(len(self.inputs))]
        self._messages = self._stack.enter_context(tempfile.TemporaryFile())
        their_in, self._to_worker = os.pipe()
        self._from_worker, their_out = os.pipe()
        try:
            self._running = self.kernel.start_timing(
                self.case,
                copies,
                self.box,
                LIMITS,
                stdin=their_in,
                stdout=their_out,
                stderr=self._messages,
            )
        finally:
            os.close(their_in)
            os.close(their_out)
        self._stack.callback(self._end)
        try:
            self._expect("ready", START_S)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def sample(self, number: int) -> float:
        """The milliseconds of one run, whose answer is judged."""
        self._command(f"poison {number}")
        began = time.perf_counter()
        self._command(f"run {number}")
        ms = 1e3 * (time.perf_counter() - began)
        name = f"answer-{self._answers}.bin"
        self._answers += 1
        self._command(f"answer {number} {name}")
        path = self.box.path / name
        try:
            answer = read_regular(path, LIMITS.output_bytes)
            path.unlink()
        except (CudalabError, OSError) as error:
            raise _Failed(Why.WRONG, f"there was no answer during timing: {error}") from None
        key = bytes([number]) + hashlib.blake2b(answer).digest()
        if key not in self._right:
            verdict = examine(self.lab, self.case, self.inputs[number], answer)
            if not verdict.right:
                raise _Failed(Why.WRONG, f"wrong during timing: {'; '.join(verdict.lines[:2])}")
            self._right.add(key)
        return ms

    def _command(self, line: str) -> None:
        try:
            os.write(self._to_worker, f"{line}\n".encode())
        except OSError:
            raise self._failed(Why.CRASH, f"it ended{self._last_message()}") from None
        self._expect("ok", STEP_S)

    def _expect(self, word: str, seconds: float) -> None:
        readable, _, _ = select.select([self._from_worker], [], [], seconds)
        if not readable:
            raise self._failed(Why.TIME, f"no answer within {seconds:g} s")
        reply = os.read(self._from_worker, 64).decode(errors="replace").strip()
        if reply != word:
            raise self._failed(Why.CRASH, f"it crashed{self._last_message()}")

    def _failed(self, why: Why, says: str) -> Exception:
        """The submission's failure; that of the reference is nobody's."""
        if self.kernel.trusted:
            return CudalabError(f"the reference {self.kernel.name} could not be measured: {says}")
        return _Failed(why, f"during timing: {says}")

    def _last_message(self) -> str:
        """End the worker; the last line of its stderr."""
        self._running.cancel()
        self._running.wait(STEP_S)
        lines = tail(self._messages).strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _end(self) -> None:
        os.close(self._to_worker)
        self._running.cancel()
        self._running.wait(LIMITS.seconds)
        os.close(self._from_worker)


def _by_bench(
    lab: Lab, submission: Kernel, reference: Kernel, case: Case, size: Size, settings: Settings
) -> Times:
    """Measure both in one process, as `cudalab bench` does: the submission runs no host code."""
    result, why = submission.work(
        "bench",
        LIMITS,
        "rows.json",
        cases=[case],
        reference=str(submission.sandbox.imports.seen(reference.path)),
        reference_label=reference.label,
        size=list(size) if isinstance(size, tuple) else size,
        dist=lab.distributions[0],
        seed=settings.seed,
        seconds=settings.time_limit_s,
    )
    if result is None:
        raise _Failed(Why.CRASH, f"it ended during timing: {why}")
    ours, theirs = result["rows"]
    # A failure in the submission can make both fail; then the submission is to blame.
    if theirs["status"] != "ok" and ours["status"] in ("ok", "skipped"):
        raise CudalabError(
            f"the reference {reference.label} could not be measured: {theirs['reason']}"
        )
    if ours["status"] != "ok":
        raise _Failed(Why.WRONG, f"{ours['status']}: {ours['reason']}")
    return _times(ours), _times(theirs)


def _times(row: dict[str, Any]) -> dict[int, float]:
    return {int(number): float(ms) for number, ms in row["ms"].items()}


def _whole_programs(
    lab: Lab,
    submission: Submission,
    reference: str,
    case: Case,
    size: Size,
    device: str,
    settings: Settings,
) -> Times:
    """Time the submission and `cudalab LAB --variant`, each from start to end."""
    command = [sys.executable, "-m", "cudalab", lab.name, *lab.words(case)]
    command += ["--variant", reference, "--device", device]
    env = {"PYTHONPATH": OURS.imports.path()} | {
        name: os.environ[name] for name in ("XDG_CACHE_HOME", "HOME") if name in os.environ
    }
    reference_command = Command(command, OURS, device=device, extra_env=env)
    limits = replace(settings.limits, output_bytes=1 << 30, memory_bytes=LIMITS.memory_bytes)
    with tempfile.TemporaryDirectory(prefix="cudalab-time-") as folder:
        inputs = _inputs(lab, case, size, settings.seed, Path(folder))
        if not reference_command.attempt(Trial(case, inputs[0], LIMITS)).outcome.ok:
            raise CudalabError(f"the reference {reference} could not be run on the {device} device")

        def ours(number: int) -> float:
            attempt = submission.attempt(Trial(case, inputs[number], limits))
            if attempt.why:
                raise _Failed(attempt.why, f"during timing: {attempt.says}")
            for answer in attempt.answers:
                verdict = examine(lab, case, inputs[number], answer)
                if not verdict.right:
                    raise _Failed(Why.WRONG, f"wrong during timing: {verdict.lines[0]}")
            return 1e3 * attempt.outcome.seconds

        def theirs(number: int) -> float:
            attempt = reference_command.attempt(Trial(case, inputs[number], limits))
            return 1e3 * attempt.outcome.seconds

        return _in_turn(ours, theirs, settings.time_limit_s)


def _inputs(lab: Lab, case: Case, size: Size, seed: int, folder: Path) -> list[Path]:
    """Different inputs of one size, so that it is no use to remember an answer."""
    dist = lab.teaching.timed_dist or lab.distributions[0]
    paths = []
    for number in range(INPUTS):
        drawn = cases.seeds([cases.Test(f"timing {number}", size, dist)], seed)[0]
        path = folder / f"input-{number}.bin"
        lab.write_file(path, case, size, dist, drawn)
        paths.append(path)
    return paths


def _features(device: str) -> frozenset[str]:
    """The features that the reference may require; a worker reports those that are missing."""
    return DEVICES[device].load().possible_features if emulated(device) else _gpu_features(device)


def _gpu_features(device: str) -> frozenset[str]:
    """The GPU's features, from another process: a context here would occupy GPU memory."""
    program = (
        "from cudalab.backends import open_device\n"
        f"with open_device({device!r}) as device: print(' '.join(device.features))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": OURS.imports.path()},
    )
    return frozenset(done.stdout.split()) if done.returncode == 0 else frozenset()
