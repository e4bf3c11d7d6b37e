"""Softmax: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator

import numpy as np

from cudalab.labs.evidence import Evidence, Finding
from cudalab.labs.libraries import CUPY, NUMPY, Compute, Libraries, Problem
from cudalab.labs.teaching import Mutant, Params, PublicTest, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class SoftmaxLibraries(Libraries):
    """Whole-array functions, one after another."""

    names = (NUMPY, CUPY)

    def compute(self, problem: Problem) -> Compute:
        """The maximum, the difference, the exponential, the sum and the quotient of whole rows."""
        xp, x, out = problem.xp, problem.arrays["x"], problem.out

        def softmax() -> None:
            xp.subtract(x, x.max(axis=1, keepdims=True), out=out)
            xp.exp(out, out=out)
            xp.divide(out, out.sum(axis=1, keepdims=True), out=out)

        return softmax


class Teaching(Base):
    """Softmax."""

    topic = "reduction"
    usual_sizes = Sizes(
        bench={"cuda": 8192, "cpu": 1024},
        timed={"cuda": (8192, 8192), "cpu": (700, 700)},
        sanitized=((33, 70), (5, 1031)),
        sample=(2, 4),
        is_order=True,
    )
    tests = (
        PublicTest("nothing at all", (0, 0), "uniform"),
        PublicTest("one element", (1, 1), "uniform"),
        PublicTest("a single row", (1, 1000), "uniform"),
        PublicTest("a single column", (70_001, 1), "uniform"),
        PublicTest("whole warps", (64, 96), "wide"),
        PublicTest("a warp and one", (33, 33), "uniform"),
        PublicTest("one less than whole warps", (31, 1023), "rising"),
        PublicTest("exponentials that overflow", (70, 200), "shifted"),
        PublicTest("minus infinity", (65, 130), "masked"),
        PublicTest("NaNs", (127, 77), "nan"),
        PublicTest("long rows", (3, 20_001), "rising"),
        PublicTest("a row of more than 2^24", (1, (1 << 24) + 70_001), "rising", large=True),
        PublicTest("a column of more than 2^24", ((1 << 24) + 70_001, 1), "uniform", large=True),
    )
    mutants = (
        Mutant(
            "thread_per_row",
            "c < cols; ++c) sum",
            "c + 1 < cols; ++c) sum",
            "the last item is missing from the sum",
        ),
        Mutant("thread_per_row", "greatest) / sum", "greatest)", "not divided by the sum"),
        Mutant("thread_per_row", "expf(x[c] - greatest)", "expf(x[c])", "overflows"),
        Mutant("warp_per_row", "sum = sum_over_warp(sum);", "", "each lane has its own sum"),
    )
    skeleton = Skeleton("thread_per_row")
    libraries = SoftmaxLibraries()

    def matrix_shape(self, params: Params) -> tuple[int, int]:
        """The shape of the input."""
        return params["rows"], params["cols"]

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise steps that were left out."""
        x = np.asarray(e.inputs.arrays["x"], np.float64)
        with np.errstate(all="ignore"):
            terms = np.exp(x - x.max(axis=1, keepdims=True))
            plain = np.exp(x)
            for pattern, values, cause in (
                ("not divided", terms, "divide each exponential by the sum of its row"),
                ("no maximum, not divided", plain, "divide by the sum; subtract the maximum first"),
                ("columns", terms_of_columns(x), "the sum and the maximum are those of a row"),
                ("whole matrix", plain / plain.sum(), "each row has a sum of its own"),
            ):
                if x.shape[1] > 1 < x.shape[0] and e.same(values.astype(np.float32)):
                    yield Finding(pattern, f"this is another function: {pattern}", cause)
                    return


def terms_of_columns(x: np.ndarray) -> np.ndarray:
    """The softmax of each column."""
    terms = np.exp(x - x.max(axis=0))
    return np.asarray(terms / terms.sum(axis=0))
