"""The kinds of passes that make loops of kernels, and their arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudalab.backends.cpu.regions.parts import Part
from cudalab.backends.cpu.regions.syntax import Function, Statement
from cudalab.backends.cpu.regions.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Passes:
    """Passes in their order; those that write are handed the `Body` of a function."""

    # NotCoveredError for a kernel that keeps its fibers; the first of the functions is the kernel.
    refuse: Sequence[Callable[[Unit, list[Function]], None]]
    # The statements of a function, in a form in which later passes meet fewer cases.
    normalize: Sequence[Callable[[Unit, Function], list[Statement]]]
    # The parts of statements between which threads meet; whether they end the function.
    cut: Callable[[Any, list[Statement], bool], list[Part]]
    write: Mapping[str, Callable[[Any, Part], None]]  # by the kind of a part
