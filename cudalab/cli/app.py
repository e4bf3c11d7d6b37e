"""The command line: parse, call, exit. Nothing heavy is imported before a command needs it."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

import gc
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from cudalab import __version__
from cudalab.cli.failures import leave, report_errors
from cudalab.cli.groups import LabGroup
from cudalab.cli.options import lines
from cudalab.errors import ExitCode

COLLECT_EVERY = 50_000  # new objects: of those that modules make, nearly all stay


def main() -> None:
    """Run the command line and exit."""
    gc.set_threshold(COLLECT_EVERY)
    leave(report_errors(partial(cli.main, prog_name="cudalab", standalone_mode=False)))


def prepare_run(arguments: Sequence[str]) -> None:
    """Prepare the run of a lab before NumPy is imported.

    Start opening the GPU, unless the CPU device, a child process or nobody will use it. NumPy gets
    one thread for linear algebra: a run has little of it, and threads spin while they wait.
    """
    from cudalab.backends.cuda import driver

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if {"cpu", "--device=cpu", "-h", "--help"}.isdisjoint(arguments) and not any(
        word.startswith(("--kernel", "--kill-after")) for word in arguments
    ):
        driver.begin_to_open_gpu()


# The program -----------------------------------------------------------------------------------

# The commands that concern no single lab: where they are, and what `cudalab --help` says of them.
COMMANDS = {
    "list": ("inventory:list_variants", "List the labs, or a lab's variants."),
    "show": ("inventory:show", "Print a variant's source."),
    "doctor": ("doctor:doctor", "Say what is missing on this machine, and what mends it."),
    "device": ("inventory:device", "Print the properties of the devices."),
    "run": ("run:run", "Compile and run a whole CUDA program, with or without a GPU."),
    "bench": ("bench:bench", "Measure variants side by side."),
    "profile": ("profile:profile", "Show what each line's memory accesses cost."),
    "predict": ("predict:predict", "Predict a ladder's times on a GPU that is not there."),
    "sanitize": (
        "sanitize:sanitize",
        "Find races, missing barriers and out-of-bounds accesses.",
    ),
    "new": ("check:new", "Write the outline of a kernel file."),
    "check": ("check:check", "Judge a submission: compile, correct, sanitize, time."),
    "learn": ("learn:learn", "Learn CUDA step by step, on files of your own."),
    "watch": ("watch:watch", "Judge a kernel file each time that it is saved."),
    "grade": ("grade:grade", "Judge a folder of submissions."),
    "selftest": ("selftest:selftest", "Test the checker itself, on this machine."),
    "report": ("report:report", "Write a lab report with measurements filled in."),
    "explain": ("explain:explain_topic", "Explain a topic of the course, with drawings."),
    "exercises": (
        "explain:exercises",
        "Time the hand-out's exercises: global against shared memory.",
    ),
}


@click.group(
    cls=LabGroup,
    make="lab:lab_command",
    prepare=prepare_run,
    places=COMMANDS,
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
    make="lab:gen_command",
    epilog=lines("Example", "cudalab gen radixsort --n 1e6 --dist few --seed 7 > in.bin"),
)
def gen() -> None:
    """Generate a random input for a lab."""


@cli.group(
    "verify",
    cls=LabGroup,
    make="lab:verify_command",
    epilog=lines("Example", "cudalab verify radixsort in.bin out.bin"),
)
def verify_group() -> None:
    """Check an answer: exit status 0 if it is right, 3 if not."""
