"""The values of options: what is accepted on the command line. Imports nothing heavy."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab.errors import nearest
from cudalab.labs import sizes as parsers

if TYPE_CHECKING:
    from cudalab.labs.inputs import Size

STDOUT_OF = "cudalab: the option whose document stdout is"  # a key of click's ctx.meta
MAX_SIZES = 64
MAX_SECONDS = 10**6  # in milliseconds it still fits the int of poll()


class Choice(click.Choice):  # type: ignore[type-arg] # generic only since click 8.2
    """A name from a fixed list; the nearest ones are suggested for any other."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        if value not in self.choices:
            self.fail(f"{value!r} is unknown: {nearest(str(value), self.choices)}", param, ctx)
        return str(value)


class LabName(Choice):
    """The name of a lab, in whose place somebody may name a file."""

    def __init__(self, known: Sequence[str], programs: str) -> None:
        """What is said of whole `programs`."""
        super().__init__(known)
        self.programs = programs

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        if str(value).endswith(".cu"):
            command = ctx.command_path if ctx else "cudalab"
            self.fail(
                f"a file that a lab launches is named with --kernel: {command} LAB --kernel "
                f"{shlex.quote(value)}; whole programs {self.programs}",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class FiniteRange(click.FloatRange):
    """A range of finite numbers; click's own ranges let nan and infinity pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reject nan and infinity, too."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class OutputFile(click.Path):
    """A file that is written at the end, but checked at once; stdout holds one document only."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, writable=True, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that the folder can be written to, too."""
        from cudalab.formats import why_unwritable

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


class OneSize(Sizes):
    """A single size: 1Mi, 1e6, 2^20, 300x200."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse it."""
        sizes = super().convert(value, param, ctx)
        if len(sizes) != 1:
            self.fail(f"{value!r}: only one size is possible here", param, ctx)
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


class SweepOption(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.2
    """NAME=VALUE,VALUE; 32,64,…,1024 continues the series. See `choice.combinations`."""

    name = "sweep"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, list[str]]:
        """Split the values, and fill in those that dots stand for."""
        name, equals, text = value.partition("=")
        values = [part.strip() for part in text.split(",")]
        if not (re.fullmatch(r"[A-Za-z_]\w*", name) and equals and all(values)):
            self.fail(f"{value!r} is not NAME=VALUE,VALUE,...", param, ctx)
        for dots in ("…", "..."):
            if dots in values:
                values = self._filled(values, values.index(dots), param, ctx)
        return name, list(dict.fromkeys(values))

    def _filled(
        self, values: list[str], dots: int, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        around = [*values[max(dots - 2, 0) : dots], *values[dots + 1 : dots + 2]]
        if len(around) != 3 or not all(text.isdecimal() for text in around):
            self.fail("two numbers stand before the dots and one after them", param, ctx)
        one, two, last = map(int, around)
        steps = [two]
        doubles = one > 0 and two % one == 0 and two // one > 1 and (last // two) * two == last
        factor = two // one if doubles else 0
        while steps[-1] < last:
            steps.append(steps[-1] * factor if factor else steps[-1] + max(two - one, 1))
            if len(steps) > MAX_SIZES:
                break
        if steps[-1] != last:
            self.fail(f"{one}, {two}, ... does not come to {last}", param, ctx)
        return [*values[: dots - 1], *map(str, steps), *values[dots + 2 :]]


EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW, OUT = OutputFile(), OutputFile(allow_dash=True)
SECONDS = FiniteRange(min=0, min_open=True, max=MAX_SECONDS)
SEED = click.IntRange(min=0)
COUNT = click.IntRange(min=1)
