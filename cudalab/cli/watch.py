"""The commands `watch` and `learn`: a verdict each time that a file is saved."""

from pathlib import Path
from typing import Any

import click

from cudalab import labs
from cudalab.cli import epilog, params, values
from cudalab.watch import KILL_AFTER_S

LIMITS = (
    "It looks at inputs with n up to 4,096, for matrices 65, on the CPU device; `cudalab check` "
    "has the last word. "
    "Exit status with --once: that of `check`, for a program that of `run --sanitize`."
)
WITHOUT_TERMINAL = (
    "Without a terminal it prints the task and one verdict: exit status 3 if the step is unsolved."
)
ARGUMENTS, NVCC = "cudalab: the program's arguments", "cudalab: nvcc's options"


class WatchCommand(params.CaseCommand):
    """A command about a lab's kernel, or about a program with nvcc's options and arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at `--`; without a lab, the words are those of `cudalab run`."""
        from cudalab.program.options import split

        at = args.index("--") if "--" in args else len(args)
        args, ctx.meta[ARGUMENTS] = args[:at], args[at + 1 :]
        ctx.meta[NVCC] = []
        if not any(arg in labs.names() for arg in args):
            args, ctx.meta[NVCC] = split(args)
        return super().parse_args(ctx, args)


@click.command(
    "watch",
    cls=WatchCommand,
    epilog=epilog.examples(
        "cudalab new reduce my.cu",
        "cudalab watch reduce my.cu",
        "cudalab watch reduce my.cu --show",
        "cudalab watch reduce my.cu --once; echo $?",
        "cudalab watch program.cu --stdin in.txt -- argument",
        then=[params.CASE_HELP, LIMITS],
    ),
)
@click.argument("words", nargs=-1, required=True, metavar="[LAB] FILE.cu [-- ARGUMENTS]")
@click.option("--once", is_flag=True, help="Judge the file as it is, and end.")
@click.option("--show", is_flag=True, help="Also print the code of the next rung.")
@params.seconds_option(
    "--kill-after", "Limit of each test and launch; a program has four times that.", KILL_AFTER_S
)
@click.option("--stdin", type=values.EXISTING, metavar="FILE", help="What a program reads.")
@params.macro_options("Where a program has headers.", "A program's macro.")
@params.quiet_option
@click.pass_context
def watch(ctx: click.Context, /, **options: Any) -> int:
    """Judge FILE.cu each time that it is saved, and say what has changed.

    A verdict names compile errors, wrong answers, races and the like with their lines. Once there
    are none, it names bank conflicts, accesses that are not coalesced and divergent branches, the
    rung of the lab's ladder that the kernel is at, and the idea of the next one. Ctrl-C ends it.

    Without LAB the file is a whole program, with nvcc's options as for `run`: what it prints, how
    it ends, what is wrong with it and what it costs.
    """
    from cudalab.cli.work.watch import watch

    return watch(ctx.meta[ARGUMENTS], ctx.meta[NVCC], **options)


@click.command(
    "learn",
    epilog=epilog.examples(
        "cudalab learn                     # goes on where you stopped",
        "cudalab learn 5                   # starts at any step",
        "cudalab learn --list",
        "cudalab learn 5 --hints 1         # the task and a hint, and nothing else",
        then=[WITHOUT_TERMINAL],
    ),
)
@click.argument("step", required=False, metavar="[STEP]")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("cudalab-learn"),
    show_default=True,
    help="Folder of your files and of progress.txt.",
)
@click.option("--list", "as_list", is_flag=True, help="List the steps, and what is done.")
@click.option(
    "--hints", type=click.IntRange(0, 3), metavar="N", help="Print the task and N of its 3 hints."
)
@click.option("--solution", is_flag=True, help="Print the model answer of STEP.")
@params.seconds_option("--kill-after", "Limit of each test and each launch.", KILL_AFTER_S)
@params.quiet_option
def learn(**options: Any) -> int:
    """Learn CUDA on files of your own: a task, a verdict on every save, hints, a model answer.

    The first steps are ideas of the labs' ladders, the last ones broken kernels to repair. STEP is
    a number or a name. Press h for a hint, n for the next step, q to leave.
    """
    from cudalab.cli.work.learn import learn

    return learn(**options)
