"""Moves the items that are not 0 to the front, in their order"""

from typing import Any, ClassVar

import numpy as np

from cudalab.backends.base import C_TYPES
from cudalab.labs.compare import SHOWN, Mismatches, show
from cudalab.labs.inputs import Array, Case, HostInputs, special, uniform
from cudalab.labs.kinds import ArrayLab

RUN_BITS = 7  # 2^7 items of a run are all kept, or none

# Of 64 items, how many are 0 on average.
ZEROS_OF_64 = {"half": 32, "few-kept": 63, "most-kept": 1, "all-zeros": 64, "no-zeros": 0}


class Compact(ArrayLab):
    """Stream: int32 n, then n items. Answer: n elements, without a header.

    First come the items that are not 0, in their order; zeros fill the rest. A NaN is not 0, -0 is.
    """

    name = "compact"
    elements, answer = "items", "compacted items"
    axes: ClassVar = {"dtype": ("int32", "uint32", "float32", "int64", "float64")}
    distributions = (*ZEROS_OF_64, "runs", "special")

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """ITEM, the element type in C; T is left to the scan of counts."""
        return {"ITEM": C_TYPES[case["dtype"]]}

    def draw(
        self, bits: Array, dtype: np.dtype[Any], dist: str, start: int, dims: tuple[int, ...]
    ) -> Array:
        """Make items of random bits; those that are not 0 are random.

        half, few-kept, most-kept, all-zeros, no-zeros: 32, 63, 1, 64, 0 of 64 are 0, on average.
        runs: 128 items are all 0, or none is; which, is random.
        special: any bits; floats are NaNs, infinities, zeros of both signs, numbers near 0.
        """
        del start, dims
        if dist == "special":
            return special(bits, dtype)
        items = uniform(bits, dtype)
        items[items == 0] = 1
        if dist == "runs":
            of_run = bits[np.arange(len(bits)) >> RUN_BITS << RUN_BITS]
            items[of_run & np.uint64(1) == 0] = 0
        else:
            items[bits % np.uint64(64) < ZEROS_OF_64[dist]] = 0
        return items

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """The items that differ from 0, and zeros behind them."""
        del case
        items = inputs.arrays["items"]
        kept, answer = items[items != 0], np.zeros_like(items)
        answer[: len(kept)] = kept
        return answer

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare by value: a NaN agrees with a NaN, zeros of both signs with each other."""
        expected = self.reference(inputs, case)
        agree = got == expected
        if got.dtype.kind == "f":
            agree |= np.isnan(got) & np.isnan(expected)
        wrong = np.flatnonzero(~agree)
        if len(wrong) == 0:
            return None
        first = [(int(i), show(expected[i]), show(got[i])) for i in wrong[:SHOWN]]
        kept = np.count_nonzero(inputs.arrays["items"])
        return Mismatches(len(wrong), len(got), first, [f"{kept:,} of {len(got):,} are kept"])


LAB = Compact()
