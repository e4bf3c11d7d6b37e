"""Where untrusted code runs: what it can see, what it may use, and its certain end.

Three kinds, the best that works here:

    bwrap   bubblewrap: own file system, processes, users and network; only what is bound is there
    user    root only: a user of its own for each run, who owns nothing but the box
    none    the grader's own user: limits and an end, but no walls

Every run is watched by watch.py, which also ends it.
"""

from __future__ import annotations

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

from cudalab.checker.sandbox import packages
from cudalab.checker.sandbox.packages import Imports, open_to_all
from cudalab.checker.sandbox.watch import Group, signal_all
from cudalab.errors import CudalabError, NoDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future

WATCH = Path(__file__).with_name("watch.py")
KINDS = ("bwrap", "user", "none")
FIRST_UID, NUM_UIDS = 61_000, 2_000  # users of runs; none of them exists anywhere else
USERS = Path("/run/cudalab-users")  # a lock for each, where only root can make files
GRACE_S = 60.0  # from a run's time limit until its watcher must have said something
PROBE_S = 10.0
LOOK_S = 0.1  # have the runs that are to end ended?
GROUP_S = 20.0  # until the processes of a group must be gone
MiB = 1 << 20

# What programs need of a system, where it is there. Not /etc: names, keys and secrets live there.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
_ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "nvidia",
    "OpenCL",
)
# Bubblewrap's own words for walls that do not stand. (No such program is the submission's fault.)
_NOT_BUILT = re.compile(r"bwrap: (?!execvp )")
_BOX = re.compile(r"/[^\s:'\"]*/cudalab-box-\w+/(source/)?")  # a submission's files lie in there
_KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CXX")


@dataclass(frozen=True)
class Limits:
    """What one run may use."""

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
        """Those that the kernel itself holds, for each process."""
        return {
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": int(self.cpu_seconds) + 2,
            "RLIMIT_FSIZE": max(self.output_bytes, 64 * MiB),
            "RLIMIT_NOFILE": self.open_files,
        }


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: int | None  # the exit status; a signal is negative; None: it was ended
    _: KW_ONLY
    reason: str = ""  # the limit it broke: time, cpu, memory, processes, disk, output; "lost"
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    processes: int = 1
    survivors: int = 0  # processes that it left behind, ended by the watcher
    stdout_bytes: int = 0
    stderr: str = ""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit status 0."""
        return self.status == 0 and not self.reason


@dataclass
class Box:
    """A folder that belongs to the code that runs: its working directory and its home."""

    path: Path
    _: KW_ONLY
    readable: tuple[Path, ...] = ()  # files and folders that it may also read
    hidden: tuple[Path, ...] = ()  # below those, what it may not
    gpu: bool = False
    extra_env: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """A clean one: nothing of the grader's but where programs are."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        own = {"HOME": str(self.path), "TMPDIR": str(self.path), "LANG": "C.UTF-8"}
        usual = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        return usual | kept | own | self.extra_env


class Running:
    """A run under way."""

    def __init__(
        self,
        watcher: subprocess.Popen[bytes],
        control: int,
        report: int,
        group: Group | None,
        user: User | None,
    ) -> None:
        """Hold the watcher, the two pipes that only it and we have, the processes' group, user."""
        self._watcher, self._control, self._report = watcher, control, report
        self._group, self._user = group, user
        self._outcome: Outcome | None = None
        self._closing = threading.Lock()  # the number of a closed pipe may be another file's
        _under_way.add(self)

    def cancel(self) -> None:
        """Tell the watcher to end it."""
        with self._closing, suppress(OSError):
            if self._control >= 0:
                os.write(self._control, b"x")

    def wait(self, seconds: float) -> Outcome:
        """How it ended; a watcher that does not report within `seconds` is ended itself."""
        if self._outcome is None:
            timer = threading.Timer(seconds, self._watcher.kill)
            timer.daemon = True
            timer.start()
            try:
                said = bytearray()
                while piece := os.read(self._report, 4096):
                    said += piece
                self._watcher.wait()
            finally:
                timer.cancel()
                self.close()
            try:
                self._outcome = Outcome(**json.loads(said))
            except (ValueError, TypeError):  # it was killed: whoever did that has not passed
                self._outcome = Outcome(None, reason="lost")
        return self._outcome

    def close(self) -> None:
        """Close the pipes: a watcher that still runs ends everything, and we what it could not."""
        _under_way.discard(self)
        with self._closing:
            for name in ("_control", "_report"):
                fd = getattr(self, name)
                if fd >= 0:
                    os.close(fd)
                    setattr(self, name, -1)
        if self._group is not None:
            deadline = time.monotonic() + GROUP_S
            while (left := self._group.members()) and time.monotonic() < deadline:
                if self._watcher.poll() is not None:  # it was killed, and they are orphans
                    signal_all(left, signal.SIGKILL)
                time.sleep(0.002)
            self._group.remove()
            self._group = None
        if self._user is not None:
            self._user.release()
            self._user = None


