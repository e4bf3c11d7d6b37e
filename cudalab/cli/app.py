"""The command line: parse, call, exit. Nothing heavy is imported before a command needs it."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from cudalab import __version__
from cudalab.cli.bench import bench
from cudalab.cli.check import check, grade, new, selftest
from cudalab.cli.failures import report_errors
from cudalab.cli.inventory import device, list_variants, show
from cudalab.cli.lab import LabGroup, gen_command, lab_command, open_gpu_early, verify_command
from cudalab.cli.learn import exercises, explain_topic
from cudalab.cli.options import lines
from cudalab.cli.profile import profile, sanitize
from cudalab.cli.report import report
from cudalab.cli.run import run
from cudalab.errors import ExitCode


def main() -> None:
    """Run the command line and exit."""
    sys.exit(report_errors(partial(cli.main, prog_name="cudalab", standalone_mode=False)))


# The program -----------------------------------------------------------------------------------


@click.group(
    cls=LabGroup,
    make=lab_command,
    prepare=open_gpu_early,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab gen radixsort --n 1000 > in.bin",
                "cudalab radixsort < in.bin > out.bin",
                "cudalab verify radixsort in.bin out.bin",
            ),
            lines("Exit status", *(f"{code:<4} {code.meaning}" for code in ExitCode)),
        ]
    ),
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option(
    "--kernels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Use the kernels in DIR/LAB/*.cu instead of the installed ones.",
)
def cli(kernels: Path | None) -> None:
    """Run the labs of a CUDA course, on a GPU or without one."""
    if kernels:
        from cudalab.language.source import use_kernels_dir

        use_kernels_dir(kernels)


# gen and verify, with a subcommand for each lab --------------------------------------------------


@cli.group(
    "gen",
    cls=LabGroup,
    make=gen_command,
    epilog=lines("Example", "cudalab gen radixsort --n 1e6 --dist few --seed 7 > in.bin"),
)
def gen() -> None:
    """Generate a random input for a lab."""


@cli.group(
    "verify",
    cls=LabGroup,
    make=verify_command,
    epilog=lines("Example", "cudalab verify radixsort in.bin out.bin"),
)
def verify_group() -> None:
    """Check an answer: exit status 0 if it is right, 3 if not."""


for command in (
    *(list_variants, show, device),
    *(run, bench, profile, sanitize),
    *(new, check, grade, selftest),
    *(report, explain_topic, exercises),
):
    cli.add_command(command)
