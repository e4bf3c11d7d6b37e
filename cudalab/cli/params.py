"""The options that several commands share, and what becomes of them. Imports nothing heavy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from cudalab import __version__, labs
from cudalab.backends import DEVICES
from cudalab.cli import values
from cudalab.errors import UsageError
from cudalab.output import notes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from cudalab.labs.base import Lab
    from cudalab.output.annotations import Annotation

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Group = TypeVar("Group", bound="DataclassInstance")

ALL = "all"
CASE_OF = "cudalab: the lab whose case is chosen"  # a key of click's ctx.meta
CASE_HELP = "The lab's own options (--dtype, --op, --rows, --aat, --bins, ...) choose the case."
BASELINES = ("numpy", "cupy", "cub")
# For a student's file, whose kernel may never end: a run, and one of `bench`.
KERNEL_KILL_AFTER_S, BENCH_KILL_AFTER_S = 300.0, 600.0
LAB = values.Choice(labs.names())


# Options -----------------------------------------------------------------------------------------


def added(*options: Decorator) -> Decorator:
    """Several options as one, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def device_option(help_text: str = "auto: the GPU if there is one.") -> Decorator:
    """Make the option --device auto|cuda|cpu."""
    kind = values.Choice(["auto", *DEVICES])
    return click.option("--device", type=kind, default="auto", show_default=True, help=help_text)


def _silence(_ctx: click.Context, _param: click.Parameter, quiet: bool) -> None:
    notes.silence(quiet)


quiet_option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=_silence,
    help="Print no notes and no progress on stderr.",
)
dist_option = click.option(
    "--dist", metavar="NAME", help="Distribution of the data. Default: the lab's first."
)


def threads_option(help_text: str = "Threads of the CPU device.") -> Decorator:
    """Make the option --threads N."""
    return click.option("--threads", type=values.COUNT, metavar="N", help=help_text)


def seed_option(help_text: str = "Seed of the data.", *, default: int | None = 0) -> Decorator:
    """Make the option --seed N."""
    return click.option(
        "--seed", type=values.SEED, default=default, show_default=True, metavar="N", help=help_text
    )


def kernel_option(help_text: str) -> Decorator:
    """Make the option --kernel FILE.cu."""
    return click.option("--kernel", type=values.EXISTING, metavar="FILE.cu", help=help_text)


def sizes_option(help_text: str) -> Decorator:
    """Make the option --n SIZES."""
    return click.option("--n", "sizes", type=values.Sizes(), metavar="SIZES", help=help_text)


def variant_option(help_text: str) -> Decorator:
    """Make the option --variant NAME, which may be spelled as a plural."""
    names = ("--variant", "--variants")
    return click.option(*names, metavar="NAME", shell_complete=variant_names, help=help_text)


def variants_option(help_text: str, default: str | None = None) -> Decorator:
    """Make the option --variants all|NAMES, which may be spelled as a singular."""
    return click.option(
        "--variants",
        "--variant",
        default=default,
        show_default=True,
        metavar="all|NAMES",
        shell_complete=variant_names,
        help=help_text,
    )


def variant_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a variant's name, or the last of several separated by commas."""
    from cudalab.labs import registry

    # While an option lacks its value, click has not read the arguments before it.
    words = (ctx.params.get("lab"), *ctx.args, ctx.command.name)
    lab = next((word for word in words if word in labs.names()), None)
    before, comma, prefix = incomplete.rpartition(",")
    variants = registry.variants(labs.get(lab)) if lab else []
    return [before + comma + each.name for each in variants if each.name.startswith(prefix)]


def kill_after_option(what: str, seconds: float) -> Decorator:
    """Make the option --kill-after, which has a default for a student's file only."""
    help_text = f"Abort {what} after this time. Default: {seconds:g} with --kernel, else none."
    return seconds_option("--kill-after", help_text)


def seconds_option(name: str, help_text: str, default: float | None = None) -> Decorator:
    """Make an option that takes a number of seconds."""
    return click.option(
        name,
        type=values.SECONDS,
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=help_text,
    )


