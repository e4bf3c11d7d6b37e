"""The user's cache of compiled kernels."""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from cudalab.errors import NotBuiltError, ToolchainError
from cudalab.output.notes import note

READ_ONLY = "CUDALAB_CACHE_READ_ONLY"  # set if a grader has filled the cache
CLOSED = "closed"  # its value once a process cannot compile any more
ADDITIONS = "CUDALAB_CACHE_ADDITIONS"  # the folder for what such a cache is found to lack
MIN_BYTES = 1 << 20  # free space that a folder must have to be of use
_DISK_FULL = re.compile(  # in the words of the system, and of zig
    r"^.*\b(?:No space left on device|Disk quota exceeded|NoSpaceLeft|DiskQuota)(?:'|: '.*')?$",
    re.MULTILINE,
)


def base_dir() -> Path:
    """The folder in which the user's caches are, whether it can be written to or not."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # absent or relative: to be ignored by XDG's rules
        base = Path.home() / ".cache"
    return base / "cudalab"


@cache
def cache_dir(device: str) -> Path:
    """The folder for what `device` compiles; a temporary one if the home has no room for it."""
    folder = base_dir() / device
    if os.environ.get(READ_ONLY) and folder.is_dir():
        return folder  # filled by another process; this one must not write to it
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(MIN_BYTES))
    except OSError as error:
        note(f"no cache in {folder}: {error.strerror}")
    else:
        return folder
    temporary = tempfile.mkdtemp(prefix="cudalab-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    folder = Path(temporary, "cudalab", device)
    folder.mkdir(parents=True)
    return folder


def place_of(entry: Path) -> Path:
    """The place of an entry that a cache lacks: in it, or beside one that is only read.

    NotBuiltError where it is not there, and nothing may be added.
    """
    if not os.environ.get(READ_ONLY):
        return entry
    folder = os.environ.get(ADDITIONS)
    added = Path(folder, entry.name) if folder else None
    if added is None or (os.environ[READ_ONLY] == CLOSED and not added.exists()):
        raise NotBuiltError(f"{entry.name} has not been compiled beforehand")
    return added


def put(entry: Path, data: bytes) -> None:
    """Store an entry in one step: another process finds all of it, or nothing."""
    with tempfile.TemporaryDirectory(dir=entry.parent) as folder:
        partial = Path(folder, "partial")
        partial.write_bytes(data)
        partial.replace(entry)


def disk_full(messages: str) -> ToolchainError | None:
    """The error for a compiler's messages about a full disk or an exhausted quota, else None."""
    line = _DISK_FULL.search(messages)
    if line is None:
        return None
    return ToolchainError(
        f"no space left to compile in:\n{line[0].strip()}",
        hint="free some space, or set XDG_CACHE_HOME and TMPDIR to folders that have some",
    )


@contextmanager
def explain_full_disk() -> Iterator[None]:
    """Replace the OSError of a full disk by an error with a hint."""
    try:
        yield
    except OSError as error:
        raise disk_full(str(error)) or error from None
