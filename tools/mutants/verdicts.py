"""The verdict on a mutant: that of `cudalab check`, by the public tests and then the sanitizer.

Both run here, in a child of the worker's process for each mutant: a check in a sandbox takes ten
times as long.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cudalab import labs
from cudalab.backends import open_device
from cudalab.backends.base import Device, Module, OnlyBuilds, build
from cudalab.checker import cases, correct
from cudalab.checker.submit import reports, tasks
from cudalab.checker.submit.guard import GuardedDevice
from cudalab.checker.submit.kernel import RUNS
from cudalab.checker.submit.looking import orders
from cudalab.errors import CudalabError, InputError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, HostInputs, Size
from cudalab.language import source
from cudalab.language.source import Source
from cudalab.microscope.sanitize import Report
from cudalab.microscope.subject import Subject
from cudalab.microscope.supervised import look
from tools.mutants.rules import Mutant

SEED = 1
CPU_SECONDS = 8  # of a mutant's tests: an endless loop counts as rejected
SANITIZER_SECONDS = 30
CASES: dict[str, tuple[Case, ...]] = {  # besides the default one, if the variant computes it
    "bitonic": ({"dtype": "float32"},),
    "histogram": (
        {"bins": 100},
        {"dtype": "uint32", "bins": 1000},
        {"dtype": "uint32", "bins": 50_000},
    ),
    "matmul": ({"product": "abt"},),
    "radixsort": ({"dtype": "float32"}, {"layout": "pairs"}),
    "reduce": (
        {"dtype": "float32", "op": "max"},
        {"op": "min"},
        {"along": "rows"},
        {"along": "rows", "op": "max"},
        {"along": "rows", "op": "min"},
        {"along": "cols"},
        {"along": "cols", "op": "mean"},
        {"along": "cols", "op": "max"},
    ),
    "scan": (
        {"dtype": "float32", "op": "max"},
        {"op": "min"},
        {"dtype": "int32", "kind": "inclusive"},
    ),
    "solve": ({"dtype": "float64"},),
}
INPUTS: dict[str, list[Given]] = {}  # of each list of tests
WORDS = ("survived", "rejected", "invalid", "equivalent")  # by the exit status of a child
NOT_JUDGED = 100  # the exit status of a child that the machine is at fault for


Tested = tuple["Case", tuple["cases.Test", ...]]  # a case, and the public list for it


class Given(NamedTuple):
    """One input of the public list, and how often a kernel runs on it."""

    case: Case
    inputs: HostInputs
    runs: int
    refusal: str  # what the lab says of an invalid one


def verdict(one: Mutant) -> str:
    """One of WORDS, by the tests and then by the sanitizer."""
    lab = labs.get(one.lab)
    all_cases = cases_of(lab, registry.find(lab, one.variant))
    for _, tests in all_cases:
        inputs_of(lab, tests)  # before the fork: made only once
    with tempfile.TemporaryDirectory(prefix="cudalab-mutant-") as folder:
        path = Path(folder, f"{one.variant}.cu")
        path.write_text(one.text, encoding="utf-8")
        pid = os.fork()
        if pid == 0:
            word = "rejected"  # also if the lab's host code fails on what the kernel leaves it
            try:
                word = in_child(lab, one, path, all_cases)
            except BlockingIOError:  # no process could be started, whatever the mutant does
                os._exit(NOT_JUDGED)
            finally:
                os._exit(WORDS.index(word))  # or the child would go on as the worker itself
        _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) == NOT_JUDGED:
        raise OSError("the machine starts no more processes: fewer --jobs")
    return "rejected" if os.WIFSIGNALED(status) else WORDS[os.WEXITSTATUS(status)]


def cases_of(lab: Lab, variant: Variant) -> list[Tested]:
    """The cases that a variant is tested in, and the public list for each.

    Large inputs show limits on the size; the first case that has one suffices for that.
    """
    usual = [
        options
        for options in ({}, *CASES.get(lab.name, ()))
        if variant.computes(lab.complete(options))
    ]
    tested: list[Tested] = []
    large: set[str] = set()
    for options in usual or [cases.case_for(lab, {}, variant)]:
        tests = cases.public(lab, options, variant, quick=False).tests
        chosen = [one for one in tests if one.name not in large]
        tested.append((options, tuple(sorted(chosen, key=lambda one: one.large))))  # cheap first
        large |= {one.name for one in tests if one.large}
    return tested


def in_child(lab: Lab, one: Mutant, path: Path, all_cases: Sequence[Tested]) -> str:
    """The verdict, in a process of its own whose output goes nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    signal.alarm(patience(CPU_SECONDS))
    word = "equivalent"
    with open_device("cpu", 1) as opened:
        device = tasks.LoadsOnce(opened)
        variant = registry.read_header(path, lab, path.name)
        for options, tests in all_cases:
            case = lab.complete(options)
            try:
                changed = code(lab, variant, opened, case)
            except CudalabError:
                return "invalid" if word == "equivalent" else "rejected"
            if changed == code_of(lab.name, one.variant, tuple(case.items())):
                continue
            word = "survived"
            if any(wrong(lab, variant, device, given) for given in inputs_of(lab, tests)):
                return "rejected"
        if word == "survived":
            seconds = CPU_SECONDS + SANITIZER_SECONDS  # more than that is an endless loop, too
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
            signal.alarm(patience(seconds))
            case = lab.complete(all_cases[0][0])
            if not is_clean(lab, variant, case, lab.teaching.sizes(case).sanitized):
                return "rejected"
    return word


