"""What the user's cache keeps, so that the next prediction begins with it: code and counts."""

import json
from contextlib import suppress
from hashlib import sha256
from typing import Any

from cudalab.system.cache import cache_dir, put


def key(*parts: object) -> str:
    """The name of what follows from `parts`."""
    return sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def load(name: str) -> Any:
    """The document called `name`; None if there is none, or a damaged one."""
    try:
        return json.loads((cache_dir("predict") / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def save(name: str, document: object) -> None:
    """Keep a document. A full disk costs the next run its time, nothing else."""
    with suppress(OSError):
        put(cache_dir("predict") / f"{name}.json", json.dumps(document).encode())
