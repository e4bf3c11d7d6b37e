"""Options and parsers that several commands share. Imports nothing heavy."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from cudalab import labs
from cudalab.backends import DEVICES
from cudalab.errors import UsageError, nearest
from cudalab.labs import sizes as parsers
from cudalab.output import notes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Size

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

Group = TypeVar("Group", bound="DataclassInstance")

ALL = "all"
CASE_OF = "cudalab: the lab whose case is chosen"  # keys of click's ctx.meta
STDOUT_OF = "cudalab: the option whose document stdout is"
MAX_SIZES = 64
EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)
MAX_SECONDS = 10**6  # in milliseconds it still fits the int of poll()
CASE_HELP = "The lab's own options (--dtype, --op, --rows, --aat, --bins, ...) choose the case."


class Choice(click.Choice):  # type: ignore[type-arg] # generic only since click 8.2
    """A name from a fixed list; the nearest ones are suggested for any other."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        if value not in self.choices:
            self.fail(f"{value!r} is unknown: {nearest(str(value), self.choices)}", param, ctx)
        return str(value)


class FiniteRange(click.FloatRange):
    """A range of finite numbers; click's own ranges let nan and infinity pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reject nan and infinity, too."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


DEVICE = Choice(["auto", *DEVICES])
SECONDS = FiniteRange(min=0, min_open=True, max=MAX_SECONDS)


class OutputFile(click.Path):
    """A file that is written at the end, but checked at once; stdout holds one document only."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, writable=True, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that the folder can be written to, too."""
        from cudalab.formats import why_unwritable  # noqa: PLC0415 - brings NumPy

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if str(path) == "-":
            self._take_stdout(param, ctx)
            return path
        reason = why_unwritable(path)
        if reason:
            self.fail(f"{path}: {reason}", param, ctx)
        return path

    def _take_stdout(self, param: click.Parameter | None, ctx: click.Context | None) -> None:
        """Fail if stdout is for something else, or has been promised to another option."""
        if not self.allow_dash:
            self.fail("a file is needed here, not stdout", param, ctx)
        if ctx is None or param is None:
            return
        other = ctx.meta.setdefault(STDOUT_OF, param.opts[0])
        if other != param.opts[0]:
            self.fail(f"stdout is for {other} already; name a file", param, ctx)


NEW = OutputFile()
OUT = OutputFile(allow_dash=True)


def device_option(help_text: str = "auto: the GPU if there is one.") -> Decorator:
    """Make the option --device auto|cuda|cpu."""
    return click.option("--device", type=DEVICE, default="auto", show_default=True, help=help_text)


def _silence(_ctx: click.Context, _param: click.Parameter, quiet: bool) -> None:
    notes.silence(quiet)


QUIET: dict[str, Any] = {
    "is_flag": True,
    "expose_value": False,
    "callback": _silence,
    "help": "Print no notes and no progress on stderr.",
}
quiet_option = click.option("-q", "--quiet", **QUIET)

threads_option = click.option(
    "--threads", type=click.IntRange(min=1), metavar="N", help="Threads of the CPU device."
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the data.",
)
dist_option = click.option(
    "--dist", metavar="NAME", help="Distribution of the data. Default: the lab's first."
)


JSON: dict[str, Any] = {"type": OUT, "metavar": "FILE"}
JSON_HELP = "Write it as JSON; - is stdout."


def json_option(help_text: str = JSON_HELP) -> Decorator:
    """Make the option --json FILE; docs/json.md describes the documents."""
    return click.option("--json", "json_path", **JSON, help=help_text)


def write_json(path: Path | None, document: Any) -> bool:
    """Write a document, if a file is named; return whether it is stdout, which holds no more."""
    if path is None:
        return False
    from cudalab.formats import save  # noqa: PLC0415 - brings NumPy
    from cudalab.system.records import text  # noqa: PLC0415 - as above

    save(path, text(document))
    return is_stdout(path)


def is_stdout(*paths: Path | None) -> bool:
    """Whether one of the files is stdout, which then holds nothing else."""
    return any(str(path) == "-" for path in paths)


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


