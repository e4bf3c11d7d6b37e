"""The user's cache of compiled kernels."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

READ_ONLY = "CUDALAB_CACHE_READ_ONLY"  # set where a grader has filled the cache


@cache
def cache_dir(device: str) -> Path:
    """The folder for what `device` compiles; a temporary one where the home is not writable."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "cudalab" / device
    if os.environ.get(READ_ONLY) and folder.is_dir():
        return folder  # filled by who may; whoever reads it here shall not write
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        print(f"note: no cache in {folder}: {error.strerror}", file=sys.stderr)  # noqa: T201
    temporary = tempfile.mkdtemp(prefix="cudalab-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary)
