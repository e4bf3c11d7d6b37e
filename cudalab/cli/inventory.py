"""The commands `list`, `show`, `device` and `doctor`: what there is to run, and to run it on."""

from pathlib import Path
from typing import Any

import click

from cudalab import labs
from cudalab.backends import DEVICES
from cudalab.cli import epilog, params, values
from cudalab.errors import ExitCode


@click.command(
    "list",
    epilog=epilog.examples(
        "cudalab list",
        "cudalab list radixsort",
        "cudalab list radixsort | grep shared",
        "cudalab list radixsort --json -",
    ),
)
@click.argument("lab", required=False, type=params.LAB, metavar="[LAB]")
@params.json_option("Write it as JSON, with all that is known of each variant; - is stdout.")
def list_variants(lab: str | None, *, json_path: Path | None) -> None:
    """List the labs and the variants that they run by default, or the variants of LAB.

    A terminal gets what fits. A pipe gets everything, one line for each.
    """
    from cudalab.cli.work import inventory

    if lab is None:
        inventory.list_labs(json_path)
    else:
        inventory.list_variants(labs.get(lab), json_path)


@click.command(
    epilog=epilog.examples(
        "cudalab show radixsort split_1bit",
        "cudalab show radixsort split_1bit > my.cu",
        "cudalab show --whole scan decoupled_lookback",
        "cudalab show --tier matmul tiled",
    )
)
@click.argument("lab", type=params.LAB, metavar="LAB")
@click.argument("variant", required=False, metavar="VARIANT", shell_complete=params.variant_names)
@click.option("--whole", is_flag=True, help="Print one file that compiles, its headers inlined.")
@click.option("--tier", is_flag=True, help="Say how the CPU device runs its kernels, and why.")
def show(lab: str, **options: Any) -> None:
    """Print a variant's source: highlighted on a terminal, the file's bytes otherwise.

    A terminal also shows which headers the variant includes; --whole prints their text, each in
    the place of its #include. With --tier, one line for each kernel says instead whether its
    threads are loops on the CPU device, or fibers, and why not loops.
    """
    from cudalab.cli.work.show import show

    show(labs.get(lab), **options)


@click.command(
    epilog=epilog.examples(
        "cudalab device",
        "cudalab device cuda",
        "cudalab device --why         # the part of `cudalab doctor` about the GPU",
        "cudalab device --measure mygpu.toml",
    )
)
@click.argument(
    "name", required=False, type=values.Choice(list(DEVICES)), metavar=f"[{'|'.join(DEVICES)}]"
)
@click.option(
    "--why",
    is_flag=True,
    help="Check what the GPU needs, from the driver to PyCUDA: print what is missing and how to "
    f"get it. Exit status {ExitCode.NO_DEVICE} if anything is.",
)
@params.out_option(
    "--measure",
    "measured",
    metavar="FILE.toml",
    help_text="Measure the GPU for a minute and write its file for `cudalab predict --gpu "
    "FILE.toml`.",
)
@params.json_option()
def device(**options: Any) -> int:
    """Print the properties of the devices."""
    from cudalab.cli.work.devices import device

    return device(**options)


@click.command(
    "doctor",
    epilog=epilog.examples(
        "cudalab doctor",
        "cudalab doctor --json -",
        then=[
            f"Exit status {ExitCode.NO_DEVICE} if something is missing that every command needs."
        ],
    ),
)
@params.json_option()
@params.quiet_option
def doctor(*, json_path: Path | None) -> int:
    """Look at what cudalab needs of this machine, and say how to fix what is wrong.

    Versions, memory, cache and disks, the compiler of the CPU device, the sandbox of `check` and
    `grade`, and the GPU, from its driver to PyCUDA. `MISSING` is what nothing works without; `no`
    is what only some commands need.
    """
    from cudalab.cli.work.doctor import doctor

    return doctor(json_path)
