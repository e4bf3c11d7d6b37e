"""The labs, one folder each; a lab exists if it has a folder here and one in kernels/."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.labs.base import Lab


@cache
def names() -> tuple[str, ...]:
    """The labs' names, sorted."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/lab.py")))


def summary(name: str) -> str:
    """The lab's one-line summary: its module's first line, read without importing NumPy."""
    with (Path(__file__).parent / name / "lab.py").open(encoding="utf-8") as module:
        return module.readline().strip().strip('"')


@cache
def get(name: str) -> Lab:
    """The lab called `name`, one of `names()`."""
    lab: Lab = import_module(f"cudalab.labs.{name}.lab").LAB
    return lab
