"""The commands `new` and `check`: the course's automated checker.

Nothing heavy is imported before they run.
"""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.backends import choose_device
from cudalab.checker.options import JudgingOptions
from cudalab.cli.judging import LAB, JudgingCommand, judging_options
from cudalab.cli.options import (
    CASE_HELP,
    CASE_OF,
    EXISTING,
    OUT,
    Choice,
    grouped,
    is_stdout,
    json_option,
    lines,
    quiet_option,
    variant_option,
)
from cudalab.cli.remarks import remark_options
from cudalab.errors import CudalabError, HeaderError, UsageError
from cudalab.output.notes import is_silent, note

if TYPE_CHECKING:
    from cudalab.checker.sandbox.sandbox import Sandbox
    from cudalab.checker.submit.kernel import Kernel
    from cudalab.checker.submit.program import Program
    from cudalab.checker.submit.submission import Command
    from cudalab.checker.verdicts import Report
    from cudalab.labs.base import Lab
    from cudalab.predict.gpus import Gpu

DIRECTLY = "run directly, as you; `cudalab doctor` says what keeps others' files apart"
EXIT_HELP = (
    "Exit status: 0 all passed, 3 wrong, 5 does not compile, 6 time limit, 4 no such device, "
    "1 nothing could be judged. With --exit-style testlib: 0 ok, 1 wrong, 2 no answer of the right "
    "form, 3 the grader failed."
)


class CheckCommand(JudgingCommand):
    """A command with its lab's options; arguments after -- belong to the submission."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for the lab before --."""
        own = args[: args.index("--")] if "--" in args else args
        lab = next((word for word in own if word in labs.names()), None)  # wherever it stands
        if lab is not None:
            ctx.meta[CASE_OF] = labs.get(lab)
        return click.Command.parse_args(self, ctx, args)


@click.command(
    "new",
    epilog=lines(
        "Example",
        "cudalab new reduce my.cu",
        "cudalab check reduce --kernel my.cu",
    ),
)
@click.argument("name", type=LAB, metavar="LAB")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.cu")
def new(name: str, path: Path) -> None:
    """Write FILE.cu, the outline of a kernel file for LAB: header, contract, empty kernels.

    It compiles, and it fails the check until the kernels are filled in. The file
    compile_commands.json beside it tells editors with clangd how to read it.
    """
    from cudalab.checker.submit import editor
    from cudalab.checker.submit.skeleton import skeleton

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(skeleton(labs.get(name), path.name))
    except FileExistsError:
        raise CudalabError(f"{path} already exists; it was not changed") from None
    except OSError as error:
        raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        database = editor.add(labs.get(name), path)
        note(f"{_shown(database)} tells editors with clangd how to read {path.name}")
    except CudalabError as error:
        note(f"{error.message}; clangd will not know {path}")
    command = shlex.join(["cudalab", "check", name, "--kernel", str(path)])
    click.echo(f"{path} is yours to fill in; judge it: {command}")


