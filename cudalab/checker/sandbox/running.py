"""A run of untrusted code that has been started: its limits, its user, and how it ends."""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent import futures
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab.checker.sandbox.box import BOX_PREFIX
from cudalab.checker.sandbox.watch import Group, owned, signal_all
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
    def patience_s(self) -> float:
        """The seconds until its watcher has reported, even of a run that hardly had a processor."""
        return (1 + MAX_WAIT) * self.seconds + GRACE_S

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


# Users -------------------------------------------------------------------------------------------

# In a sandbox without a file system of its own a run may write wherever every user may. Its user is
# nobody else's, so whatever belongs to that user afterwards is the run's and is removed: files in
# shared folders, and System V's objects.

USUAL = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/run/shm", "/var/lock")  # noqa: S108
IN_MEMORY = ("tmpfs", "ramfs", "mqueue", "devtmpfs")
OTHERS_WRITE = 0o002
REMOVE = 0  # IPC_RMID


@cache
def shared_folders() -> tuple[str, ...]:
    """The folders that every user may write to."""
    paths = [*map(Path, USUAL), Path(tempfile.gettempdir())]
    with suppress(OSError), Path("/proc/self/mounts").open(encoding="utf-8") as mounts:
        fields = [line.split() for line in mounts]
        paths += [Path(field[1]) for field in fields if field[2] in IN_MEMORY]
    result: dict[Path, None] = {}
    for path in paths:
        with suppress(OSError):
            if path.stat().st_mode & OTHERS_WRITE:
                result[path.resolve()] = None
    return tuple(map(str, result))


def owners(uids: range) -> set[int]:
    """The users among `uids` that own something in a shared folder."""
    result: set[int] = set()
    for folder in shared_folders():
        with suppress(OSError):
            result |= {path.lstat().st_uid for path in Path(folder).iterdir()} & set(uids)
    return result


def remove_all(uid: int, box: Path | None = None) -> None:
    """Remove what a user without processes has left, except in its box; without one, in any box.

    That is files, and System V's shared memory, semaphores and queues. The judge may still read a
    box whose run has ended; no other user can.
    """
    for folder in shared_folders():
        for path in map(Path, owned(folder, uid)):
            if path.resolve() == box.resolve() if box else path.name.startswith(BOX_PREFIX):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
    libc = ctypes.CDLL(None)
    for number in _objects("shm", uid):
        libc.shmctl(number, REMOVE, None)
    for number in _objects("msg", uid):
        libc.msgctl(number, REMOVE, None)
    for number in _objects("sem", uid):
        libc.semctl(number, 0, REMOVE)


def _objects(kind: str, uid: int) -> list[int]:
    """The numbers of System V's objects that a user has made or owns."""
    try:
        first, *lines = Path(f"/proc/sysvipc/{kind}").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []
    names = first.split()
    rows = [dict(zip(names, line.split(), strict=False)) for line in lines]
    return [int(row[names[1]]) for row in rows if str(uid) in (row["uid"], row["cuid"])]


FIRST_UID, NUM_UIDS = 61_000, 2_000  # user ids for runs, used for nothing else
USERS = Path("/run/cudalab-users")  # a lock for each user; only root can create files there


class User:
    """A user for a single run. When the run ends, all processes of the user are killed.

    This process and the run's watcher hold its lock until both have ended.
    """

    def __init__(self, uid: int, lock: int, box: Path | None = None) -> None:
        """Take the user; `lock` is the descriptor of its locked file."""
        self.uid, self.lock, self._box = uid, lock, box
        if box is not None:  # the grader of an earlier run may have been killed
            remove_all(uid, box)

    @classmethod
    def claim(cls, box: Path | None = None) -> User:
        """Lock a free user. Each process starts its search at a different one.

        With the `box` of its run, whatever else the user has in shared folders is removed, before
        and after the run.
        """
        USERS.mkdir(mode=0o700, exist_ok=True)
        first = os.getpid() * 37 + next_number()
        for uid in (FIRST_UID + (first + tried) % NUM_UIDS for tried in range(NUM_UIDS)):
            lock = _lock(uid)
            if lock is not None:
                if box is not None:  # what others have left whose grader was killed is in its way
                    for other in owners(range(FIRST_UID, FIRST_UID + NUM_UIDS)):
                        abandoned = _lock(other)
                        if abandoned is not None:
                            remove_all(other)
                            os.close(abandoned)
                return cls(uid, lock, box)
        raise OSError(f"all {NUM_UIDS:,} users for runs are in use")

    def release(self) -> None:
        """Release the user for other runs."""
        if self._box is not None:
            remove_all(self.uid, self._box)
        os.close(self.lock)


def _lock(uid: int) -> int | None:
    """The descriptor of a user's locked file; None if the user is in use."""
    lock = os.open(USERS / str(uid), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


_numbers = itertools.count(1)


def next_number() -> int:
    """The next number of a run, unique among the threads of this process."""
    return next(_numbers)


def control_group(max_tasks: int) -> Group | None:
    """A new control group for a run; None if that is not allowed or not supported."""
    return Group.make(f"cudalab-{os.getpid()}-{next_number()}", max_tasks)


# Runs --------------------------------------------------------------------------------------------


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