def baseline_option(help_text: str, default: tuple[str, ...] = ()) -> Decorator:
    """Make the option --baseline NAMES."""
    kind = values.Names(BASELINES)
    return click.option(
        "--baseline", "baselines", type=kind, default=default, metavar="NAMES", help=help_text
    )


def sweep_option(help_text: str) -> Decorator:
    """Make the option --sweep DEFINE=VALUES."""
    return click.option(
        "--sweep", type=values.SweepOption(), multiple=True, metavar="DEFINE=VALUES", help=help_text
    )


def macro_options(include_help: str, define_help: str) -> Decorator:
    """Make the options -I DIR and -D NAME."""
    return added(
        click.option("-I", "include", multiple=True, metavar="DIR", help=include_help),
        click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help=define_help),
    )


# Data that `profile` and `sanitize` look at ------------------------------------------------------


data_options = added(
    click.option(
        "--data",
        type=values.EXISTING,
        metavar="IN.bin",
        help="Input in the lab's format, instead of random data.",
    ),
    click.option(
        "--n",
        "sizes",
        type=values.OneSize(),
        metavar="SIZE",
        help="Size, such as 1Mi, 1e6, 2^20 or 300x200.",
    ),
    dist_option,
    seed_option(),
)


def check_data() -> None:
    """Raise a UsageError if an input file is named together with an option for random data."""
    present = options_present()
    for random in ("sizes", "dist", "seed"):
        if "data" in present and random in present:
            exclude(present["data"], present[random])


# Files of results --------------------------------------------------------------------------------


def out_option(name: str, *more: str, help_text: str, metavar: str = "FILE") -> Decorator:
    """Make an option that names a file to write, or stdout."""
    return click.option(name, *more, type=values.OUT, metavar=metavar, help=help_text)


def json_option(help_text: str = "Write it as JSON; - is stdout.") -> Decorator:
    """Make the option --json FILE; docs/json.md describes the documents."""
    return out_option("--json", "json_path", help_text=help_text)


html_option = out_option("--html", "html_path", help_text="Write one page for a browser.")


def write_json(path: Path | None, document: Any) -> bool:
    """Write a document, if a file is named; return whether it is stdout, which holds no more."""
    if path is None:
        return False
    from cudalab.formats import save
    from cudalab.system.records import text

    save(path, text(document))
    return is_stdout(path)


def is_stdout(*paths: Path | None) -> bool:
    """Whether one of the files is stdout, which then holds nothing else."""
    return any(str(path) == "-" for path in paths)


def remark_options(*, where: str = "stdout") -> Decorator:
    """Make the options --sarif FILE and --github; annotations go to `where`."""
    return added(
        out_option(
            "--sarif", help_text="Write the findings as SARIF 2.1.0, for editors and code hosts."
        ),
        click.option(
            "--github",
            is_flag=True,
            help=f"Print annotations for GitHub Actions on {where}, instead of the report.",
        ),
    )


def write_remarks(
    remarks: Sequence[Annotation], tool: str, *, sarif: Path | None, github: bool
) -> None:
    """Write annotations in the forms that were chosen; `tool` is the command that made them."""
    if sarif is not None:
        from cudalab.formats import save
        from cudalab.output import annotations

        save(sarif, annotations.sarif(remarks, f"cudalab {tool}", __version__))
    if github:
        from cudalab.output.annotations import commands

        click.echo(commands(remarks), nl=False)


# What is on the command line ---------------------------------------------------------------------


def exclude(one: str, other: str) -> NoReturn:
    """Raise a UsageError for two options, one of which would be ignored."""
    raise UsageError(f"{one} and {other} exclude each other", hint="leave one of them out")


def options_present() -> dict[str, str]:
    """The options and arguments on the command line: parameter names and their spelling."""
    ctx = click.get_current_context()
    return {
        param.name or "": param.opts[0] if isinstance(param, click.Option) else "the labs"
        for param in ctx.command.get_params(ctx)
        if param.name and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    }


