"""The commands `new`, `check`, `grade` and `selftest`: the course's automated checker.

Nothing heavy is imported before they run.
"""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.checker.options import JudgingOptions
from cudalab.cli.options import (
    CASE_HELP,
    CASE_OF,
    EXISTING,
    OUT,
    SECONDS,
    CaseCommand,
    FiniteRange,
    device_option,
    lines,
    taken,
    threads_option,
    variant_names,
)
from cudalab.errors import ExitCode, HeaderError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cudalab.checker.sandbox.sandbox import Sandbox
    from cudalab.checker.submit.program import Program
    from cudalab.checker.submit.submission import Command, Kernel
    from cudalab.checker.verdicts import Report
    from cudalab.cli.options import Decorator
    from cudalab.labs.base import Lab

LAB = click.Choice(labs.names())
EXIT_HELP = (
    "Exit status: 0 all passed, 3 wrong, 5 does not compile, 6 time limit, 4 no such device, "
    "1 nothing could be judged. With --exit-style testlib: 0 ok, 1 wrong, 2 no answer of the right "
    "form, 3 the grader failed."
)


class CheckCommand(CaseCommand):
    """Knows the options of its lab; what follows -- is the submission's, not ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for the lab in front of --."""
        own = args[: args.index("--")] if "--" in args else args
        if own and own[0] in labs.names():
            ctx.meta[CASE_OF] = labs.get(own[0])
        return click.Command.parse_args(self, ctx, args)


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `check` and `grade` alike."""
    options: list[Decorator] = [
        click.option(
            "--tests", type=EXISTING, metavar="FILE.toml", help="The instructor's own tests."
        ),
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            help="Seed of the inputs; the report states it. Default: a fresh one each time.",
        ),
        click.option("--quick", is_flag=True, help="Run a third of the tests."),
        click.option("--strict", is_flag=True, help="Also test truncated inputs and slow pipes."),
        device_option("Device for kernels and for the reference."),
        threads_option,
        click.option(
            "--sandbox",
            type=click.Choice(["auto", "bwrap", "user", "none"]),
            default="auto",
            show_default=True,
            help="auto: the strongest that works here.",
        ),
        click.option(
            "--kill-after",
            type=SECONDS,
            default=10.0,
            show_default=True,
            metavar="SECONDS",
            help="Abort each test that takes longer.",
        ),
        click.option(
            "--memory",
            default="2Gi",
            show_default=True,
            metavar="SIZE",
            help="Memory limit of each test, in bytes.",
        ),
        click.option("--no-sanitize", is_flag=True, help="Skip the stage `sanitize`."),
        click.option("--no-time", is_flag=True, help="Skip the stage `time`."),
        click.option(
            "--reference",
            metavar="VARIANT",
            help="Variant to compare times with. Default: the device's default.",
        ),
        click.option(
            "--speed-points",
            type=FiniteRange(min=0),
            metavar="P",
            help=("Points for speed: all up to 1.2 times the reference's time, none from 5 times."),
        ),
        click.option(
            "--time-limit",
            type=SECONDS,
            default=1.0,
            show_default=True,
            metavar="SECONDS",
            help="Measuring budget, never a failure.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    "new",
    short_help="Write the outline of a kernel file.",
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

    It compiles, and it fails the check until the kernels are filled in.
    """
    from cudalab.checker.submit.skeleton import skeleton
    from cudalab.errors import CudalabError

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(skeleton(labs.get(name), path.name))
    except FileExistsError:
        raise CudalabError(f"{path} exists already: it is left as it is") from None
    except OSError as error:
        raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None
    click.echo(f"{path} is yours to fill in; judge it: cudalab check {name} --kernel {path}")


