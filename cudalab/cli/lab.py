"""The commands that each lab has: run it, generate an input, verify an answer."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.cli.failures import within
from cudalab.cli.options import (
    DEVICE,
    EXISTING,
    QUIET,
    SECONDS,
    Distribution,
    case_options,
    exclude,
    lines,
    shape,
    variant_names,
)
from cudalab.errors import CudalabError, ExitCode, InputError, KernelError, UsageError
from cudalab.output import notes, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size
    from cudalab.runner import Stopwatch

OWN_KERNEL_KILL_AFTER_S = 300.0
FILE_OR_STDIN = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


# One lab ---------------------------------------------------------------------------------------

INPUT = click.Option(
    ["-i", "--input"], type=FILE_OR_STDIN, help="Read this file instead of stdin.", metavar="FILE"
)
OUTPUT = click.Option(
    ["-o", "--output"],
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write this file instead of stdout; it is replaced only when the answer is complete.",
)
RUN_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--variant", "--variants"],
        metavar="NAME",
        shell_complete=variant_names,
        help="Variant to run: see `cudalab list LAB`.",
    ),
    click.Option(
        ["--device"],
        type=DEVICE,
        default="auto",
        show_default=True,
        help="auto: the GPU if there is one.",
    ),
    click.Option(
        ["--kernel"],
        type=EXISTING,
        metavar="FILE.cu",
        help="Run your own file; start from the output of `cudalab show`.",
    ),
    INPUT,
    OUTPUT,
    click.Option(["--time"], is_flag=True, help="Print the time of each stage on stderr."),
    click.Option(
        ["--threads"],
        type=click.IntRange(min=1),
        metavar="N",
        help="Threads of the CPU device; all cores by default.",
    ),
    click.Option(["-q", "--quiet"], **QUIET),
    click.Option(
        ["--kill-after"],
        type=SECONDS,
        metavar="SECONDS",
        help="Abort a run that takes longer. Default: 300 with --kernel, else none.",
    ),
]


class LabCommand(click.Command):
    """A command that reads a stream and takes no arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Explain how to name an input file if one is passed as an argument."""
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            ctx.fail(
                f"Got unexpected extra argument ({rest[0]}). "
                f"An input file is named with -i: {ctx.command_path} -i {shlex.quote(rest[0])}"
            )
        return rest


def lab_command(lab: Lab) -> click.Command:
    """Make `cudalab LAB`, which runs the lab."""
    from inspect import getdoc

    return LabCommand(
        lab.name,
        callback=partial(run_lab, lab),
        params=[*case_options(lab, runs=True), *RUN_OPTIONS],
        short_help=labs.summary(lab.name),
        help=f"{labs.summary(lab.name)}.\n\n{getdoc(type(lab))}",
        epilog=lines(
            "Example",
            f"cudalab gen {lab.name} --n 1000 > in.bin",
            f"cudalab {lab.name} < in.bin > out.bin",
            f"cudalab {lab.name} --kernel my.cu --device cpu -i in.bin -o out.bin --time",
        ),
    )


def run_lab(
    lab: Lab,
    *,
    variant: str | None,
    device: str,
    kernel: Path | None,
    input: Path | None,  # noqa: A002 - the option's name
    output: Path | None,
    time: bool,
    threads: int | None,
    kill_after: float | None,
    **options: Any,
) -> int:
    """Read, compute and write, in a supervised child process if the run has a time limit."""
    from cudalab.labs import registry

    case = lab.complete(options)
    if variant and kernel:
        exclude("--variant", "--kernel")
    selected = registry.find(lab, variant) if variant else None
    if kernel:
        selected = registry.read_header(kernel, lab, str(kernel))
        kill_after = kill_after or OWN_KERNEL_KILL_AFTER_S
    if selected:
        registry.check_applies(selected, lab, case)
    usage = f"redirect it: cudalab {lab.name} < in.bin > out.bin, or name files with -i and -o"
    with open_input(input, usage) as source, open_output(output, usage) as target:
        work = partial(
            compute, lab, selected, case, device, threads, source=source, target=target, time=time
        )
        try:
            status = within(kill_after, work)
        except KernelError as error:  # a crash; what a kernel does wrong otherwise has its own hint
            words = ["cudalab", "sanitize", lab.name, *lab.words(case)]
            words += ["--kernel", str(kernel)] if kernel else []
            words += ["--variant", variant] if variant else []
            words += ["--data", str(input)] if input and str(input) != "-" else []
            error.hint = error.hint or f"to find the line: {shlex.join(words)}"
            raise
        if status:
            raise click.exceptions.Exit(status)  # so that open_output discards the partial file
        return status


def compute(
    lab: Lab,
    variant: Variant | None,
    case: Case,
    device: str,
    threads: int | None,
    *,
    source: tuple[int, str],
    target: tuple[int, str],
    time: bool,
) -> int:
    """Run `variant`, or the device's default, from one file descriptor to another."""
    from cudalab.backends import open_device
    from cudalab.backends.meter import open_meter
    from cudalab.formats import InputStream, write_all
    from cudalab.labs import registry
    from cudalab.runner import Stopwatch, TimedDevice, run

    watch = Stopwatch(shown=not time)
    stream = InputStream(*source)
    inputs = lab.read(stream, case)
    with ExitStack() as stack:
        with watch("open device"):
            opened = stack.enter_context(open_device(device, threads))
        if device == "auto" and not opened.facts.driver:
            notes.note("no GPU here: running on the CPU device")
        variant = variant or registry.choose(lab, inputs, case, opened)
        registry.check_features(variant, opened.name, opened.features)
        timed = TimedDevice(opened, open_meter(opened)) if time else None
        used = timed or opened
        answer = run(lab, variant, used, inputs, case, watch=watch)
        for text in answer.notes:
            notes.say(text)
        with watch("write"):
            write_all(target[0], watch.pieces(answer.pieces(), "to host"), target[1])
        lab.finish(answer.array, case)
        if stream.trailing_bytes():
            click.echo(
                f"warning: {stream.name}: ignored the bytes after the {stream.offset:,} "
                "that the header announces",
                err=True,
            )
        if timed:
            watch.take("write", "to host", watch.stages["to host"])
            print_times(watch, timed)
    return ExitCode.OK


