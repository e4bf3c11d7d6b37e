"""Scan: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator, Sequence

import numpy as np

from cudalab.labs.evidence import Evidence, Finding, block_sizes, same_as_input
from cudalab.labs.inputs import Array, Case
from cudalab.labs.libraries import CUB, CUPY, NUMPY, Compute, Libraries, Problem, Way
from cudalab.labs.scan.lab import OPERATORS, identity
from cudalab.labs.teaching import Mutant, PublicTest, Showcase, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class ScanLibraries(Libraries):
    """NumPy's accumulations, CuPy's cumulative sums, CUB's scans."""

    names = (NUMPY, CUPY, CUB)

    def why_not(self, name: str, case: Case) -> str | None:
        """CuPy scans only sums."""
        if name == CUPY and case["op"] != "sum":
            return f"cupy scans sums, not {case['op']}"
        return None

    def compute(self, problem: Problem) -> Compute:
        """Compute a cumulative sum, shifted by one for an exclusive scan."""
        xp, x, out = problem.xp, problem.arrays["items"], problem.out
        exclusive = problem.case["kind"] == "exclusive"
        source, target = (x[:-1], out[1:]) if exclusive else (x, out)

        def scan_items() -> None:
            if exclusive:
                out[:1] = 0
            xp.cumsum(source, dtype=x.dtype, out=target)

        return scan_items

    def numpy(self, problem: Problem) -> Way:
        """Accumulate serially; float32 sums are in float64, so that errors do not add up."""
        items, case, out = problem.arrays["items"], problem.case, problem.out
        operator = OPERATORS[case["op"]]
        exclusive = case["kind"] == "exclusive"
        source, target = (items[:-1], out[1:]) if exclusive else (items, out)
        wide = items.dtype == np.float32 and case["op"] == "sum"
        running = np.empty(len(target), np.float64) if wide else target

        def scan_items() -> None:
            if exclusive:
                out[:1] = identity(case["op"], items.dtype)
            operator.accumulate(source, dtype=running.dtype, out=running)
            if wide:
                target[...] = running

        return Way(scan_items, ["adds in float64"] if wide else [])

    def cub(self, case: Case) -> dict[str, str]:
        """Choose the operator, and whether a sum includes its own item."""
        inclusive = str(int(case["kind"] == "inclusive"))
        return {"OPERATION": "scan", "OP": case["op"].capitalize(), "INCLUSIVE": inclusive}


class Teaching(Base):
    """Scan."""

    topic = "scan"
    usual_sizes = Sizes(
        bench={"cuda": 1 << 25, "cpu": 1 << 18},
        timed={"cuda": 32_000_000, "cpu": 500_000},
        sanitized=(1023, 20_001),
    )
    tests = (
        PublicTest("nothing at all", 0, "uniform"),
        PublicTest("one item", 1, "uniform"),
        PublicTest("a warp and one", 33, "all-ones"),
        PublicTest("a whole block", 512, "uniform"),
        PublicTest("a block and one", 513, "all-ones"),
        PublicTest("sums that cancel", 1025, "cancelling"),
        PublicTest("a wide range", 3000, "wide-range"),
        PublicTest("one less than whole warps", 5055, "bits"),  # exact for floats, too
        PublicTest("many blocks and one", 65_537, "all-ones"),
        PublicTest("many whole blocks", 65_536, "uniform"),
        PublicTest("blocks of blocks", 70_001, "uniform"),
        PublicTest("more than 20 bits count", (1 << 20) + 70_001, "bits", large=True),
        PublicTest("more than 24 bits count", (1 << 24) + 70_001, "uniform", large=True),
    )
    float_tests = (PublicTest("some items are NaN", 3000, "nan"),)
    integer_tests = (PublicTest("the ends of the type", 1500, "ends"),)
    extreme_tests = (  # each item counts
        PublicTest("rising", 5055, "sorted"),
        PublicTest("falling", 70_001, "reversed"),
    )
    mutants = (
        Mutant(
            "hillis_steele", "place > 0 ? sums[place - 1] : Op::identity()", "sums[place]",
            "inclusive",
        ),
        Mutant("hillis_steele", "place == ITEMS_PER_BLOCK - 1", "place == 0", "no block sums"),
    )  # fmt: skip
    showcases = (Showcase("blelloch", "blelloch_padded", "bank conflicts"),)
    skeleton = Skeleton("hillis_steele")
    libraries = ScanLibraries()

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """More tests for floats, and for minima and maxima."""
        del dispatch
        is_float = case["dtype"].startswith("float")
        more: Sequence[PublicTest] = self.float_tests if is_float else self.integer_tests
        if case["op"] != "sum":
            more = (*more, *self.extreme_tests)
        return (*more, *self.tests)

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise the other kind of scan, blocks scanned alone, the wrong direction."""
        yield from _mistakes(e)
        yield from same_as_input(e)


def _mistakes(e: Evidence) -> Iterator[Finding]:
    other = "inclusive" if e.case["kind"] == "exclusive" else "exclusive"
    other_scan = e.reference(e.case | {"kind": other})
    if e.got.size > 1 and e.same(other_scan):
        yield Finding(
            f"{other} instead of {e.case['kind']}",
            f"this is the {other} scan",
            f"the {e.case['kind']} one is expected: "
            + ("element 0 is 0, each place has the sum of all before it" if other == "inclusive"
               else "each place has the sum up to and with its own item"),
            "cudalab explain scan",
        )  # fmt: skip
        return
    if e.case["op"] != "sum":
        return
    items = e.input()
    for block in block_sizes(e):
        if block >= e.got.size:
            continue
        alone = [items[at : at + block] for at in range(0, len(items), block)]
        if e.same(np.concatenate([_scanned(piece, e) for piece in alone])):
            yield Finding(
                "only within blocks",
                f"each {block:,} items are scanned on their own: the sum begins anew in each block",
                "scan the block sums and add them back to the blocks",
                "cudalab explain scan",
            )
            return
    if e.same(np.cumsum(items[::-1], dtype=items.dtype)[::-1]):
        yield Finding(
            "from the right", "scanned from the last item to the first", "reverse the index"
        )


def _scanned(items: Array, e: Evidence) -> Array:
    wide = np.float64 if items.dtype.kind == "f" else items.dtype
    sums: Array = np.cumsum(items, dtype=wide)
    return sums if e.case["kind"] == "inclusive" else np.concatenate([[0], sums[:-1]])
