"""The user's cache of compiled kernels."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_ONLY = "CUDALAB_CACHE_READ_ONLY"  # set where a grader has filled the cache
LEAST_BYTES = 1 << 20  # that must fit in for a folder to be of use
_DISK_FULL = re.compile(  # as the system says it, and zig
    r"^.*\b(?:No space left on device|Disk quota exceeded|NoSpaceLeft|DiskQuota)(?:'|: '.*')?$",
    re.MULTILINE,
)


@cache
def cache_dir(device: str) -> Path:
    """The folder for what `device` compiles; a temporary one where the home cannot hold it."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "cudalab" / device
    if os.environ.get(READ_ONLY) and folder.is_dir():
        return folder  # filled by who may; whoever reads it here shall not write
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(LEAST_BYTES))
    except OSError as error:
        print(f"note: no cache in {folder}: {error.strerror}", file=sys.stderr)  # noqa: T201
    else:
        return folder
    temporary = tempfile.mkdtemp(prefix="cudalab-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    folder = Path(temporary, "cudalab", device)
    folder.mkdir(parents=True)
    return folder


def disk_full(messages: str) -> ToolchainError | None:
    """The error for a compiler's messages that tell of a full disk, or of a quota used up."""
    found = _DISK_FULL.search(messages)
    if found is None:
        return None
    return ToolchainError(
        f"no space left to compile in:\n{found[0].strip()}",
        hint="free some, or set XDG_CACHE_HOME and TMPDIR to folders that have some",
    )


@contextmanager
def disk_full_in_words() -> Iterator[None]:
    """Turn the OSError of a full disk into the error for it."""
    try:
        yield
    except OSError as error:
        raise disk_full(str(error)) or error from None
