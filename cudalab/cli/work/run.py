"""What `cudalab run` does: build a program, and become it. A cached one starts at once."""

import os
import shlex
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from cudalab.backends import facts, has_gpu, host_device
from cudalab.cli import params
from cudalab.errors import CudalabError, ExitCode, NoDeviceError, UsageError
from cudalab.program.build import executable
from cudalab.program.files import is_binary


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run`, except nvcc's."""

    files: tuple[str, ...]
    device: str
    output: Path | None
    sanitize: bool
    profile: bool
    leaks: bool
    kill_after: float | None
    tier: bool
    json_path: Path | None
    sarif: Path | None
    github: bool

    @property
    def needs_gpu(self) -> bool:
        """Whether a GPU was chosen explicitly."""
        return self.device != "auto" and facts(self.device).driver

    def check(self) -> None:
        """Raise a UsageError unless there are files, and options that go together."""
        observed = self.sanitize or self.profile
        if not self.files:
            raise UsageError("Missing argument 'FILE.cu...'.", hint="cudalab run FILE.cu < in.bin")
        if (self.kill_after or self.leaks) and not self.sanitize:
            option = "--kill-after" if self.kill_after else "--leaks"
            raise UsageError(f"{option} needs --sanitize")
        if (self.json_path or self.sarif or self.github) and not observed:
            raise UsageError("--json, --sarif and --github need --sanitize or --profile")
        if self.tier and (observed or self.output or self.needs_gpu):
            raise UsageError("--tier stands alone, and is about the CPU device")
        if self.sanitize and self.profile:
            raise UsageError("--sanitize and --profile exclude each other", hint="run it twice")
        if observed and self.needs_gpu:
            raise UsageError(
                "--sanitize and --profile run on the CPU device only",
                hint="leave out --device cuda; on a GPU: compute-sanitizer, ncu, with -o BINARY",
            )
        if observed and self.output:
            raise UsageError("-o keeps an executable that is not instrumented", hint="leave it out")


def run(  # noqa: RET503 - the last way does not return
    arguments: list[str],
    nvcc_options: list[str],
    *,
    include: tuple[str, ...],
    define: tuple[str, ...],
    make: bool,
    print_env: bool,
    **rest: Any,
) -> int:
    """Do what the options say; unless they say something else, become the program."""
    options = params.grouped(RunOptions, rest)
    words = [f"-I{folder}" for folder in include] + [f"-D{macro}" for macro in define]
    words += nvcc_options
    with failures_of_run():
        if make or print_env:
            return with_toolkit(options.files, arguments, make=make, print_env=print_env)
        options.check()
        if options.tier:
            show_tiers(options.files, words)
            return ExitCode.OK
        if options.sanitize or options.profile:
            from cudalab.cli.work.observe import observed

            return observed(
                options.files, words, arguments, sanitize=options.sanitize, leaks=options.leaks,
                kill_after=options.kill_after, json_path=options.json_path, sarif=options.sarif,
                github=options.github,
            )  # fmt: skip
        if options.needs_gpu and not has_gpu():
            raise NoDeviceError(
                "the program cannot be run on a GPU: there is none here",
                hint="leave out --device cuda: the program runs on the CPU device",
            )
        first = Path(options.files[0])
        built = is_binary(options.files[0])
        binary = first if built else executable(options.files, options.device, words)
        if options.output:
            shutil.copy2(binary, options.output)
        start(binary, first.stem, arguments)


@contextmanager
def failures_of_run() -> Iterator[None]:
    """Give errors the exit status that says: not the program has failed, but `run`."""
    try:
        yield
    except CudalabError as error:
        error.exit_code = ExitCode.RUN_FAILED
        raise
    except OSError as error:
        failure = CudalabError(f"the program cannot be run: {error}")
        failure.exit_code = ExitCode.RUN_FAILED
        raise failure from None


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


def show_tiers(files: Sequence[str], options: list[str]) -> None:
    """Print how the CPU device runs each kernel of a program."""
    from cudalab.program import ways

    kernels = ways.stored(executable(files, host_device(), options))
    click.echo("\n".join(kernels.lines()) if kernels.reasons else "no kernels")


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
