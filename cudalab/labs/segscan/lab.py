"""Scans an array whose sums begin again where a key changes"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from cudalab.formats import InputStream, as_bytes
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.inputs import (
    Array,
    Case,
    HostInputs,
    Inputs,
    Size,
    StreamInputs,
    random_pieces,
    uniform,
)
from cudalab.labs.kinds import ArrayLab

PIECE_ITEMS = 1 << 16  # drawn or added up at a time: as many as a cache holds
MIXED_RUN = 1 << 12  # items between which the lengths of segments change
RETURNING_KEYS = 3

# Of 2^16 items, with how many a segment begins, on average.
BEGINNINGS = {"short": 1 << 14, "long": 8, "one-segment": 0, "each-alone": 1 << 16}


class SegmentedScan(ArrayLab):
    """Stream: int32 n, n keys, n items. Answer: n elements, without a header.

    Equal keys that follow each other make a segment. Element i is the sum of the items of its
    segment up to item i, which is included; sums wrap.
    """

    name = "segscan"
    elements, answer = "items", "sums"
    axes: ClassVar = {"dtype": ("int32",)}
    distributions = ("mixed", *BEGINNINGS, "returning")

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """No macros: keys and items are int, and T is what the kernels make of them."""
        del case
        return {}

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header, int32 n ≥ 0; n keys and n items follow."""
        (n,) = stream.header("n")
        keys = stream.payload("keys", case["dtype"], n)
        items = stream.payload("items", case["dtype"], n)
        return StreamInputs({"keys": keys, "items": items}, {"n": n})

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate n keys, then n items with random bits.

        short, long, one-segment, each-alone: a segment has 4, 8,192, n, 1 items, on average.
        mixed: an average of 1 to 8,192 items, another one in every 4,096.
        returning: 16 items on average, and keys 0, 1, 2, 0, ...; elsewhere no key returns.
        """
        (n,) = self.check_data(n, dist)
        yield np.array([n], "<i4").tobytes()
        raw, dtype = np.random.PCG64(seed), np.dtype(case["dtype"])
        segments = 0  # that have begun
        for _, bits in random_pieces(raw, n, PIECE_ITEMS):
            segment = segments + np.cumsum(_begins(bits, dist))
            segments = int(segment[-1])
            if dist == "returning":
                yield as_bytes((segment % RETURNING_KEYS).astype(dtype))
            else:  # a product with an odd number: different keys for 2^32 segments
                spread = segment.astype(np.uint64) * np.uint64(0x9E3779B1)
                yield as_bytes(spread.astype("<u4").view(dtype))
        for _, bits in random_pieces(raw, n, PIECE_ITEMS):
            yield as_bytes(uniform(bits, dtype))

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Sums of all items of a piece so far, less those before the segment, modulo 2^32."""
        del case
        keys, items = inputs.arrays["keys"], inputs.arrays["items"]
        answer = np.empty(len(keys), np.uint32)
        begins = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=begins[1:])
        carry = np.uint32(0)  # the sum of the segment so far, at the end of the piece before
        for start in range(0, len(keys), PIECE_ITEMS):
            piece = slice(start, min(start + PIECE_ITEMS, len(keys)))
            sums = np.cumsum(items[piece].view(np.uint32), dtype=np.uint32)
            first = np.where(begins[piece], np.arange(len(sums)), -1)  # of each item's segment
            first = np.maximum.accumulate(first)
            sums -= np.where(first > 0, sums[np.maximum(first - 1, 0)], np.uint32(0))
            sums[first < 0] += carry
            answer[piece], carry = sums, sums[-1]
        return answer.view(items.dtype)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare exactly."""
        return compare_exact(got, self.reference(inputs, case))


LAB = SegmentedScan()


def _begins(bits: Array, dist: str) -> Array:
    """Whether a segment begins with each item, decided by its random bits."""
    drawn = bits & np.uint64(0xFFFF)
    if dist == "returning":
        return np.asarray(drawn < 1 << 12)
    if dist == "mixed":
        of_run = bits[np.arange(len(bits)) // MIXED_RUN * MIXED_RUN] >> np.uint64(32)
        return np.asarray(drawn < np.uint64(1 << 16) >> of_run % np.uint64(14))
    return np.asarray(drawn < BEGINNINGS[dist])
