"""The commands that each lab has: run it, generate an input, verify an answer."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.backends import open_device
from cudalab.cli.failures import within
from cudalab.cli.options import (
    DEVICE,
    EXISTING,
    JSON,
    JSON_HELP,
    QUIET,
    SECONDS,
    Distribution,
    case_options,
    exclude,
    is_stdout,
    lines,
    shape,
    variant_names,
    write_json,
)
from cudalab.errors import CudalabError, ExitCode, InputError, KernelError, UsageError, WrongAnswer
from cudalab.labs.sizes import in_words
from cudalab.output import notes, progress
from cudalab.system.supervise import prints_to_stderr

if TYPE_CHECKING:
    from cudalab.backends.base import Device
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size

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
VERDICT_AS_JSON = click.Option(["--json", "json_path"], **JSON, help=JSON_HELP)
ABOUT_AS_JSON = click.Option(
    ["--json", "json_path"],
    **JSON,
    help="Write what was done as JSON; - is stdout, if -o names a file.",
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
    ABOUT_AS_JSON,
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
    json_path: Path | None,
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
    with (
        open_input(input, usage) as source,
        open_about(json_path, output) as about,
        open_output(output, usage) as target,
    ):
        work = partial(
            compute,
            lab,
            selected,
            case,
            device,
            threads,
            source=source,
            target=target,
            about=about,
            time=time,
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
    about: int | None,
    time: bool,
) -> int:
    """Run `variant`, or the device's default, from one file descriptor to another."""
    from cudalab.backends.meter import open_meter
    from cudalab.formats import InputStream, write_all
    from cudalab.labs import registry
    from cudalab.runner import Stopwatch, TimedDevice, run

    watch = Stopwatch(shown=not time)
    sent = 0
    stream = InputStream(*source)
    inputs = lab.read(stream, case)
    with ExitStack() as stack:
        with watch("open device"):
            opened = stack.enter_context(open_device(device, threads))
        if device == "auto" and not opened.facts.driver:
            notes.note("no GPU here: running on the CPU device")
        variant = variant or registry.choose(lab, inputs, case, opened)
        registry.check_features(variant, opened.name, opened.features)
        timed = TimedDevice(opened, open_meter(opened)) if time or about is not None else None
        used = timed or opened
        answer = run(lab, variant, used, inputs, case, watch=watch)
        for text in answer.notes:
            notes.say(text)
        with watch("write"):
            sent = write_all(target[0], watch.pieces(answer.pieces(), "to host"), target[1])
        lab.finish(answer.array, case)
        if stream.trailing_bytes():
            click.echo(
                f"warning: {stream.name}: ignored the bytes after the {stream.offset:,} "
                "that the header announces",
                err=True,
            )
        if timed:
            watch.take("write", "to host", watch.stages["to host"])
            rows = watch.rows(timed.launches)
            if time:
                print_times(rows, timed.how)
            if about is not None:
                stages = [(*row, timed.how.get(row[0], "")) for row in rows]
                amounts = (stream.offset, sent)
                describe(about, lab, variant, case, opened, amounts, stages, answer.notes)
    return ExitCode.OK


def print_times(rows: list[tuple[str, int | None, float]], how: dict[str, str]) -> None:
    """Print one line for each stage on stderr, and how the host ran each kernel."""
    for name, launches, ms in rows:
        title = name if launches is None else f"{name} x {launches}"
        click.echo(f"{title:<32}{ms:>14,.3f} ms", err=True)
    for name, words in how.items():
        if words:
            click.echo(notes.fitted(f"{name}: {words}"), err=True)


