"""The part of the checker that loads a submitted kernel. It runs inside the sandbox.

No report of this process can make an answer right: the grader compares the bytes, and it alone
knows the right answer. The reports only explain: the launches, the guard zones that were overrun,
the errors of the compiler.

    python -m cudalab.checker.submit.worker SPEC.json

writes into the working directory, depending on the mode:

    compile  compiled.json, with the libraries; or failed.json
    cases    for each input i: answer-i-k.bin for each different answer k, unwritten-i.bin with a
             bit for each element that no run has written, then report-i.json; `launching` before
             the first kernel runs
    time     replies "ready" on stdout, then to each line of stdin; see `serve`
    bench    rows.json: the submission and the reference, measured in turn by cudalab.bench.measure
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab import labs, runner
from cudalab.backends import open_device
from cudalab.backends.base import WrappedDevice, overwrite
from cudalab.backends.meter import open_meter
from cudalab.bench import measure as bench
from cudalab.checker.submit.guard import LAUNCHING, GuardedDevice, untouched
from cudalab.errors import CudalabError
from cudalab.formats import as_bytes
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.language import source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cudalab.backends.base import Device, Module
    from cudalab.labs.base import Lab, Step
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Array, Case, HostInputs
    from cudalab.language.source import Source

Json = dict[str, Any]
TIMED_INPUTS = 3


def main() -> int:
    """Do the work that the specification describes."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if spec.get("kernels_dir"):
        source.use_kernels_dir(Path(spec["kernels_dir"]))
    lab = labs.get(spec["lab"])
    modes = {"compile": compile_cases, "cases": run_cases, "time": serve, "bench": measure}
    with ExitStack() as stack:
        try:
            device = stack.enter_context(open_device(spec["device"], spec.get("threads")))
            variant = registry.read_header(Path(spec["kernel"]), lab, spec["label"])
            registry.check_features(variant, device.name, device.features)
            device = LoadsOnce(device).as_device()
        except CudalabError as error:
            write("failed.json", described(error))
            return int(error.exit_code)
        modes[spec["mode"]](lab, variant, device, spec)
    return 0


class LoadsOnce(WrappedDevice):
    """A device that loads each kernel only once, so its variables survive until the next input.

    With fresh variables for each input, as on a GPU, a kernel that remembers an answer would pass.
    """

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._modules: dict[tuple[object, ...], Module] = {}

    def compile(self, kernel: Source, defines: Mapping[str, str | int], **options: Any) -> Module:
        """Compile and load, unless the same kernel has been loaded before."""
        key = (kernel.label, kernel.text, tuple(defines.items()), tuple(options.items()))
        if key not in self._modules:
            self._modules[key] = self._device.compile(kernel, defines, **options)
        return self._modules[key]


def compile_cases(lab: Lab, variant: Variant, device: Device, spec: Json) -> None:
    """Compile for each case, and write which libraries were loaded."""
    libraries = []
    try:
        for case in spec["cases"]:
            module = lab.compiled(variant, device, case)
            library = getattr(module, "library", None)
            libraries.append(library._name if library else "")  # noqa: SLF001 - ctypes' only way
    except CudalabError as error:
        write("failed.json", described(error))
        return
    write("compiled.json", {"libraries": libraries})


def run_cases(lab: Lab, variant: Variant, device: Device, spec: Json) -> None:
    """Run each input in turn; each report is written before the next run begins."""
    for number, (case, path) in enumerate(zip(spec["cases"], spec["inputs"], strict=True)):
        try:
            with runner.contract_as_hint(lab, variant):
                runs = spec["runs"][number]
                report = run_case(lab, variant, device, case, Path(path), runs, number)
        except CudalabError as error:
            report = described(error)
        write(f"report-{number}.json", report)


def run_case(
    lab: Lab, variant: Variant, device: Device, case: Case, path: Path, runs: int, number: int
) -> Json:
    """Run several times on garbage, and write each different answer to a file."""
    guarded = GuardedDevice(device)
    inputs = lab.read_file(path, case).copy()
    empty = lab.empty_answer(inputs, case)
    if empty is not None:  # the lab's host side answers, as it does for users
        Path(f"answer-{number}-0.bin").write_bytes(as_bytes(empty))
        return {"answers": 1, "runs": 1, "launches": [], "notes": []}
    step = prepare(lab, variant, guarded, inputs, case)
    Path(LAUNCHING).touch()
    answers, unwritten = compute(guarded, step, runs)
    if unwritten.any():
        Path(f"unwritten-{number}.bin").write_bytes(np.packbits(unwritten).tobytes())
    for k, answer in enumerate(answers):
        encoded = lab.encode(lambda answer=answer: answer, case)  # type: ignore[misc]
        data = as_bytes(answer) if encoded is None else encoded
        Path(f"answer-{number}-{k}.bin").write_bytes(data)
    changed = [
        name
        for name, buffer in zip(inputs.arrays, guarded.buffers, strict=False)
        if device.to_host(buffer.buffer).tobytes() != np.asarray(inputs.arrays[name]).tobytes()
    ]
    return {
        "answers": len(answers),
        "runs": runs,
        "overruns": guarded.overruns(),
        "changed_inputs": changed,
        "launches": guarded.launches,
        "notes": step.notes,
    }


