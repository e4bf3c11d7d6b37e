"""Looks for what is wrong with a variant in a child process, which may crash or hang."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from cudalab.backends import host_device, open_device
from cudalab.backends.cpu.check import CheckDevice
from cudalab.errors import CudalabError, ExitCode, KernelError, TimeLimitError
from cudalab.labs.inputs import Size
from cudalab.microscope import sanitize
from cudalab.microscope.findings import Findings
from cudalab.microscope.subject import Data, Subject
from cudalab.system.supervise import prints_to_stderr, supervise

Guard = Callable[[Callable[[], int]], int]

FULL_SPEED_S = 15.0  # for a kernel without the instrument, compiling included


def guarded(work: Callable[[], int]) -> int:
    """Do `work` and return the exit status; expected failures become lines on stderr."""
    try:
        return work()
    except CudalabError as error:
        sys.stderr.write(f"Error: {error.message}\n")
        return error.exit_code


def examine(
    subject: Subject,
    sizes: tuple[Size, ...],
    orders: Sequence[int],
    kill_after: float,
    guard: Guard = guarded,
    *,
    counts: bool = False,
) -> tuple[int, Findings]:
    """Examine in a child process that may crash or hang; return its exit status and findings.

    `orders` says for each size in how many orders of blocks and warps the kernels run.
    `guard` does the work there, and turns expected errors into an exit status. With `counts`, the
    findings have tallies of what the threads did.
    """
    variant, status, ended = subject.variants[0], 0, None
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        report = sanitize.Report(subject.lab, variant, subject.case, Path(folder, "report.json"))
        stack.callback(report.close)
        report.save()
        try:
            work = partial(look, subject, report, sizes, orders, kill_after, counts=counts)
            status = supervise(partial(guard, work), kill_after)
        except TimeLimitError as error:
            ended = sanitize.crash_row(error, "infinite_loop")
        except KernelError as error:
            ended = sanitize.crash_row(error, "crash")
        document = report.saved()
    kinds = {row.kind for row in document.findings}
    if ended and ended.kind not in kinds:
        document = replace(document, clean=False, findings=[ended, *document.findings])
        kinds.add(ended.kind)
    if "infinite_loop" in kinds:
        size = sizes[max(len(document.inputs) - 1, 0)]
        if ends(subject, size, max(kill_after / 4, FULL_SPEED_S)):
            raise TimeLimitError(
                f"{variant.name} takes longer than --kill-after {kill_after:g} s under the "
                "instrument, but it does end at full speed",
                hint="a smaller --n, or a longer --kill-after",
            )
    return status, document


def look(
    subject: Subject,
    report: sanitize.Report,
    sizes: tuple[Size, ...],
    orders: Sequence[int],
    kill_after: float,
    *,
    counts: bool = False,
) -> int:
    """Run all inputs, with the instrument and without it; this is the child process."""

    def instrument(order: int) -> CheckDevice:
        # The usual order first: its findings are the easiest to follow.
        return CheckDevice(detect=True, count=False, seed=order or None, kill_after=kill_after / 4)

    with prints_to_stderr():
        inputs = subject.ready(sizes)
        for data, several in zip(inputs, orders, strict=True):
            sanitize.check(report, data, instrument, several)
            if not report.clean:
                return 0
        if counts:
            tally(report, inputs, kill_after)
    return 0


def tally(report: sanitize.Report, inputs: Sequence[Data], kill_after: float) -> None:
    """Let the report have what threads do that run in the order of other builds, unobserved."""
    with CheckDevice(detect=False, count=False, kill_after=kill_after / 4) as device:
        for data in inputs:
            device.tallies = {}
            sanitize.answer(report.lab, report.variant, report.case, data, device)
            report.tallies.append(device.tallies)
    report.save()


def ends(subject: Subject, size: Size, seconds: float) -> bool:
    """Whether the kernel ends within `seconds` without the instrument."""
    try:
        return supervise(partial(at_full_speed, subject, size), seconds) == 0
    except (KernelError, TimeLimitError):
        return False


def at_full_speed(subject: Subject, size: Size) -> int:
    """Compute once, as `cudalab LAB` does; this is a child process."""
    (data,) = subject.ready([size])
    with open_device(host_device()) as device:
        try:
            sanitize.answer(subject.lab, subject.variants[0], subject.case, data, device)
        except CudalabError:
            return int(ExitCode.ERROR)
    return 0
