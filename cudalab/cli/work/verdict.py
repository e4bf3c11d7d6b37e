"""Lines of a verdict on a terminal, and what is being done until it is there."""

import sys
from collections.abc import Iterable
from typing import Any

import click

from cudalab.output.notes import is_silent
from cudalab.output.prose import columns, filled

STYLES: dict[str, dict[str, Any]] = {
    "bad": {"fg": "red", "bold": True},
    "good": {"fg": "green", "bold": True},
    "cost": {"fg": "yellow"},
    "dim": {"dim": True},
    "printed": {"dim": True},
    "": {},
}
MARGIN = 10  # of what follows a verdict's time


def show_passing(what: str) -> None:
    """Say on a terminal what is being done, in a line that the next one replaces."""
    if sys.stderr.isatty() and not is_silent():
        click.echo(f"\r\x1b[K{what}\r", nl=False, err=True)


def print_lines(texts: Iterable[tuple[str, str]], stamp: str) -> None:
    """Print lines behind the time of the verdict, as wide as the terminal; a pipe's are whole."""
    margin = " " * MARGIN if stamp else ""
    room = max(columns() - len(margin), 0)
    head = f"{stamp:<{MARGIN}}" if stamp else ""
    for text, style in texts:
        below = 0 if text.startswith(" ") else 2
        cut = style == "printed" and room
        for line in [text[:room]] if cut else filled(text, below, room=room).split("\n"):
            before = click.style(head, dim=True) if head else ""
            click.echo(before + click.style(line, **STYLES[style]))
            head = margin
    sys.stdout.flush()
