"""A run of untrusted code that has been started: its limits, and how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from concurrent import futures
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab.checker.sandbox.users import User
from cudalab.checker.sandbox.watch import Group, signal_all
from cudalab.system.processes import MAX_WAIT

if TYPE_CHECKING:
    from concurrent.futures import Future


GRACE_S = 60.0  # after a run's time limit, until its watcher must have reported
STOPPED_S = 0.5  # between looks whether the watcher has been stopped
POLL_S = 0.1  # between checks whether cancelled runs have ended
GROUP_S = 20.0  # until the processes of a group must be gone
MiB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The limits of one run."""

    seconds: float = 10.0  # without those in which it waits for a processor that others have
    _: KW_ONLY
    cpu_seconds: float = 60.0  # of all processes and threads together
    memory_bytes: int = 2048 * MiB
    output_bytes: int = 64 * MiB
    disk_bytes: int = 256 * MiB  # of the box
    processes: int = 64
    threads: int = 256
    open_files: int = 512

    @property
    def longest_s(self) -> float:
        """The seconds after which even a run that has hardly had a processor is ended."""
        return (1 + MAX_WAIT) * self.seconds

    def rlimits(self) -> dict[str, int]:
        """The limits that the kernel enforces for each process."""
        return {
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": int(self.cpu_seconds) + 2,
            "RLIMIT_FSIZE": max(self.output_bytes, 64 * MiB),
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_MSGQUEUE": 0,
        }


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: int | None  # the exit status; negative for a signal; None: it was killed
    _: KW_ONLY
    reason: str = ""  # the exceeded limit: time, cpu, memory, processes, disk, output; "lost"
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    processes: int = 1
    survivors: int = 0  # processes that it left running, killed by the watcher
    started: bool = True  # bubblewrap says so, on a descriptor that the run does not have
    stdout_bytes: int = 0
    stderr: str = ""

    @property
    def ok(self) -> bool:
        """Whether it ended on its own with exit status 0."""
        return self.status == 0 and not self.reason


class Running:
    """A run that has been started."""

    def __init__(
        self,
        watcher: subprocess.Popen[bytes],
        control: int,
        report: int,
        group: Group | None,
        user: User | None,
    ) -> None:
        self._watcher, self._control, self._report = watcher, control, report
        self._group, self._user = group, user
        self._outcome: Outcome | None = None
        self._closing = threading.Lock()  # the descriptor of a closed pipe may be reused
        self._reported = bytearray()
        _under_way.add(self)

    def cancel(self) -> None:
        """Tell the watcher to end it."""
        self._tell({"stop": True})

    def begin(self, limits: dict[str, float]) -> None:
        """Tell the watcher that another piece of work begins, which has its own limits."""
        self._tell({"limits": limits})

    def used(self, seconds: float) -> Outcome:
        """The figures of the piece of work that has just ended, or why all of it has ended."""
        self._tell({"figures": True})
        reported = self._next(seconds)
        if "status" in reported or not reported:
            return self._ended(reported)
        return Outcome(0, **reported)

    @property
    def has_ended(self) -> bool:
        """Whether its outcome is known."""
        return self._outcome is not None

    def _tell(self, what: dict[str, Any]) -> None:
        with self._closing, suppress(OSError):
            if self._control >= 0:
                os.write(self._control, json.dumps(what).encode() + b"\n")

    def _next(self, seconds: float) -> dict[str, Any]:
        """The watcher's next line; empty if it was killed, which happens after `seconds`."""
        ends = time.monotonic() + seconds
        while b"\n" not in self._reported:
            left = ends - time.monotonic()
            readable, _, _ = select.select([self._report], [], [], max(0.0, min(STOPPED_S, left)))
            if not readable and left <= 0:
                self._watcher.kill()
                ends = float("inf")  # until the pipe's end
            elif not readable:
                # A watcher that something has stopped would neither report nor enforce limits.
                with suppress(OSError, IndexError):
                    status = Path(f"/proc/{self._watcher.pid}/stat").read_bytes()
                    if status.rpartition(b")")[2].split()[0] in (b"T", b"t"):
                        self._watcher.kill()
            else:
                piece = os.read(self._report, 4096)
                if not piece:
                    break
                self._reported += piece
        line, _, self._reported = self._reported.partition(b"\n")
        with suppress(ValueError):
            parsed: dict[str, Any] = json.loads(line)
            return parsed
        return {}

    def wait(self, seconds: float) -> Outcome:
        """Wait for the outcome; a watcher that does not report within `seconds` is killed."""
        while self._outcome is None:
            reported = self._next(seconds)
            if "status" in reported or not reported:
                self._ended(reported)
        return self._outcome

    def _ended(self, reported: dict[str, Any]) -> Outcome:
        """Keep the outcome, and clean up."""
        lost = Outcome(None, reason="lost")  # the watcher was killed, so the run has failed
        self._outcome = Outcome(**reported) if reported else lost
        try:
            self._watcher.wait()
        finally:
            self.close()
        return self._outcome

    def close(self) -> None:
        """Close the pipes, which makes the watcher end the run; then kill what is left."""
        _under_way.discard(self)
        with self._closing:
            for name in ("_control", "_report"):
                fd = getattr(self, name)
                if fd >= 0:
                    os.close(fd)
                    setattr(self, name, -1)
        with suppress(subprocess.TimeoutExpired):  # a process on a GPU takes a while to end
            self._watcher.wait(GROUP_S)
        if self._group is not None:
            deadline = time.monotonic() + GROUP_S
            while (left := self._group.members()) and time.monotonic() < deadline:
                if self._watcher.poll() is not None:  # the watcher was killed, and left orphans
                    signal_all(left, signal.SIGKILL)
                time.sleep(0.002)
            self._group.remove()
            self._group = None
        if self._user is not None:
            self._user.release()
            self._user = None


_under_way: set[Running] = set()


def end_all(work: Iterable[Future[Any]]) -> None:
    """Cancel all runs of this process until all of `work`, which starts them, has stopped."""
    running = [one for one in work if not one.cancel()]
    while futures.wait(running, POLL_S).not_done:
        for run in list(_under_way):
            run.cancel()
