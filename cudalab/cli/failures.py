"""Errors become exit codes, and lines on stderr: here, once."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import click

from cudalab.errors import CudalabError, ExitCode, end_by_closed_pipe

if TYPE_CHECKING:
    from collections.abc import Callable


def in_words(work: Callable[[], int | None]) -> int:
    """Do `work` and return the exit status; expected failures become lines on stderr."""
    try:
        return work() or ExitCode.OK
    except CudalabError as error:
        click.echo(f"Error: {error.message}", err=True)
        if error.hint:
            click.echo(f"Hint: {error.hint}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MemoryError:
        click.echo("Error: out of host memory", err=True)
        return ExitCode.ERROR
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return disk_full(error)
    except SystemExit as stopped:
        if stopped.code == ExitCode.ERROR:  # click and rich do so where a pipe is closed
            end_by_closed_pipe()
        raise
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted", err=True)
        return ExitCode.INTERRUPTED


def disk_full(error: OSError) -> int:
    """Say that stdout, or a file of its own, cannot be written; what is not written yet is lost."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python tries again when it exits
    click.echo(
        f"Error: cannot write: {error.strerror}\n"
        "Hint: the output is incomplete; free some space where it goes, or in TMPDIR",
        err=True,
    )
    return ExitCode.ERROR