def patience(cpu_seconds: int) -> int:
    """The seconds after which a child that has not used its CPU time waits for ever.

    Long after it would have used that time on this machine, busy as it is.
    """
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
    return int(10 * cpu_seconds * max(1.0, crowd))


class Builder(OnlyBuilds):
    """A device that compiles, but does not load, and keeps the path of the last library."""

    library: Path | None

    def compile(
        self, source: Source, defines: Mapping[str, str | int], arch: str | None = None
    ) -> Module:
        """Compile into the cache."""
        self.library = build(self.wrapped, source, defines)
        return super().compile(source, defines, arch)


def code(lab: Lab, variant: Variant, device: Device, case: Case) -> bytes:
    """The machine code and the constants of a kernel file, and the sizes of its variables."""
    builder = Builder(device)
    lab.compiled(variant, builder, case)
    library = str(builder.library)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "code")
        sections = [word for name in (".text", ".rodata", ".data") for word in ("-j", name)]
        subprocess.run(["objcopy", "-O", "binary", *sections, library, out], check=True)
        listed = subprocess.run(["size", "-A", library], check=True, capture_output=True).stdout
        sizes = [line for line in listed.splitlines() if line.startswith((b".bss", b".t"))]
        return out.read_bytes() + b"".join(sizes)


@cache
def code_of(lab_name: str, name: str, case: tuple[tuple[str, Any], ...]) -> bytes:
    """The code of a shipped variant, from a file like those of its mutants."""
    lab = labs.get(lab_name)
    with tempfile.TemporaryDirectory() as folder, open_device("cpu", 1) as device:
        path = Path(folder, f"{name}.cu")
        path.write_text(source.whole(source.load(registry.find(lab, name).path)), encoding="utf-8")
        variant = registry.read_header(path, lab, path.name)
        return code(lab, variant, device, dict(case))


def inputs_of(lab: Lab, tests: Sequence[cases.Test]) -> list[Given]:
    """The inputs of a list of tests: made once in a process, and kept."""
    key = f"{lab.name} {tests}"
    if key not in INPUTS:
        INPUTS[key] = list(made(lab, tests))
    return INPUTS[key]


def made(lab: Lab, tests: Sequence[cases.Test]) -> Iterator[Given]:
    """The inputs of a list of tests."""
    for test, seed in zip(tests, cases.seeds(tests, SEED), strict=True):
        case = lab.complete(test.options)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, reports.input_name(0))
            correct.make_input(lab, case, test, seed, path)
            inputs = lab.read_file(path, case).copy()
            refusal = correct.refusal(lab, case, path) if test.refuse else ""
        yield Given(case, inputs, 1 if test.large else RUNS, refusal)


def wrong(lab: Lab, variant: Variant, device: Device, given: Given) -> bool:
    """Whether a test of the list rejects the kernel."""
    case, inputs, runs, refusal = given
    if lab.empty_answer(inputs, case) is not None:
        return False
    guarded = GuardedDevice(device)
    try:
        step = tasks.prepare(lab, variant, guarded, inputs, case)
        answers, unwritten = tasks.compute(guarded, step, runs)
    except InputError as error:
        return error.message != refusal
    except CudalabError:
        return True
    if refusal or unwritten.any() or guarded.overruns():
        return True
    changed = any(
        device.to_host(guard.buffer).tobytes() != np.asarray(data).tobytes()
        for data, guard in zip(inputs.arrays.values(), guarded.buffers, strict=False)
    )
    return changed or any(lab.compare(answer, inputs, case) is not None for answer in answers)


def is_clean(
    lab: Lab, variant: Variant, case: Case, sizes: tuple[Size, ...], dist: str | None = None
) -> bool:
    """Whether the sanitizer finds nothing, and the answers are right."""
    dist = dist or lab.distributions[0]
    subject = Subject(lab=lab, case=case, variants=[variant], dist=dist, seed=SEED, data=None)
    with tempfile.TemporaryDirectory() as folder:
        report = Report(lab, variant, case, Path(folder, "report.json"))
        try:
            look(subject, report, sizes, orders(sizes), SANITIZER_SECONDS)
        except CudalabError:
            return False
    return all(row.note for row in report.rows.values())
