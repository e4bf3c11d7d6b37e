"""The command `run`: build a whole CUDA program, then become it."""
# ruff: noqa: PLC0415 - a cached program must start within a tenth of a second

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cudalab.backends import facts
from cudalab.cli.options import (
    device_option,
    is_stdout,
    json_option,
    lines,
    quiet_option,
    seconds_option,
    write_json,
)
from cudalab.cli.remarks import remark_options, write_remarks
from cudalab.errors import CudalabError, ExitCode, NoDeviceError, UsageError

if TYPE_CHECKING:
    from cudalab.program.files import Part


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
    epilog=lines(
        "Example",
        "cudalab run program.cu < in.bin > out.bin",
        "cudalab run --device cpu -D N=1024 main.cu scan.cu -- --verbose",
        "cudalab run -O3 -std=c++17 -Xcompiler -fopenmp main.cu -lm",
        "cudalab run --make -j4 && cudalab run --sanitize ./program",
        "CUDALAB_THREADS=1 CUDALAB_DEVICE_MEMORY=2G cudalab run program.cu",
    ),
)
@device_option()
@click.option(
    "-I", "include", multiple=True, metavar="DIR", help=("Search this folder for headers, too.")
)
@click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
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
        "Run it instrumented and report errors: races, missing barriers, out- "
        "of-bounds accesses, API errors. Exit status 3 if there are any, whatever the program's."
    ),
)
@click.option(
    "--profile",
    is_flag=True,
    help="Run it instrumented and show what each line's accesses cost.",
)
@click.option(
    "--leaks",
    is_flag=True,
    help="With --sanitize: count memory that the program never frees as an error, not as a note.",
)
@seconds_option(
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
@json_option(
    "Write what --sanitize or --profile shows as JSON; with - the program's output goes to stderr."
)
@remark_options(where="stderr")
@click.argument("files", nargs=-1, metavar="FILE.cu... [-- ARGUMENTS]")
@quiet_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    device: str,
    include: tuple[str, ...],
    define: tuple[str, ...],
    output: Path | None,
    sanitize: bool,
    profile: bool,
    leaks: bool,
    kill_after: float | None,
    tier: bool,
    make: bool,
    print_env: bool,
    json_path: Path | None,
    sarif: Path | None,
    github: bool,
    files: tuple[str, ...],
) -> int:
    """Compile a CUDA program with a main function and run it: with nvcc where there is a GPU,
    otherwise with the host's C++ compiler, on the CPU device.

    Stdin, stdout, stderr and signals are the program's own, and so is the exit status; 125 means
    that cudalab could not start it. A program that was compiled before starts at once.

    nvcc's options, such as -lcublas, -arch=sm_75 or -Xcompiler -fopenmp, may stay where they are:
    what means nothing on the CPU device is ignored there.
    """
    from cudalab.backends import has_gpu
    from cudalab.program.build import executable
    from cudalab.program.files import is_binary

    arguments = ctx.meta["program arguments"]
    options = [f"-I{folder}" for folder in include] + [f"-D{macro}" for macro in define]
    options += ctx.meta["nvcc options"]
    try:
        if make or print_env:
            return with_toolkit(files, arguments, make=make, print_env=print_env)
        forms = Forms(json=json_path, sarif=sarif, github=github)
        check_options(
            files, forms, sanitize=sanitize, profile=profile, kill_after=kill_after, leaks=leaks
        )
        if tier:
            if sanitize or profile or output or needs_gpu(device):
                raise UsageError("--tier stands alone, and is about the CPU device")
            show_tiers(files, options)
            return ExitCode.OK
        if sanitize or profile:
            check_alone(device, output, sanitize=sanitize, profile=profile)
            return observed(
                files,
                options,
                arguments,
                forms,
                sanitize=sanitize,
                leaks=leaks,
                kill_after=kill_after,
            )
        if needs_gpu(device) and not has_gpu():
            raise NoDeviceError(
                "the program cannot be run on a GPU: there is none here",
                hint="leave out --device cuda: the program runs on the CPU device",
            )
        is_built = is_binary(files[0])
        binary = Path(files[0]) if is_built else executable(files, device, options)
        if output:
            shutil.copy2(binary, output)
        start(binary, Path(files[0]).stem, arguments)
    except CudalabError as error:
        error.exit_code = ExitCode.RUN_FAILED
        raise
    except OSError as error:
        failure = CudalabError(f"the program cannot be run: {error}")
        failure.exit_code = ExitCode.RUN_FAILED
        raise failure from None


def check_options(
    files: tuple[str, ...],
    forms: Forms,
    *,
    sanitize: bool,
    profile: bool,
    kill_after: float | None,
    leaks: bool,
) -> None:
    """Raise a UsageError unless there are files, and the options that others need."""
    if not files:
        raise UsageError("Missing argument 'FILE.cu...'.")
    if (kill_after or leaks) and not sanitize:
        option = "--kill-after" if kill_after else "--leaks"
        raise UsageError(f"{option} needs --sanitize")
    if (forms.json or forms.sarif or forms.github) and not (sanitize or profile):
        raise UsageError("--json, --sarif and --github need --sanitize or --profile")


