"""What `cudalab LAB` does, and `gen` and `verify` of a lab: read, compute, judge and write."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from cudalab.backends import open_device
from cudalab.backends.meter import open_meter
from cudalab.cli import params
from cudalab.cli.failures import report_errors, within
from cudalab.errors import CudalabError, ExitCode, InputError, KernelError, UsageError, WrongAnswer
from cudalab.formats import InputStream, output_file, write_all
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from cudalab.output import notes, progress
from cudalab.output.prose import counted
from cudalab.runner import Stopwatch, TimedDevice, run
from cudalab.system.supervise import prints_to_stderr, supervise


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
    case = lab.complete(options)
    if variant and kernel:
        params.exclude("--variant", "--kernel")
    selected = registry.find(lab, variant) if variant else None
    if kernel:
        selected = registry.read_header(kernel, lab, str(kernel))
        kill_after = kill_after or params.KERNEL_KILL_AFTER_S
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
        timed = TimedDevice(opened, open_meter(opened)) if time or about is not None else None
        answer = run(lab, variant, timed or opened, inputs, case, watch=watch)
        for text in answer.notes:
            notes.say(text)
        with watch("write"):
            sent = write_all(target[0], watch.pieces(answer.pieces(), "to host"), target[1])
        lab.finish(answer.array, case)
        if stream.trailing_bytes():
            extra = f"ignored the bytes after the {stream.offset:,} that the header announces"
            click.echo(f"warning: {stream.name}: {extra}", err=True)
        if timed:
            watch.take("write", "to host", watch.stages["to host"])
            rows = watch.rows(timed.launches)
            if time:
                print_times(rows, timed.how)
            if about is not None:
                write_about(
                    about, "Ran", lab, case, variant=variant.name, file=str(variant.path),
                    device=opened.name, device_name=opened.info().name, input_bytes=stream.offset,
                    answer_bytes=sent, stages=stage_rows(rows, timed.how), notes=answer.notes,
                )  # fmt: skip
    return ExitCode.OK


def stage_rows(rows: list[tuple[str, int | None, float]], how: dict[str, str]) -> list[Any]:
    """The stages of a run for its document."""
    from cudalab.cli.documents import StageRow

    return [
        StageRow(name=name, launches=launches, ms=ms, how=how.get(name, ""))
        for name, launches, ms in rows
    ]


def print_times(rows: list[tuple[str, int | None, float]], how: dict[str, str]) -> None:
    """Print one line for each stage on stderr, and how the host ran each kernel."""
    for name, launches, ms in rows:
        title = name if launches is None else f"{name} x {launches}"
        click.echo(f"{title:<32}{ms:>14,.3f} ms", err=True)
    for name, words in how.items():
        if words:
            click.echo(notes.fitted(f"{name}: {words}"), err=True)


def described(kind: str, lab: Lab, case: Case, **rest: Any) -> Any:
    """A document about a case of a lab; a run that writes none does not wait for it to load."""
    from cudalab.bench.choice import shown_case
    from cudalab.cli import documents

    return getattr(documents, kind)(lab=lab.name, case=shown_case(lab, case), **rest)


def write_about(about: int, kind: str, lab: Lab, case: Case, **rest: Any) -> None:
    """Write a document where --json has it."""
    from cudalab.system.records import text

    write_all(about, [text(described(kind, lab, case, **rest)).encode()], "--json")


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
    elif not params.is_stdout(path):
        with output_file(path) as fd:
            yield fd
    elif output is None or params.is_stdout(output):
        raise UsageError("--json -: stdout is for the binary data", hint="name a file with -o")
    else:
        with prints_to_stderr() as fd:
            yield fd


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
    """Generate an input, in a child process that Ctrl-C ends at once; no partial file is left."""
    if n is None:
        raise UsageError(
            "--n is missing: the size of the input",
            hint=f"cudalab gen {lab.name} --n {lab.example_size} > in.bin",
        )
    command = shlex.join(["cudalab", *sys.argv[1:]])
    usage = f"redirect it: {command} > in.bin, or name a file with -o"
    case = lab.complete(options)
    with open_about(json_path, output) as about, open_output(output, usage) as (fd, name):

        def write() -> int:
            with progress.stage("generating the input"):
                sent = write_all(fd, lab.generate(case, n, dist, seed), name)
            if about is not None:
                write_about(
                    about, "Generated", lab, case, size=in_words(n, ","), dist=dist, seed=seed,
                    bytes=sent, file=name,
                )  # fmt: skip
            return ExitCode.OK

        status = supervise(partial(report_errors, write), None)
        if status:
            raise click.exceptions.Exit(status)  # so that open_output discards the partial file


def verify_answer(
    lab: Lab,
    *,
    input: Path,  # noqa: A002 - the argument's name
    answer: Path,
    json_path: Path | None,
    **options: Any,
) -> None:
    """Print "correct" on stdout; a wrong answer is an error that says what is wrong."""
    from cudalab.verify import verify

    case = lab.complete(options)
    document = partial(described, "Verified", lab, case)
    working = progress.stage("comparing with the reference")
    try:
        with open_input(input) as source, open_input(answer) as output, working:
            size = verify(lab, InputStream(*source), InputStream(*output), case).size
    except WrongAnswer as error:
        wrong = document(correct=False, elements=None, message=error.message, hint=error.hint or "")
        params.write_json(json_path, wrong)
        raise
    if not params.write_json(json_path, document(correct=True, elements=size, message="", hint="")):
        click.echo(f"correct: {counted(size, 'element')}")
