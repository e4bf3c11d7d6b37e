"""The topics of `cudalab explain`, one module each, in the order of the course.

Small functions compute a topic's figures and drawings when its page is printed. The first line of
a topic's module is its summary; `page` yields its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.output.page import Part

TOPICS = (
    "memory",
    "coalescing",
    "banks",
    "divergence",
    "roofline",
    "occupancy",
    "copies",
    "matmul",
    "tensor_cores",
    "reduction",
    "scan",
    "look_back",
    "histogram",
    "radixsort",
    "bitonic",
    "convergence",
    "pivoting",
    "ordering",
)


def summary(topic: str) -> str:
    """The first line of the topic's module, read without importing it."""
    with (Path(__file__).parent / f"{topic}.py").open(encoding="utf-8") as module:
        return module.readline().strip().strip('"')


def page(topic: str) -> Iterator[Part]:
    """The page about `topic`, one of TOPICS."""
    parts: Iterator[Part] = import_module(f"cudalab.explain.{topic}").page()
    return parts
