"""Users for runs: each run has one of its own, who owns nothing but its box."""

from __future__ import annotations

import fcntl
import itertools
import os
from pathlib import Path

from cudalab.checker.sandbox import leftovers

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
            leftovers.remove_all(uid, box)

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


_numbers = itertools.count(1)


def next_number() -> int:
    """The next number of a run, unique among the threads of this process."""
    return next(_numbers)
