"""Work that may crash or hang, done in a child process that is watched and ended.

The child inherits stdin and the output; since an answer is written only after the last kernel has
succeeded, a child that is killed leaves no partial answer.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from cudalab.errors import CudalabError, KernelError, TimeLimitError, end_by_closed_pipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

# Names the file descriptor to which a crashing kernel's signal handler writes where it happened.
CRASH_FD = "CUDALAB_CRASH_FD"
GRACE_S = 1.0  # from a forwarded signal to SIGKILL: a compiler removes its files meanwhile

_CRASHES = {
    signal.SIGSEGV: "segmentation fault (invalid memory access)",
    signal.SIGBUS: "bus error (invalid memory access)",
    signal.SIGFPE: "arithmetic error (integer division by zero)",
    signal.SIGILL: "illegal instruction (a trap)",
    signal.SIGTRAP: "a trap",
    signal.SIGABRT: "aborted",
}


def supervise(work: Callable[[], int], kill_after: float | None) -> int:
    """Run `work` in a child process and return its exit status.

    Raises KernelError when the child crashed, TimeLimitError when it did not end within
    `kill_after` seconds. SIGINT, SIGTERM and a closed output pipe end this process as they would
    without a child.
    """
    crash_read, crash_write = os.pipe()
    watcher = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(crash_read)
        _be_the_child(work, watcher, crash_write)
    os.close(crash_write)
    with suppress(OSError):  # the child has done it already, or is gone
        os.setpgid(child, child)
    _exit_on(signal.SIGTERM)
    _exit_on(signal.SIGHUP)
    try:
        details = _read_until_the_end(crash_read, kill_after)
    except BaseException as stopped:
        if not isinstance(stopped, TimeLimitError):
            _signal_group(
                child, signal.SIGINT if isinstance(stopped, KeyboardInterrupt) else signal.SIGTERM
            )
            with suppress(TimeLimitError):
                _read_until_the_end(crash_read, GRACE_S)
        _signal_group(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(crash_read)
    _, status = os.waitpid(child, 0)
    return _verdict(os.waitstatus_to_exitcode(status), details)


def _be_the_child(work: Callable[[], int], watcher: int, crash_fd: int) -> None:
    """Never returns: the parent's open files and cleanups are not the child's to finish."""
    os.setpgid(0, 0)  # so that all it starts can be ended with it
    _die_with(watcher)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent says "Interrupted"
    os.environ[CRASH_FD] = str(crash_fd)
    status = 1
    try:
        status = work()
    except BaseException:  # noqa: BLE001 - nothing may unwind into the parent's frames
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _die_with(watcher: int) -> None:
    """On Linux, end this process when its parent is killed: no endless kernel is left behind."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - Linux only

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != watcher:
            os._exit(1)


def _exit_on(number: signal.Signals) -> None:
    """Let a fatal signal unwind this process; one that is ignored (nohup) stays ignored."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    if signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, leave)


def _read_until_the_end(fd: int, seconds: float | None) -> str:
    """Read the pipe that the child alone holds open: it ends when the child does."""
    deadline = None if seconds is None else time.monotonic() + seconds
    details = bytearray()
    while True:
        remaining = None if deadline is None else max(deadline - time.monotonic(), 0)
        readable, _, _ = select.select([fd], [], [], remaining)
        if not readable:
            raise TimeLimitError(
                f"did not finish within {seconds:g} s (--kill-after)",
                hint="is there an infinite loop? On the CPU device the threads of a block take "
                "turns: a plain spin of one thread on a value from another never ends there, "
                "wait with an atomic, a barrier or __nanosleep",
            )
        piece = os.read(fd, 4096)
        if not piece:
            return details.decode(errors="replace").strip()
        details += piece


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(OSError):  # it has just ended
        os.killpg(group, number)


def _verdict(status: int, details: str) -> int:
    """Return an exit status; put the signal that ended the child (negative) into words."""
    if status >= 0:
        return status
    number = signal.Signals(-status)
    if number in _CRASHES:
        message = f"the kernel crashed: {_CRASHES[number]}"
        raise KernelError(f"{message}\n{details}" if details else message)
    if number == signal.SIGKILL:
        raise CudalabError("killed by the system: probably out of memory")
    if number == signal.SIGPIPE:
        end_by_closed_pipe()
    return 128 + number
