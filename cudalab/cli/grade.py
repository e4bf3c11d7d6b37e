"""The command `grade`: judges a class, or writes what a platform needs to judge one.

Nothing heavy is imported before it runs.
"""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from cudalab import labs
from cudalab.checker.options import JudgingOptions
from cudalab.cli.judging import LAB, JudgingCommand, judging_options
from cudalab.cli.options import (
    CASE_HELP,
    CASE_OF,
    Choice,
    exclude,
    grouped,
    json_option,
    lines,
    options_present,
    quiet_option,
)
from cudalab.errors import ExitCode, UsageError

JUDGING = {field.name for field in fields(JudgingOptions)}


class GradeCommand(JudgingCommand):
    """A command with the options of the lab that --lab names."""

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
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab grade submissions/ --lab reduce --out results/",
                "cudalab grade submissions/ --lab radixsort --command 'python3 a.py' --out r/",
                "cudalab grade submissions/ --lab scan --out r/ --scheduler tcp://head:8786",
                "cudalab grade --make gradescope platform/ --lab scan --tests hidden.toml",
            ),
            CASE_HELP,
            "Exit status: 0 when all were judged, whatever their points; 1 when some were not.",
        ]
    ),
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER")
@click.option(
    "--lab", "name", type=LAB, required=True, metavar="LAB", help="Lab that the submissions solve."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the results. Called again, grade judges what is missing or has changed.",
)
@click.option(
    "--make",
    type=Choice(["gradescope", "actions", "classroom50", "check50", "otter"]),
    metavar="PLATFORM",
    help="Judge nothing: write into FOLDER what gradescope, actions (GitHub's), classroom50, "
    "check50 or otter needs to judge by the same options.",
)
@click.option(
    "--kind",
    type=Choice(["auto", "kernel", "program", "command"]),
    default="auto",
    show_default=True,
    help="auto: a .cu file with a header is a kernel, any other a program; otherwise a Python "
    "script.",
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
    help="Use a Dask cluster: tcp://HOST:PORT; local for a process per GPU here; local:N for N.",
)
@click.option(
    "--again",
    multiple=True,
    metavar="NAME",
    help="Judge this submission once more, although it has a result. May be repeated.",
)
@json_option("Write the class's results as JSON, too; - is stdout.")
@judging_options
@quiet_option
@click.pass_context
def grade(
    ctx: click.Context,
    /,
    *,
    folder: Path,
    name: str,
    out: Path | None,
    make: str | None,
    kind: str,
    command: str,
    file: str,
    jobs: int | None,
    scheduler: str | None,
    again: tuple[str, ...],
    json_path: Path | None,
    **options: Any,
) -> int:
    """Judge each submission in FOLDER: files, folders, and archives, one for each student.

    Results are stored in DIR as they arrive: a run that was interrupted goes on where it stopped,
    and a submission that has changed is judged again. DIR/results.csv and DIR/summary.html cover
    the class, DIR/reports/ has each verdict in full.
    """
    from cudalab.checker.grading import grading

    judging = grouped(JudgingOptions, options)
    lab_options = {key: value for key, value in options.items() if value is not None}
    if make:
        return write_for(make, folder, ctx, judging, lab_options)
    if out is None:
        raise UsageError("--out DIR is missing: the folder of the results")
    return grading.grade(
        labs.get(name),
        folder,
        out,
        grading.GradeOptions(
            kind=kind,
            command=command,
            file=file,
            jobs=jobs,
            scheduler=scheduler,
            again=again,
            json=json_path,
        ),
        judging,
        lab_options,
    )


def write_for(
    platform: str,
    folder: Path,
    ctx: click.Context,
    judging: JudgingOptions,
    lab_options: dict[str, Any],
) -> int:
    """Write what a platform needs to judge by the options of this call."""
    from cudalab.checker import cases
    from cudalab.checker.platforms import make

    present = options_present()
    for foreign in ("out", "kind", "command", "file", "jobs", "scheduler", "again", "json_path"):
        if foreign in present:
            exclude("--make", present[foreign])
    lab = labs.get(ctx.params["name"])
    if judging.tests:
        plan = cases.load(judging.tests, lab, lab_options)
    else:
        plan = cases.public(lab, lab_options, None, quick=judging.quick)
    words = [*lab.words(lab.complete(lab_options)), *judging_words(ctx)]
    course = make.Course(lab=lab, words=words, tests=judging.tests, plan=plan)
    paths = make.write(platform, folder, course)
    click.echo(f"{len(paths)} file{'' if len(paths) == 1 else 's'} for {platform} in {folder}")
    return ExitCode.OK


def judging_words(ctx: click.Context) -> list[str]:
    """The options of judging that the command line has, except --tests, as words of another one."""
    words, present = [], options_present()
    for option in ctx.command.get_params(ctx):
        name = str(option.name)
        if name not in present or name not in JUDGING or name == "tests":
            continue
        value = ctx.params[name]
        if value is True:
            words.append(option.opts[-1])
        elif value is False:
            words.append(option.secondary_opts[-1])
        else:
            words += [option.opts[-1], str(value)]
    return words
