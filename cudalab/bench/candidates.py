"""What bench measures: inputs, variants that compute with them, and runs from file to file."""

import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudalab import runner
from cudalab.backends import facts, open_device
from cudalab.backends.base import Buffer, Device
from cudalab.bench.measure import POISON, Candidate, Sampler
from cudalab.errors import CudalabError, KernelError, UsageError
from cudalab.formats import write_all
from cudalab.labs import registry
from cudalab.labs.base import Job, Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Array, Case, HostInputs, Size
from cudalab.system import exclusive

END_TO_END_RUNS = 3


@dataclass
class Data:
    """A generated input as a file, on the host and on the device."""

    path: Path
    inputs: HostInputs
    buffers: dict[str, Buffer]


def make_data(
    lab: Lab, case: Case, size: Size, dist: str, seed: int, device: Device, folder: Path
) -> Data:
    """Generate an input. UsageError if there is nothing to measure."""
    path = folder / "input.bin"
    lab.write_file(path, case, size, dist, seed)
    inputs = lab.read_file(path, case)
    if lab.empty_answer(inputs, case) is not None:
        raise UsageError(f"{lab.name}: size {size}: there is nothing to compute or to measure")
    buffers = {name: device.to_device(data) for name, data in inputs.arrays.items()}
    return Data(path, inputs, buffers)


def variant_candidate(
    lab: Lab, variant: Variant, sampler: Sampler, data: Data, case: Case
) -> Candidate:
    """Compile the variant and plan its launches for the inputs on the device."""
    device, meter = sampler.device, sampler.meter
    registry.check_features(variant, device.name, device.features)
    try:
        with runner.contract_as_hint(lab, variant):
            job = Job(
                device=device,
                kernels=lab.compiled(variant, device, case),
                variant=variant,
                buffers=data.buffers,
                params=data.inputs.params,
                case=case,
            )
            step = lab.plan(variant.dispatch)(job)
    except CudalabError as error:
        if type(error) is CudalabError:  # a kernel is missing
            raise KernelError(error.message, error.hint) from None
        raise

    def answer() -> Array:
        step.check()
        return device.to_host(step.out)

    return Candidate(
        name=variant.name,
        kind="variant",
        run=step.run,
        answer=answer,
        poison=lambda: meter.fill(step.out, POISON),
        reads_back=step.reads_back,
        device=device.name,
        answer_bytes=step.out.nbytes,
        notes=step.notes,
        precision=variant.precision,
    )


STAGES: Mapping[str, str] = {
    "read": "read",
    "to device": "copy in",
    "kernels": "kernels",
    "to host": "copy out",
    "write": "write",
}


def end_to_end(
    lab: Lab, variant: Variant, device: Device, case: Case, path: Path
) -> dict[str, float]:
    """The median milliseconds of each stage from file to file, without compiling."""
    runs: list[dict[str, Any]] = []
    for _ in range(END_TO_END_RUNS):
        watch = runner.Stopwatch()
        inputs = lab.read_file(path, case)
        answer = runner.run(lab, variant, device, inputs, case, watch=watch)
        with tempfile.TemporaryFile() as out, watch("write"):
            write_all(out.fileno(), watch.pieces(answer.pieces(), "to host"), "answer")
        watch.take("write", "to host", watch.stages["to host"])
        runs.append(watch.stages)
    return {
        shown: statistics.median(float(run.get(stage, 0.0)) for run in runs)
        for stage, shown in STAGES.items()
    }


@contextmanager
def opened_alone(name: str, threads: int | None) -> Iterator[tuple[Device, list[str]]]:
    """The device, and other processes that use it. BusyError while another one measures."""
    with ExitStack() as stack:
        busy: list[str] = []
        gpu = exclusive.visible_gpu() if facts(name).driver else ""
        if gpu:
            stack.enter_context(exclusive.alone(gpu))
            busy = exclusive.other_processes(gpu)
        yield stack.enter_context(open_device(name, threads)), busy
