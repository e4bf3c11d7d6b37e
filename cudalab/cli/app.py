"""The command line: parse, call, exit. Nothing heavy is imported before a command needs it."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from cudalab import __version__, labs
from cudalab.backends import DEVICES
from cudalab.cli.bench import bench
from cudalab.cli.check import check, grade, new, selftest
from cudalab.cli.failures import report_errors
from cudalab.cli.lab import LabGroup, gen_command, lab_command, open_gpu_early, verify_command
from cudalab.cli.learn import exercises, explain_topic
from cudalab.cli.options import lines, variant_names
from cudalab.cli.profile import profile, sanitize
from cudalab.cli.report import report
from cudalab.cli.run import run
from cudalab.errors import CudalabError, ExitCode, NoDeviceError


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


@cli.command(
    "list",
    short_help="List the variants.",
    epilog=lines("Example", "cudalab list", "cudalab list radixsort"),
)
@click.argument("lab", required=False, type=click.Choice(labs.names()))
def list_variants(lab: str | None) -> None:
    """List the variants: what each does, where it runs, where it is the default."""
    from cudalab.backends import able_devices
    from cudalab.labs import registry
    from cudalab.output import terminal

    for name in [lab] if lab else labs.names():
        terminal.table(
            f"{name}: {labs.summary(name)}",
            ["variant", "summary", "devices", "default", "computes", "requires"],
            [
                [
                    variant.title,
                    variant.summary,
                    ", ".join(able_devices(variant.requires)),
                    ", ".join(variant.default),
                    "; ".join(f"{a} {', '.join(v)}" for a, v in variant.applies.items()),
                    ", ".join(variant.requires),
                ]
                for variant in registry.variants(labs.get(name))
            ],
        )


@cli.command(
    short_help="Print a variant's source.",
    epilog=lines(
        "Example",
        "cudalab show radixsort split_1bit",
        "cudalab show radixsort split_1bit > my.cu",
        "cudalab show --whole scan decoupled_lookback",
    ),
)
@click.argument("lab", type=click.Choice(labs.names()))
@click.argument("variant", shell_complete=variant_names)
@click.option("--whole", is_flag=True, help="Print one file that compiles, its headers inlined.")
def show(lab: str, variant: str, whole: bool) -> None:
    """Print a variant's source: highlighted on a terminal, the file's bytes otherwise.

    A terminal also shows which headers the variant includes; --whole prints their text, each in
    the place of its #include.
    """
    from cudalab.labs import registry
    from cudalab.language import source

    selected = registry.find(labs.get(lab), variant)
    if sys.stdout is None:
        raise CudalabError("stdout is closed")
    loaded = source.load(selected.path, selected.label)
    text = source.whole(loaded).encode() if whole else selected.path.read_bytes()
    if sys.stdout.isatty():
        from cudalab.output import terminal

        terminal.cuda_source(text.decode(), [] if whole else source.headers(loaded))
    else:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


@cli.command(epilog=lines("Example", "cudalab device", "cudalab device cuda"))
@click.argument(
    "name", required=False, type=click.Choice(list(DEVICES)), metavar=f"[{'|'.join(DEVICES)}]"
)
def device(name: str | None) -> None:
    """Print the properties of the devices."""
    from dataclasses import asdict

    from cudalab.backends import open_device
    from cudalab.output import terminal
    from cudalab.output.labels import labelled

    for each in [name] if name else DEVICES:
        try:
            with open_device(each) as opened:
                terminal.properties(f"{each} device", labelled(asdict(opened.info())))
        except NoDeviceError as error:
            if name:
                raise
            click.echo(
                f"{each} device: {error.message}" + (f"\n  {error.hint}" if error.hint else "")
            )


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
    *(run, bench, profile, sanitize),
    *(new, check, grade, selftest),
    *(report, explain_topic, exercises),
):
    cli.add_command(command)