def describe(
    about: int,
    lab: Lab,
    variant: Variant,
    case: Case,
    device: Device,
    num_bytes: tuple[int, int],
    stages: list[tuple[str, int | None, float, str]],
    remarks: list[str],
) -> None:
    """Write the document of --json: what ran where, on how many bytes, and each stage's time."""
    from cudalab.bench.choice import shown_case
    from cudalab.cli.documents import Ran, StageRow
    from cudalab.formats import write_all
    from cudalab.system.records import text

    document = Ran(
        lab=lab.name,
        case=shown_case(lab, case),
        variant=variant.name,
        file=str(variant.path),
        device=device.name,
        device_name=device.info().name,
        input_bytes=num_bytes[0],
        answer_bytes=num_bytes[1],
        stages=[
            StageRow(name=name, launches=launches, ms=ms, how=how)
            for name, launches, ms, how in stages
        ],
        notes=remarks,
    )
    write_all(about, [text(document).encode()], "--json")


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
def open_about(path: Path | None, output: Path | None) -> Iterator[int | None]:
    """Yield a file descriptor for the document of --json; a failed run leaves no file."""
    if path is None:
        yield None
    elif not is_stdout(path):
        from cudalab.formats import output_file

        with output_file(path) as fd:
            yield fd
    elif output is None or is_stdout(output):
        raise UsageError("--json -: stdout is for the binary data", hint="name a file with -o")
    else:
        with prints_to_stderr() as fd:
            yield fd


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
            metavar="NAME",
            help=f"Distribution of the data: {', '.join(lab.distributions)}.",
        ),
        click.Option(
            ["--seed"],
            type=click.IntRange(min=0),
            metavar="N",
            default=0,
            show_default=True,
            help="The same seed gives the same bytes everywhere.",
        ),
        OUTPUT,
        ABOUT_AS_JSON,
    ]
    return click.Command(
        lab.name,
        callback=partial(generate, lab),
        params=[*case_options(lab), *params],
        short_help=labs.summary(lab.name),
        help=f"Generate a random input for {lab.name}.",
        epilog=lines(
            "Example",
            f"cudalab gen {lab.name} --n {lab.example_size} --dist {lab.distributions[-1]} \\",
            "    --seed 7 > in.bin",
        ),
    )


def generate(
    lab: Lab,
    *,
    n: Size | None,
    dist: str,
    seed: int,
    output: Path | None,
    json_path: Path | None,
    **options: Any,
) -> None:
    """Generate an input; a failure leaves no partial file."""
    from cudalab.bench.choice import shown_case
    from cudalab.cli.documents import Generated
    from cudalab.formats import write_all
    from cudalab.system.records import text

    if n is None:
        raise UsageError(
            "--n is missing: the size of the input",
            hint=f"cudalab gen {lab.name} --n {lab.example_size} > in.bin",
        )
    command = shlex.join(["cudalab", *sys.argv[1:]])
    usage = f"redirect it: {command} > in.bin, or name a file with -o"
    case = lab.complete(options)
    with open_about(json_path, output) as about, open_output(output, usage) as (fd, name):
        with progress.stage("generating the input"):
            sent = write_all(fd, lab.generate(case, n, dist, seed), name)
        if about is not None:
            document = Generated(
                lab=lab.name,
                case=shown_case(lab, case),
                size=in_words(n, ","),
                dist=dist,
                seed=seed,
                bytes=sent,
                file=name,
            )
            write_all(about, [text(document).encode()], "--json")


def verify_command(lab: Lab) -> click.Command:
    """Make `cudalab verify LAB IN OUT`, which checks an answer."""
    return click.Command(
        lab.name,
        callback=partial(verify_answer, lab),
        params=[
            *case_options(lab),
            click.Argument(["input"], type=EXISTING, metavar="IN"),
            click.Argument(["answer"], type=FILE_OR_STDIN, metavar="OUT"),
            VERDICT_AS_JSON,
        ],
        short_help=labs.summary(lab.name),
        help='Check the answer OUT ("-": stdin) to the input IN against a reference on the host.',
        epilog=lines(
            "Example",
            f"cudalab verify {lab.name} in.bin out.bin",
            f"cudalab {lab.name} < in.bin | cudalab verify {lab.name} in.bin -",
        ),
    )


def verify_answer(
    lab: Lab,
    *,
    input: Path,  # noqa: A002 - the argument's name
    answer: Path,
    json_path: Path | None,
    **options: Any,
) -> None:
    """Print "correct" on stdout; a wrong answer is an error that says what is wrong."""
    from cudalab.bench.choice import shown_case
    from cudalab.cli.documents import Verified
    from cudalab.formats import InputStream
    from cudalab.verify import verify

    case = lab.complete(options)
    document = partial(Verified, lab=lab.name, case=shown_case(lab, case))
    working = progress.stage("comparing with the reference")
    try:
        with open_input(input) as source, open_input(answer) as output, working:
            size = verify(lab, InputStream(*source), InputStream(*output), case).size
    except WrongAnswer as error:
        wrong = document(correct=False, elements=None, message=error.message, hint=error.hint or "")
        write_json(json_path, wrong)
        raise
    if not write_json(json_path, document(correct=True, elements=size, message="", hint="")):
        click.echo(f"correct: {size:,} element" + ("s" if size != 1 else ""))