def with_toolkit(
    files: tuple[str, ...], arguments: list[str], *, make: bool, print_env: bool
) -> int:
    """Run make, or print the environment in which it finds our nvcc."""
    from cudalab.program.toolkit import make as toolkit

    if files or (make and print_env):
        raise UsageError("--make and --print-env stand alone", hint="arguments follow --make")
    if make:
        return toolkit.make(arguments)
    click.echo(toolkit.exports(), nl=False)
    return ExitCode.OK


def show_tiers(files: tuple[str, ...], options: list[str]) -> None:
    """Print how the CPU device runs each kernel of a program."""
    from cudalab.backends import host_device
    from cudalab.program import loops
    from cudalab.program.build import executable

    ways = loops.stored(executable(files, host_device(), options))
    click.echo("\n".join(ways.lines()) if ways.reasons else "no kernels")


def needs_gpu(device: str) -> bool:
    """Whether a GPU was chosen explicitly."""
    return device != "auto" and facts(device).driver


def check_alone(device: str, output: Path | None, *, sanitize: bool, profile: bool) -> None:
    """Raise a UsageError unless one instrument is used, on the CPU device."""
    if sanitize and profile:
        raise UsageError("--sanitize and --profile exclude each other", hint="run it twice")
    if needs_gpu(device):
        raise UsageError(
            "--sanitize and --profile run on the CPU device only",
            hint="leave out --device cuda; on a GPU: compute-sanitizer, ncu, with -o BINARY",
        )
    if output:
        raise UsageError("-o keeps an executable that is not instrumented", hint="leave it out")


@dataclass(frozen=True, kw_only=True)
class Forms:
    """The forms of a report beside the one for people."""

    json: Path | None
    sarif: Path | None
    github: bool


def in_local_memory(program: Sequence[Part]) -> frozenset[tuple[str, int, str]] | None:
    """The accesses that nvcc makes in local memory; None where it is not here to say so."""
    from cudalab.language.source import local_arrays
    from cudalab.predict import local_memory

    found = frozenset[tuple[str, int, str]]()
    for part in program:
        if not any(local_arrays(file.text) for file in part.files):
            continue
        paths = [file.path for file in part.files[: part.sources]]
        texts = {file.label: file.text for file in part.files}
        accesses = local_memory.of_program(paths, texts, part.options)
        if accesses is None:
            return None
        found |= accesses
    return found


def observed(
    files: tuple[str, ...],
    options: list[str],
    arguments: list[str],
    forms: Forms,
    *,
    sanitize: bool,
    leaks: bool,
    kill_after: float | None,
) -> int:
    """Run the instrumented program; the report, or what stands in its place, goes to stderr.

    Stdout is the program's, unless a file of the report is.
    """
    from cudalab.microscope import document
    from cudalab.microscope.remarks import of_profile
    from cudalab.program import modes, observe, reports
    from cudalab.program.toolkit.rebuild import parts_of
    from cudalab.system.supervise import prints_to_stderr

    program = parts_of(files, options)
    library = modes.library(program)
    sources = [file for part in program for file in part.files]
    local = None if sanitize else in_local_memory(program)
    name, label = Path(files[0]).stem, sources[0].label
    alone = is_stdout(forms.json, forms.sarif)
    with prints_to_stderr() if alone else contextlib.nullcontext():
        status, trace = observe.observe(
            library,
            [name, *arguments],
            detect=sanitize,
            count=not sanitize,
            kill_after=kill_after or observe.KILL_AFTER_S,
            local=local or (),
        )
    shown = not (forms.github or alone)
    with contextlib.redirect_stdout(sys.stderr):  # stdout belongs to the program
        if sanitize:
            rows = reports.finding_rows(name, sources, trace)
            found = reports.verdict(rows, trace, sources, leaks=leaks)
            clean = found.errors == 0
            remarks, tool = reports.remarks(found, label), "run --sanitize"
            content: Any = reports.document(name, label, found, trace)
            if shown:
                reports.sanitized(name, sources, found, trace)
        else:
            clean, whole = True, reports.profile_of(name, sources, trace, local)
            remarks, tool = of_profile(whole), "run --profile"
            content = document.to_json(document.document(whole))
            if shown:
                reports.profiled(name, sources, whole, trace)
        write_json(forms.json, content)
        write_remarks(remarks, tool, sarif=forms.sarif, github=forms.github)
    if not clean:
        return ExitCode.WRONG_ANSWER
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def start(binary: Path, name: str, arguments: list[Any]) -> NoReturn:
    """Replace this process by the program."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and exec would inherit that
    emulator = os.environ.get("CUDALAB_EMULATOR")
    if emulator:  # the program is for another kind of processor
        words = [*shlex.split(emulator), str(binary), *arguments]
        try:
            os.execvp(words[0], words)  # noqa: S606 - as below
        except OSError as error:
            raise NoDeviceError(
                f"{words[0]} (from CUDALAB_EMULATOR) cannot be started: {error.strerror}"
            ) from None
    os.execv(binary, [name, *arguments])  # noqa: S606 - a program, no shell command
