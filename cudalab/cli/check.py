"""The commands that judge, `new`, `check`, `grade` and `selftest`, and the options they share."""

import os
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from cudalab import labs
from cudalab.checker.options import LANGUAGES, RACES
from cudalab.cli import epilog, params, values

PLATFORMS = {  # what they read, by the option that names the file
    "gradescope": "Write Gradescope's results.json.",
    "check50": "Write JSON as check50 does.",
    "classroom50": "Write Classroom 50's result.json.",
    "prairielearn": "Write PrairieLearn's results.json.",
    "coderunner": "Write JSON for Moodle's CodeRunner.",
    "vpl": "Write comments and a grade for Moodle's VPL.",
}
# What the help of `check` and `grade` puts together; the lab's own options follow, then the rest.
SECTIONS = {
    "Submission": ("kernel", "program", "submission", "variant"),
    "Class": ("name", "out", "kind", "command", "file", "jobs", "scheduler", "again", "make"),
    "Tests": ("tests", "seed", "quick", "strict", "device", "threads"),
    "Limits": ("sandbox", "kill_after", "memory"),
    "Rules": ("require_kernel", "races", "race_cost", "language", "no_sanitize"),
    "Speed": ("no_time", "reference", "speed_points", "time_limit", "gpu"),
    "Results": ("keep", "json_path", "sarif", "github", "junit", "exit_style"),
    "Results for a platform": (*PLATFORMS, "codegrade"),
}
EXIT_HELP = (
    "Exit status: 0 all passed, 3 wrong, 5 does not compile, 6 time limit, 4 no such device, "
    "1 nothing could be judged. With --exit-style testlib: 0 ok, 1 wrong, 2 no answer of the right "
    "form, 3 the grader failed."
)


class JudgingCommand(params.CaseCommand):
    """A command with many options, which its help shows in sections."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Before NumPy is imported, give it one thread: tests run beside each other anyway.

        Its own threads would spin while they wait for work.
        """
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return super().make_context(*args, **kwargs)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of SECTIONS, those of the lab, and what is left."""
        lab = ctx.meta.get(params.CASE_OF)
        titles = {name: title for title, names in SECTIONS.items() for name in names}
        if lab is not None:
            titles |= {str(one.name): f"Case of {lab.name}" for one in params.case_options(lab)}
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


def sandbox_option(help_text: str) -> params.Decorator:
    """Make the option --sandbox."""
    kinds = values.Choice(["auto", "bwrap", "user", "none"])
    return click.option("--sandbox", type=kinds, default="auto", show_default=True, help=help_text)


JUDGING: list[params.Decorator] = [
    click.option(
        "--tests", type=values.EXISTING, metavar="FILE.toml", help="The instructor's own tests."
    ),
    params.seed_option(
        "Seed of the inputs; the report states it. Default: a fresh one each time.", default=None
    ),
    click.option("--quick", is_flag=True, help="Run a third of the tests."),
    click.option("--strict", is_flag=True, help="Also test truncated inputs and slow pipes."),
    params.device_option("Device for kernels and for the reference."),
    params.threads_option(),
    sandbox_option("auto: the strongest that works here."),
    params.seconds_option("--kill-after", "Abort each test that takes longer.", 10.0),
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
        type=values.Choice(RACES),
        help="What the sanitizer finds in a right submission is free (not looked for), a "
        "warning, or costs points. Default: points.",
    ),
    click.option(
        "--race-cost",
        type=values.FiniteRange(min=0, max=1),
        metavar="SHARE",
        help="Share of the points that --races points takes. Default: 0.5.",
    ),
    click.option(
        "--language",
        type=values.Choice(LANGUAGES),
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
        type=values.FiniteRange(min=0),
        metavar="P",
        help="Points for speed: all up to 1.2 times the reference's time, none from 5 times.",
    ),
    params.seconds_option("--time-limit", "Measuring budget, never a failure.", 1.0),
]


@click.command(
    "new", epilog=epilog.examples("cudalab new reduce my.cu", "cudalab check reduce --kernel my.cu")
)
@click.argument("name", type=params.LAB, metavar="LAB")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.cu")
def new(name: str, path: Path) -> None:
    """Write FILE.cu, the outline of a kernel file for LAB: header, contract, empty kernels.

    It compiles, and it fails the check until the kernels are filled in. The file
    compile_commands.json beside it tells editors with clangd how to read it.
    """
    from cudalab.cli.work.new import new

    new(labs.get(name), path)


class CheckCommand(JudgingCommand):
    """A command with its lab's options; arguments after -- belong to the submission."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for the lab before --."""
        own = args[: args.index("--")] if "--" in args else args
        lab = next((word for word in own if word in labs.names()), None)  # wherever it stands
        if lab is not None:
            ctx.meta[params.CASE_OF] = labs.get(lab)
        return click.Command.parse_args(self, ctx, args)


