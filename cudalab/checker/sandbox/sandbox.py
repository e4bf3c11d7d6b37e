"""Runs untrusted code in isolation, within limits, and makes sure that it ends.

There are three kinds of sandbox; the best one that works on a machine is used:

    bwrap   bubblewrap: own file system, processes, users and network; it sees only what is bound
    user    for root: a separate user for each run, who owns nothing but the box
    none    the grader's own user: limits and a certain end, but no isolation

watch.py watches every run and ends it.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cudalab.checker.sandbox import bubblewrap, leftovers, packages
from cudalab.checker.sandbox.box import BOX_PREFIX, Box
from cudalab.checker.sandbox.packages import Imports, open_to_all
from cudalab.checker.sandbox.watch import Group, signal_all
from cudalab.errors import NoDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future

WATCH = (  # imported, not run as a script: that is compiled once, not at each start
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import watch; watch.main()"
)
KINDS = ("bwrap", "user", "none")
FIRST_UID, NUM_UIDS = 61_000, 2_000  # user ids for runs, used for nothing else
USERS = Path("/run/cudalab-users")  # a lock for each user; only root can create files there
GRACE_S = 60.0  # after a run's time limit, until its watcher must have reported
PROBE_S = 10.0
POLL_S = 0.1  # between looks whether cancelled runs have ended
GROUP_S = 20.0  # until the processes of a group must be gone
MiB = 1 << 20
MIN_FREE_BYTES = 4096  # after a run: with less, it may not have written what it wanted to

_BOX = re.compile(r"/[^\s:'\"]*/cudalab-box-\w+/(source/)?")  # contains a submission's files


@dataclass(frozen=True)
class Limits:
    """The limits of one run."""

    seconds: float = 10.0
    _: KW_ONLY
    cpu_seconds: float = 60.0  # of all processes and threads together
    memory_bytes: int = 2048 * MiB
    output_bytes: int = 64 * MiB
    disk_bytes: int = 256 * MiB  # of the box
    processes: int = 64
    threads: int = 256
    open_files: int = 512

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
        timer = threading.Timer(seconds, self._watcher.kill)
        timer.daemon = True
        timer.start()
        try:
            while b"\n" not in self._reported and (piece := os.read(self._report, 4096)):
                self._reported += piece
        finally:
            timer.cancel()
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


class User:
    """A user for a single run. When the run ends, all processes of the user are killed.

    This process and the run's watcher hold its lock until both have ended.
    """

    def __init__(self, uid: int, lock: int, box: Path | None = None) -> None:
        """Take the user; `lock` is the descriptor of its locked file."""
        self.uid, self.lock, self._box = uid, lock, box
        if box is not None:  # the grader of an earlier run may have been killed
            leftovers.remove_all(uid, box)

    @classmethod
    def claim(cls, box: Path | None = None) -> User:
        """Lock a free user. Each process starts its search at a different one.

        With the `box` of its run, whatever else the user has in shared folders is removed, before
        and after the run.
        """
        USERS.mkdir(mode=0o700, exist_ok=True)
        first = os.getpid() * 37 + _next_number()
        for uid in (FIRST_UID + (first + tried) % NUM_UIDS for tried in range(NUM_UIDS)):
            lock = _lock(uid)
            if lock is not None:
                if box is not None:
                    _remove_abandoned()
                return cls(uid, lock, box)
        raise OSError(f"all {NUM_UIDS:,} users for runs are in use")

    def release(self) -> None:
        """Release the user for other runs."""
        if self._box is not None:
            leftovers.remove_all(self.uid, self._box)
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


def _remove_abandoned() -> None:
    """Remove what runs have left whose grader was killed: it would be there for the next run."""
    for uid in leftovers.owners(range(FIRST_UID, FIRST_UID + NUM_UIDS)):
        lock = _lock(uid)
        if lock is not None:
            leftovers.remove_all(uid)
            os.close(lock)


@dataclass(frozen=True)
class Sandbox:
    """A way to isolate untrusted code."""

    kind: str
    words: str  # what it isolates and what not, for the report
    _: KW_ONLY
    bwrap: str = ""
    own_users: bool = False  # a user for each run
    imports: Imports = field(default_factory=packages.as_they_are)  # for Python in a run

    @property
    def readers(self) -> tuple[int, ...]:
        """The groups of a box in which cudalab itself runs."""
        return () if self.imports.readers is None else (self.imports.readers,)

    @contextmanager
    def box(self, **options: Any) -> Iterator[Box]:
        """A box for one or more runs, removed at the end of the block."""
        path = Path(tempfile.mkdtemp(prefix=BOX_PREFIX))
        try:
            yield Box(path, **options)
        finally:
            remove(path)

    def can_read(self, path: Path) -> bool:
        """Whether a run can read `path`; bubblewrap can bind anything, whoever owns it."""
        return bool(self.bwrap) or not self.own_users or open_to_all(path)

    def start(
        self,
        command: Sequence[str],
        box: Box,
        limits: Limits,
        *,
        stdin: int | IO[bytes],
        stdout: int | IO[bytes],
        stderr: int | IO[bytes],
    ) -> Running:
        """Start `command` in the box."""
        user = None
        # A separate user cannot read what only root can; then bubblewrap alone must suffice.
        if self.own_users and (not self.bwrap or all(map(open_to_all, box.readable))):
            user = User.claim(None if self.bwrap else box.path)
        control_read, control = os.pipe()
        report, report_write = os.pipe()
        group = Group.make(f"cudalab-{os.getpid()}-{_next_number()}", limits.threads)
        watchers_fds = [control_read, report_write] + ([user.lock] if user is not None else [])
        status, wrappers_fds = None, []
        if self.bwrap:
            status, status_write = os.pipe()
            watchers_fds.append(status)
            wrappers_fds.append(status_write)
        limited: list[str] = []
        if self.bwrap and group is None and user is None:
            limited = bubblewrap.limited(limits.threads + 1)  # and bubblewrap's own
        spec = {
            "group": group.path if group is not None else "",
            "limited": bool(limited),
            "command": self._wrapped([*limited, *command], box, wrappers_fds),
            "env": box.environment(),
            "cwd": str(box.path),
            "box": str(box.path),
            "uid": user.uid if user is not None else None,
            "groups": box.groups,
            "shared_folders": [] if user is None or self.bwrap else leftovers.shared_folders(),
            "rlimits": limits.rlimits(),
            "limits": self.watched(limits),
            "control_fd": control_read,
            "report_fd": report_write,
            "own_fds": watchers_fds,
            "status_fd": status,
            "wrappers_fds": wrappers_fds,
        }
        try:
            if user is not None:
                give(box.path, user.uid)
            watcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", WATCH, json.dumps(spec)],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[*watchers_fds, *wrappers_fds],
                start_new_session=True,
                env={"PATH": os.environ.get("PATH", "")},
            )
        except BaseException:
            os.close(control)
            os.close(report)
            if group is not None:
                group.remove()
            if user is not None:
                user.release()
            raise
        finally:
            for fd in (*watchers_fds[:2], *wrappers_fds, *([] if status is None else [status])):
                os.close(fd)
        return Running(watcher, control, report, group, user)

    def watched(self, limits: Limits) -> dict[str, float]:
        """The limits that the watcher enforces."""
        names = ("seconds", "cpu_seconds", "memory_bytes", "disk_bytes", "threads")
        processes = limits.processes + (2 if self.bwrap else 0)  # bubblewrap's own
        return {name: getattr(limits, name) for name in names} | {"processes": processes}

    def run(
        self,
        command: Sequence[str],
        box: Box,
        limits: Limits,
        *,
        stdin: int | IO[bytes],
        stdout: Path,
    ) -> Outcome:
        """Run `command` to its end; its output goes to the file `stdout`."""
        with _private(stdout) as out, tempfile.TemporaryFile() as messages:
            running = self.start(command, box, limits, stdin=stdin, stdout=out, stderr=messages)
            try:
                outcome = running.wait(limits.seconds + GRACE_S)
            finally:
                running.close()
            errors = tail(messages)
        self.check_started(outcome, errors)
        check_disk(stdout.parent)
        written = stdout.stat().st_size
        if written >= limits.output_bytes and outcome.reason in ("", "disk"):
            outcome = replace(outcome, reason="output")
        if self.bwrap:
            outcome = replace(outcome, survivors=0)  # the rest ended with its namespace
            if outcome.status is not None and outcome.status > 128:
                with suppress(ValueError):  # bubblewrap's exit status for a signal
                    outcome = replace(outcome, status=-signal.Signals(outcome.status - 128))
        if outcome.status == -signal.SIGXFSZ:
            outcome = replace(outcome, reason=outcome.reason or "output")
        if outcome.status == -signal.SIGXCPU:
            outcome = replace(outcome, reason=outcome.reason or "cpu")
        return replace(outcome, stderr=without_boxes(errors), stdout_bytes=written)

    def capture(
        self,
        command: Sequence[str],
        box: Box,
        limits: Limits,
        *,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
    ) -> tuple[Outcome, bytes]:
        """Run `command` to its end; its outcome and, if that is ok, its output."""
        # Outside the box: the program has the open file, but not its name.
        out = Path(f"{box.path}.out")
        try:
            outcome = self.run(command, box, limits, stdin=stdin, stdout=out)
            return outcome, out.read_bytes() if outcome.ok else b""
        finally:
            out.unlink(missing_ok=True)

    def check_started(self, outcome: Outcome, errors: str) -> None:
        """Raise OSError if the sandbox could not be built. (A missing program is no such case.)"""
        if not outcome.started and not outcome.reason and not errors.startswith("bwrap: execvp "):
            raise OSError(f"the sandbox could not be built: {errors.strip()}")

    def _wrapped(self, command: Sequence[str], box: Box, status_fds: Sequence[int]) -> list[str]:
        if not self.bwrap:
            return list(command)
        status = [word for fd in status_fds for word in ("--json-status-fd", str(fd))]
        return [self.bwrap, *status, *bubblewrap.arguments(box, self.imports), "--", *command]


def check_disk(folder: Path) -> None:
    """Raise OSError if a disk has become full, which no limit on a run can be blamed for."""
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def _private(path: Path) -> IO[bytes]:
    """A new file that no other run can open."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def without_boxes(text: str) -> str:
    """A text with the names of files as their authors know them."""
    return _BOX.sub("", text)


