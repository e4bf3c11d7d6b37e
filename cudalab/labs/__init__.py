"""The labs, one module each; a lab exists when its module and its kernels/ folder do."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.labs.base import Lab

_NO_LABS = {"__init__", "base"}


@cache
def names() -> tuple[str, ...]:
    """The labs' names, sorted."""
    modules = Path(__file__).parent.glob("*.py")
    return tuple(sorted(path.stem for path in modules if path.stem not in _NO_LABS))


def summary(name: str) -> str:
    """The lab's one-line summary: its module's first line, read without importing NumPy."""
    with (Path(__file__).parent / f"{name}.py").open(encoding="utf-8") as module:
        return module.readline().strip().strip('"')


@cache
def get(name: str) -> Lab:
    """The lab called `name`, one of `names()`."""
    lab: Lab = import_module(f"cudalab.labs.{name}").LAB
    return lab