def compute(device: GuardedDevice, step: Step, runs: int) -> tuple[list[Array], Array]:
    """The different answers of several runs on garbage, and which elements no run has written.

    A single run cannot distinguish garbage from a computed value.
    """
    answers: dict[bytes, Array] = {}
    unwritten = np.full(int(np.prod(step.out.shape)), runs > 1)
    for run in range(runs):
        fill = device.poison(step.out, run)
        step()
        device.as_device().synchronize()
        answer = np.ascontiguousarray(device.as_device().to_host(step.out))
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
    step = runner.prepare(lab, variant, guarded.as_device(), inputs, case)
    for name, guard in zip(inputs.arrays, guarded.buffers, strict=False):
        guard.name = f"the input {name}"
    guarded.name(step.out, "the answer")
    return step


def serve(lab: Lab, variant: Variant, device: Device, spec: Json) -> None:
    """Compute on command, timed by the grader's own clock.

    The commands are lines of stdin: "poison I", "run I" and "answer I FILE" for input I. The reply
    to each is "ok" on stdout when it is done.
    """
    channel = os.dup(1)
    os.dup2(2, 1)  # so that no output of a kernel can pass for a reply

    def reply(word: str) -> None:
        os.write(channel, f"{word}\n".encode())

    steps = []
    for case, path in zip(spec["cases"], spec["inputs"], strict=True):
        inputs = lab.read_file(Path(path), case).copy()
        steps.append(runner.prepare(lab, variant, device, inputs, case))
    reply("ready")
    for line in sys.stdin:
        word, number, *rest = line.split()
        step = steps[int(number)]
        if word == "poison":
            overwrite(device, step.out, bench.POISON)
        elif word == "run":
            step()
            device.synchronize()
        else:
            Path(rest[0]).write_bytes(as_bytes(np.ascontiguousarray(device.to_host(step.out))))
        reply("ok")


class JudgeOfEach(bench.Judge):
    """Judges each candidate by its own input."""

    def __init__(self) -> None:
        self._judges: dict[int, bench.Judge] = {}  # by the candidates' ids

    def add(self, candidate: bench.Candidate, judge: bench.Judge) -> None:
        """Use `judge`, which knows the candidate's input, for the candidate."""
        self._judges[id(candidate)] = judge

    def mistake(self, candidate: bench.Candidate) -> str | None:
        """A message about what is wrong with the candidate's answer; None if it is right."""
        return self._judges[id(candidate)].mistake(candidate)

    def modified(self) -> str | None:
        """The first input that has been changed; all inputs are restored."""
        changed = [judge.modified() for judge in dict.fromkeys(self._judges.values())]
        return next(filter(None, changed), None)


def measure(lab: Lab, variant: Variant, device: Device, spec: Json) -> None:
    """Measure submission and reference in one loop, where a kernel file runs no host code.

    The inputs take turns, so a kernel that repeats an earlier answer gives a wrong one.
    """
    case, plan = spec["cases"][0], bench.Plan(spec["seconds"])
    reference = registry.read_header(Path(spec["reference"]), lab, spec["reference_label"])
    size = tuple(spec["size"]) if isinstance(spec["size"], list) else spec["size"]
    entries: list[tuple[bench.Entry, bench.Entry]] = []  # a pair for each input
    judges, sampler = JudgeOfEach(), bench.Sampler(device, open_meter(device))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(TIMED_INPUTS):
            own = Path(folder, str(number))
            own.mkdir()
            seed = spec["seed"] + number
            data = bench.make_data(lab, case, size, spec["dist"], seed, device, own)
            judge = bench.Judge(lab, data.inputs, case, device, data.buffers)
            pair = []
            for one in (variant, reference):
                entry = bench.Entry(bench.Row(one.name, device=device.name))
                try:
                    entry.candidate = bench.variant_candidate(lab, one, sampler, data, case)
                    judges.add(entry.candidate, judge)
                except CudalabError as error:
                    bench.refuse_for(entry.row, error)
                pair.append(entry)
            entries.append((pair[0], pair[1]))
        bench.measure([one for pair in entries for one in pair], sampler, judges, plan)
    write("rows.json", {"rows": [in_one(rows) for rows in zip(*entries, strict=True)]})


def in_one(entries: tuple[bench.Entry, ...]) -> Json:
    """One entry with the times on all inputs, or with the first failure."""
    refused = (entry.row for entry in entries if entry.row.status is not bench.Status.OK)
    row = next(refused, entries[0].row)
    times = {
        str(number * len(entries) + i): ms
        for i, entry in enumerate(entries)
        for number, ms in entry.row.valid_samples().items()
    }
    return {"status": str(row.status), "reason": row.reason, "ms": times}


def described(error: CudalabError) -> Json:
    """An expected failure as JSON, for the grader."""
    return {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint or "",
        "exit_code": int(error.exit_code),
    }


def write(name: str, value: Json) -> None:
    """Write a JSON file that is complete as soon as it has its name."""
    partial = Path(f".{name}.partial")
    partial.write_text(json.dumps(value), encoding="utf-8")
    partial.rename(name)


if __name__ == "__main__":
    sys.exit(main())