def choose(kind: str = "auto") -> Sandbox:
    """The sandbox of a kind; "auto" is the best that works here. NoDeviceError if none does."""
    if kind == "none":
        return Sandbox("none", "NO SANDBOX: the submission runs as you and can read your files")
    if kind in ("auto", "bwrap"):
        bubblewrap = _bubblewrap()
        if isinstance(bubblewrap, Sandbox):
            return bubblewrap
        if kind == "bwrap":
            raise NoDeviceError(
                f"--sandbox bwrap does not work here: {bubblewrap}",
                hint="install bubblewrap or allow user namespaces; or --sandbox auto",
            )
    users = _other_users()
    if isinstance(users, Sandbox):
        return users
    if kind == "user":
        raise NoDeviceError(
            f"--sandbox user does not work here: {users}",
            hint="--sandbox auto chooses one that works",
        )
    return choose("none")


@cache
def _bubblewrap() -> Sandbox | str:
    """The bubblewrap sandbox, or why it does not work, found by trying."""
    path = shutil.which("bwrap")
    if path is None:
        return "there is no bwrap on PATH"
    words = "own file system, processes and network; only the box can be written"
    tries = [Sandbox("bwrap", words, bwrap=path)]
    if os.getuid() == 0:  # a separate user as well, if other users can read this Python
        tries = [replace(tries[0], words=words + _process_limit_note())]
        others = packages.for_others()
        if open_to_all(Path(others.python)):
            tries.insert(0, Sandbox("bwrap", words, bwrap=path, own_users=True, imports=others))
    with tempfile.NamedTemporaryFile(prefix="cudalab-probe-") as secret:
        Path(secret.name).chmod(0o644)
        hidden = f"import os, sys; sys.exit(os.path.exists({secret.name!r}) or os.getppid() > 2)"
        for sandbox in tries:
            reason = _probe(sandbox, "-I", "-S", "-c", hidden)
            if reason is None:
                return sandbox
    return str(reason)


