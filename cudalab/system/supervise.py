"""Run work that may crash or hang in a child process, which is watched and ended.

The child inherits stdin and the output. An answer is written only after the last kernel has
succeeded, so a child that is killed leaves no partial answer.
"""

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from cudalab.errors import CudalabError, KernelError, TimeLimitError, end_by_closed_pipe
from cudalab.output.notes import clear
from cudalab.system.processes import Process, Turns, descendants


@contextmanager
def prints_to_stderr() -> Iterator[int]:
    """Send what kernels print to stderr; yield a file descriptor of stdout for the answer."""
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        yield answer
    finally:
        os.dup2(answer, 1)
        os.close(answer)


# The file descriptor to which the signal handler of a crashing kernel writes the location.
CRASH_FD = "CUDALAB_CRASH_FD"
LOOK_EVERY_S = 0.5  # at what the child has used
GRACE_S = 1.0  # between a forwarded signal and SIGKILL, for a compiler to remove its files

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

    Raises KernelError if the child crashes, TimeLimitError if it does not end within `kill_after`
    seconds, of which those do not count in which others have all processors. SIGINT, SIGTERM and a
    closed output pipe end this process as they would without a child.
    """
    crash_read, crash_write = os.pipe()
    watcher = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(crash_read)
        _run_child(work, watcher, crash_write)
    os.close(crash_write)
    with suppress(OSError):  # the child has done so already, or has ended
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
        clear()
    _, status = os.waitpid(child, 0)
    return _verdict(os.waitstatus_to_exitcode(status), details)


def _run_child(work: Callable[[], int], watcher: int, crash_fd: int) -> None:
    """Run `work` in the child. Never returns: cleanup of the parent's state is not its job."""
    os.setpgid(0, 0)  # so that the processes it starts are ended with it
    _die_with(watcher)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent prints "Interrupted"
    os.environ[CRASH_FD] = str(crash_fd)
    status = 1
    try:
        status = work()
    except BaseException:  # noqa: BLE001 - nothing may unwind into the parent's frames
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _die_with(watcher: int) -> None:
    """On Linux, end this process when its parent is killed, so that no endless kernel remains."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - Linux only

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != watcher:
            os._exit(1)


def _exit_on(number: signal.Signals) -> None:
    """Let a fatal signal unwind this process; an ignored signal (nohup) stays ignored."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    if signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, leave)


def _read_until_the_end(fd: int, seconds: float | None) -> str:
    """Read the pipe that only the child holds open, so it ends when the child does."""
    began, used_before, turns = time.monotonic(), _used_s([]), Turns()
    own_s, details = 0.0, bytearray()
    while True:
        pause = None if seconds is None else max(0.0, min(seconds - own_s, LOOK_EVERY_S))
        readable, _, _ = select.select([fd], [], [], pause)
        if not readable and seconds is not None:
            tree = descendants()
            own_s = turns.own(time.monotonic() - began, _used_s(tree) - used_before, tree)
            if own_s < seconds:
                continue
            raise TimeLimitError(
                f"did not finish within {seconds:g} s (--kill-after)",
                hint="is there an infinite loop? On the CPU device the threads of a block take "
                "turns, so a thread that spins on a plain variable of another one never stops: "
                "wait with an atomic, a barrier or __nanosleep",
            )
        piece = os.read(fd, 4096)
        if not piece:
            return details.decode(errors="replace").strip()
        details += piece


def _used_s(tree: list[Process]) -> float:
    """The processor time of children that have ended, and of a tree that runs."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(one.cpu_s for one in tree)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(OSError):  # the group has just ended
        os.killpg(group, number)


def _verdict(status: int, details: str) -> int:
    """Return the exit status, or raise the error for the signal (negative) that ended the child."""
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
