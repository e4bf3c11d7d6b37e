"""Kinds of labs: the input is one array or one matrix, the right answer is computed in pieces."""

from collections.abc import Iterator
from math import prod
from typing import Any, ClassVar

import numpy as np

from cudalab.errors import UsageError
from cudalab.formats import InputStream, as_bytes
from cudalab.labs.base import Lab
from cudalab.labs.compare import Accuracy, Piece, nearest_of_pieces
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs, random_pieces


class DrawnLab(Lab):
    """A lab whose input is one array of elements, behind its dimensions."""

    elements: ClassVar[str]  # the name of the array
    drawn_at_once: ClassVar = 1 << 16  # elements: as many as a cache holds; `draw` may rely on it

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate the dimensions, and the elements that `draw` makes, some at a time."""
        dims = self.check_data(n, dist)
        yield np.array(dims, "<i4").tobytes()
        raw, dtype = np.random.PCG64(seed), np.dtype(case["dtype"])
        for start, bits in random_pieces(raw, prod(dims), self.drawn_at_once):
            yield as_bytes(self.draw(bits, dtype, dist, start, dims))

    def draw(
        self, bits: Array, dtype: np.dtype[Any], dist: str, start: int, dims: tuple[int, ...]
    ) -> Array:
        """Turn 64 random bits each into the elements from `start` on, of an array of `dims`."""
        raise NotImplementedError

    def check_data(self, n: Size, dist: str) -> tuple[int, ...]:
        """The dimensions of the data to generate. UsageError if there is no such data."""
        raise NotImplementedError


class ArrayLab(DrawnLab):
    """A lab that turns an array into one of the same length and type.

    Stream: int32 n, then n elements. Answer: n elements, without a header.
    """

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header, int32 n ≥ 0; n elements of the case's dtype follow."""
        (n,) = stream.header("n")
        payload = stream.payload(self.elements, case["dtype"], n)
        return StreamInputs({self.elements: payload}, {"n": n})

    def check_data(self, n: Size, dist: str) -> tuple[int]:
        """The length of the data to generate. UsageError if there is no such data."""
        if not isinstance(n, int) or dist not in self.distributions:
            raise UsageError(
                f"{self.name} has no data of size {n} with distribution {dist}",
                hint=f"one number, and a distribution of {', '.join(self.distributions)}",
            )
        return (n,)


class MatrixLab(DrawnLab):
    """A lab that turns a matrix into another one, by default of the same shape.

    Stream: int32 rows, int32 cols, then the elements row by row. Answer: as many, no header.
    """

    example_size = "500"

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header, int32 rows, cols ≥ 0; the matrix follows row by row."""
        rows, cols = stream.header("rows", "cols")
        matrix = stream.payload("matrix", case["dtype"], rows, cols)
        return StreamInputs({self.elements: matrix}, {"rows": rows, "cols": cols})

    def answer_form(self, inputs: Inputs, case: Case) -> tuple[tuple[int, ...], str]:
        """A rows x cols matrix."""
        return (inputs.params["rows"], inputs.params["cols"]), case["dtype"]

    def check_data(self, n: Size, dist: str) -> tuple[int, int]:
        """Rows and columns of the data to generate. UsageError if there is no such data."""
        rows, cols, *others = (n, n) if isinstance(n, int) else n
        if others or dist not in self.distributions:
            raise UsageError(
                f"{self.name} has no data of size {n} with distribution {dist}",
                hint="--n ORDER or ROWSxCOLS, and a distribution of "
                + ", ".join(self.distributions),
            )
        return rows, cols


class PiecewiseLab(Lab):
    """A lab whose right answer is computed piece by piece, which takes less memory."""

    def pieces(self, inputs: HostInputs, case: Case) -> Iterator[Piece]:
        """The pieces of the answer in C order: where, the right values, their error bounds.

        Values that have bounds are in float64; None instead of bounds: they are exact.
        """
        raise NotImplementedError

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """The answer; what has been computed in float64 is rounded once."""
        shape, dtype = self.answer_form(inputs, case)
        answer = np.empty(prod(shape), dtype)
        for piece, expected, _ in self.pieces(inputs, case):
            with np.errstate(over="ignore"):
                answer[piece] = expected
        return answer.reshape(shape)

    def bounds(self, inputs: HostInputs, case: Case) -> tuple[Array, Array] | None:
        """The right values in float64 and their bounds; None if they have none."""
        pieces = list(self.pieces(inputs, case))
        bounds = [bound for _, _, bound in pieces if bound is not None]
        if not bounds:
            return None
        shape, _ = self.answer_form(inputs, case)
        values = np.concatenate([expected for _, expected, _ in pieces])
        return values.reshape(shape), np.concatenate(bounds).reshape(shape)

    def accuracy(self, got: Array, inputs: HostInputs, case: Case) -> Accuracy | None:
        """How close the answer comes to its bounds, a piece at a time."""
        return nearest_of_pieces(got.reshape(-1), self.pieces(inputs, case))