@click.command(
    "check",
    cls=CheckCommand,
    short_help="Judge a submission: compile, correct, sanitize, time.",
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab check reduce --kernel my.cu",
                "cudalab check radixsort -- ./a.out",
                "cudalab check scan --kernel my.cu --tests hidden.toml --gradescope results.json",
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
    "--variant",
    metavar="NAME",
    shell_complete=variant_names,
    help=("Judge one of cudalab's own variants."),
)
@judging_options
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help=("Save the inputs of failed tests here."),
)
@click.option(
    "--json",
    "json_path",
    type=OUT,
    metavar="FILE",
    help=("Write the whole report as JSON; - is stdout."),
)
@click.option("--junit", type=OUT, metavar="FILE", help="Write JUnit XML.")
@click.option("--gradescope", type=OUT, metavar="FILE", help="Write Gradescope's results.json.")
@click.option("--check50", type=OUT, metavar="FILE", help="Write JSON as check50 does.")
@click.option(
    "--codegrade", is_flag=True, help=("Print the share of the points, 0 to 1, on stdout.")
)
@click.option("--github", is_flag=True, help="Print annotations for GitHub Actions on stdout.")
@click.option(
    "--exit-style",
    type=click.Choice(["cudalab", "testlib"]),
    default="cudalab",
    show_default=True,
    help="Meaning of the exit status.",
)
def check(*, name: str, keep: Path | None, **given: Any) -> int:
    """Judge a submission to LAB as a course does, and explain the verdict.

    The submission is one of --kernel (run by the lab's own host side), --program (a whole CUDA
    program), --variant, or a command behind -- that reads the input on stdin and writes the answer
    on stdout.
    """
    from cudalab.checker import judge
    from cudalab.checker.sandbox import sandbox

    judging, outputs = taken(JudgingOptions, given), taken(OutputOptions, given)
    named = taken(SubmissionOptions, given).completed()
    lab = labs.get(name)
    if named.count != 1:
        raise UsageError(
            "name one submission: --kernel, --program, --variant, or a command behind --",
            hint=f"`cudalab new {name} my.cu` writes a kernel file to begin with",
        )
    apart = sandbox.choose(judging.sandbox) if not named.variant else None
    settings = judging.settings(keep=keep, tell=_tell)
    try:
        submission = make_submission(lab, named, judging, apart)
    except HeaderError as error:
        if apart is None:  # a variant's: none of the submission's mistakes
            raise
        report = judge.refused(
            name, str(named.kernel), "kernel", judging.device, apart, settings.seed, error
        )
    else:
        plan = judging.plan(lab, submission, given)
        report = judge.check(lab, submission, plan, submission.sandbox, settings)
    _tell("")
    return outputs.write(report, str(named.kernel or next(iter(named.program), "")))


