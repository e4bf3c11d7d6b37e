"""How the array libraries NumPy, CuPy and CUB compute what a lab computes.

Each writes to preallocated memory, like a lab's own step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from cudalab.labs.inputs import Case, HostInputs

Compute = Callable[[], None]
NUMPY, CUPY, CUB = NAMES = "numpy", "cupy", "cub"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One computation by an array library."""

    xp: Any  # NumPy, or a library with its functions
    arrays: dict[str, Any]  # inputs as arrays of the library
    inputs: HostInputs  # the same inputs on the host
    case: Case
    out: Any  # where the answer goes
    vendor: Any = None  # routines without an array function in CuPy; None for NumPy

    @property
    def first(self) -> Any:
        """The first input."""
        return next(iter(self.arrays.values()))


class Way(NamedTuple):
    """A way in which a library computes the answer."""

    compute: Compute
    notes: Sequence[str] = ()
    name: str = ""  # a description, if it is not the usual way


class Libraries:
    """The libraries that compute the same as a lab: by default, none."""

    names: ClassVar[tuple[str, ...]] = ()
    operation = ""  # of cub.cu, if it is the same for all cases

    def why_not(self, name: str, case: Case) -> str | None:
        """The reason why the library called `name` cannot compute the case; None if it can."""
        del name, case
        return None

    def compute(self, problem: Problem) -> Compute:
        """The computation, in functions that both NumPy and CuPy have."""
        raise NotImplementedError

    def numpy(self, problem: Problem) -> Way:
        """The computation by NumPy."""
        return Way(self.compute(problem))

    def cupy(self, problem: Problem) -> Sequence[Way]:
        """The computations by CuPy; the note of each is the library that does the work."""
        return [Way(self.compute(problem))]

    def cub(self, case: Case) -> dict[str, str]:
        """The macros that choose cub.cu's operation."""
        del case
        return {"OPERATION": self.operation}

    def cub_ways(self, case: Case) -> dict[str, dict[str, str]]:
        """The macros of each way in which CUB computes the answer; the usual one has no name."""
        return {"": self.cub(case)}
