"""Runs untrusted code in isolation, within limits, and makes sure that it ends.

There are three kinds of sandbox; the best one that works on a machine is used:

    bwrap   bubblewrap: own file system, processes, users and network; it sees only what is bound
    user    for root: a separate user for each run, who owns nothing but the box
    none    the grader's own user: limits and a certain end, but no isolation

running.py has the run itself, which watch.py watches and ends.
"""

import errno
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from cudalab.checker.sandbox import box as boxes
from cudalab.checker.sandbox.box import Box, Imports, open_to_all
from cudalab.checker.sandbox.running import (
    Limits,
    Outcome,
    Running,
    User,
    control_group,
    shared_folders,
)
from cudalab.errors import NoDeviceError

SEE_DOCTOR = ": `cudalab doctor` says what to install"
WATCH = (  # imported, because Python would compile a script at each start
    f"import sys; sys.path.append({str(Path(__file__).parents[3])!r}); "
    "from cudalab.checker.sandbox import watch; watch.main()"
)
KINDS = ("bwrap", "user", "none")
PROBE_S = 10.0
MIN_FREE_BYTES = 4096  # with less after a run, its output may be incomplete

_BOX = re.compile(r"/[^\s:'\"]*/cudalab-box-\w+/(source/)?")  # contains a submission's files


@dataclass(frozen=True)
class Sandbox:
    """A way to isolate untrusted code."""

    kind: str
    words: str  # what it isolates and what it does not, for the report
    _: KW_ONLY
    bwrap: str = ""
    own_users: bool = False  # a user for each run
    imports: Imports = field(default_factory=boxes.as_they_are)  # for Python in a run

    @property
    def readers(self) -> tuple[int, ...]:
        """The groups of a box in which cudalab itself runs."""
        return () if self.imports.readers is None else (self.imports.readers,)

    @contextmanager
    def box(self, **options: Any) -> Iterator[Box]:
        """A box for one or more runs, removed at the end of the block."""
        path = Path(tempfile.mkdtemp(prefix=boxes.BOX_PREFIX))
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
        """Start a command in a box, and the watcher that enforces its limits."""
        with ExitStack() as undo, ExitStack() as passed_on:
            user = self._user_for(box)
            if user is not None:
                undo.callback(user.release)
            group = control_group(limits.threads)
            if group is not None:
                undo.callback(group.remove)
            (control_read, control), (report, report_write) = os.pipe(), os.pipe()
            ours, watchers, wrappers = [control, report], [control_read, report_write], list[int]()
            if self.bwrap:
                status, status_write = os.pipe()
                watchers.append(status)
                wrappers.append(status_write)
            for fd in ours:
                undo.callback(os.close, fd)
            for fd in (*watchers, *wrappers):
                passed_on.callback(os.close, fd)
            if user is not None:
                watchers.append(user.lock)
                give(box.path, user.uid)
            uncounted = self.bwrap and group is None and user is None
            # Bubblewrap is a task, too.
            limited = boxes.limit_tasks(limits.threads + 1) if uncounted else []
            around = self._bubblewrap(box, status_write) if self.bwrap else []
            spec = {
                "group": group.path if group is not None else "",
                "limited": bool(limited),
                "command": [*around, *limited, *command],
                "env": box.environment(),
                "cwd": str(box.path),
                "box": str(box.path),
                "uid": user.uid if user is not None else None,
                "groups": box.groups,
                "shared_folders": [] if user is None or self.bwrap else shared_folders(),
                "rlimits": limits.rlimits(),
                "limits": self.watched(limits),
                "control_fd": control_read,
                "report_fd": report_write,
                "own_fds": watchers,
                "status_fd": status if self.bwrap else None,
                "wrappers_fds": wrappers,
            }
            watcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", WATCH, json.dumps(spec)],
                stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=[*watchers, *wrappers],
                start_new_session=True, env={"PATH": os.environ.get("PATH", "")},
            )  # fmt: skip
            undo.pop_all()
            return Running(watcher, control, report, group, user)

    def _bubblewrap(self, box: Box, status_fd: int) -> list[str]:
        """The command line in front of a command that bubblewrap runs."""
        status = ["--json-status-fd", str(status_fd)]
        return [self.bwrap, *status, *boxes.bubblewrap(box, self.imports), "--"]

    def _user_for(self, box: Box) -> User | None:
        """The separate user of a run, if it has one."""
        # Such a user cannot read what only root can; then bubblewrap alone must suffice.
        if not self.own_users or (self.bwrap and not all(map(open_to_all, box.readable))):
            return None
        return User.claim(None if self.bwrap else box.path)

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
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        private = os.fdopen(os.open(stdout, flags, 0o600), "wb")  # no other run can open it
        with private as out, tempfile.TemporaryFile() as messages:
            running = self.start(command, box, limits, stdin=stdin, stdout=out, stderr=messages)
            try:
                outcome = running.wait(limits.patience_s)
            finally:
                running.close()
            errors = tail(messages)
        self.check_started(outcome, errors)
        check_disk(stdout.parent)
        written = stdout.stat().st_size
        outcome = self._completed(outcome, full=written >= limits.output_bytes)
        return replace(outcome, stderr=without_boxes(errors), stdout_bytes=written)

    def _completed(self, outcome: Outcome, *, full: bool) -> Outcome:
        """The outcome with what the watcher cannot know; `full`: it wrote all that it may."""
        if full and outcome.reason in ("", "disk"):
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
        return outcome

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
        """Raise OSError if the sandbox could not be built. A missing program is no such case."""
        if not outcome.started and not outcome.reason and not errors.startswith("bwrap: execvp "):
            raise OSError(f"the sandbox could not be built: {errors.strip()}")


def check_disk(folder: Path) -> None:
    """Raise OSError if a disk has become full, which no limit on a run can be blamed for."""
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def without_boxes(text: str) -> str:
    """A text with the names of files as their authors know them."""
    return _BOX.sub("", text)


def choose(kind: str = "auto") -> Sandbox:
    """The sandbox of a kind; "auto" is the best that works here. NoDeviceError if none does."""
    if kind == "none":
        return Sandbox("none", "NO SANDBOX: the submission runs as you and can read your files")
    reasons = []
    if kind in ("auto", "bwrap"):
        strongest = _bubblewrap()
        reasons.append(f"bwrap: {strongest}")
        if isinstance(strongest, Sandbox):
            return strongest
        if kind == "bwrap":
            raise NoDeviceError(
                f"--sandbox bwrap does not work here: {strongest}",
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
    reasons.append(f"user: {users}")
    none = choose("none")
    return replace(
        none, words=f"{none.words}; no other works here ({'; '.join(reasons)}){SEE_DOCTOR}"
    )


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
        others = boxes.for_others()
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
    group = control_group(1)
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
    sandbox = Sandbox("user", words, own_users=True, imports=boxes.for_others(separate=True))
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
