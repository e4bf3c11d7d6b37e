"""The commands that look into a lab's kernels: `profile`, `sanitize` and `predict`."""

from typing import Any

import click

from cudalab import labs
from cudalab.backends import DEVICES
from cudalab.cli import epilog, params, values
from cudalab.errors import ExitCode
from cudalab.microscope import KILL_AFTER_S


@click.command(
    "profile",
    cls=params.CaseCommand,
    epilog=epilog.examples(
        "cudalab profile reduce --variants interleaved_strided,sequential",
        "cudalab profile transpose --variants all --n 1024 --html transpose.html",
        "cudalab profile histogram --data in.bin       # are there bank conflicts?",
        "cudalab profile matmul --aat --banks 16 --kernel my.cu",
        then=[params.CASE_HELP],
    ),
)
@click.argument(
    "lab", type=values.LabName(labs.names(), "have cudalab run --profile"), metavar="LAB"
)
@params.variants_option(
    "all (that compute the case), or comma-separated names. Default: one that has something to "
    "show, and one without it; all with --data."
)
@params.kernel_option("Profile your own file only.")
@params.data_options
@click.option(
    "--blocks",
    type=values.COUNT,
    metavar="SAMPLE",
    help="Number of blocks to trace in each launch. Default: as many as a few seconds allow.",
)
@click.option(
    "--banks",
    type=values.Choice(["16", "32"]),
    default="32",
    show_default=True,
    help="16 counts by the rule of the lecture's GPUs: half a warp at a time.",
)
@click.option(
    "--device",
    type=values.Choice(list(DEVICES)),
    default="cpu",
    show_default=True,
    help="cuda: the counters of the GPU itself, read by Nsight Compute.",
)
@click.option(
    "--compare-devices", is_flag=True, help="Show both devices side by side; needs Nsight Compute."
)
@params.json_option("Write every count as JSON; - is stdout.")
@params.html_option
@params.remark_options()
@params.kill_after_option("the run", params.KERNEL_KILL_AFTER_S)
@params.quiet_option
def profile(**options: Any) -> int:
    """Run a lab and count what every line costs: sectors, bank conflicts, divergent branches.

    The kernels run on the CPU device, which sees each access of the blocks that it traces.
    """
    from cudalab.cli.work.instruments import profile

    return profile(**options)


@click.command(
    "sanitize",
    cls=params.CaseCommand,
    epilog=epilog.examples(
        "cudalab sanitize reduce --kernel my.cu",
        "cudalab sanitize scan --variant blelloch --n 5000",
        "cudalab sanitize histogram --kernel my.cu --data in.bin --json report.json",
        then=[params.CASE_HELP, f"Exit status {ExitCode.WRONG_ANSWER} when something is found."],
    ),
)
@click.argument(
    "lab", type=values.LabName(labs.names(), "have cudalab run --sanitize"), metavar="LAB"
)
@params.variant_option("Variant to examine. Default: the CPU device's default.")
@params.kernel_option("Examine your own file.")
@params.data_options
@click.option(
    "--orders",
    type=values.COUNT,
    default=3,
    show_default=True,
    metavar="N",
    help="Number of orders of blocks and warps to run: the usual one, then shuffled ones.",
)
@params.json_option("Write all findings as JSON; - is stdout.")
@params.remark_options()
@params.seconds_option(
    "--kill-after", "Report a run that takes longer as a loop that does not end.", KILL_AFTER_S
)
@params.quiet_option
def sanitize(**options: Any) -> int:
    """Run an instrumented kernel in several orders of its threads and report what is wrong.

    It finds data races, barriers that some threads miss, out-of-bounds accesses, reads of
    uninitialised memory, wrong masks, deadlocks, and results that depend on the order of blocks
    and threads.
    """
    from cudalab.cli.work.instruments import sanitize

    return sanitize(**options)


@click.command(
    "predict",
    cls=params.CaseCommand,
    epilog=epilog.examples(
        "cudalab predict transpose --gpu rtx3060",
        "cudalab predict reduce --variants sequential,warp_shuffle --n 2^22 --gpu t4",
        "cudalab predict matmul --kernel my.cu --gpu h200 --json my.json",
        "cudalab predict matmul --gpu rtx3060 --html matmul.html",
        then=[params.CASE_HELP],
    ),
)
@click.argument(
    "lab",
    type=values.LabName(labs.names(), "are not predicted, only kernels of labs"),
    metavar="LAB",
)
@click.option(
    "--gpu",
    metavar="NAME|FILE.toml",
    help="a100, a6000, b200, h100, h200, rtx3060, rtx4090, t4, or a file of the same form.",
)
@params.variants_option("all (that the CPU device can count), or comma-separated names.", "all")
@params.kernel_option("Predict your own file only.")
@params.sizes_option("Sizes. Default: the one that bench measures.")
@params.dist_option
@params.seed_option()
@params.json_option("Write all times, limits and counts as JSON; - is stdout.")
@params.html_option
@params.kill_after_option("the prediction", params.KERNEL_KILL_AFTER_S)
@params.quiet_option
def predict(**options: Any) -> int:
    """Predict each rung's time on a GPU, and what limits it, without that GPU.

    The CPU device counts what the kernels do, and nvcc, where there is one, compiles them. A model
    with few constants turns that into times. The interval beside each held nine of ten times that
    were measured on GPUs.
    """
    from cudalab.cli.work.predict import predict

    return predict(**options)