def seconds_option(name: str, help_text: str, default: float | None = None) -> Decorator:
    """Make an option that takes a number of seconds."""
    return click.option(
        name, type=SECONDS, default=default, show_default=True, metavar="SECONDS", help=help_text
    )


def lines(title: str, *texts: str) -> str:
    """Format lines for the end of a command's help, which click must not wrap."""
    return "\n".join(["\b", f"{title}:", *(f"  {text}" for text in texts)])


def shape(text: str) -> Size:
    """Parse a size, or dimensions such as 300x200."""
    try:
        return parsers.shape(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def size(text: str) -> int:
    """Parse a count."""
    try:
        return parsers.size(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


class Distribution(Choice):
    """One of a lab's distributions; a parameter may follow a colon, as in zipf:1.5."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name before the colon; the lab checks the parameter after it."""
        name, colon, parameter = value.partition(":")
        known: str = super().convert(name, param, ctx)
        return known + colon + parameter


def case_options(lab: Lab, *, runs: bool = False) -> list[click.Parameter]:
    """The options that choose the lab's case; an absent one is None in the case."""
    options: list[click.Parameter] = []
    for axis, values in lab.axes.items():
        if axis in lab.derived:
            continue
        if axis in lab.flags:
            options += [_flag(axis, value, lab.flags[axis][value]) for value in values[1:]]
        else:
            choice = Choice(values)
            options.append(click.Option([f"--{axis}"], type=choice, help=f"Default: {values[0]}."))
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


def variant_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a variant's name, or the last of several separated by commas."""
    from cudalab.labs import registry  # noqa: PLC0415 - for completion only

    # While an option lacks its value, click has not read the arguments before it.
    words = (ctx.params.get("lab"), *ctx.args, ctx.command.name)
    lab = next((word for word in words if word in labs.names()), None)
    before, comma, prefix = incomplete.rpartition(",")
    variants = registry.variants(labs.get(lab)) if lab else []
    return [before + comma + each.name for each in variants if each.name.startswith(prefix)]


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


class Sizes(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.2
    """Sizes and ranges of them: 1Mi,2^24 or 2^16:2^28:x4 or 300x200."""

    name = "sizes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[Size]:
        """Expand the ranges."""
        if isinstance(value, list):
            return value
        sizes: list[Size] = []
        for part in value.split(","):
            if ":" in part:
                sizes += self._range(part, param, ctx)
            else:
                sizes.append(shape(part))
        if any(d < 1 for one in sizes for d in (one if isinstance(one, tuple) else (one,))):
            self.fail(f"{value!r}: a size to measure is 1 or more", param, ctx)
        return sizes

    def _range(
        self, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        match = re.fullmatch(r"([^:]+):([^:]+)(?::([x+])([^:]+))?", text)
        if match is None:
            self.fail(f"{text!r} is no range such as 2^16:2^28:x4 or 1000:5000:+1000", param, ctx)
        first, last, step = size(match[1]), size(match[2]), size(match[4] or "2")
        adds = match[3] == "+"
        if first < 1 or last < first or step < (1 if adds else 2):
            self.fail(f"{text!r}: a range goes up from 1 or more", param, ctx)
        sizes = [first]
        while (following := sizes[-1] + step if adds else sizes[-1] * step) <= last:
            sizes.append(following)
            if len(sizes) > MAX_SIZES:
                self.fail(f"{text!r} has more than {MAX_SIZES} sizes", param, ctx)
        return sizes


class Names(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.2
    """Comma-separated names from a fixed list."""

    name = "names"

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Check each name."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(part.strip() for part in value.split(",")))
        for name in names:
            if name not in self.known:
                self.fail(f"{name!r} is unknown: {nearest(name, self.known)}", param, ctx)
        return names


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
        return super().parse_args(ctx, args)

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


def grouped(kind: type[Group], options: dict[str, Any]) -> Group:
    """Move the options that the fields of `kind` name out of `options`, into one object."""
    return kind(**{field.name: options.pop(field.name) for field in fields(kind)})