@dataclass(frozen=True)
class SubmissionOptions:
    """The submission to check: one of these is named."""

    kernel: Path | None
    program: tuple[Path, ...]
    variant: str | None
    command: tuple[str, ...]

    def completed(self) -> SubmissionOptions:
        """With the words that belong to --program."""
        program, command = rest_of_program(self.program, self.command)
        return replace(self, program=program, command=command)

    @property
    def count(self) -> int:
        """How many submissions are named."""
        return sum(map(bool, (self.kernel, self.program, self.variant, self.command)))


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The files and forms in which `check` reports."""

    json_path: Path | None
    junit: Path | None
    gradescope: Path | None
    check50: Path | None
    codegrade: bool
    github: bool
    exit_style: str

    def write(self, report: Report, file: str) -> int:
        """Write the report, and print it where stdout is free; the exit status."""
        from cudalab.checker import outputs

        forms = (
            (self.json_path, outputs.as_json),
            (self.junit, outputs.junit),
            (self.gradescope, outputs.gradescope),
            (self.check50, outputs.check50),
        )
        for path, text in forms:
            if path is not None:
                outputs.save(path, text(report))
        if self.codegrade:
            click.echo(outputs.codegrade(report))
        if self.github:
            click.echo(outputs.github(report, file), nl=False)
        if not (self.codegrade or self.github or any(str(path) == "-" for path, _ in forms)):
            outputs.show(report)
        return outputs.exit_status(report, self.exit_style)


def make_submission(
    lab: Lab, named: SubmissionOptions, judging: JudgingOptions, apart: Sandbox | None
) -> Kernel | Program | Command:
    """The submission that was named; `apart` is the sandbox of all but our own variants."""
    from cudalab.checker.submit.program import Program
    from cudalab.checker.submit.speed import OURS
    from cudalab.checker.submit.submission import Command, Kernel
    from cudalab.checker.verdicts import ANY_DEVICE
    from cudalab.labs import registry
    from cudalab.program.build import device_for

    if named.variant:
        variant = registry.find(lab, named.variant)
        own = Kernel(
            lab=lab,
            path=variant.path,
            sandbox=OURS,
            device=_device(judging.device),
            label=variant.label,
            trusted=True,
            threads=judging.threads,
            kind="variant",
        )
        own.name, own.words = named.variant, (named.variant,)
        return own
    assert apart is not None
    if named.kernel:
        return Kernel(
            lab=lab,
            path=named.kernel,
            sandbox=apart,
            device=_device(judging.device),
            label=str(named.kernel),
            threads=judging.threads,
        )
    if named.program:
        files = [path for one in named.program for path in program_files(one)]
        name, words = " ".join(map(str, named.program)), [str(path) for path in files]
        return Program(files, apart, name, device_for(judging.device), words=words)
    return Command(
        named.command,
        apart,
        name=shlex.join(named.command),
        readable=visible(named.command),
        hidden=tuple(path.absolute() for path in (judging.tests,) if path),
        device=ANY_DEVICE if judging.device == "auto" else judging.device,
    )


def rest_of_program(
    program: tuple[Path, ...], command: tuple[str, ...]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Of `--program *.cu` the shell makes one option and more words: they are files as well."""
    if program and all(word.endswith(".cu") for word in command):
        return (*program, *map(Path, command)), ()
    return program, command


def program_files(path: Path) -> list[Path]:
    """A source file, or all those of a folder."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.cu"))
    if not files:
        raise UsageError(f"{path}: there is no .cu file in this folder")
    return files


def visible(command: tuple[str, ...]) -> tuple[Path, ...]:
    """What a command may read: the folder it is started in, unless that is a home or greater."""
    here = Path.cwd()
    named = tuple(Path(word).absolute() for word in command if Path(word).exists())
    if here == Path("/") or Path.home().is_relative_to(here):
        return named
    return (here, *named)


def _device(wanted: str) -> str:
    from cudalab.backends import choose_device

    return choose_device(wanted)


def _tell(what: str) -> None:
    """The stage under way, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"\r{what:<20}\r", nl=False, err=True)


class GradeCommand(CaseCommand):
    """Knows the options of the lab that --lab names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for --lab first."""
        for before, word in zip(args, [*args[1:], ""], strict=True):
            name = before.removeprefix("--lab=") if before.startswith("--lab=") else word
            if before.startswith("--lab") and name in labs.names():
                ctx.meta[CASE_OF] = labs.get(name)
        return click.Command.parse_args(self, ctx, args)