def _process_limit_note() -> str:
    """A note for the report if the system does not limit the number of root's processes."""
    group = Group.make(f"cudalab-{os.getpid()}-{_next_number()}", 1)
    if group is None:
        return "; the number of its processes is watched, but not limited by the system"
    group.remove()
    return ""


@cache
def _other_users() -> Sandbox | str:
    """The sandbox with a user for each run, or why it does not work."""
    if os.getuid() != 0:
        return "only root can start a run as another user"
    words = "each run has its own user; the network and files that anyone may read are accessible"
    sandbox = Sandbox("user", words, own_users=True, imports=packages.for_others(separate=True))
    imports = "import os, sys, numpy, cudalab; sys.exit(os.getuid() == 0)"
    return _probe(sandbox, "-c", imports) or sandbox


def _probe(sandbox: Sandbox, *words: str) -> str | None:
    """Why Python fails in the sandbox; None if it succeeds."""
    groups = sandbox.readers
    with sandbox.box(groups=groups) as box, tempfile.TemporaryDirectory() as folder:
        command, out = [sandbox.imports.python, *words], Path(folder, "out")
        box.extra_env["PYTHONPATH"] = sandbox.imports.path()
        limits = Limits(seconds=PROBE_S)
        try:
            outcome = sandbox.run(command, box, limits, stdin=subprocess.DEVNULL, stdout=out)
        except OSError as error:
            return str(error)
    if outcome.ok:
        return None
    return (outcome.stderr.strip().splitlines() or ["it does not isolate"])[-1]


def tail(file: IO[bytes], max_bytes: int = 16_384) -> str:
    """The last part of a file, as text."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - max_bytes, 0))
    return file.read(max_bytes).decode(errors="replace")


def give(folder: Path, uid: int) -> None:
    """Make `uid` the owner of a folder and all in it, of links but not of their targets."""
    os.lchown(folder, uid, uid)
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.lchown(os.path.join(path, name), uid, uid)  # noqa: PTH118 - many of them


def remove(folder: Path) -> None:
    """Remove a folder, regardless of the permissions inside."""
    opened: set[Path] = set()

    def allow(_function: Any, path: str, _error: object) -> None:
        one = Path(path)
        with suppress(OSError):
            if one != folder:  # never the folder that the folder is in
                one.parent.chmod(stat.S_IRWXU)
            if one.is_symlink() or not one.is_dir():
                one.unlink()
            elif one not in opened:
                opened.add(one)
                one.chmod(stat.S_IRWXU)
                shutil.rmtree(one, onerror=allow)

    shutil.rmtree(folder, onerror=allow)


_numbers = itertools.count(1)


def _next_number() -> int:
    """The next number of a run, unique among the threads of this process."""
    return next(_numbers)
