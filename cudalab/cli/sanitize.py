"""The command `sanitize`. Nothing heavy is imported before it runs."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.cli.failures import report_errors
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
from cudalab.cli.subject import check_data, data_options
from cudalab.errors import ExitCode
from cudalab.microscope.subject import KILL_AFTER_S, Subject

if TYPE_CHECKING:
    from cudalab.labs.inputs import Size
    from cudalab.microscope.findings import Findings


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
    from cudalab.bench import choice
    from cudalab.labs import registry
    from cudalab.microscope import supervised
    from cudalab.microscope.remarks import of_findings

    check_data()
    if variant and kernel:
        exclude("--variant", "--kernel")
    chosen_lab = labs.get(lab)
    case = choice.case_of(chosen_lab, options)
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
    inputs = inputs[:1] if data else inputs
    status, document = supervised.findings(
        subject, inputs, [orders] * len(inputs), kill_after, report_errors
    )
    if status:
        return status
    write_json(json_path, document)
    if not (github or is_stdout(json_path, sarif)):
        show_findings(document)
    remarks = of_findings(document.findings, document.file)
    write_remarks(remarks, "sanitize", sarif=sarif, github=github)
    return ExitCode.OK if document.clean else ExitCode.WRONG_ANSWER


def show_findings(document: Findings) -> None:
    """Print the findings, or that there are none."""
    from cudalab.microscope.findings import errors, grouped
    from cudalab.microscope.sanitize import covered
    from cudalab.output import terminal

    groups = grouped(document.findings)
    verdict = "clean" if document.clean else f"{errors(groups)} found"
    title = f"{document.lab} {document.variant} ({document.file}): {verdict}"
    terminal.findings(f"{title}\nlooked at: {'; '.join(document.inputs)}", groups)
    listed, observed = document.not_looked_at, document.lines_observed or 0
    if observed or listed:
        terminal.lines(["", *covered("the accesses of the kernels", observed, listed, ())])
