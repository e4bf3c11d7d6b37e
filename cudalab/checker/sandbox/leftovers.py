"""Removes what a run's user has left behind: files in shared folders, and System V's objects.

In a sandbox without a file system of its own a run may write wherever every user may. Its user is
nobody else's, so whatever belongs to that user afterwards is the run's.
"""

import ctypes
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from cudalab.checker.sandbox.box import BOX_PREFIX
from cudalab.checker.sandbox.watch import owned

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
