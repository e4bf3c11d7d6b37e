"""Sorts n keys by a network of comparators"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from cudalab.formats import as_bytes
from cudalab.labs.inputs import Case, Size
from cudalab.labs.keys import KeySort, draw


class Bitonic(KeySort):
    """Stream: int32 n, then n keys. Answer: the keys in ascending order, without a header."""

    name = "bitonic"
    axes: ClassVar = {"dtype": ("int32", "uint32", "float32")}
    distributions = (*KeySort.distributions, "bitonic")

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate the distributions of radixsort, or an ascending, then descending sequence."""
        if dist == "bitonic" and isinstance(n, int):
            keys = draw(np.dtype(case["dtype"]), n, "sorted", seed)
            yield np.array([n], "<i4").tobytes()
            yield as_bytes(np.concatenate([keys[0::2], keys[1::2][::-1]]))
        else:
            yield from super().generate(case, n, dist, seed)


LAB = Bitonic()
