"""The bitonic network: sizes, tests, mutants."""

from cudalab.labs.inputs import Case
from cudalab.labs.keys_teaching import TESTS, SortLibraries, SortTeaching
from cudalab.labs.teaching import Mutant, PublicTest, Showcase, Sizes, Skeleton


class BitonicLibraries(SortLibraries):
    """The sorts of NumPy, CuPy and CUB, among them one that compares keys, as the network does."""

    def cub_ways(self, case: Case) -> dict[str, dict[str, str]]:
        """CUB's radix sort and its merge sort."""
        return {**super().cub_ways(case), "merge sort": {"OPERATION": "merge_sort"}}


class Teaching(SortTeaching):
    """The bitonic network."""

    topic = "bitonic"
    libraries = BitonicLibraries()
    usual_sizes = Sizes(
        bench={"cuda": 1 << 22, "cpu": 1 << 14},
        timed={"cuda": 4_000_000, "cpu": 30_000},
        sanitized=(1023, 6017),
    )
    tests = (
        *TESTS,
        PublicTest("a bitonic sequence", 4031, "bitonic"),
        PublicTest("many blocks", 70_003, "few"),
        PublicTest("more than 20 bits count", (1 << 20) + 70_001, "uniform", large=True),
    )
    mutants = (
        Mutant("global", "half_cleaner(t, stride)", "half_cleaner(t, 1)", "one stride only"),
    )
    showcases = (Showcase("alternating", "shared", "a pass over all keys for each step"),)
    skeleton = Skeleton("global")
