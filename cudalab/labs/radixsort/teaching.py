"""Radix sort: sizes, tests, mutants."""

from collections.abc import Sequence

from cudalab.labs.inputs import Case
from cudalab.labs.keys_teaching import TESTS, SortTeaching
from cudalab.labs.teaching import Mutant, PublicTest, Showcase, Sizes, Skeleton


class Teaching(SortTeaching):
    """Radix sort; its mistakes and libraries are the same as for any sort."""

    topic = "radixsort"
    usual_sizes = Sizes(
        bench={"cuda": 1 << 24, "cpu": 1 << 16},
        timed={"cuda": 16_000_000, "cpu": 100_000},
        sanitized=(1023, 20_001),
    )
    tests = (
        *TESTS,
        PublicTest("only the top byte differs", 5000, "top-byte"),
        PublicTest("small numbers", 31_743, "bounded"),
        PublicTest("whole tiles, half of the keys equal", 65_536, "half-equal"),
        PublicTest("many blocks", 73_729, "uniform"),
        PublicTest("more than 20 bits count", (1 << 20) + 70_001, "uniform", large=True),
    )
    # For kernels that sort buckets: one is too large for a block, or several are.
    bucket_tests = (
        PublicTest("many equal keys", 20_001, "equal"),
        PublicTest("many blocks, few values", 200_003, "few"),
    )
    mutants = (
        Mutant("split_1bit", "const bool one = ", "const bool one = !", "ones first"),
        Mutant(
            "split_1bit", "in[n - 1]), bit", "in[n - 1]), 0", "the zeros of bit 0 in every pass"
        ),
    )
    showcases = (Showcase("split_1bit", "digit_8bit", "a pass over all keys for each bit"),)
    skeleton = Skeleton("split_1bit")

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """More tests for kernels."""
        del case
        return self.tests if dispatch is None else (*self.tests, *self.bucket_tests)
