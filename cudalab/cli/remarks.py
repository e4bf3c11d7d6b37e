"""The options --sarif and --github: what a command has found, at its lines of source code."""
# ruff: noqa: PLC0415 - nothing is loaded unless there is something to write

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import __version__
from cudalab.cli.options import OUT

if TYPE_CHECKING:
    from cudalab.cli.options import Decorator
    from cudalab.output.annotations import Annotation


def remark_options(*, where: str = "stdout") -> Decorator:
    """Make the options --sarif FILE and --github; annotations go to `where`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        sarif = click.option(
            "--sarif",
            type=OUT,
            metavar="FILE",
            help="Write the findings as SARIF 2.1.0, for editors and code hosts.",
        )
        github = click.option(
            "--github",
            is_flag=True,
            help=f"Print annotations for GitHub Actions on {where}, instead of the report.",
        )
        return sarif(github(command))

    return add


def write_remarks(
    remarks: Sequence[Annotation], tool: str, *, sarif: Path | None, github: bool
) -> None:
    """Write annotations in the forms that were chosen; `tool` is the command that made them."""
    if sarif is not None:
        from cudalab.formats import save
        from cudalab.output import annotations as documents

        save(sarif, documents.sarif(remarks, f"cudalab {tool}", __version__))
    if github:
        from cudalab.output.annotations import commands

        click.echo(commands(remarks), nl=False)
