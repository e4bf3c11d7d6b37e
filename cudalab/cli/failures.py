"""Turns errors into exit codes and lines on stderr, in one place."""

import atexit
import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

import click

from cudalab.errors import CudalabError, ExitCode, end_by_closed_pipe
from cudalab.output.notes import fitted


def report_errors(work: Callable[[], int | None]) -> int:
    """Do `work` and return the exit status; expected failures become lines on stderr."""
    try:
        return work() or ExitCode.OK
    except CudalabError as error:
        click.echo(fitted(f"Error: {error.message}"), err=True)
        if error.hint:
            click.echo(fitted(f"Hint: {error.hint}"), err=True)
        return error.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(fitted(shown.getvalue()), err=True)
        return error.exit_code
    except MemoryError:
        click.echo("Error: out of host memory", err=True)
        return ExitCode.ERROR
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return disk_full(error)
    except SystemExit as stopped:
        if stopped.code == ExitCode.ERROR:  # what click and rich do when a pipe is closed
            end_by_closed_pipe()
        raise
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted", err=True)
        return ExitCode.INTERRUPTED


def within(kill_after: float | None, work: Callable[[], int]) -> int:
    """Do `work`; if its time is limited, in a child process that is watched."""
    if kill_after is None:
        return work()
    from cudalab.system.supervise import supervise

    return supervise(partial(report_errors, work), kill_after)


def disk_full(error: OSError) -> int:
    """Report that stdout or an output file cannot be written; unwritten output is lost."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise Python tries again at exit
    click.echo(
        f"Error: cannot write: {error.strerror}\n"
        "Hint: the output is incomplete; free some space where it goes, or in TMPDIR",
        err=True,
    )
    return ExitCode.ERROR


def leave(status: int) -> NoReturn:
    """End the process; at once if it has used a GPU.

    The driver's own end takes about 0.1 s, in which it gives back what the system takes back
    anyway. Tools that look on from inside the process, such as Nsight Compute, get that time.
    """
    watched = any(name in os.environ for name in ("CUDA_INJECTION64_PATH", "LD_PRELOAD"))
    if "pycuda.driver" in sys.modules and not watched:
        atexit._run_exitfuncs()  # noqa: SLF001 - as Python does it
        with suppress(OSError):  # which Python itself reports
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    sys.exit(status)