_under_way: set[Running] = set()


def end_all(work: Iterable[Future[Any]]) -> None:
    """End all runs of this process until none of `work`, which makes them, goes on."""
    running = [one for one in work if not one.cancel()]
    while futures.wait(running, LOOK_S).not_done:
        for run in list(_under_way):
            run.cancel()


class User:
    """A user that this run alone has: at its end all that runs as that user is killed.

    Its lock is held by us and by the run's watcher, until both are gone.
    """

    def __init__(self, uid: int, lock: int) -> None:
        """`lock` is the open file that holds it."""
        self.uid, self.lock = uid, lock

    @classmethod
    def claim(cls) -> User:
        """One that nobody on this machine has; processes start to look at different places."""
        USERS.mkdir(mode=0o700, exist_ok=True)
        first = os.getpid() * 37 + _next_number()
        for uid in (FIRST_UID + (first + tried) % NUM_UIDS for tried in range(NUM_UIDS)):
            lock = os.open(USERS / str(uid), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            return cls(uid, lock)
        raise OSError(f"all {NUM_UIDS:,} users for runs are taken")

    def release(self) -> None:
        """Give it back."""
        os.close(self.lock)


@dataclass(frozen=True)
class Sandbox:
    """One way to keep untrusted code apart."""

    kind: str
    words: str  # what it keeps apart, and what not, for the report
    _: KW_ONLY
    bwrap: str = ""
    own_users: bool = False  # a user for each run
    imports: Imports = field(default_factory=packages.as_they_are)  # of Python, in there

    @contextmanager
    def box(self, **options: Any) -> Iterator[Box]:
        """A box for one or more runs; it is gone when the block ends."""
        path = Path(tempfile.mkdtemp(prefix="cudalab-box-"))
        try:
            yield Box(path, **options)
        finally:
            remove(path)

    def can_read(self, path: Path) -> bool:
        """Whether a run can; bubblewrap binds what it may read, whoever owns it."""
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
        # A user of its own cannot read what only root can: then the walls alone must do.
        if self.own_users and (not self.bwrap or all(map(open_to_all, box.readable))):
            user = User.claim()
        control_read, control = os.pipe()
        report, report_write = os.pipe()
        group = Group.make(f"cudalab-{os.getpid()}-{_next_number()}", limits.threads)
        passed = [control_read, report_write] + ([user.lock] if user is not None else [])
        spec = {
            "group": group.path if group is not None else "",
            "command": self._walled(command, box),
            "env": box.environment(),
            "cwd": str(box.path),
            "box": str(box.path),
            "uid": user.uid if user is not None else None,
            "rlimits": limits.rlimits(),
            "limits": {
                name: getattr(limits, name)
                for name in ("seconds", "cpu_seconds", "memory_bytes", "disk_bytes", "threads")
            }
            | {"processes": limits.processes + (2 if self.bwrap else 0)},
            "control_fd": control_read,
            "report_fd": report_write,
            "own_fds": passed,
        }
        try:
            if user is not None:
                give(box.path, user.uid)
            watcher = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WATCH), json.dumps(spec)],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=passed,
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
            os.close(control_read)
            os.close(report_write)
        return Running(watcher, control, report, group, user)

    def run(
        self,
        command: Sequence[str],
        box: Box,
        limits: Limits,
        *,
        stdin: int | IO[bytes],
        stdout: Path,
    ) -> Outcome:
        """Run `command` to its end; what it wrote to stdout is in the file."""
        with stdout.open("wb") as out, tempfile.TemporaryFile() as messages:
            running = self.start(command, box, limits, stdin=stdin, stdout=out, stderr=messages)
            try:
                outcome = running.wait(limits.seconds + GRACE_S)
            finally:
                running.close()
            said = tail(messages)
        if self.bwrap and outcome.status == 1 and _NOT_BUILT.match(said):
            raise OSError(f"the sandbox could not be built: {said.strip()}")
        written = stdout.stat().st_size
        if written >= limits.output_bytes and outcome.reason in ("", "disk"):
            outcome = replace(outcome, reason="output")
        if self.bwrap:
            outcome = replace(outcome, survivors=0)  # its own: all others ended with their space
            if outcome.status is not None and outcome.status > 128:
                with suppress(ValueError):  # how bubblewrap hands a signal on
                    outcome = replace(outcome, status=-signal.Signals(outcome.status - 128))
        if outcome.status == -signal.SIGXFSZ:
            outcome = replace(outcome, reason=outcome.reason or "output")
        if outcome.status == -signal.SIGXCPU:
            outcome = replace(outcome, reason=outcome.reason or "cpu")
        return replace(outcome, stderr=without_boxes(said), stdout_bytes=written)

    def capture(
        self,
        command: Sequence[str],
        box: Box,
        limits: Limits,
        *,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
    ) -> tuple[Outcome, bytes]:
        """Run `command` to its end: how it ended and, if that was well, what it wrote to stdout."""
        # Beside the box, not in it: the program has the open file, and no name for it.
        out = Path(f"{box.path}.out")
        try:
            outcome = self.run(command, box, limits, stdin=stdin, stdout=out)
            return outcome, out.read_bytes() if outcome.ok else b""
        finally:
            out.unlink(missing_ok=True)

    def _walled(self, command: Sequence[str], box: Box) -> list[str]:
        if not self.bwrap:
            return list(command)
        return [self.bwrap, *_walls(box, self.imports), "--", *command]


