"""What `grade` does: judge the submissions of a class, or write what a platform judges by."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from cudalab.checker import cases
from cudalab.checker.grading import grading
from cudalab.checker.options import JudgingOptions
from cudalab.checker.platforms import make as platforms
from cudalab.cli import params
from cudalab.errors import ExitCode, UsageError
from cudalab.labs.base import Lab
from cudalab.output.prose import counted

JUDGING = {field.name for field in fields(JudgingOptions)}
OF_A_CLASS = ("out", *(field.name for field in fields(grading.GradeOptions)))  # not of --make


def grade(lab: Lab, *, folder: Path, out: Path | None, make: str | None, **options: Any) -> int:
    """Judge, or write a platform's files."""
    judging = params.grouped(JudgingOptions, options)
    of_class = params.grouped(grading.GradeOptions, options)
    lab_options = {key: value for key, value in options.items() if value is not None}
    if make:
        return write_for(make, folder, lab, judging, lab_options)
    if out is None:
        raise UsageError("--out DIR is missing: the folder of the results", hint="--out results/")
    return grading.grade(lab, folder, out, of_class, judging, lab_options)


def write_for(
    platform: str, folder: Path, lab: Lab, judging: JudgingOptions, lab_options: dict[str, Any]
) -> int:
    """Write what a platform needs to judge by the options of this call."""
    present = params.options_present()
    for foreign in OF_A_CLASS:
        if foreign in present:
            params.exclude("--make", present[foreign])
    if judging.tests:
        plan = cases.load(judging.tests, lab, lab_options)
    else:
        plan = cases.public(lab, lab_options, None, quick=judging.quick)
    words = [*lab.words(lab.complete(lab_options)), *judging_words(click.get_current_context())]
    course = platforms.Course(lab=lab, words=words, tests=judging.tests, plan=plan)
    paths = platforms.write(platform, folder, course)
    click.echo(f"{counted(len(paths), 'file')} for {platform} in {folder}")
    return ExitCode.OK


def judging_words(ctx: click.Context) -> list[str]:
    """The options of judging that the command line has, except --tests, as words of another one."""
    words, present = [], params.options_present()
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
