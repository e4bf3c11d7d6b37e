"""Reverses the order of n numbers"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cudalab.formats import as_bytes
from cudalab.labs.base import Lab
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cudalab.formats import InputStream


class Flip(Lab):
    """Stream: int32 n, then n numbers. Answer: the numbers from the last to the first."""

    name = "flip"
    answer = "flipped numbers"
    axes: ClassVar = {"dtype": ("int32", "float32")}
    distributions = ("uniform",)

    def read(self, stream: InputStream, case: Case) -> Inputs:
        (n,) = stream.header("n")
        return StreamInputs({"x": stream.payload("x", case["dtype"], n)}, {"n": n})

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        del dist
        yield np.array([n], "<i4").tobytes()
        words = np.random.PCG64(seed).random_raw(n) >> np.uint64(48)
        yield as_bytes(words.astype(case["dtype"]))

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        del case
        return inputs.arrays["x"][::-1].copy()

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        return compare_exact(got, self.reference(inputs, case))


LAB = Flip()
