"""Segmented scan: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator

import numpy as np

from cudalab.labs.evidence import Evidence, Finding, block_sizes, same_as_input
from cudalab.labs.inputs import Array
from cudalab.labs.libraries import CUB, NUMPY, Compute, Libraries, Problem
from cudalab.labs.teaching import Mutant, PublicTest, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class SegmentedLibraries(Libraries):
    """NumPy's running sums, CUB's scan by key."""

    names = (NUMPY, CUB)
    operation = "scan_by_key"  # DeviceScan::InclusiveSumByKey

    def compute(self, problem: Problem) -> Compute:
        """Running sums, less what they are before each segment."""
        keys, items, out = problem.arrays["keys"], problem.arrays["items"], problem.out

        def scan_segments() -> None:
            first = np.flatnonzero(keys[1:] != keys[:-1]) + 1
            sums = np.cumsum(items, dtype=items.dtype)
            np.subtract(sums, _before(sums, first), out=out)

        return scan_segments


class Teaching(Base):
    """Segmented scan."""

    topic = "look_back"
    usual_sizes = Sizes(
        bench={"cuda": 1 << 25, "cpu": 1 << 18},
        timed={"cuda": 32_000_000, "cpu": 500_000},
        sanitized=(1023, 20_001),
    )
    tests = (
        PublicTest("nothing at all", 0, "mixed"),
        PublicTest("one item", 1, "one-segment"),
        PublicTest("two segments of one item", 2, "each-alone"),
        PublicTest("a warp and one", 33, "short"),
        PublicTest("a whole block", 512, "one-segment"),
        PublicTest("a block and one", 513, "one-segment"),
        PublicTest("one less than whole warps", 5055, "short"),
        PublicTest("a tile and 63 items", 5183, "short"),
        PublicTest("segments of one item", 20_000, "each-alone"),
        PublicTest("keys that return", 5000, "returning"),
        PublicTest("segments of many blocks", 60_001, "long"),
        PublicTest("many whole blocks", 65_536, "mixed"),
        PublicTest("many blocks and one", 65_537, "one-segment"),
        PublicTest("blocks of blocks", 70_001, "mixed"),
        PublicTest("more than 20 bits count", (1 << 20) + 70_001, "long", large=True),
        PublicTest("more than 24 bits count", (1 << 24) + 70_001, "mixed", large=True),
    )
    mutants = (
        Mutant(
            "scan_of_pairs", "(unsigned)pairs[i]", "(unsigned)pairs[i - (i > 0)]", "an item late"
        ),
        Mutant("one_pass", "before, block_prefix)", "before, 0)", "tiles are scanned alone"),
        Mutant(
            "ends_at_heads", "prefix + (unsigned)", "(unsigned)", "a tile forgets the ones before"
        ),
    )
    skeleton = Skeleton("scan_of_pairs", ("segscan/parts/scan_pairs.cuh",))
    libraries = SegmentedLibraries()

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise a scan that knows no segments, an exclusive one, blocks scanned alone."""
        yield from _mistakes(e)
        yield from same_as_input(e)


def _mistakes(e: Evidence) -> Iterator[Finding]:
    keys, items = e.inputs.arrays["keys"], e.inputs.arrays["items"]
    if e.same(np.cumsum(items, dtype=items.dtype)):
        yield Finding(
            "no segments",
            "this is the scan of the whole array",
            "begin again where a key differs from the one before",
            "cudalab explain scan",
        )
    if e.same(e.expected - items):
        yield Finding(
            "exclusive",
            "each sum lacks its own item",
            "the scan is inclusive: element i includes item i",
        )
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    for block in block_sizes(e):
        first = np.union1d(changes, np.arange(block, len(items), block))
        sums = np.cumsum(items, dtype=items.dtype)
        if len(items) > block and e.same(sums - _before(sums, first)):
            yield Finding(
                "only within blocks",
                f"sums begin again at each multiple of {block:,}",
                "a segment goes on in the next block: its items need the sum of earlier blocks",
                "cudalab explain scan",
            )
            return


def _before(sums: Array, first: Array) -> Array:
    """For each item the sum before its segment; `first` are the first items, but for item 0."""
    lengths = np.diff(np.concatenate([[0], first, [len(sums)]]))
    return np.repeat(np.concatenate([sums[:1] * 0, sums[first - 1]]), lengths)
