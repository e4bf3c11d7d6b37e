"""The names of what is compiled: hashes of all that decides it. Imports nothing heavy."""

import hashlib
import os
from functools import cache
from pathlib import Path

from cudalab import __version__
from cudalab.backends.cpu.flags import processor
from cudalab.system.cache import cache_dir

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - read at each start
# Folders of which every source takes part in turning CUDA into what a processor runs.
_DECIDING = ("language", "program", "backends/cpu")
_LEFT_OUT = ("__pycache__",)


def cached(kind: str, stem: str, *parts: str | bytes, suffix: str = "") -> Path:
    """Where the user's cache has what is made of `parts`; it may not exist yet."""
    return cache_dir(kind) / f"{stem}-{key(*parts)}{suffix}"


def key(*parts: str | bytes) -> str:
    """A name for what is made of `parts` by this version of cudalab, on this processor.

    `parts` are what else decides: the sources, the flags, and the compiler's identity.
    """
    return digest(_code(PACKAGE), __version__, processor(), *parts)


def digest(*parts: str | bytes) -> str:
    """A hash of the content of `parts`, for use in a name."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little") + data)
    return sha.hexdigest()[:24]


@cache
def _code(package: str) -> str:
    """A hash of all code that reads CUDA, rewrites it, compiles it and is compiled with it."""
    contents: list[str | bytes] = []
    for part in _DECIDING:
        for folder, folders, names in os.walk(os.path.join(package, part)):  # noqa: PTH118 - as above
            folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
            for name in sorted(names):
                with open(os.path.join(folder, name), "rb") as file:  # noqa: PTH118, PTH123 - as above
                    contents += [os.path.relpath(folder, package), name, file.read()]
    return digest(*contents)