def print_times(watch: Stopwatch, timed: Any) -> None:
    """Print one line for each stage on stderr, and how the host ran each kernel."""
    for stage, ms in watch.rows(timed.launches):
        click.echo(f"{stage:<32}{ms:>14,.3f} ms", err=True)
    for name, how in timed.how.items():
        if how:
            click.echo(f"{name}: {how}", err=True)


@contextmanager
def open_input(path: Path | None, usage: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield the file descriptor and name of `path`, or of stdin unless it is a terminal."""
    if path is None or str(path) == "-":
        if sys.stdin is None:
            raise InputError("stdin is closed", hint=usage)
        if sys.stdin.isatty():
            raise UsageError("stdin is a terminal, the input is binary", hint=usage)
        yield 0, "stdin"
        return
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        yield fd, str(path)
    finally:
        os.close(fd)


@contextmanager
def open_output(path: Path | None, usage: str) -> Iterator[tuple[int, str]]:
    """Yield the file descriptor and name of `path`, or of stdout unless it is a terminal."""
    if path is not None and str(path) != "-":
        from cudalab.formats import output_file

        with output_file(path) as fd:
            yield fd, str(path)
        return
    if sys.stdout is None:
        raise CudalabError("stdout is closed", hint=usage)
    if sys.stdout.isatty():
        raise UsageError("stdout is a terminal, the output is binary", hint=usage)
    with prints_to_stderr() as answer:
        yield answer, "stdout"


@contextmanager
def prints_to_stderr() -> Iterator[int]:
    """Send what kernels print to stderr; yield a file descriptor of stdout for the answer."""
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        yield answer
    finally:
        os.dup2(answer, 1)
        os.close(answer)


def gen_command(lab: Lab) -> click.Command:
    """Make `cudalab gen LAB`, which generates an input."""
    params: list[click.Parameter] = [
        click.Option(
            ["--n"],
            type=shape,
            metavar="SIZE",
            help="Size: 1000, 1e6, 2^20, 1Mi or 128M; 300x200 where the data have a shape.",
        ),
        click.Option(
            ["--dist"],
            type=Distribution(lab.distributions),
            default=lab.distributions[0],
            show_default=True,
            help="Distribution of the data.",
        ),
        click.Option(
            ["--seed"],
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="The same seed gives the same bytes everywhere.",
        ),
        OUTPUT,
    ]
    return click.Command(
        lab.name,
        callback=partial(generate, lab),
        params=[*case_options(lab), *params],
        short_help=labs.summary(lab.name),
        help=f"Generate a random input for {lab.name}.",
        epilog=lines(
            "Example",
            f"cudalab gen {lab.name} --n {lab.example_size} --dist {lab.distributions[-1]} "
            "--seed 7 > in.bin",
        ),
    )


def generate(
    lab: Lab, *, n: Size | None, dist: str, seed: int, output: Path | None, **case: Any
) -> None:
    """Generate an input; a failure leaves no partial file."""
    from cudalab.formats import write_all

    if n is None:
        raise UsageError(
            "--n is missing: the size of the input",
            hint=f"cudalab gen {lab.name} --n {lab.example_size} > in.bin",
        )
    command = shlex.join(["cudalab", *sys.argv[1:]])
    usage = f"redirect it: {command} > in.bin, or name a file with -o"
    with open_output(output, usage) as (fd, name), progress.stage("generating the input"):
        write_all(fd, lab.generate(lab.complete(case), n, dist, seed), name)


def verify_command(lab: Lab) -> click.Command:
    """Make `cudalab verify LAB IN OUT`, which checks an answer."""
    return click.Command(
        lab.name,
        callback=partial(verify_answer, lab),
        params=[
            *case_options(lab),
            click.Argument(["input"], type=EXISTING, metavar="IN"),
            click.Argument(["answer"], type=FILE_OR_STDIN, metavar="OUT"),
        ],
        short_help=labs.summary(lab.name),
        help='Check the answer OUT ("-": stdin) to the input IN against a reference on the host.',
        epilog=lines(
            "Example",
            f"cudalab verify {lab.name} in.bin out.bin",
            f"cudalab {lab.name} < in.bin | cudalab verify {lab.name} in.bin -",
        ),
    )


def verify_answer(lab: Lab, *, input: Path, answer: Path, **case: Any) -> None:  # noqa: A002
    """Print "correct" on stdout; a wrong answer is an error that says what is wrong."""
    from cudalab.formats import InputStream
    from cudalab.verify import verify

    working = progress.stage("comparing with the reference")
    with open_input(input) as source, open_input(answer) as output, working:
        verified = verify(lab, InputStream(*source), InputStream(*output), lab.complete(case))
    click.echo(f"correct: {verified.size:,} element" + ("s" if verified.size != 1 else ""))
