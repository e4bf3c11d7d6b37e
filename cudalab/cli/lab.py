"""The commands that each lab has: run it, generate an input, verify an answer."""

from __future__ import annotations

import shlex
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.cli import epilog, params, values

if TYPE_CHECKING:
    from cudalab.labs.base import Lab

FILE_OR_STDIN = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write this file instead of stdout; it is replaced only when the answer is complete.",
)
about_option = params.json_option("Write what was done as JSON; - is stdout, if -o names a file.")


class LabCommand(click.Command):
    """A command that reads a stream and takes no arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Explain how to name an input file if one is passed as an argument."""
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        first = shlex.quote(next(iter(rest), ""))
        input_file = f"An input file is named with -i: {ctx.command_path} -i {first}"
        params.refuse_extra(ctx, rest, input_file)
        return rest


def lab_command(lab: Lab) -> click.Command:
    """Make `cudalab LAB`, which runs the lab."""

    @click.command(
        lab.name,
        cls=LabCommand,
        params=params.case_options(lab, runs=True),
        short_help=labs.summary(lab.name),
        help=f"{labs.summary(lab.name)}.\n\n{getdoc(type(lab))}",
        epilog=epilog.examples(
            f"cudalab gen {lab.name} --n 1000 > in.bin",
            f"cudalab {lab.name} < in.bin > out.bin",
            f"cudalab {lab.name} --kernel my.cu --device cpu -i in.bin -o out.bin --time",
        ),
    )
    @params.variant_option("Variant to run: see `cudalab list LAB`.")
    @params.device_option()
    @params.kernel_option("Run your own file; start from the output of `cudalab show`.")
    @click.option(
        "-i", "--input", type=FILE_OR_STDIN, help="Read this file instead of stdin.", metavar="FILE"
    )
    @output_option
    @click.option("--time", is_flag=True, help="Print the time of each stage on stderr.")
    @about_option
    @params.threads_option("Threads of the CPU device; all cores by default.")
    @params.quiet_option
    @params.kill_after_option("the run", params.KERNEL_KILL_AFTER_S)
    def run(**options: Any) -> int:
        from cudalab.cli.work.lab import run_lab

        return run_lab(lab, **options)

    return run


def gen_command(lab: Lab) -> click.Command:
    """Make `cudalab gen LAB`, which generates an input."""

    @click.command(
        lab.name,
        params=params.case_options(lab),
        short_help=labs.summary(lab.name),
        help=f"Generate a random input for {lab.name}.",
        epilog=epilog.examples(
            f"cudalab gen {lab.name} --n {lab.example_size} --dist {lab.distributions[-1]} "
            "--seed 7 > in.bin"
        ),
    )
    @click.option(
        "--n",
        type=values.shape,
        metavar="SIZE",
        help="Size: 1000, 1e6, 2^20, 1Mi or 128M; 300x200 where the data have a shape.",
    )
    @click.option(
        "--dist",
        type=values.Distribution(lab.distributions),
        default=lab.distributions[0],
        show_default=True,
        metavar="NAME",
        help=f"Distribution of the data: {', '.join(lab.distributions)}.",
    )
    @params.seed_option("The same seed gives the same bytes everywhere.")
    @output_option
    @about_option
    def gen(**options: Any) -> None:
        from cudalab.cli.work.lab import generate

        generate(lab, **options)

    return gen


def verify_command(lab: Lab) -> click.Command:
    """Make `cudalab verify LAB IN OUT`, which checks an answer."""

    @click.command(
        lab.name,
        params=params.case_options(lab),
        short_help=labs.summary(lab.name),
        help='Check the answer OUT ("-": stdin) to the input IN against a reference on the host.',
        epilog=epilog.examples(
            f"cudalab verify {lab.name} in.bin out.bin",
            f"cudalab {lab.name} < in.bin | cudalab verify {lab.name} in.bin -",
        ),
    )
    @click.argument("input", type=values.EXISTING, metavar="IN")
    @click.argument("answer", type=FILE_OR_STDIN, metavar="OUT")
    @params.json_option()
    def verify(**options: Any) -> None:
        from cudalab.cli.work.lab import verify_answer

        verify_answer(lab, **options)

    return verify
