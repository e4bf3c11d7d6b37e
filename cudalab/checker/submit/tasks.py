"""What a child of the worker does: compile a kernel, run it on inputs, or compute on command.

Nothing that it reports can make an answer right: see worker.py.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from cudalab import runner
from cudalab.backends import facts
from cudalab.backends.base import Device, Module, OnlyBuilds, WrappedDevice, build
from cudalab.backends.meter import open_meter
from cudalab.bench import measure as bench
from cudalab.bench import measured
from cudalab.bench.candidates import Data, variant_candidate
from cudalab.checker.submit import confine, reports, views
from cudalab.checker.submit.guard import GuardedDevice, holds, untouched
from cudalab.errors import CudalabError, KernelError
from cudalab.formats import as_bytes
from cudalab.labs.base import Lab, Step
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Array, Case, HostInputs
from cudalab.language.source import Source, headers, with_defines

Json = dict[str, Any]
Params = dict[str, Any]


class Channel:
    """The pipes to the grader and from it, which are not the standard streams any more."""

    def __init__(self) -> None:
        self._commands, self._replies = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)  # nothing that a kernel prints can pass for a reply
        os.close(nothing)

    def read(self) -> str:
        """The next line; empty at the end."""
        line = b""
        while not line.endswith(b"\n"):
            read = os.read(self._commands, 1)
            if not read:
                return ""
            line += read
        return line.decode()

    def reply(self, text: str) -> None:
        """Write a line."""
        os.write(self._replies, f"{text}\n".encode())

    def close(self) -> None:
        os.close(self._commands)
        os.close(self._replies)


class Outputs:
    """The files for answers and reports, opened before the submission's code is loaded."""

    def __init__(self, spec: Json) -> None:
        """Open those of the specification's mode."""
        first = {"compile": reports.BUILT, "time": reports.ANSWER}
        names = [first.get(spec["mode"], reports.report_name(0))]
        if spec["mode"] == "cases":
            for number, runs in enumerate(spec["runs"]):
                names += [reports.report_name(number), reports.unwritten_name(number)]
                names += [reports.answer_name(number, k) for k in range(runs)]
        self._first = names[0]
        self._files: dict[str, IO[bytes]] = {}
        for name in names:
            self._files[name] = Path(reports.OUT, name).open("wb")  # noqa: SIM115 - until it ends

    def write(self, name: str, data: Any) -> None:
        """Replace the content of a file."""
        file = self._files[name]
        file.seek(0)
        file.truncate()
        file.write(data)
        file.flush()

    def record(self, name: str, record: Any) -> None:
        self.write(name, json.dumps(asdict(record)).encode())

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def fail(self, error: CudalabError) -> None:
        """Report an error before the first input."""
        self.record(self._first, reports.Failure(**reports.failure_of(error)))


class LoadsOnce(WrappedDevice):
    """A device that loads each kernel only once, so its variables survive until the next input.

    With fresh variables for each input, as on a GPU, a kernel that remembers an answer would pass.
    Before the first one is loaded, the process confines itself.
    """

    def __init__(
        self, device: Device, load: Callable[[], None] = lambda: None, *, confined: bool = False
    ) -> None:
        super().__init__(device)
        self._load, self._confined = load, confined
        self._modules: dict[tuple[object, ...], Module] = {}

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> Module:
        """Compile and load, unless the same kernel has been loaded before."""
        key = (source.label, source.text, tuple(defines.items()), arch)
        if key not in self._modules:
            if not self._modules:
                # Do what the filter forbids, then install it.
                build(self._device, source, defines)
                self._load()
                if self._confined and not confine.confine():
                    raise CudalabError("the process could not be confined")
            try:
                self._modules[key] = self._device.compile(source, defines, arch)
            except OSError as error:
                raise KernelError(f"the compiled kernel cannot be loaded: {error}") from None
        return self._modules[key]


def compile_cases(lab: Lab, variant: Variant, device: Device, spec: Json, outputs: Outputs) -> None:
    """Compile for each case. On the CPU device nothing is loaded: that would run code."""
    builds = Examines(device, spec["builds"]) if facts(spec["device"]).on_host else None
    builder = builds or device
    failure: Json = {}
    try:
        for case in spec["cases"]:
            lab.compiled(variant, builder, case)
    except CudalabError as error:
        failure = reports.failure_of(error)
    found = asdict(builds.views) if builds else {}
    outputs.record(reports.BUILT, reports.Built(**failure, **found))


class Examines(OnlyBuilds):
    """A device that compiles, loads nothing, and reads the text as each compiler sees it."""

    def __init__(self, device: Device, builds: list[Any] | None) -> None:
        super().__init__(device)
        self.views = views.Views()
        self._builds = views.from_json(builds) if builds else None

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> Module:
        """Compile into the cache; the text is read first, for it may not compile."""
        if self._builds is not None:
            theirs = set(headers(source)) | {source.label}
            own = {label for label in theirs if not label.startswith("kernels/")}
            text = with_defines(source.text, defines)
            self.views.add(views.of_kernel(text, self._builds, own.__contains__))
        return super().compile(source, defines, arch)


def run_cases(lab: Lab, variant: Variant, device: LoadsOnce, spec: Json, outputs: Outputs) -> None:
    """Run each input in turn; each report is written before the next run begins."""
    case, tallies = spec["cases"][0], getattr(device.wrapped, "tallies", {})
    for number, (path, runs) in enumerate(zip(spec["inputs"], spec["runs"], strict=True)):
        tallies.clear()
        try:
            with runner.contract_as_hint(lab, variant):
                report = run_case(lab, variant, device, case, Path(path), runs, number, outputs)
            report.tallies = tallies
        except CudalabError as error:
            report = reports.CaseReport(**reports.failure_of(error))
        outputs.record(reports.report_name(number), report)


