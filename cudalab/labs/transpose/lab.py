"""Transposes a matrix of any shape"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from cudalab.backends.base import Device
from cudalab.formats import as_bytes
from cudalab.labs.base import MatrixLab
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, special, uniform

PIECE_WORDS = 1 << 20  # elements drawn at a time


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

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate an n x n or rows x cols matrix.

        uniform: integers of all bits; floats are multiples of 2^-23 (2^-52) in [-1, 1).
        index: element i of the stream is i, rounded to the type.
        special: any bits; every other float is 0.0, -0.0, an infinity, a NaN or near 0.
        """
        rows, cols = self.check_data(n, dist)
        yield np.array([rows, cols], "<i4").tobytes()
        dtype = np.dtype(case["dtype"])
        raw = np.random.PCG64(seed)
        for start in range(0, rows * cols, PIECE_WORDS):
            count = min(PIECE_WORDS, rows * cols - start)
            if dist == "index":
                index = np.arange(start, start + count, dtype=np.int64)
                yield as_bytes(index.astype(dtype))
            elif dist == "special":
                yield as_bytes(special(raw.random_raw(count), dtype))
            else:
                yield as_bytes(uniform(raw.random_raw(count), dtype))

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
