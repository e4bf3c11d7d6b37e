"""The command `run`: build a whole CUDA program, then become it."""

from pathlib import Path
from typing import Any

import click

from cudalab.cli import epilog, params
from cudalab.errors import ExitCode, UsageError


class RunCommand(click.Command):
    """A command that passes the arguments after `--` to the program it runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at `--`; a usage error before it is a failure of `run` itself."""
        from cudalab.program.options import split

        ours, theirs = args, []
        if "--make" in args:
            at = args.index("--make") + 1
            ours, theirs = args[:at], args[at:]
        elif "--" in args:
            at = args.index("--")
            ours, theirs = args[:at], args[at + 1 :]
        ctx.meta["program arguments"] = theirs
        try:
            ours, ctx.meta["nvcc options"] = split(ours)
            return super().parse_args(ctx, ours)
        except UsageError as error:
            error.exit_code = ExitCode.RUN_FAILED
            raise
        except click.UsageError as error:
            error.show()
            ctx.exit(ExitCode.RUN_FAILED)


@click.command(
    "run",
    cls=RunCommand,
    options_metavar="[OPTIONS]",
    epilog=epilog.examples(
        "cudalab run program.cu < in.bin > out.bin",
        "cudalab run --device cpu -D N=1024 main.cu scan.cu -- --verbose",
        "cudalab run -O3 -std=c++17 -Xcompiler -fopenmp main.cu -lm",
        "cudalab run --make -j4 && cudalab run --sanitize ./program",
        "CUDALAB_THREADS=1 CUDALAB_DEVICE_MEMORY=2G cudalab run program.cu",
    ),
)
@params.device_option()
@params.macro_options("Search this folder for headers, too.", "Define a macro.")
@click.option(
    "-o",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="BINARY",
    help="Keep a copy of the executable.",
)
@click.option(
    "--sanitize",
    is_flag=True,
    help=(
        "Run it instrumented and report errors: races, missing barriers, "
        "out-of-bounds accesses, API errors. Exit status 3 if there are any, whatever the "
        "program's."
    ),
)
@click.option(
    "--profile", is_flag=True, help="Run it instrumented and show what each line's accesses cost."
)
@click.option(
    "--leaks",
    is_flag=True,
    help="With --sanitize: count memory that the program never frees as an error, not as a note.",
)
@params.seconds_option(
    "--kill-after",
    "With --sanitize: examine each launch for so much of the processor's time; the rest of it just "
    "runs. Default: 30.",
)
@click.option(
    "--tier",
    is_flag=True,
    help="Compile the program for the CPU device and say how each of its kernels runs there, and "
    "why, instead of running it.",
)
@click.option(
    "--make",
    is_flag=True,
    help="Run make with the ARGUMENTS that follow, and a toolkit whose nvcc compiles for the CPU "
    "device; without a makefile, CMake.",
)
@click.option(
    "--print-env",
    is_flag=True,
    help='Print the variables of that toolkit, for your own shell: eval "$(cudalab run '
    '--print-env)".',
)
@params.json_option(
    "Write what --sanitize or --profile shows as JSON; with - the program's output goes to stderr."
)
@params.remark_options(where="stderr")
@click.argument("files", nargs=-1, metavar="FILE.cu... [-- ARGUMENTS]")
@params.quiet_option
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> int:
    """Compile a CUDA program with a main function and run it: with nvcc where there is a GPU,
    otherwise with the host's C++ compiler, on the CPU device.

    Stdin, stdout, stderr and signals are the program's own, and so is the exit status; 125 means
    that cudalab could not start it. A program that was compiled before starts at once.

    nvcc's options, such as -lcublas, -arch=sm_75 or -Xcompiler -fopenmp, may stay where they are:
    what means nothing on the CPU device is ignored there.
    """
    from cudalab.cli.work.run import run

    return run(ctx.meta["program arguments"], ctx.meta["nvcc options"], **options)