def without_boxes(text: str) -> str:
    """The names of files as those who handed them in know them."""
    return _BOX.sub("", text)


def choose(wanted: str = "auto") -> Sandbox:
    """The sandbox called `wanted`, or the best that works here. NoDeviceError if it does not."""
    if wanted == "none":
        return Sandbox("none", "NO SANDBOX: the submission runs as you and can read your files")
    if wanted in ("auto", "bwrap"):
        found = _bubblewrap()
        if isinstance(found, Sandbox):
            return found
        if wanted == "bwrap":
            raise NoDeviceError(
                f"--sandbox bwrap does not work here: {found}",
                hint="install bubblewrap or allow user namespaces; or --sandbox auto",
            )
    as_users = _other_users()
    if isinstance(as_users, Sandbox):
        return as_users
    if wanted == "user":
        raise NoDeviceError(
            f"--sandbox user does not work here: {as_users}",
            hint="--sandbox auto takes what works",
        )
    return choose("none")


@cache
def _bubblewrap() -> Sandbox | str:
    """Bubblewrap where it works, or why it does not: tried, not looked up."""
    path = shutil.which("bwrap")
    if path is None:
        return "there is no bwrap on PATH"
    words = "own file system, processes and network; only the box can be written"
    tries = [Sandbox("bwrap", words, bwrap=path)]
    if os.getuid() == 0:  # one wall more, where this Python can be read by others
        as_others = replace(tries[0], own_users=True, imports=packages.for_others())
        tries = [as_others, replace(tries[0], words=words + _only_watched())]
    with tempfile.NamedTemporaryFile(prefix="cudalab-probe-") as secret:
        Path(secret.name).chmod(0o644)
        hidden = f"import os, sys; sys.exit(os.path.exists({secret.name!r}) or os.getppid() > 2)"
        for sandbox in tries:
            reason = _probe(sandbox, hidden)
            if reason is None:
                return sandbox
    return str(reason)


def _only_watched() -> str:
    """What must be said where nothing but a control group can bound what root starts."""
    group = Group.make(f"cudalab-{os.getpid()}-{_next_number()}", 1)
    if group is None:
        return "; how many processes it starts is watched, but not bounded by the system"
    group.remove()
    return ""