def refuse_measuring(option: str, *allowed: str) -> None:
    """Raise a UsageError for options that `option`, which measures nothing, would ignore."""
    present = options_present()
    ignored = [present[name] for name in present if name not in (*allowed, "quiet")]
    if ignored:
        raise UsageError(f"{option} measures nothing", hint=f"leave out {', '.join(ignored)}")


def grouped(kind: type[Group], options: dict[str, Any]) -> Group:
    """Move the options that the fields of `kind` name out of `options`, into one object."""
    return kind(**{field.name: options.pop(field.name) for field in fields(kind)})


# The lab's case ----------------------------------------------------------------------------------


def case_options(lab: Lab, *, runs: bool = False) -> list[click.Parameter]:
    """The options that choose the lab's case; an absent one is None in the case."""
    options: list[click.Parameter] = []
    for axis, choices in lab.axes.items():
        if axis in lab.derived:
            continue
        if axis in lab.flags:
            options += [_flag(axis, value, lab.flags[axis][value]) for value in choices[1:]]
        else:
            choice = values.Choice(choices)
            options.append(click.Option([f"--{axis}"], type=choice, help=f"Default: {choices[0]}."))
    for option in lab.options:
        if option.runs_only and not runs:
            continue
        kind: dict[str, Any] = {"is_flag": True} if option.type is bool else {"type": option.type}
        if option.bare is not None:
            kind |= {"is_flag": False, "flag_value": option.bare}
        shown = option.default if option.default is not None else False
        options.append(
            click.Option(
                [option.name], default=option.default, show_default=shown, help=option.help, **kind
            )
        )
    return options


def _flag(axis: str, value: str, help_text: str) -> click.Option:
    """A flag that sets an axis to `value`; the flags of one axis exclude each other."""

    def choose(ctx: click.Context, _param: click.Parameter, present: bool) -> None:
        previous = ctx.params.setdefault(axis, None)
        if present and previous:
            exclude(f"--{previous}", f"--{value}")
        if present:
            ctx.params[axis] = value

    return click.Option(
        [f"--{value}"], is_flag=True, expose_value=False, callback=choose, help=help_text
    )


def refuse_extra(ctx: click.Context, words: Sequence[str], instead: str = "") -> None:
    """Refuse words that are left over, as click does; say how a kernel file is named, or `instead`.

    The lab stands in the command's own name, or among the words that it has read.
    """
    if not words or ctx.resilient_parsing:
        return
    kernel = next((word for word in words if word.endswith(".cu")), None)
    if kernel and any("--kernel" in param.opts for param in ctx.command.get_params(ctx)):
        lab: Lab | None = ctx.meta.get(CASE_OF)
        command = f"{ctx.command_path} {lab.name}" if lab else ctx.command_path
        instead = f"A kernel file is named with --kernel: {command} --kernel {shlex.quote(kernel)}"
    ctx.fail(f"Got unexpected extra argument ({words[0]}). {instead}".rstrip())


class CaseCommand(click.Command):
    """A command that takes a lab's own options if no other lab is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for the lab before anything is parsed."""
        named = {arg for arg in args if arg in labs.names()}
        with_value = {
            name
            for param in super().get_params(ctx)
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        before = ["", *args]  # `--variants all` is not the argument `all`
        everything = any(arg == ALL and before[i] not in with_value for i, arg in enumerate(args))
        if len(named) == 1 and not everything:
            ctx.meta[CASE_OF] = labs.get(named.pop())
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        refuse_extra(ctx, rest)
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, then those that choose the lab's case."""
        own = super().get_params(ctx)
        lab: Lab | None = ctx.meta.get(CASE_OF)
        if lab is None:
            return own
        lab_options = case_options(lab)
        replaced = {name for option in lab_options for name in option.opts}
        own = [param for param in own if not replaced & set(param.opts) or param.name != "dtype"]
        used = {name for param in own for name in param.opts}
        return [*own, *(option for option in lab_options if not used & set(option.opts))]
