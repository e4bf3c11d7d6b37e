"""The options of `profile` and `sanitize` that choose the data."""

from collections.abc import Callable
from typing import Any

import click

from cudalab.cli import options


def check_data() -> None:
    """Raise a UsageError if an input file is named together with an option for random data."""
    present = options.options_present()
    for random in ("sizes", "dist", "seed"):
        if "data" in present and random in present:
            options.exclude(present["data"], present[random])


class OneSize(options.Sizes):
    """A single size: 1Mi, 1e6, 2^20, 300x200."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse it."""
        sizes = super().convert(value, param, ctx)
        if len(sizes) != 1:
            self.fail(f"{value!r}: only one size is possible here", param, ctx)
        return sizes


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose the data."""
    for option in (
        click.option(
            "--data",
            type=options.EXISTING,
            metavar="IN.bin",
            help="Input in the lab's format, instead of random data.",
        ),
        click.option(
            "--n",
            "sizes",
            type=OneSize(),
            metavar="SIZE",
            help="Size, such as 1Mi, 1e6, 2^20 or 300x200.",
        ),
        options.dist_option,
        options.seed_option,
    )[::-1]:
        command = option(command)
    return command
