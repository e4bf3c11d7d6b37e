"""Histogram: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator, Sequence

import numpy as np

from cudalab.labs.evidence import SANITIZE, Evidence, Finding, block_sizes
from cudalab.labs.histogram.lab import BYTE_VALUES, MAX_BINS, classes_of_bytes
from cudalab.labs.inputs import Case
from cudalab.labs.libraries import CUB, CUPY, NUMPY, Libraries, Problem, Way
from cudalab.labs.teaching import Mutant, PublicTest, Showcase, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class HistogramLibraries(Libraries):
    """NumPy's bincount; CUB's histogram, directly and through CuPy."""

    names = (NUMPY, CUPY, CUB)
    operation = "histogram"  # HistogramEven

    def numpy(self, problem: Problem) -> Way:
        """Count with bincount."""
        elements, bins, out = problem.arrays["elements"], problem.case["bins"], problem.out
        is_bytes = elements.dtype == np.uint8

        def count() -> None:
            counts = np.bincount(elements, minlength=BYTE_VALUES if is_bytes else bins)
            if is_bytes and bins != BYTE_VALUES:
                before = np.concatenate([[0], np.cumsum(counts)])
                counts = np.diff(before[classes_of_bytes(bins)])
            out[...] = counts

        return Way(count)

    def cupy(self, problem: Problem) -> Sequence[Way]:
        """Count classes of equal width as integers; `cupy.histogram` compares in float64.

        `cupy.bincount` takes this path, too, after two passes for the minimum and the maximum.
        """
        cupy, out, bins = problem.xp, problem.out, problem.case["bins"]
        elements = problem.arrays["elements"]
        is_bytes = elements.dtype == np.uint8
        width = BYTE_VALUES if is_bytes else bins
        counts = cupy.zeros(width, np.int64)
        firsts = cupy.asarray(classes_of_bytes(bins)) if is_bytes else None
        before = cupy.zeros(width + 1, np.int64)

        def count() -> None:
            counted = problem.vendor.device_histogram(elements, counts, width + 1)
            if firsts is None or bins == BYTE_VALUES:
                out[...] = counted
            else:
                cupy.cumsum(counted, out=before[1:])
                out[...] = cupy.diff(before[firsts])

        return [Way(count, ["CUB's HistogramEven"])]


class Teaching(Base):
    """Histogram."""

    topic = "histogram"
    usual_sizes = Sizes(
        bench={"cuda": 1 << 27, "cpu": 1 << 20},
        timed={"cuda": 64_000_000, "cpu": 1_000_000},
        sanitized=(1023, 90_017),
        sample=20,
    )
    tests = (
        PublicTest("nothing at all", 0, "uniform"),
        PublicTest("one element", 1, "uniform"),
        PublicTest("a warp and one", 33, "uniform"),
        PublicTest("one class only", 2000, "equal"),
        PublicTest("no multiple of four", 1023, "normal"),
        PublicTest("one class gets half", 10_000, "one-hot"),
        PublicTest("few classes get most", 30_000, "zipf"),
        PublicTest("many blocks", 200_003, "uniform"),
        PublicTest("lone elements in many blocks", 400_031, "normal"),
        PublicTest("whole blocks of 63 or 64 words a thread", 63 << 14, "uniform"),
        PublicTest("more than 24 bits count", (1 << 24) + 70_001, "uniform", large=True),
    )
    mutants = (
        Mutant("global_atomic", "i >= n", "i >= n - 1", "the last element is left out"),
        Mutant(
            "global_atomic", "atomicAdd(&counts[bin], 1u)", "counts[bin] += 1u",
            "additions without atomicity",
        ),
    )  # fmt: skip
    showcases = (
        Showcase("per_thread_64_linear", "per_thread_64_banks32", "bank conflicts"),
        Showcase("shared_atomic", "privatized", "bank conflicts, and lanes that meet in one word"),
    )
    skeleton = Skeleton("global_atomic", ("histogram/parts/clear_counts.cuh",))
    libraries = HistogramLibraries()
    scattered = True

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """For kernels, elements that are no class, if there are such: the first one is reported."""
        if dispatch is None or case["dtype"] == "uint8":
            return self.tests
        more = case["bins"] + 1 + case["bins"] // 1200  # about 25 elements are no class
        if more > MAX_BINS[case["dtype"]]:
            return self.tests
        none = PublicTest("elements of no class", 30_000, "uniform")
        return (none._replace(made_with={"bins": more}, refuse=True), *self.tests)

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise overflowing counters, neighbouring classes, elements lost or counted twice."""
        n, total = e.inputs.params["n"], int(e.got.sum(dtype=np.uint64))
        got, expected = e.got.astype(np.int64), e.expected.astype(np.int64)
        differences = (expected - got)[e.wrong]
        if (differences % 256 == 0).all() and (differences > 0).all():
            yield Finding(
                "byte counters overflow",
                f"counts are too small by multiples of 256, such as [{e.wrong[0]}] by "
                f"{differences[0]:,}",
                "a counter of one byte holds 255: a thread may count at most 63 words of 4 bytes "
                "before it adds them up",
                "cudalab explain histogram",
            )
        elif np.array_equal(np.roll(expected, 1), got) or np.array_equal(
            np.roll(expected, -1), got
        ):
            yield Finding(
                "off by one class",
                "every count is in the class beside its own",
                "classes begin at 0",
            )
        elif total == 0:
            yield Finding(
                "zeros", "all counts are 0", "nothing is counted: does the kernel run at all?"
            )
        elif total < n and (differences >= 0).all():
            lost = n - total
            tail = next((b for b in (4, 16, *block_sizes(e)) if n % b == lost), 0)
            if tail and lost < tail:
                yield Finding(
                    "the last partial block",
                    f"{lost:,} elements are not counted: n mod {tail:,}",
                    f"the last n mod {tail:,} elements do not fill a word or a block: count them "
                    "too",
                )
            else:
                yield Finding(
                    "counts lost",
                    f"the counts add up to {total:,}, but there are {n:,} elements",
                    "two threads read a counter, both add one, one of the two is lost: atomicAdd, "
                    "also in shared memory",
                    SANITIZE,
                )
        elif total > n and (differences <= 0).all():
            yield Finding(
                "counted twice",
                f"the counts add up to {total:,}, but there are {n:,} elements",
                "counters that are not cleared first, or elements that two threads count",
            )