@click.command(
    "check",
    cls=CheckCommand,
    epilog=epilog.examples(
        "cudalab check reduce --kernel my.cu",
        "cudalab check radixsort -- ./a.out",
        "cudalab check scan --kernel my.cu --tests hidden.toml --gradescope r.json",
        "cudalab check matmul --variant tiled --device cpu --json -",
        then=[params.CASE_HELP, EXIT_HELP],
    ),
)
@click.argument("name", type=params.LAB, metavar="LAB")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARGS...]")
@params.kernel_option("Judge a kernel file.")
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
@params.variant_option("Judge one of cudalab's own variants.")
@params.added(*JUDGING)
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
@params.json_option("Write the whole report as JSON; - is stdout.")
@params.out_option("--junit", help_text="Write JUnit XML.")
@params.added(*(params.out_option(f"--{name}", help_text=text) for name, text in PLATFORMS.items()))
@click.option("--codegrade", is_flag=True, help="Print the share of the points, 0 to 1, on stdout.")
@params.remark_options()
@click.option(
    "--exit-style",
    type=values.Choice(["cudalab", "testlib"]),
    default="cudalab",
    show_default=True,
    help="Meaning of the exit status.",
)
@params.quiet_option
def check(name: str, **options: Any) -> int:
    """Judge a submission to LAB as a course does, and explain the verdict.

    The submission is one of --kernel (run by the lab's own host side), --program (a whole CUDA
    program), --variant, or a command behind -- that reads the input on stdin and writes the answer
    on stdout.
    """
    from cudalab.cli.work.check import check

    return check(labs.get(name), **options)


class GradeCommand(JudgingCommand):
    """A command with the options of the lab that --lab names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for --lab first."""
        for before, word in zip_longest(args, args[1:], fillvalue=""):
            name = before.removeprefix("--lab=") if before.startswith("--lab=") else word
            if before.startswith("--lab") and name in labs.names():
                ctx.meta[params.CASE_OF] = labs.get(name)
        return click.Command.parse_args(self, ctx, args)


@click.command(
    "grade",
    cls=GradeCommand,
    epilog=epilog.examples(
        "cudalab grade submissions/ --lab reduce --out results/",
        "cudalab grade submissions/ --lab radixsort --command 'python3 a.py' --out r/",
        "cudalab grade submissions/ --lab scan --out r/ --scheduler tcp://head:8786",
        "cudalab grade --make gradescope platform/ --lab scan --tests hidden.toml",
        then=[
            params.CASE_HELP,
            "Exit status: 0 when all were judged, whatever their points; 1 when some were not.",
        ],
    ),
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER")
@click.option(
    "--lab",
    "name",
    type=params.LAB,
    required=True,
    metavar="LAB",
    help="Lab that the submissions solve.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the results. Called again, grade judges what is missing or has changed.",
)
@click.option(
    "--make",
    type=values.Choice(["gradescope", "actions", "classroom50", "check50", "otter"]),
    metavar="PLATFORM",
    help="Judge nothing: write into FOLDER what gradescope, actions (GitHub's), classroom50, "
    "check50 or otter needs to judge by the same options.",
)
@click.option(
    "--kind",
    type=values.Choice(["auto", "kernel", "program", "command"]),
    default="auto",
    show_default=True,
    help="auto: a .cu file with a header is a kernel, any other a program; otherwise a Python "
    "script.",
)
@click.option("--command", default="", metavar="WORDS", help="Command to run in each folder.")
@click.option("--file", default="", metavar="NAME", help="File to judge in each folder.")
@click.option(
    "--jobs",
    type=values.COUNT,
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
@params.json_option("Write the class's results as JSON, too; - is stdout.")
@params.added(*JUDGING)
@params.quiet_option
def grade(name: str, **options: Any) -> int:
    """Judge each submission in FOLDER: files, folders, and archives, one for each student.

    Results are stored in DIR as they arrive: a run that was interrupted goes on where it stopped,
    and a submission that has changed is judged again. DIR/results.csv and DIR/summary.html cover
    the class, DIR/reports/ has each verdict in full.
    """
    from cudalab.cli.work.grade import grade

    return grade(labs.get(name), **options)


@click.command(
    "selftest",
    epilog=epilog.examples("cudalab selftest", "cudalab selftest --lab reduce --device cpu"),
)
@click.option(
    "--lab",
    "names",
    type=params.LAB,
    multiple=True,
    metavar="LAB",
    help="Test these labs only. Default: all.",
)
@params.device_option()
@sandbox_option("Sandbox to test.")
@params.json_option("Write all verdicts as JSON; - is stdout.")
@params.quiet_option
def selftest(**options: Any) -> int:
    """Test the checker on this machine, with submissions whose verdicts are known.

    All variants must be accepted; kernels with mistakes and programs that cheat or attack must be
    rejected. Exit status 3 when a verdict is wrong, or when a cheat succeeds because no sandbox
    works here.
    """
    from cudalab.cli.work.selftest import selftest

    return selftest(**options)