@click.command(
    "grade",
    cls=GradeCommand,
    short_help="Judge a folder of submissions.",
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab grade submissions/ --lab reduce --out results/",
                "cudalab grade submissions/ --lab radixsort --command 'python3 sort.py' --out r/",
                "cudalab grade submissions/ --lab scan --out r/ --scheduler tcp://head:8786",
            ),
            CASE_HELP,
            "Exit status: 0 when all were judged, whatever their points; 1 when some were not.",
        ]
    ),
)
@click.argument("submissions", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--lab",
    "name",
    type=LAB,
    required=True,
    metavar="LAB",
    help=("Lab that the submissions solve."),
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder of the results. Called again, grade judges what is missing or has changed.",
)
@click.option(
    "--kind",
    type=click.Choice(["auto", "kernel", "program", "command"]),
    default="auto",
    show_default=True,
    help=(
        "auto: a .cu file with a header is a kernel, any other a program; "
        "otherwise a Python script."
    ),
)
@click.option("--command", default="", metavar="WORDS", help="Command to run in each folder.")
@click.option("--file", default="", metavar="NAME", help="File to judge in each folder.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of submissions judged at a time. Default: the number of cores; one on a GPU.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Use a Dask cluster: tcp://HOST:PORT, or local:N for N processes here.",
)
@judging_options
def grade(
    *,
    submissions: Path,
    name: str,
    out: Path,
    kind: str,
    command: str,
    file: str,
    jobs: int | None,
    scheduler: str | None,
    **given: Any,
) -> int:
    """Judge each submission in a folder: files, folders, and archives, one for each student.

    Results are stored in DIR as they arrive: a run that was interrupted goes on where it stopped,
    and a submission that has changed is judged again. DIR/results.csv and DIR/summary.html cover
    the class, DIR/reports/ has each verdict in full.
    """
    from cudalab.checker.grading import grading

    judging = taken(JudgingOptions, given)
    return grading.grade(
        labs.get(name),
        submissions,
        out,
        grading.GradeOptions(kind=kind, command=command, file=file, jobs=jobs, scheduler=scheduler),
        judging,
        {key: value for key, value in given.items() if value is not None},
    )


@click.command(
    "selftest",
    short_help="Test the checker itself, on this machine.",
    epilog=lines("Example", "cudalab selftest", "cudalab selftest --lab reduce --device cpu"),
)
@click.option(
    "--lab",
    "names",
    type=LAB,
    multiple=True,
    metavar="LAB",
    help=("Test these labs only. Default: all."),
)
@device_option()
@click.option(
    "--sandbox",
    "walls",
    type=click.Choice(["auto", "bwrap", "user", "none"]),
    default="auto",
    show_default=True,
    help="Sandbox to test.",
)
def selftest(*, names: tuple[str, ...], device: str, walls: str) -> int:
    """Test the checker on this machine, with submissions whose verdicts are known.

    All variants must be accepted; kernels with mistakes and programs that cheat or attack must be
    rejected. Exit status 3 when a verdict is wrong, or when a cheat succeeds because no sandbox
    works here.
    """
    from cudalab.backends import open_device
    from cudalab.checker import selftest as tests
    from cudalab.checker.sandbox import sandbox
    from cudalab.output import terminal
    from cudalab.system.machine import usable_cores

    device = _device(device)
    chosen = names or labs.names()
    found_walls = sandbox.choose(walls)
    with open_device(device) as opened:
        features = opened.features
    jobs = list(tests.jobs(chosen, device, features))
    with terminal.BenchProgress() as progress:
        progress.begin(f"selftest: {len(jobs)} submissions, sandbox {found_walls.kind}")

        def tell(finding: tests.Finding, done: int) -> None:
            progress.update(done / len(jobs), f"{done} of {len(jobs)} {finding.job.name}")

        results = tests.run(jobs, found_walls, device, usable_cores(), tell)
    wrong = [one for one in results if not one.right]
    leaks = tests.open_walls(results)
    terminal.table(
        "Cheats and mistakes",
        ["verdict", "lab", "submission", "what it does", "why"],
        [
            [
                "rejected" if one.right else "OPEN" if one in leaks else "ACCEPTED",
                one.job.lab,
                one.job.name,
                one.job.what if one.job.group == "cheats" else "",
                one.why,
            ]
            for one in results
            if not one.job.must_pass
        ],
    )
    terminal.lines(
        f"WRONG: the variant {one.job.lab} {one.job.name} was rejected: {one.why}"
        for one in wrong
        if one.job.must_pass
    )
    terminal.lines(tests.worth(results, found_walls, device))
    accepted = walls == "auto" or len(wrong) > len(leaks)
    return ExitCode.WRONG_ANSWER if wrong and accepted else ExitCode.OK