@cache
def _other_users() -> Sandbox | str:
    """A user for each run where root starts them, or why not."""
    if os.getuid() != 0:
        return "only root can start a run as another user"
    words = "each run is a user of its own; network and files that anyone may read are open"
    sandbox = Sandbox("user", words, own_users=True, imports=packages.for_others())
    return _probe(sandbox, "import os, sys, numpy, cudalab; sys.exit(os.getuid() == 0)") or sandbox


def _probe(sandbox: Sandbox, program: str) -> str | None:
    """Why a Python program does not end with exit status 0 in there; None if it does."""
    with sandbox.box() as box, tempfile.TemporaryDirectory() as folder:
        command, out = [sandbox.imports.python, "-c", program], Path(folder, "out")
        box.extra_env["PYTHONPATH"] = sandbox.imports.path()
        limits = Limits(seconds=PROBE_S)
        try:
            outcome = sandbox.run(command, box, limits, stdin=subprocess.DEVNULL, stdout=out)
        except OSError as error:
            return str(error)
    if outcome.ok:
        return None
    return (outcome.stderr.strip().splitlines() or ["its walls have holes"])[-1]


def _walls(box: Box, imports: Imports) -> list[str]:
    """Bubblewrap's arguments: an empty root, then what is bound into it."""
    walls = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    walls += ["--hostname", "box", "--proc", "/proc", "--dev", "/dev"]
    walls += _system()
    walls += ["--ro-bind-try", "/sys/devices", "/sys/devices"]
    if box.gpu:
        walls += ["--ro-bind-try", "/sys", "/sys"]
        for device in sorted(Path("/dev").glob("nvidia*")):
            walls += ["--dev-bind-try", str(device), str(device)]
    walls += ["--size", str(16 * MiB), "--tmpfs", "/dev/shm", "--size", str(16 * MiB)]  # noqa: S108
    walls += ["--tmpfs", "/tmp"]  # noqa: S108 - the sandbox's own
    for path in _apart([*_python_folders(), *imports.files, *box.readable]):
        walls += ["--ro-bind", str(path), str(path)]
    for path in box.hidden:
        if path.is_dir():
            walls += ["--tmpfs", str(path)]
        elif path.exists():
            walls += ["--ro-bind", "/dev/null", str(path)]
    walls += ["--bind", str(box.path), str(box.path), "--remount-ro", "/"]
    return [*walls, "--chdir", str(box.path)]


def _system() -> list[str]:
    """The system's programs and libraries, for reading."""
    walls = []
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            walls += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            walls += ["--ro-bind", name, name]
    for name in _ETC:
        walls += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return walls


def _python_folders() -> list[Path]:
    """Where this Python and its CUDA are."""
    folders = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent]
    if os.environ.get("CUDA_HOME"):
        folders.append(Path(os.environ["CUDA_HOME"]))
    return folders


def _apart(paths: Iterable[Path]) -> list[Path]:
    """Existing paths once each, without what the system's folders hold already."""
    found = [Path(system) for system in _SYSTEM]
    for path in sorted(paths, key=lambda path: len(path.parts)):
        known = any(path.is_relative_to(other) for other in found)
        if not known and path.exists() and path != Path("/"):
            found.append(path)
    return found[len(_SYSTEM) :]


def tail(file: IO[bytes], most: int = 16_384) -> str:
    """The last part of what a file holds, as text."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - most, 0))
    return file.read(most).decode(errors="replace")


def give(folder: Path, uid: int) -> None:
    """Make `uid` the owner of a folder and all in it; links themselves, not what they lead to."""
    os.lchown(folder, uid, uid)
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.lchown(os.path.join(path, name), uid, uid)  # noqa: PTH118 - many of them


def remove(folder: Path) -> None:
    """Remove a folder, whatever was done to the permissions inside."""

    def allow(function: Any, path: str, _: object) -> None:
        one = Path(path)
        with suppress(OSError):
            one.parent.chmod(stat.S_IRWXU)
            if not one.is_symlink():
                one.chmod(stat.S_IRWXU)
            function(path)

    shutil.rmtree(folder, onerror=allow)


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a file that untrusted code wrote: no link, no device, no more than `most`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise CudalabError(f"{path.name}: cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise CudalabError(f"{path.name}: no file of at most {most:,} bytes")
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(fd)


_numbers = itertools.count(1)


def _next_number() -> int:
    """Of a run; counting is one step, whatever threads there are."""
    return next(_numbers)
