"""Compact: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator

import numpy as np

from cudalab.labs.evidence import Evidence, Finding, block_sizes, same_as_input
from cudalab.labs.libraries import CUB, NUMPY, Compute, Libraries, Problem
from cudalab.labs.teaching import Mutant, PublicTest, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class CompactLibraries(Libraries):
    """NumPy's selection by a mask, CUB's partition."""

    names = (NUMPY, CUB)
    operation = "compact"  # DevicePartition: what is kept to the front, all zeros to the end

    def compute(self, problem: Problem) -> Compute:
        """Select what is not 0, and write zeros behind it."""
        x, out = problem.arrays["items"], problem.out

        def compact() -> None:
            kept = x[x != 0]
            out[: len(kept)] = kept
            out[len(kept) :] = 0

        return compact


class Teaching(Base):
    """Compact."""

    topic = "look_back"
    scattered = True
    usual_sizes = Sizes(
        bench={"cuda": 1 << 25, "cpu": 1 << 18},
        timed={"cuda": 32_000_000, "cpu": 500_000},
        sanitized=(1023, 20_001),
    )
    tests = (
        PublicTest("nothing at all", 0, "half"),
        PublicTest("one item", 1, "no-zeros"),
        PublicTest("a single zero", 1, "all-zeros"),
        PublicTest("a warp and one", 33, "half"),
        PublicTest("a whole block", 512, "half"),
        PublicTest("a block and one", 513, "no-zeros"),
        PublicTest("one less than whole warps", 5055, "most-kept"),
        PublicTest("hardly anything is kept", 20_000, "few-kept"),
        PublicTest("nothing is kept", 5000, "all-zeros"),
        PublicTest("long runs", 30_001, "runs"),
        PublicTest("the type's special values", 3000, "special"),
        PublicTest("many whole blocks", 65_536, "half"),
        PublicTest("many blocks and one", 65_537, "most-kept"),
        PublicTest("blocks of blocks", 70_001, "half"),
        PublicTest("more than 20 bits count", (1 << 20) + 70_001, "no-zeros", large=True),
        PublicTest("more than 24 bits count", (1 << 24) + 70_001, "half", large=True),
    )
    mutants = (
        Mutant("scan_of_flags", "out[before] = item", "out[before + 1] = item", "one too far"),
        Mutant("scan_of_flags", "n - 1 - (i - before)", "n - (i - before)", "zeros one too far"),
        Mutant("block_counts", "before_row += in_row;", "", "all rows begin at the same place"),
    )  # fmt: skip
    skeleton = Skeleton("scan_of_flags", ("compact/parts/scan_counts.cuh",))
    libraries = CompactLibraries()

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise another order, blocks compacted alone, what is left where zeros belong."""
        yield from _mistakes(e)
        yield from same_as_input(e)


def _mistakes(e: Evidence) -> Iterator[Finding]:
    items, expected = e.input(), e.expected
    kept = np.count_nonzero(expected)
    for block in block_sizes(e):
        pieces = [items[at : at + block] for at in range(0, len(items), block)]
        alone = [np.concatenate([piece[piece != 0], piece[piece == 0]]) for piece in pieces]
        if len(pieces) > 1 and e.same(np.concatenate(alone)):
            yield Finding(
                "only within blocks",
                f"each {block:,} items are compacted on their own",
                "a block's items begin where those of all earlier blocks end: scan the counts",
                "cudalab explain scan",
            )
            return
    if np.array_equal(e.got[:kept], expected[:kept]):
        yield Finding(
            "no zeros at the end",
            f"the {kept:,} kept items are right; what follows is not 0",
            "write a zero for each item that is not kept",
        )
    elif np.array_equal(np.sort(e.got), np.sort(expected)):
        yield Finding(
            "another order",
            "these are the right items in another order",
            "a counter that threads increase gives places in the order in which they come: the "
            "number of kept items before one is its place, and a scan finds it",
            "cudalab explain scan",
        )
