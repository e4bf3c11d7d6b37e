"""How array libraries compute what a lab computes: NumPy, CuPy, CUB.

Each computes into an output whose memory is there already, like a lab's own step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from cudalab.labs.inputs import Case, HostInputs

    Compute = Callable[[], None]

NUMPY, CUPY, CUB = NAMES = "numpy", "cupy", "cub"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One computation by an array library."""

    xp: Any  # NumPy, or a library with its functions
    arrays: dict[str, Any]  # the inputs, as arrays of the library
    inputs: HostInputs  # the same on the host
    case: Case
    out: Any  # takes the answer
    vendor: Any = None  # routines that CuPy's array functions do not reach; None for NumPy

    @property
    def given(self) -> Any:
        """The first of the inputs."""
        return next(iter(self.arrays.values()))


class Way(NamedTuple):
    """One of the ways in which a library computes the answer."""

    compute: Compute
    notes: Sequence[str] = ()
    name: str = ""  # in words, where it is not the usual one


class Libraries:
    """The libraries that compute the same as a lab: none, unless the lab says how."""

    names: ClassVar[tuple[str, ...]] = ()

    def why_not(self, name: str, case: Case) -> str | None:
        """Why the library called `name` cannot compute the case, in words; None where it can."""
        del name, case
        return None

    def answer(self, inputs: HostInputs, case: Case) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of the answer: those of the first input."""
        del case
        first = next(iter(inputs.arrays.values()))
        return first.shape, first.dtype

    def compute(self, problem: Problem) -> Compute:
        """The computation in functions that NumPy and CuPy both have."""
        raise NotImplementedError

    def numpy(self, problem: Problem) -> Way:
        """NumPy's way."""
        return Way(self.compute(problem))

    def cupy(self, problem: Problem) -> Sequence[Way]:
        """CuPy's ways; the note of each is the library that does the work."""
        return [Way(self.compute(problem))]

    def cub(self, case: Case) -> dict[str, str]:
        """The macros that choose the operation in cub.cu."""
        raise NotImplementedError
