"""What the system tells of running processes: their trees, and how long they wait for a processor.

It imports little, for the watcher of each run of untrusted code imports it (sandbox/watch.py).
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TICKS = os.sysconf("SC_CLK_TCK")
MAX_WAIT = 49  # times as long as all else: a tree that hardly gets a processor is ended, too
LOOK_EVERY_S = 0.1  # at the time that threads have waited
NS = 1e-9


class Process:
    """A process as described by /proc/PID/stat."""

    __slots__ = ("cpu_s", "parent", "pid", "threads")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        """Read the fields after the name, which may contain anything."""
        self.pid, self.parent = pid, int(fields[1])
        self.cpu_s = sum(map(int, fields[11:15])) / TICKS  # with that of children that have ended
        self.threads = int(fields[17])

    @staticmethod
    def read(pid: int) -> Process | None:
        """A process that still runs; None if it has ended."""
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                return Process(pid, fields)
        return None


def descendants() -> list[Process]:
    """All descendants of this process, including those that started a session of their own."""
    by_parent: dict[int, list[Process]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        process = Process.read(int(name)) if name.isdecimal() else None
        if process is not None:
            by_parent.setdefault(process.parent, []).append(process)
    tree: list[Process] = []
    level = by_parent.get(os.getpid(), [])
    while level:
        tree += level
        level = [child for process in level for child in by_parent.get(process.pid, [])]
    return tree


class Turns:
    """The turns of a tree of processes on processors that it shares with others."""

    def __init__(self, tree: Iterable[Process] = ()) -> None:
        """Begin with a tree: what it has waited before does not matter."""
        self.waited_s = 0.0  # at least this long, part of the tree had work and no processor
        self._looked_at = 0.0
        self._known = waits_of(tree)

    def own(self, seconds: float, cpu_s: float, tree: list[Process]) -> float:
        """The time that is the tree's own, of `seconds` in which it has used `cpu_s`.

        While any part of it runs, none of it counts as waiting: so a tree with more threads than
        there are processors does not get more time.
        """
        if seconds - self._looked_at > LOOK_EVERY_S:
            self._looked_at = seconds
            waits = waits_of(tree)
            more = (ns - self._known.get(task, 0) for task, ns in waits.items())
            self.waited_s += NS * max(more, default=0)
            self._known = waits
        waited_s = min(self.waited_s, max(0.0, seconds - cpu_s))
        return max(seconds - waited_s, seconds / (1 + MAX_WAIT))


def waits_of(tree: Iterable[Process]) -> dict[str, int]:
    """Nanoseconds that each thread of a tree has waited for a processor; by its id."""
    found = {}
    for process in tree:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{process.pid}/task"):
                with (
                    suppress(OSError, ValueError, IndexError),  # it has ended, or nothing counts
                    open(f"/proc/{process.pid}/task/{task}/schedstat", "rb") as file,
                ):
                    found[task] = int(file.read().split()[1])
    return found
