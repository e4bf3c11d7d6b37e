"""What `new` does: write the outline of a kernel file."""

import shlex
from pathlib import Path

import click

from cudalab.checker.submit.skeleton import add_to_database, skeleton
from cudalab.errors import CudalabError
from cudalab.labs.base import Lab
from cudalab.output.notes import note


def new(lab: Lab, path: Path) -> None:
    """Write the outline of a kernel file, and what clangd reads."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(skeleton(lab, path.name))
    except FileExistsError:
        raise CudalabError(
            f"{path} already exists; it was not changed", hint="choose another name, or remove it"
        ) from None
    except OSError as error:
        raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        database, here = add_to_database(lab, path), Path.cwd()
        shown = database.relative_to(here) if database.is_relative_to(here) else database
        note(f"{shown} tells editors with clangd how to read {path.name}")
    except CudalabError as error:
        note(f"{error.message}; clangd will not know {path}")
    command = shlex.join(["cudalab", "check", lab.name, "--kernel", str(path)])
    click.echo(f"{path} is yours to fill in; judge it: {command}")
