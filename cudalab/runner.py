"""One run of one variant: compile, upload, launch. The answer stays on the device."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cudalab.backends.base import Buffer, Device, Dim, Kernel, WrappedDevice, way_of
from cudalab.backends.meter import Meter, Timer
from cudalab.errors import CudalabError, HeaderError
from cudalab.formats import Payload, as_bytes
from cudalab.labs.base import Job, Lab, Step
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Array, Case, Inputs
from cudalab.output import progress

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Answer:
    """The answer of a run; it may still be on the device."""

    pieces: Callable[[], Iterator[memoryview]]  # its bytes, in order
    array: Callable[[], Array]
    notes: list[str]  # from the step, for the user


def run(
    lab: Lab,
    variant: Variant,
    device: Device,
    inputs: Inputs,
    case: Case,
    *,
    watch: Stopwatch | None = None,
) -> Answer:
    """Compute once, timed by `watch`; when this returns, every kernel has succeeded."""
    watch = watch or Stopwatch()
    empty = lab.empty_answer(inputs, case)
    if empty is not None:
        return Answer(lambda: iter([as_bytes(empty)]), lambda: empty, [])
    with contract_as_hint(lab, variant):
        step = prepare(lab, variant, device, inputs, case, watch=watch)
        with watch("kernels"):
            step()
            device.synchronize()

    def array() -> Array:
        return device.to_host(step.out)

    def pieces() -> Iterator[memoryview]:
        encoded = lab.encode(array, case)
        return device.chunks(step.out) if encoded is None else iter([memoryview(encoded)])

    return Answer(pieces, array, step.notes)


def prepare(
    lab: Lab,
    variant: Variant,
    device: Device,
    inputs: Inputs,
    case: Case,
    *,
    watch: Stopwatch | None = None,
) -> Step:
    """Compile the variant and copy the inputs to the device; the step can then be repeated."""
    watch = watch or Stopwatch()
    with watch("compile"):
        kernels = lab.compiled(variant, device, case)
    with watch("to device"):
        buffers = {name: device.to_device(data) for name, data in inputs.sources().items()}
    waited = sum(data.seconds for data in inputs.sources().values() if isinstance(data, Payload))
    watch.take("to device", "read", 1e3 * waited)
    job = Job(
        device=device,
        kernels=kernels,
        variant=variant,
        buffers=buffers,
        params=inputs.params,
        case=case,
    )
    return lab.plan(variant.dispatch)(job)


@contextmanager
def contract_as_hint(lab: Lab, variant: Variant) -> Iterator[None]:
    """Add the plan's contract as a hint to errors about kernels and defines."""
    try:
        yield
    except CudalabError as error:
        if type(error) in (CudalabError, HeaderError):
            error.hint = "\n".join(filter(None, (error.hint, contract(lab, variant))))
        raise


def contract(lab: Lab, variant: Variant) -> str:
    """The kernels that the variant's launch plan expects, in the words of its own docstring."""
    described = inspect.getdoc(lab.plan(variant.dispatch)) or "(not described)"
    return f"dispatch '{variant.dispatch}' of {lab.name} launches:\n{described}"


class Stopwatch:
    """Milliseconds spent in each stage, in the order in which the stages began."""

    # The stages that may take long, in words for the user who waits.
    LONG: ClassVar[dict[str, str]] = {
        "to device": "reading the input",
        "kernels": "running the kernels",
        "write": "writing the answer",
    }

    def __init__(self, *, shown: bool = False) -> None:
        """Start measuring the total. Long stages are `shown` on a terminal."""
        self.began = time.perf_counter()
        self.stages: dict[str, float] = {}
        self.shown = shown

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add the block's time to `stage`."""
        began = time.perf_counter()
        self.stages.setdefault(stage, 0.0)
        words = self.LONG.get(stage) if self.shown else None
        try:
            with progress.stage(words) if words else nullcontext():
                yield
        finally:
            self.stages[stage] += 1e3 * (time.perf_counter() - began)

    def take(self, stage: str, part: str, ms: float) -> None:
        """Attribute `ms` of `stage` to `part`, which is listed before it."""
        rest = self.stages.pop(stage) - ms
        self.stages[part] = ms
        self.stages[stage] = max(rest, 0.0)

    def pieces(self, pieces: Iterable[memoryview], stage: str) -> Iterator[memoryview]:
        """Pass `pieces` on; the time that each one takes is added to `stage`."""
        iterator = iter(pieces)
        while True:
            with self(stage):
                piece = next(iterator, None)
            if piece is None:
                return
            yield piece

    def rows(self, launches: list[tuple[str, Timer]]) -> list[tuple[str, int | None, float]]:
        """Stages or, if launches were timed, kernels with their number; and their milliseconds.

        The last two are what lies between the stages and the total.
        """
        kernels: dict[str, list[float]] = {}
        for name, timer in launches:
            kernels.setdefault(name, []).append(timer.ms)
        rows: list[tuple[str, int | None, float]] = []
        for stage, ms in self.stages.items():
            if stage == "kernels" and kernels:
                rows += [(name, len(each), sum(each)) for name, each in kernels.items()]
            else:
                rows.append((stage, None, ms))
        total = 1e3 * (time.perf_counter() - self.began)
        rest = max(total - sum(ms for _, _, ms in rows), 0.0)
        return [*rows, ("all else", None, rest), ("total", None, total)]


class TimedDevice(WrappedDevice):
    """A device that also times each launch."""

    def __init__(self, device: Device, meter: Meter) -> None:
        super().__init__(device)
        self._meter = meter
        self.launches: list[tuple[str, Timer]] = []  # kernel name, its time
        self.how: dict[str, str] = {}  # how a device of the host runs each kernel

    def stream(self) -> AbstractContextManager[None]:
        """No stream: what is timed runs in order."""
        return nullcontext()

    def launch(
        self,
        kernel: Kernel,
        grid: Dim,
        block: Dim,
        *args: Buffer | np.generic,
        shared_bytes: int = 0,
    ) -> None:
        """Launch between the start and the stop of a timer."""
        timer = self._meter.timer()
        timer.start()
        super().launch(kernel, grid, block, *args, shared_bytes=shared_bytes)
        timer.stop()
        self.launches.append((kernel.name, timer))
        self.how[kernel.name] = way_of(kernel)
