"""Runs a command and passes on what it writes, as it is written."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from threading import Thread
from typing import IO

GRACE_S = 5.0  # for an interrupted command to end by itself


def stream(line: str, *, echo: bool = True) -> tuple[int, str]:
    """Run a line of shell to its end; return its exit status and its stdout.

    What it writes on stderr is printed, and stdout too if `echo` is set; bytes that are no text are
    counted instead.
    """
    # The PATH on which a pipe's second `cudalab` is this one.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    with subprocess.Popen(  # noqa: S602 - the user's own line, as after !
        line,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that all of a pipeline can be interrupted
        env={**os.environ, "PATH": path},
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        # A notebook finds the cell to which a thread's output belongs by the thread's context.
        errors = Thread(target=copy_context().run, args=(_pass_on, child.stderr, sys.stderr))
        errors.start()
        try:
            text = _pass_on(child.stdout, sys.stdout if echo else None)
            status = child.wait()
        except BaseException:
            # Interrupt the command as Ctrl-C does; kill what does not end.
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(GRACE_S)
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            errors.join()
        return status, text


def _pass_on(source: IO[bytes], target: IO[str] | None) -> str:
    """Write each line when it is complete; return all of them."""
    lines, num_bytes, binary = [], 0, False
    for line in source:
        num_bytes += len(line)
        text = None if binary else _text(line)
        if text is None:
            binary = True
            continue
        lines.append(text)
        if target:
            target.write(text)
    if binary and target:
        target.write(f"({num_bytes:,} bytes that are no text: redirect them with > FILE)\n")
    return "".join(lines)


def _text(line: bytes) -> str | None:
    """The line as text; None if it is none."""
    try:
        return None if b"\0" in line else line.decode()
    except UnicodeDecodeError:
        return None
