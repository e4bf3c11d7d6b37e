"""Transposes a matrix of any shape"""

from typing import Any, ClassVar

import numpy as np

from cudalab.backends.base import Device
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, special, uniform
from cudalab.labs.kinds import MatrixLab


class Transpose(MatrixLab):
    """Stream: int32 rows, int32 cols, then rows x cols elements. Answer: cols x rows elements.

    Bits are moved, never changed: NaNs keep their payloads.
    """

    name = "transpose"
    elements, answer = "matrix", "transposed matrix"
    axes: ClassVar = {"dtype": ("float32", "int32", "float64")}
    distributions = ("uniform", "index", "special")

    def answer_form(self, inputs: Inputs, case: Case) -> tuple[tuple[int, ...], str]:
        """A cols x rows matrix."""
        return (inputs.params["cols"], inputs.params["rows"]), case["dtype"]

    def draw(
        self, bits: Array, dtype: np.dtype[Any], dist: str, start: int, dims: tuple[int, ...]
    ) -> Array:
        """Make elements of random bits.

        uniform: integers of all bits; floats are multiples of 2^-23 (2^-52) in [-1, 1).
        index: element i of the stream is i, rounded to the type.
        special: any bits; every other float is 0.0, -0.0, an infinity, a NaN or near 0.
        """
        del dims
        if dist == "index":
            return np.arange(start, start + len(bits), dtype=np.int64).astype(dtype)
        return special(bits, dtype) if dist == "special" else uniform(bits, dtype)

    taken: ClassVar = {"tiled_sectors": "rows of other than 16 k bytes"}

    def choose(self, inputs: Inputs, case: Case, device: Device) -> str | None:
        """On a GPU, choose whole sectors if rows do not start at multiples of 16 bytes."""
        itemsize = np.dtype(case["dtype"]).itemsize
        row_bytes = [inputs.params[size] * itemsize for size in ("rows", "cols")]
        unaligned = any(size % 16 for size in row_bytes)
        return "tiled_sectors" if unaligned and device.facts.many_threads else None

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """NumPy's transpose, in C order."""
        del case
        matrix = inputs.arrays["matrix"]
        return np.ascontiguousarray(matrix.T)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare bit for bit; report the row and column of the first mistake."""
        expected = self.reference(inputs, case)
        mismatches = compare_exact(got, expected)
        if mismatches is None:
            return None
        matrix = inputs.arrays["matrix"]
        if compare_exact(got.reshape(matrix.shape), matrix) is None:
            mismatches.findings.append("this is the input as it was, not transposed")
        row, col = divmod(mismatches.first[0][0], inputs.params["rows"])
        mismatches.findings.append(f"first in row {row}, column {col} of the answer")
        return mismatches


LAB = Transpose()