@click.command(
    "check",
    cls=CheckCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab check reduce --kernel my.cu",
                "cudalab check radixsort -- ./a.out",
                "cudalab check scan --kernel my.cu --tests hidden.toml --gradescope r.json",
                "cudalab check matmul --variant tiled --device cpu --json -",
            ),
            CASE_HELP,
            EXIT_HELP,
        ]
    ),
)
@click.argument("name", type=LAB, metavar="LAB")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARGS...]")
@click.option("--kernel", type=EXISTING, metavar="FILE.cu", help="Judge a kernel file.")
@click.option(
    "--program",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    metavar="FILE.cu...|FOLDER",
    help="Judge a whole CUDA program: its files, or their folder.",
)
@click.option(
    "--submission",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Judge what is in a folder, an archive or a file, as `cudalab grade` does.",
)
@variant_option("Judge one of cudalab's own variants.")
@judging_options
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Save the inputs of failed tests here.",
)
@click.option(
    "--predict",
    "gpu",
    metavar="GPU",
    help="Also say how fast a right --kernel would be on this GPU, by the model of "
    "`cudalab predict`: takes up to minutes, and has no effect on points.",
)
@json_option("Write the whole report as JSON; - is stdout.")
@click.option("--junit", type=OUT, metavar="FILE", help="Write JUnit XML.")
@click.option("--gradescope", type=OUT, metavar="FILE", help="Write Gradescope's results.json.")
@click.option("--check50", type=OUT, metavar="FILE", help="Write JSON as check50 does.")
@click.option("--classroom50", type=OUT, metavar="FILE", help="Write Classroom 50's result.json.")
@click.option("--prairielearn", type=OUT, metavar="FILE", help="Write PrairieLearn's results.json.")
@click.option("--coderunner", type=OUT, metavar="FILE", help="Write JSON for Moodle's CodeRunner.")
@click.option(
    "--vpl", type=OUT, metavar="FILE", help="Write comments and a grade for Moodle's VPL."
)
@click.option("--codegrade", is_flag=True, help="Print the share of the points, 0 to 1, on stdout.")
@remark_options()
@click.option(
    "--exit-style",
    type=Choice(["cudalab", "testlib"]),
    default="cudalab",
    show_default=True,
    help="Meaning of the exit status.",
)
@quiet_option
def check(*, name: str, keep: Path | None, gpu: str | None, **options: Any) -> int:
    """Judge a submission to LAB as a course does, and explain the verdict.

    The submission is one of --kernel (run by the lab's own host side), --program (a whole CUDA
    program), --variant, or a command behind -- that reads the input on stdin and writes the answer
    on stdout.
    """
    from cudalab.checker import judge
    from cudalab.checker.sandbox import sandbox

    judging, outputs = grouped(JudgingOptions, options), grouped(OutputOptions, options)
    source = grouped(SubmissionOptions, options).completed()
    lab = labs.get(name)
    if source.count != 1:
        raise UsageError(
            "name one submission: --kernel, --program, --variant, or a command behind --",
            hint=f"`cudalab new {name} my.cu` writes a kernel file to begin with",
        )
    if source.submission:
        return outputs.write(as_in_a_class(name, source.submission, judging, options), "")
    box = _own(sandbox.choose(judging.sandbox)) if not source.variant else None
    if gpu and not source.kernel:
        raise UsageError("--predict is for --kernel")
    predict_on = _loaded(gpu) if gpu else None
    settings = judging.settings(keep=keep, on_stage=_show_stage, predict_on=predict_on)
    try:
        submission = make_submission(lab, source, judging, box)
    except HeaderError as error:
        if box is None:  # a variant's header: not the student's mistake
            raise
        report = judge.refused(
            name, str(source.kernel), "kernel", judging.device, box, settings.seed, error
        )
    else:
        plan = judging.plan(lab, submission.variant, options)
        report = judge.check(lab, submission, plan, submission.sandbox, settings)
    _show_stage("")
    return outputs.write(report, str(source.kernel or next(iter(source.program), "")))


def _own(box: Sandbox) -> Sandbox:
    """A sandbox, with quiet words where there is none: who checks a single file, wrote it."""
    return replace(box, words=DIRECTLY) if box.kind == "none" else box


