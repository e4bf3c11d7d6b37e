"""The command line: parse, call, exit. Nothing heavy is imported before a command needs it."""

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from cudalab import __version__, labs
from cudalab.cli.epilog import examples, unwrapped
from cudalab.cli.failures import leave, report_errors
from cudalab.errors import ExitCode, nearest

COLLECT_EVERY = 50_000  # new objects: nearly all of those that imports make stay


def main() -> None:
    """Run the command line and exit."""
    gc.set_threshold(COLLECT_EVERY)
    if os.environ.get("COLUMNS") == "0":  # of a terminal whose size nobody knows
        del os.environ["COLUMNS"]
    plain = False if os.environ.get("NO_COLOR") else None  # as rich does without being told
    leave(report_errors(partial(cli.main, prog_name="cudalab", standalone_mode=False, color=plain)))


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


class LabGroup(click.Group):
    """A group with a subcommand for each lab, made on demand, and commands from other modules."""

    def __init__(
        self,
        *args: Any,
        make: str,
        prepare: Callable[[Sequence[str]], None] = lambda _: None,
        places: Mapping[str, tuple[str, str]] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        """The function `make` turns a lab into its command; `prepare` sees the arguments first.

        `places` has commands, as module:name, each with its line of this group's help.
        """
        super().__init__(*args, **options)
        if not places:
            self.subcommand_metavar = "LAB [OPTIONS]..."
        self.make, self.prepare, self.places = make, prepare, places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The labs, then the group's own commands."""
        return [*labs.names(), *super().list_commands(ctx), *self.places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find the command; a lab is imported only now, because it imports NumPy."""
        if cmd_name in labs.names():
            made: click.Command = load(self.make)(labs.get(cmd_name))
            return made
        if cmd_name in self.places:
            place, summary = self.places[cmd_name]
            command: click.Command = load(place)
            command.short_help = summary
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest names if there is no such command."""
        known = self.list_commands(ctx)
        if not args[0].startswith("-") and args[0] not in known:
            kind = "command" if self.places else "lab"
            ctx.fail(f"No such {kind} '{args[0]}': {nearest(args[0], known)}")
        if args[0] in labs.names() and not ctx.resilient_parsing:
            self.prepare(args[1:])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write two sections; neither the labs nor the commands are imported for their lines."""
        del ctx
        with formatter.section("Labs"):
            formatter.write_dl([(name, labs.summary(name)) for name in labs.names()])
        own = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        own += [(name, summary) for name, (_, summary) in self.places.items()]
        if own:
            with formatter.section("Commands"):
                formatter.write_dl(own)


def load(place: str) -> Any:
    """What a module of this package calls by a name: module:name."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"cudalab.cli.{module}"), name)


# The program -----------------------------------------------------------------------------------

# The commands that concern no single lab: where they are, and what `cudalab --help` says of them.
COMMANDS = {
    "list": ("inventory:list_variants", "List the labs, or a lab's variants."),
    "show": ("inventory:show", "Print a variant's source."),
    "doctor": ("inventory:doctor", "Say what is missing on this machine, and how to fix it."),
    "device": ("inventory:device", "Print the properties of the devices."),
    "run": ("run:run", "Compile and run a whole CUDA program, with or without a GPU."),
    "bench": ("bench:bench", "Measure variants side by side."),
    "profile": ("instruments:profile", "Show what each line's memory accesses cost."),
    "predict": ("instruments:predict", "Predict a ladder's times on a GPU that is not there."),
    "sanitize": (
        "instruments:sanitize",
        "Find races, missing barriers and out-of-bounds accesses.",
    ),
    "new": ("check:new", "Write the outline of a kernel file."),
    "check": ("check:check", "Judge a submission: compile, correct, sanitize, time."),
    "learn": ("watch:learn", "Learn CUDA step by step, on files of your own."),
    "watch": ("watch:watch", "Judge a kernel file each time that it is saved."),
    "grade": ("check:grade", "Judge a folder of submissions."),
    "selftest": ("check:selftest", "Test the checker itself, on this machine."),
    "report": ("bench:report", "Write a lab report with measurements filled in."),
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
    epilog=examples(
        "cudalab gen radixsort --n 1000 > in.bin",
        "cudalab radixsort < in.bin > out.bin",
        "cudalab verify radixsort in.bin out.bin",
        then=[unwrapped("Exit status", *(f"{code:<4} {code.meaning}" for code in ExitCode))],
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
    epilog=examples("cudalab gen radixsort --n 1e6 --dist few --seed 7 > in.bin"),
)
def gen() -> None:
    """Generate a random input for a lab."""


@cli.group(
    "verify",
    cls=LabGroup,
    make="lab:verify_command",
    epilog=examples("cudalab verify radixsort in.bin out.bin"),
)
def verify_group() -> None:
    """Check an answer: exit status 0 if it is right, 3 if not."""
