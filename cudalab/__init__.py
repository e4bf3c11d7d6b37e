"""cudalab runs the labs of a university CUDA course, on a GPU or without one.

From Python: `sort`, `run`, `profile` and `sanitize`; in a notebook: `%load_ext cudalab`, which
brings `%%cu`.
"""

from __future__ import annotations

from importlib import import_module

# Without importing typing: the checker's watchers start in a hundredth of a second.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cudalab.backends import open_device
    from cudalab.errors import CudalabError
    from cudalab.python.calls import profile, run, sanitize, sort
    from cudalab.python.magics import load_ipython_extension

__version__ = "0.2.0"

__all__ = [
    "CudalabError",
    "load_ipython_extension",
    "open_device",
    "profile",
    "run",
    "sanitize",
    "sort",
]

# Where each name is, so that `import cudalab` does not wait for NumPy.
_PLACES = {
    "CudalabError": "cudalab.errors",
    "load_ipython_extension": "cudalab.python.magics",
    "open_device": "cudalab.backends",
} | dict.fromkeys(("profile", "run", "sanitize", "sort"), "cudalab.python.calls")


def __getattr__(name: str) -> Any:
    """Import a name of the interface when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module 'cudalab' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """The names of the interface, before they are imported too."""
    return sorted({name for name in globals() if name.startswith("__")} | {*__all__})
