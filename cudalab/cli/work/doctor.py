"""What `doctor` does: print what cudalab needs of this machine, and what mends it."""

from pathlib import Path

import click

from cudalab.checker import doctor as checks
from cudalab.cli import params
from cudalab.cli.work.devices import show_check
from cudalab.errors import ExitCode


def doctor(json_path: Path | None) -> int:
    """Print the result of every check as soon as it is there."""
    found, part, usable = [], "", True
    for row in checks.rows():
        found.append(row)
        usable = usable and (row.ok or not row.needed)
        if not params.is_stdout(json_path):
            if row.part != part:
                click.echo(f"{row.part}:" if not part else f"\n{row.part}:")
                part = row.part
            show_check(row.mark, row)
    params.write_json(json_path, checks.Document(usable=usable, checks=found))
    return ExitCode.OK if usable else ExitCode.NO_DEVICE
