"""Runs one command, watches its whole tree of processes, and leaves none of it alive.

The grader starts this file by its path (`python -I -S watch.py SPEC`), one for each run of
untrusted code, so it needs nothing but the standard library and starts in hundredths of a second.
SPEC is the JSON that sandbox.py writes. Standard streams are the command's own. The verdict leaves
through a pipe that the command never gets; another pipe ends when the grader does.

An address-space limit would break CUDA and threaded NumPy, which reserve far more than they use.
So memory is what the tree really holds, looked up every few milliseconds.

Processes are another matter: a tree that doubles in a millisecond is faster than anyone who looks.
Their number is held by the kernel, in a control group or as the limit of a user, and looking only
finds out that it was reached.
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
from typing import Any

NO_NEW_PRIVILEGES = 38  # prctl: setuid programs give nothing
CHILD_SUBREAPER = 36  # prctl: orphans become our children, so none can hide
DEATH_SIGNAL = 1
FIRST_LOOK_S, LONGEST_S = 0.004, 0.02
DISK_EVERY_S = 0.25
MANY_FILES = 20_000  # a box with more is over its limit, whatever their sizes
TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_S = 50.0  # to end everything; a process in the kernel's hands may take a while


def main() -> None:
    """Run what the first argument describes and report on its way to end."""
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
    watched = Watched(child, spec, began)
    try:
        watched.until_the_end(control)
    finally:
        survivors = end_all(child, spec.get("uid"), group)
        if group is not None:
            group.remove()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = {
        "reason": watched.reason,
        "status": watched.status,
        "seconds": watched.seconds,
        "cpu_s": max(used.ru_utime + used.ru_stime, watched.most_cpu_s),
        "peak_bytes": max(watched.peak_bytes, used.ru_maxrss * 1024),
        "processes": watched.most_processes,
        "survivors": survivors,
    }
    os.write(report, json.dumps(verdict).encode())


def stay_first() -> None:
    """Run before all others, as far as the system lets us: what is watched may fill every core."""
    if hasattr(os, "SCHED_RESET_ON_FORK"):
        with suppress(OSError):
            first = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, first)


class Group:
    """A control group that holds the number of processes and threads."""

    def __init__(self, path: str) -> None:
        """Take the group at `path`."""
        self.path = path

    @staticmethod
    def make(name: str, most: int) -> Group | None:
        """A new one below our own; None where we may not, or where the system has none."""
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
                            limit.write(str(most))
                    except OSError:
                        os.rmdir(group)
                        continue
                    return Group(group)
        return None

    def join(self) -> None:
        """Move this process into it."""
        with open(f"{self.path}/cgroup.procs", "w", encoding="ascii") as procs:
            procs.write("0")

    def members(self) -> list[int]:
        """The processes in it, by our own numbers of them."""
        with suppress(OSError), open(f"{self.path}/cgroup.procs", encoding="ascii") as procs:
            return [pid for pid in map(int, procs.read().split()) if pid > 0]
        return []

    def remove(self) -> None:
        """Give it back to the system; it must be empty."""
        with suppress(OSError):
            os.rmdir(self.path)


def start(spec: dict[str, Any], libc: ctypes.CDLL, group: Group | None) -> int:
    """Fork; the child limits itself, gives up its privileges and becomes the command."""
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
        if group is None:
            most = spec["limits"]["threads"]
            spec["rlimits"]["RLIMIT_NPROC"] = most + tasks_of(spec.get("uid") or os.getuid())
        for name, value in spec["rlimits"].items():
            which = getattr(resource, name)
            _, most = resource.getrlimit(which)
            least = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(which, (least, least))
        if spec.get("uid") is not None:
            os.setgroups([])
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
    """A running command: what it has used, and why it was ended."""

    def __init__(self, child: int, spec: dict[str, Any], began: float) -> None:
        """`child` leads the tree; its limits stand in `spec`."""
        self.child, self.limits, self.box, self.began = child, spec["limits"], spec["box"], began
        self.status: int | None = None
        self.reason = ""
        self.seconds = 0.0
        self.peak_bytes = 0
        self.most_processes = 1
        self._disk_looked = began
        self.most_cpu_s = 0.0

    def until_the_end(self, control: int) -> None:
        """Return when the command has ended, broke a limit, or the grader is gone."""
        pause = FIRST_LOOK_S
        waited_for = [control, *exit_of(self.child)]
        while True:
            self._reap()
            self.seconds = time.monotonic() - self.began
            if self.status is not None:
                return
            self.reason = self._broken_limit()
            if self.reason:
                return
            readable, _, _ = select.select(waited_for, [], [], pause)
            if control in readable:  # a byte or the end: stop
                self.reason = "cancelled"
                return
            pause = min(2 * pause, LONGEST_S)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.child:
                    self.status = os.waitstatus_to_exitcode(status)

    def _broken_limit(self) -> str:
        limits = self.limits
        if self.seconds > limits["seconds"]:
            return "time"
        tree = descendants()
        self.most_processes = max(self.most_processes, len(tree))
        if len(tree) > limits["processes"] or sum(one.threads for one in tree) > limits["threads"]:
            return "processes"
        done = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = done.ru_utime + done.ru_stime + sum(one.cpu_s for one in tree)
        self.most_cpu_s = max(cpu, self.most_cpu_s)
        if self.most_cpu_s > limits["cpu_seconds"]:
            return "cpu"
        held = sum(resident(one.pid) for one in tree)
        if held > limits["memory_bytes"] and len(tree) > 1:  # shared pages were counted twice
            held = sum(proportional(one.pid) for one in tree)
        self.peak_bytes = max(self.peak_bytes, held)
        if held > limits["memory_bytes"]:
            return "memory"
        now = time.monotonic()
        if now > self._disk_looked + DISK_EVERY_S:
            self._disk_looked = now
            if disk_bytes(self.box) > limits["disk_bytes"]:
                return "disk"
        return ""


def exit_of(child: int) -> list[int]:
    """What can be read once the process has ended: its time is then no multiple of a pause."""
    with suppress(AttributeError, OSError):  # an old kernel
        return [os.pidfd_open(child)]
    return []


class Process:
    """A line of /proc/PID/stat."""

    __slots__ = ("cpu_s", "parent", "pid", "threads")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        """`fields` are those behind the name, which may hold anything."""
        self.pid, self.parent = pid, int(fields[1])
        self.cpu_s = (int(fields[11]) + int(fields[12])) / TICKS
        self.threads = int(fields[17])


def descendants() -> list[Process]:
    """All processes below this one, wherever they moved to."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        with suppress(OSError, ValueError, IndexError):  # it has just ended
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                found.append(Process(int(name), fields))
    by_parent: dict[int, list[Process]] = {}
    for process in found:
        by_parent.setdefault(process.parent, []).append(process)
    tree: list[Process] = []
    ring = by_parent.get(os.getpid(), [])
    while ring:
        tree += ring
        ring = [child for process in ring for child in by_parent.get(process.pid, [])]
    return tree


def resident(pid: int) -> int:
    """Bytes of memory that only swap could take away: not what is mapped from files."""
    total = 0
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total


def proportional(pid: int) -> int:
    """The same with pages that several processes share divided among them."""
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return resident(pid)


def disk_bytes(folder: str) -> int:
    """What the files in `folder` take; links are not followed."""
    total = files = 0
    for path, _, names in os.walk(folder):
        files += len(names) + 1
        if files > MANY_FILES:
            return 1 << 62
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total


def end_all(child: int, uid: int | None, group: Group | None) -> int:
    """Kill everything below this process until nothing is left; how many were still there.

    Its first process goes first: where that is bubblewrap, all the others end with it. The rest
    is stopped before it is killed, so that what forks faster than it is killed stops growing.
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
    """Send a signal to each that is still there."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def tasks_of(uid: int) -> int:
    """How many processes and threads a user has now."""
    count = 0
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def kill_user(uid: int) -> None:
    """Kill all that runs as `uid`, a user that only this command has: one call, no race."""
    killer = os.fork()
    if killer == 0:
        with suppress(OSError):
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    with suppress(ChildProcessError):
        os.waitpid(killer, 0)


if __name__ == "__main__":
    main()
