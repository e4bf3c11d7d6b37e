"""The user's cache of compiled kernels."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path


@cache
def cache_dir(device: str) -> Path:
    """The folder for what `device` compiles; a temporary one where the home is not writable."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "cudalab" / device
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        print(f"note: no cache in {folder}: {error.strerror}", file=sys.stderr)  # noqa: T201
    temporary = tempfile.mkdtemp(prefix="cudalab-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary)
