"""The command `sanitize`. Nothing heavy is imported before it runs."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.cli.failures import report_errors
from cudalab.cli.lab import prints_to_stderr
from cudalab.cli.options import (
    CASE_HELP,
    EXISTING,
    CaseCommand,
    Choice,
    exclude,
    is_stdout,
    json_option,
    lines,
    quiet_option,
    seconds_option,
    variant_option,
    write_json,
)
from cudalab.cli.remarks import remark_options, write_remarks
from cudalab.cli.subject import Subject, check_data, data_options
from cudalab.errors import CudalabError, ExitCode, KernelError, TimeLimitError

if TYPE_CHECKING:
    from cudalab.labs.inputs import Size
    from cudalab.microscope.findings import Findings
    from cudalab.microscope.sanitize import Report

KILL_AFTER_S = 120.0
FULL_SPEED_S = 15.0  # for a kernel without the instrument, compiling included


@click.command(
    "sanitize",
    cls=CaseCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab sanitize reduce --kernel my.cu",
                "cudalab sanitize scan --variant blelloch --n 5000",
                "cudalab sanitize histogram --kernel my.cu --data in.bin --json report.json",
            ),
            CASE_HELP,
            f"Exit status {ExitCode.WRONG_ANSWER} when something is found.",
        ]
    ),
)
@click.argument("lab", type=Choice(labs.names()), metavar="LAB")
@variant_option("Variant to examine. Default: the CPU device's default.")
@click.option("--kernel", type=EXISTING, metavar="FILE.cu", help="Examine your own file.")
@data_options
@click.option(
    "--orders",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of orders of blocks and warps to run: the usual one, then shuffled ones.",
)
@json_option("Write all findings as JSON; - is stdout.")
@remark_options()
@seconds_option(
    "--kill-after",
    "Report a run that takes longer as a loop that does not end.",
    KILL_AFTER_S,
)
@quiet_option
def sanitize(
    *,
    lab: str,
    variant: str | None,
    kernel: Path | None,
    sizes: list[Size] | None,
    dist: str | None,
    seed: int,
    data: Path | None,
    orders: int,
    json_path: Path | None,
    sarif: Path | None,
    github: bool,
    kill_after: float,
    **options: Any,
) -> int:
    """Run an instrumented kernel in several orders of its threads and report what is wrong.

    It finds data races, barriers that some threads miss, out-of-bounds accesses, reads of
    uninitialised memory, wrong masks, deadlocks, and results that depend on the order of blocks
    and threads.
    """
    from cudalab.bench import suite
    from cudalab.labs import registry
    from cudalab.microscope.remarks import of_findings

    check_data()
    if variant and kernel:
        exclude("--variant", "--kernel")
    chosen_lab = labs.get(lab)
    case = suite.case_of(chosen_lab, options)
    if kernel:
        selected = registry.read_header(kernel, chosen_lab, str(kernel))
    elif variant:
        selected = registry.find(chosen_lab, variant)
    else:
        selected = registry.default(chosen_lab, case, "cpu")
    registry.check_applies(selected, chosen_lab, case)
    subject = Subject(
        lab=chosen_lab,
        case=case,
        variants=[selected],
        dist=chosen_lab.distribution(dist),
        seed=seed,
        data=data,
    )
    inputs = tuple(sizes or chosen_lab.teaching.sizes(case).sanitized)
    status, document = watched(subject, inputs[:1] if data else inputs, orders, kill_after)
    if status:
        return status
    write_json(json_path, document)
    if not (github or is_stdout(json_path, sarif)):
        show_findings(document)
    remarks = of_findings(document.findings, document.file)
    write_remarks(remarks, "sanitize", sarif=sarif, github=github)
    return ExitCode.OK if document.clean else ExitCode.WRONG_ANSWER


def watched(
    subject: Subject, sizes: tuple[Size, ...], orders: int, kill_after: float
) -> tuple[int, Findings]:
    """Examine in a child process that may crash or hang; return its exit status and findings."""
    from cudalab.microscope import sanitize as sanitizer
    from cudalab.system.supervise import supervise

    variant, status, ended = subject.variants[0], 0, None
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        report = sanitizer.Report(subject.lab, variant, subject.case, Path(folder, "report.json"))
        stack.callback(report.close)
        report.save()
        try:
            work = partial(look, subject, report, sizes, orders, kill_after)
            status = supervise(partial(report_errors, work), kill_after)
        except TimeLimitError as error:
            ended = sanitizer.crash_row(error, "infinite_loop")
        except KernelError as error:
            ended = sanitizer.crash_row(error, "crash")
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
    subject: Subject, report: Report, sizes: tuple[Size, ...], orders: int, kill_after: float
) -> int:
    """Run all inputs, with the instrument and without it; this is the child process."""
    from cudalab.backends.cpu.check import CheckDevice
    from cudalab.microscope import sanitize as sanitizer

    def instrument(order: int) -> CheckDevice:
        # The usual order first: its findings are the easiest to follow.
        return CheckDevice(detect=True, count=False, seed=order or None, kill_after=kill_after / 4)

    with prints_to_stderr():
        for data in subject.ready(sizes):
            sanitizer.check(report, data, instrument, orders)
            if not report.clean:
                break
    return 0


def ends(subject: Subject, size: Size, seconds: float) -> bool:
    """Whether the kernel ends within `seconds` without the instrument."""
    from cudalab.system.supervise import supervise

    try:
        return supervise(partial(at_full_speed, subject, size), seconds) == 0
    except (KernelError, TimeLimitError):
        return False


def at_full_speed(subject: Subject, size: Size) -> int:
    """Compute once, as `cudalab LAB` does; this is a child process."""
    from cudalab.backends import open_device
    from cudalab.backends.choice import host_device
    from cudalab.microscope import sanitize as sanitizer

    (data,) = subject.ready([size])
    with open_device(host_device()) as device:
        try:
            sanitizer.answer(subject.lab, subject.variants[0], subject.case, data, device)
        except CudalabError:
            return int(ExitCode.ERROR)
    return 0


def show_findings(document: Findings) -> None:
    """Print the findings, or that there are none."""
    from cudalab.microscope.findings import errors, grouped
    from cudalab.output import terminal

    groups = grouped(document.findings)
    verdict = "clean" if document.clean else f"{errors(groups)} found"
    title = f"{document.lab} {document.variant} ({document.file}): {verdict}"
    terminal.findings(f"{title}\nlooked at: {'; '.join(document.inputs)}", groups)