def _shown(path: Path) -> Path:
    """A path as short as it can be, seen from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _loaded(gpu: str) -> Gpu:
    from cudalab.predict import gpus

    return gpus.load(gpu)


@dataclass(frozen=True, kw_only=True)
class SubmissionOptions:
    """The ways to name the submission to check; exactly one is used."""

    kernel: Path | None
    program: tuple[Path, ...]
    submission: Path | None
    variant: str | None
    command: tuple[str, ...]

    def completed(self) -> SubmissionOptions:
        """Return a copy in which --program has all of its files."""
        program, command = rest_of_program(self.program, self.command)
        return replace(self, program=program, command=command)

    @property
    def count(self) -> int:
        """Number of submissions that are named."""
        named = (self.kernel, self.program, self.submission, self.variant, self.command)
        return sum(map(bool, named))


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The destinations and formats of the report of `check`."""

    json_path: Path | None
    junit: Path | None
    gradescope: Path | None
    check50: Path | None
    classroom50: Path | None
    prairielearn: Path | None
    coderunner: Path | None
    vpl: Path | None
    codegrade: bool
    sarif: Path | None
    github: bool
    exit_style: str

    def write(self, report: Report, file: str) -> int:
        """Write the report, print it unless stdout is taken, and return the exit status."""
        from cudalab.checker import outputs
        from cudalab.checker.platforms import results
        from cudalab.formats import save

        formats = (
            (self.json_path, outputs.as_json),
            (self.junit, outputs.junit),
            (self.gradescope, outputs.gradescope),
            (self.check50, outputs.check50),
            (self.classroom50, results.classroom50),
            (self.prairielearn, results.prairielearn),
            (self.coderunner, results.coderunner),
            (self.vpl, results.vpl),
            (self.sarif, partial(outputs.sarif, file=file)),
        )
        for path, text in formats:
            if path is not None:
                save(path, text(report))
        if self.codegrade:
            click.echo(outputs.codegrade(report))
        if self.github:
            click.echo(outputs.github(report, file), nl=False)
        if not (self.codegrade or self.github or is_stdout(*(path for path, _ in formats))):
            outputs.show(report)
        return outputs.exit_status(report, self.exit_style)


def as_in_a_class(
    name: str, path: Path, judging: JudgingOptions, lab_options: dict[str, Any]
) -> Report:
    """Judge a folder, an archive or a file as `grade` does."""
    from cudalab.checker.grading import batch
    from cudalab.checker.grading.task import Task
    from cudalab.system.machine import usable_cores

    task = Task(
        lab=name, name=path.resolve().name, kind="auto", command="", file="", options=lab_options,
        judging=judging,
    )  # fmt: skip
    return batch.judge_one(task, path.absolute(), jobs=usable_cores())[0]


def make_submission(
    lab: Lab, source: SubmissionOptions, judging: JudgingOptions, box: Sandbox | None
) -> Kernel | Program | Command:
    """Make the submission; `box` is the sandbox, which only our own variants do without."""
    from cudalab.backends import device_for
    from cudalab.checker.submit.kernel import Kernel, own_kernel
    from cudalab.checker.submit.program import Program
    from cudalab.checker.submit.submission import Command
    from cudalab.checker.verdicts import ANY_DEVICE
    from cudalab.labs import registry

    if source.variant:
        variant = registry.find(lab, source.variant)
        return own_kernel(lab, variant, choose_device(judging.device), judging.threads)
    assert box is not None
    if source.kernel:
        return Kernel(
            lab=lab,
            path=source.kernel,
            sandbox=box,
            device=choose_device(judging.device),
            label=str(source.kernel),
            threads=judging.threads,
        )
    if source.program:
        files = [path for one in source.program for path in program_files(one)]
        name, words = " ".join(map(str, source.program)), [str(path) for path in files]
        return Program(
            files=files, sandbox=box, name=name, device=device_for(judging.device), words=words
        )
    return Command(
        source.command,
        box,
        name=shlex.join(source.command),
        readable=visible(source.command),
        hidden=tuple(path.absolute() for path in (judging.tests,) if path),
        device=ANY_DEVICE if judging.device == "auto" else judging.device,
    )


def rest_of_program(
    program: tuple[Path, ...], command: tuple[str, ...]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Take words after `--program a.cu` as files: the shell expands `--program *.cu` to them."""
    if program and all(word.endswith(".cu") for word in command):
        return (*program, *map(Path, command)), ()
    return program, command


def program_files(path: Path) -> list[Path]:
    """The source file, or all source files in the folder."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.cu"))
    if not files:
        raise UsageError(f"{path}: there is no .cu file in this folder")
    return files


def visible(command: tuple[str, ...]) -> tuple[Path, ...]:
    """The paths that a command may read: its own, and the current folder unless home is in it."""
    here = Path.cwd()
    named = tuple(Path(word).absolute() for word in command if Path(word).exists())
    if here == Path("/") or Path.home().is_relative_to(here):
        return named
    return (here, *named)


def _show_stage(stage: str) -> None:
    """Show the current stage, on a terminal only."""
    if sys.stderr.isatty() and not is_silent():
        click.echo(f"\r{stage:<20}\r", nl=False, err=True)