def run_case(
    lab: Lab,
    variant: Variant,
    device: Device,
    case: Case,
    path: Path,
    runs: int,
    number: int,
    outputs: Outputs,
) -> reports.CaseReport:
    """Run several times on garbage, and write each different answer to a file."""

    def launched(arguments: dict[str, list[str]]) -> None:
        outputs.record(reports.report_name(number), reports.CaseReport(arguments=arguments))

    guarded = GuardedDevice(device, launched)
    inputs = lab.read_file(path, case).copy()
    empty = lab.empty_answer(inputs, case)
    if empty is not None:  # the lab's host side answers, as it does for users
        outputs.write(reports.answer_name(number, 0), as_bytes(empty))
        return reports.CaseReport(answers=1, runs=1)
    step = prepare(lab, variant, guarded, inputs, case)
    answers, unwritten = compute(guarded, step, runs)
    if unwritten.any():
        outputs.write(reports.unwritten_name(number), np.packbits(unwritten).tobytes())
    for k, answer in enumerate(answers):
        encoded = lab.encode(lambda answer=answer: answer, case)  # type: ignore[misc]
        data = as_bytes(answer) if encoded is None else encoded
        outputs.write(reports.answer_name(number, k), data)
    changed = [
        name
        for name, buffer in zip(inputs.arrays, guarded.buffers, strict=False)
        if not holds(device, buffer.buffer, inputs.arrays[name])
    ]
    return reports.CaseReport(
        answers=len(answers),
        runs=runs,
        overruns=guarded.overruns(),
        changed_inputs=changed,
        launches=[
            reports.Launched(kernel=kernel, grid=list(grid), block=list(block))
            for kernel, grid, block in guarded.launches
        ],
        arguments=guarded.arguments,
        notes=step.notes,
    )


def compute(device: GuardedDevice, step: Step, runs: int) -> tuple[list[Array], Array]:
    """The different answers of several runs on garbage, and which elements no run has written.

    A single run cannot distinguish garbage from a computed value.
    """
    answers: dict[bytes, Array] = {}
    unwritten = np.full(int(np.prod(step.out.shape)), runs > 1)
    for run in range(runs):
        fill = device.poison(step.out, run)
        step()
        device.synchronize()
        answer = np.ascontiguousarray(device.to_host(step.out))
        if runs > 1:
            unwritten &= untouched(answer.reshape(-1), fill)
        answers.setdefault(digest(answer), answer)
    if unwritten.any():
        first = next(iter(answers.values())).reshape(-1)
        for answer in answers.values():  # our garbage does not count as a difference between runs
            answer.reshape(-1)[unwritten] = first[unwritten]
        answers = {digest(answer): answer for answer in answers.values()}
    return list(answers.values()), unwritten


def digest(answer: Array) -> bytes:
    """A hash of the bytes of an answer."""
    return hashlib.blake2b(as_bytes(answer)).digest()


def prepare(
    lab: Lab, variant: Variant, guarded: GuardedDevice, inputs: HostInputs, case: Case
) -> Step:
    """Plan the launches on guarded memory, and name the inputs and the answer."""
    step = runner.prepare(lab, variant, guarded, inputs, case)
    for name, guard in zip(inputs.arrays, guarded.buffers, strict=False):
        guard.name = f"the input {name}"
    guarded.call(step.out, "the answer")
    return step


def serve(
    lab: Lab, variant: Variant, device: Device, spec: Json, channel: Channel, outputs: Outputs
) -> None:
    """Compute on command.

    The commands are lines: "KEY input FILE", "KEY poison", "KEY run", "KEY answer" and, at last,
    "end". The reply to each is "ok KEY" when it is done: the key is new each time, and the kernel
    has not been told it. The answer is then in answer.bin. After "run" the milliseconds follow
    that a GPU has measured itself, from flushed caches. On the CPU device the kernel could write
    what it likes in this process, so the grader takes the time.
    """
    case = spec["cases"][0]
    sampler = bench.Sampler(device, open_meter(device))
    params: Params | None = None
    channel.reply("ready")
    while line := channel.read():
        key, _, command = line.strip().partition(" ")
        word, _, path = command.partition(" ")
        reply = f"ok {key}"
        if word == "input":
            inputs = lab.read_file(Path(path), case)
            if params != inputs.params:
                buffers = {name: device.to_device(one) for name, one in inputs.arrays.items()}
                data, params = Data(Path(path), inputs, buffers), inputs.params
                candidate = variant_candidate(lab, variant, sampler, data, case)
            else:  # memory that was used before has no page faults, and is known to a GPU's TLB
                for name, one in inputs.arrays.items():
                    device.copy(np.ascontiguousarray(one), buffers[name])
        elif word == "poison":
            candidate.poison()
            device.synchronize()
        elif word == "run" and facts(spec["device"]).clock == "host":
            candidate.run()
            device.synchronize()
        elif word == "run":
            reply += f" {sampler.sample(candidate, measured.COLD, number=0).ms}"
        elif word == "answer":
            outputs.write(reports.ANSWER, as_bytes(np.ascontiguousarray(candidate.answer())))
        else:
            return
        channel.reply(reply)
