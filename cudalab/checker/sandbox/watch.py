"""Runs one command, watches its whole process tree, and leaves no process of it alive.

The grader starts this module by itself (`python -I -S`), once for each run of untrusted code. It
imports little, so it starts in a hundredth of a second. Its argument is the JSON that sandbox.py
writes. The standard streams belong to the command. The outcome is written to a pipe that the
command never gets; another pipe closes when the grader ends.

A command may do one piece of work after another. The grader then says when one begins, with limits
of its own, and asks at its end what it has used; in between there is no limit on time.

An address-space limit would break CUDA and threaded NumPy, which reserve far more than they use.
So the memory that the tree really uses is measured every few milliseconds, or less often while it
is far from its limit. A control group lists its members; without one, each look goes through all
processes of the machine, and there are fewer.

The number of processes cannot be limited that way, because a tree may double within a millisecond.
The kernel limits it, with a control group or per user, and watching only detects that the limit was
reached.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

from cudalab.system.processes import Process, Turns, descendants

TYPE_CHECKING = False  # without importing typing, which takes a third of the start
if TYPE_CHECKING:
    from typing import Any

NO_NEW_PRIVILEGES = 38  # prctl: setuid programs gain no privileges
CHILD_SUBREAPER = 36  # prctl: orphans become our children, so none can hide
DEATH_SIGNAL = 1
MIN_PAUSE_S, MAX_PAUSE_S = 0.004, 0.02
PAUSES = 12  # between two looks, in multiples of what a look takes
LONGEST_PAUSE_S = 0.1  # however long a look takes, and however much memory is left
FILLED_BYTES_S = (os.cpu_count() or 1) * (2 << 30)  # of memory, by processes that do nothing else
DISK_EVERY_S = 0.25  # a look at the disk
THOROUGH_EVERY_S = 1.0  # a look at all processes, for those outside of the control group
MAX_FILES = 20_000  # a box with more exceeds its limit, regardless of their sizes
SETTLE_S = 50.0  # to end everything; a process inside a system call may take a while


def main() -> None:
    """Run the command that the first argument describes, and report how it ended."""
    spec = json.loads(sys.argv[1])
    control, report = spec["control_fd"], spec["report_fd"]
    for fd in spec["own_fds"]:
        os.set_inheritable(fd, False)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    stay_first()
    group = Group(spec["group"]) if spec["group"] else None
    began = time.monotonic()
    child = start(spec, libc, group)
    for fd in spec["wrappers_fds"]:
        os.close(fd)
    watched = Watched(child, spec, began, group)
    try:
        watched.until_the_end(control)
    finally:
        survivors = end_all(child, spec.get("uid"), group)
        if group is not None:
            group.remove()
    if not watched.worked_before:  # else this is more than the last piece of work has used
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        watched.max_cpu_s = max(used.ru_utime + used.ru_stime, watched.max_cpu_s)
        watched.peak_bytes = max(watched.peak_bytes, used.ru_maxrss * 1024)
    ended = {"reason": watched.reason, "status": watched.status, "survivors": survivors}
    if spec["status_fd"] is not None:
        ended["started"] = b"exit-code" in os.read(spec["status_fd"], 65536)
    os.write(report, json.dumps(watched.figures() | ended).encode() + b"\n")


def stay_first() -> None:
    """Get a high priority if possible, because the command may occupy every core."""
    if hasattr(os, "SCHED_RESET_ON_FORK"):
        with suppress(OSError):
            first = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, first)


class Group:
    """A control group that limits the number of processes and threads."""

    def __init__(self, path: str) -> None:
        self.path = path

    @staticmethod
    def make(name: str, max_tasks: int) -> Group | None:
        """Create a group below our own; None if that is not allowed or not supported."""
        try:
            with open("/proc/self/cgroup", encoding="ascii") as file:
                lines = [line.rstrip("\n").split(":", 2) for line in file]
        except OSError:
            return None
        for _, controllers, path in lines:
            root = "/sys/fs/cgroup" + ("/pids" if controllers == "pids" else "")
            if controllers in ("pids", ""):
                group = f"{root}{path.rstrip('/')}/{name}"
                with suppress(OSError):
                    os.mkdir(group)
                    try:
                        with open(f"{group}/pids.max", "w", encoding="ascii") as limit:
                            limit.write(str(max_tasks))
                    except OSError:
                        os.rmdir(group)
                        continue
                    return Group(group)
        return None

    def join(self) -> None:
        """Move this process into the group."""
        with open(f"{self.path}/cgroup.procs", "w", encoding="ascii") as procs:
            procs.write("0")

    def members(self) -> list[int]:
        """The ids of its processes, in our own namespace."""
        with suppress(OSError), open(f"{self.path}/cgroup.procs", encoding="ascii") as procs:
            return [pid for pid in map(int, procs.read().split()) if pid > 0]
        return []

    def processes(self) -> list[Process]:
        return list(filter(None, map(Process.read, self.members())))

    def remove(self) -> None:
        """Remove the group, which must be empty."""
        with suppress(OSError):
            os.rmdir(self.path)


def start(spec: dict[str, Any], libc: ctypes.CDLL, group: Group | None) -> int:
    """Fork. The child limits itself, drops its privileges and becomes the command."""
    watcher = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        libc.prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != watcher:
            os._exit(127)
        if group is not None:
            group.join()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if group is None and not spec["limited"]:
            threads = spec["limits"]["threads"]
            spec["rlimits"]["RLIMIT_NPROC"] = threads + tasks_of(spec.get("uid") or os.getuid())
        for name, value in spec["rlimits"].items():
            which = getattr(resource, name)
            _, hard = resource.getrlimit(which)
            limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (limit, limit))
        if spec.get("uid") is not None:
            os.setgroups(spec["groups"])
            os.setresgid(spec["uid"], spec["uid"], spec["uid"])
            os.setresuid(spec["uid"], spec["uid"], spec["uid"])
        libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        os.chdir(spec["cwd"])
        os.umask(0o022)
        os.execvpe(spec["command"][0], spec["command"], spec["env"])  # noqa: S606 - it is meant to
    except OSError as error:
        message = f"cannot start {spec['command'][0]}: {error.strerror}\n"
        os.write(2, message.encode(errors="replace"))
    finally:
        os._exit(127)


class Watched:
    """A running command: the resources that it has used, and why it was stopped."""

    def __init__(self, child: int, spec: dict[str, Any], began: float, group: Group | None) -> None:
        """Watch the tree of `child`; its limits are in `spec`."""
        self.child, self.limits, self.box, self.began = child, spec["limits"], spec["box"], began
        self.group = group
        self.uid, self.shared_folders = spec["uid"], spec["shared_folders"]
        self.status: int | None = None
        self.reason = ""
        self.seconds = 0.0
        self.peak_bytes = 0
        self.max_processes = 1
        self._thorough_at = self._disk_at = began
        self.max_cpu_s = 0.0
        self.report = spec["report_fd"]
        self.worked_before = self.idle = False
        self._cpu_before = 0.0
        self._turns = Turns()
        self._room_bytes = 0  # of memory, at the last look

    def figures(self) -> dict[str, Any]:
        """What the present piece of work has used so far."""
        return {
            "seconds": self.seconds,
            "cpu_s": self.max_cpu_s,
            "peak_bytes": self.peak_bytes,
            "processes": self.max_processes,
        }

    def until_the_end(self, control: int) -> None:
        """Return when the command has ended or exceeded a limit, or the grader has ended."""
        pause = MIN_PAUSE_S
        waited_for = [control, *exit_of(self.child)]
        while True:
            self._reap()
            self.seconds = time.monotonic() - self.began
            if self.status is not None:
                return
            self.reason = self._exceeded_limit()
            if self.reason:
                return
            took = time.monotonic() - self.began - self.seconds
            pause = max(pause, min(PAUSES * took, LONGEST_PAUSE_S))
            readable, _, _ = select.select(waited_for, [], [], pause)
            if control in readable and not self._follow(control):
                self.reason = "cancelled"
                return
            longest = min(self._room_bytes / FILLED_BYTES_S, LONGEST_PAUSE_S)
            if len(waited_for) == 1:  # nobody says when the command ends
                longest = 0.0
            longest = max(longest, MAX_PAUSE_S)
            pause = MIN_PAUSE_S if control in readable else min(2 * pause, longest)

    def _follow(self, control: int) -> bool:
        """Do what the grader says; False if that is to stop, or nothing because it has ended."""
        line = b""
        while not line.endswith(b"\n"):
            piece = os.read(control, 1)
            if not piece:
                return False
            line += piece
        message = json.loads(line)
        if "limits" in message:
            self.limits = message["limits"]
            self.began, self.idle, self.worked_before = time.monotonic(), False, True
            self._cpu_before += self.max_cpu_s
            self.max_cpu_s, self.peak_bytes, self.max_processes = 0.0, 0, 1
            self._turns = Turns(self._tree(thorough=False))
        elif "figures" in message:
            self.seconds = time.monotonic() - self.began
            self._use(self._tree(thorough=False))
            self.idle = True
            os.write(self.report, json.dumps(self.figures()).encode() + b"\n")
        return "stop" not in message

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.child:
                    self.status = os.waitstatus_to_exitcode(status)

    def _exceeded_limit(self) -> str:
        limits = self.limits
        now = time.monotonic()
        thorough = now > self._thorough_at + THOROUGH_EVERY_S
        tree = self._tree(thorough=thorough)
        self.max_processes = max(self.max_processes, len(tree))
        if len(tree) > limits["processes"] or sum(one.threads for one in tree) > limits["threads"]:
            return "processes"
        self._use(tree)
        if self.max_cpu_s > limits["cpu_seconds"]:
            return "cpu"
        own_s = self._turns.own(self.seconds, self.max_cpu_s, tree)
        if own_s > limits["seconds"] and not self.idle:
            return "time"
        memory = sum(resident(one.pid) for one in tree)
        if memory > limits["memory_bytes"] and len(tree) > 1:  # shared pages were counted twice
            memory = sum(proportional(one.pid) for one in tree)
        self.peak_bytes = max(self.peak_bytes, memory)
        self._room_bytes = limits["memory_bytes"] - memory
        if memory > limits["memory_bytes"]:
            return "memory"
        self._thorough_at = now if thorough else self._thorough_at
        if now > self._disk_at + DISK_EVERY_S:
            self._disk_at = now
            used = disk_bytes(self.box)
            for folder in self.shared_folders:
                others = (path for path in owned(folder, self.uid) if path != self.box)
                used += sum(map(disk_bytes, others))
            if used > limits["disk_bytes"]:
                return "disk"
        return ""

    def _tree(self, *, thorough: bool) -> list[Process]:
        return self.group.processes() if self.group and not thorough else descendants()

    def _use(self, tree: list[Process]) -> None:
        """Add up the processor time of those that run and of those that have ended."""
        done = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = done.ru_utime + done.ru_stime + sum(one.cpu_s for one in tree)
        self.max_cpu_s = max(cpu - self._cpu_before, self.max_cpu_s)


def exit_of(child: int) -> list[int]:
    """A descriptor that is readable once the process has ended, for an exact time."""
    with suppress(AttributeError, OSError):  # an old kernel
        return [os.pidfd_open(child)]
    return []


def resident(pid: int) -> int:
    """Bytes of memory in use, without pages that are mapped from files."""
    total = 0
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total


def proportional(pid: int) -> int:
    """Bytes of memory in use; pages shared by several processes are divided among them."""
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return resident(pid)


def owned(folder: str, uid: int) -> list[str]:
    """What a user has in a folder that every user may write to, and in such folders in it."""
    result = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == uid:
                    result.append(entry.path)
                elif entry.is_dir(follow_symlinks=False) and status.st_mode & 0o002:
                    result += owned(entry.path, uid)
    return result


def disk_bytes(folder: str) -> int:
    """The disk space of a file, or of the files in a folder; links are not followed."""
    total = files = 0
    with suppress(OSError):
        total = os.lstat(folder).st_blocks * 512
    for path, _, names in os.walk(folder):
        files += len(names) + 1
        if files > MAX_FILES:
            return 1 << 62
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total


def end_all(child: int, uid: int | None, group: Group | None) -> int:
    """Kill all descendants of this process; return how many there were besides `child`.

    The first process is killed first: if it is bubblewrap, all others end with it. The others are
    stopped before they are killed, so that a tree that forks faster than that cannot grow.
    """
    survivors = 0
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        left = [one.pid for one in descendants()]
        survivors = max(survivors, sum(pid != child for pid in left))
        if uid is not None:
            kill_user(uid)
        left += group.members() if group is not None else []
        signal_all(left[:2], signal.SIGKILL)
        signal_all(left, signal.SIGSTOP)
        signal_all(left, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if not left:
                break
        time.sleep(0.001)
    return survivors


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to each process that still exists."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def tasks_of(uid: int) -> int:
    """The number of processes and threads that a user has now."""
    count = 0
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def kill_user(uid: int) -> None:
    """Kill all processes of a user that only this command has: one call, no race."""
    killer = os.fork()
    if killer == 0:
        with suppress(OSError):
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    with suppress(ChildProcessError):
        os.waitpid(killer, 0)
