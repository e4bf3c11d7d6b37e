"""The options of the commands that judge submissions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.checker.rules import LANGUAGES, RACES
from cudalab.cli.options import (
    CASE_OF,
    EXISTING,
    CaseCommand,
    Choice,
    FiniteRange,
    case_options,
    device_option,
    seconds_option,
    threads_option,
)

if TYPE_CHECKING:
    from cudalab.cli.options import Decorator

LAB = Choice(labs.names())
# What the help of `check` and `grade` puts together; the lab's own options follow, then the rest.
SECTIONS = {
    "Submission": ("kernel", "program", "submission", "variant"),
    "Class": ("name", "out", "kind", "command", "file", "jobs", "scheduler", "again", "make"),
    "Tests": ("tests", "seed", "quick", "strict", "device", "threads"),
    "Limits": ("sandbox", "kill_after", "memory"),
    "Rules": ("require_kernel", "races", "race_cost", "language", "no_sanitize"),
    "Speed": ("no_time", "reference", "speed_points", "time_limit", "gpu"),
    "Results": ("keep", "json_path", "sarif", "github", "junit", "exit_style"),
    "Results for a platform": (
        *("gradescope", "check50", "classroom50", "prairielearn", "coderunner", "vpl"),
        "codegrade",
    ),
}


class JudgingCommand(CaseCommand):
    """A command with many options, which its help shows in sections."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Before NumPy is imported, give it one thread: tests run beside each other anyway.

        Its own threads would spin while they wait for work.
        """
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return super().make_context(*args, **kwargs)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of SECTIONS, those of the lab, and what is left."""
        lab = ctx.meta.get(CASE_OF)
        titles = {name: title for title, names in SECTIONS.items() for name in names}
        if lab is not None:
            titles |= {str(one.name): f"Case of {lab.name}" for one in case_options(lab)}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections.setdefault(titles.get(str(param.name), "Other"), []).append(record)
        sections["Other"] = sections.pop("Other", [])
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def sandbox_option(help_text: str) -> Decorator:
    """Make the option --sandbox."""
    return click.option(
        "--sandbox",
        type=Choice(["auto", "bwrap", "user", "none"]),
        default="auto",
        show_default=True,
        help=help_text,
    )


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `check` and `grade` share."""
    options: list[Decorator] = [
        click.option(
            "--tests", type=EXISTING, metavar="FILE.toml", help="The instructor's own tests."
        ),
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            metavar="N",
            help="Seed of the inputs; the report states it. Default: a fresh one each time.",
        ),
        click.option("--quick", is_flag=True, help="Run a third of the tests."),
        click.option("--strict", is_flag=True, help="Also test truncated inputs and slow pipes."),
        device_option("Device for kernels and for the reference."),
        threads_option,
        sandbox_option("auto: the strongest that works here."),
        seconds_option("--kill-after", "Abort each test that takes longer.", 10.0),
        click.option(
            "--memory",
            default="2Gi",
            show_default=True,
            metavar="SIZE",
            help="Memory limit of each test, in bytes.",
        ),
        click.option(
            "--require-kernel/--no-require-kernel",
            default=None,
            help="Whether a program's own kernels must compute its answer. Default: they must.",
        ),
        click.option(
            "--races",
            type=Choice(RACES),
            help="What the sanitizer finds in a right submission is free (not looked for), a "
            "warning, or costs points. Default: points.",
        ),
        click.option(
            "--race-cost",
            type=FiniteRange(min=0, max=1),
            metavar="SHARE",
            help="Share of the points that --races points takes. Default: 0.5.",
        ),
        click.option(
            "--language",
            type=Choice(LANGUAGES),
            help="cuda: kernel files and CUDA programs only; any: scripts and commands, too.",
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
            help="Points for speed: all up to 1.2 times the reference's time, none from 5 times.",
        ),
        seconds_option("--time-limit", "Measuring budget, never a failure.", 1.0),
    ]
    for option in reversed(options):
        command = option(command)
    return command
