"""Matrix products: sizes, tests, mistakes, mutants, libraries, the course's times."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from cudalab.errors import UsageError
from cudalab.labs.evidence import TILES, Evidence, Finding, tile_of
from cudalab.labs.inputs import Case, HostInputs, Size
from cudalab.labs.libraries import CUPY, NUMPY, Compute, Libraries, Problem, Way
from cudalab.labs.teaching import CourseTime, Mutant, Params, PublicTest, Showcase, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class MatmulLibraries(Libraries):
    """BLAS, through NumPy and CuPy."""

    names = (NUMPY, CUPY)

    def compute(self, problem: Problem) -> Compute:
        """Multiply by BLAS; a transpose costs nothing."""
        xp, a, out = problem.xp, problem.arrays["a"], problem.out
        b = problem.arrays.get("b", a)
        right = b if problem.case["product"] == "ab" else b.T
        return lambda: xp.matmul(a, right, out=out)

    def cupy(self, problem: Problem) -> Sequence[Way]:
        """Multiply by cuBLAS, without TF32 even if the environment allows it."""
        problem.vendor.compute_in_full_float32()
        return [Way(self.compute(problem), ["cuBLAS, no TF32"])]


class Teaching(Base):
    """Matrix products."""

    topic = "matmul"
    usual_sizes = Sizes(
        bench={"cuda": 2048, "cpu": 256},
        timed={"cuda": 2048, "cpu": 192},
        sanitized=(63, 65),
        sample=2,
        is_order=True,
    )
    tests = (
        PublicTest("nothing at all", 0, "integers"),
        PublicTest("one element", 1, "integers"),
        PublicTest("less than a tile", 15, "integers"),
        PublicTest("a whole tile", 16, "uniform"),
        PublicTest("a tile and one", 17, "integers"),
        PublicTest("two warps and one", 65, "positive"),
        PublicTest("several tiles", 100, "cancelling"),
        PublicTest("many tiles", 260, "uniform"),
    )
    # For kernels: the stream of the course's programs has square matrices. A long sum has positive
    # terms, so that a lost part of it exceeds the bound; split into about 264 pieces, the last one
    # is short.
    shaped_tests = (
        PublicTest("tall", (191, 33, 68), "uniform"),
        PublicTest("wide, one less than whole warps", (63, 127, 191), "integers"),
        PublicTest("several tiles of 128", (301, 17, 300), "integers"),
        PublicTest("many steps, no whole vectors", (63, 193, 319), "integers"),
        PublicTest("three columns, many steps", (65, 150, 3), "integers"),
        PublicTest("zeros against NaN and infinity", (40, 35, 70), "special"),
        PublicTest("very tall, whole vectors", (70_001, 2, 4), "integers"),
        PublicTest("very wide, no whole vectors", (2, 3, 70_001), "integers"),
        PublicTest("a million rows", (1_100_000, 1, 1), "uniform", large=True),
        PublicTest("a million columns", (1, 1, 1_100_000), "uniform", large=True),
        PublicTest("sums of 69,916 terms", (1, 69_916, 1), "positive", large=True),
    )
    symmetric_tests = (
        PublicTest("tall", (319, 33), "uniform"),
        PublicTest("wide, one less than whole warps", (63, 127), "integers"),
        PublicTest("a thousand rows", (1200, 1), "uniform"),
        PublicTest("a thousand rows, no whole vectors", (1201, 2), "integers"),
        PublicTest("sums of 70,000 terms", (1, 70_000), "positive", large=True),
    )
    mutants = (
        Mutant("naive", "row >= m ||", "row + 1 >= m ||", "the last row is left out"),
        Mutant("naive", "p = 0; p < k", "p = 1; p < k", "the first product is left out"),
    )
    showcases = (
        Showcase("aat_conflict", "aat_padded", "bank conflicts"),
        Showcase("abt_conflict", "abt_padded", "bank conflicts"),
        Showcase("naive", "tiled", "repeated reads of global memory"),
    )
    skeleton = Skeleton("naive")
    course_times: ClassVar = {
        "naive": CourseTime((2484.06, 2578)),
        "tiled": CourseTime((133.47, 132)),
        "aat_conflict": CourseTime((551.73,)),
        "aat_padded": CourseTime((120.59,)),
    }
    libraries = MatmulLibraries()

    def sizes(self, case: Case) -> Sizes:
        """The sizes; with --shape the sample is given by its dimensions."""
        if not case.get("shape"):
            return self.usual_sizes
        sample = (2, 3) if case.get("product") == "aat" else (2, 3, 2)
        return replace(self.usual_sizes, sample=sample)

    def bench_size(self, case: Case, device: str) -> Size:
        """The order of the matrices. UsageError with --shape: the user must give dimensions."""
        if case.get("shape"):
            raise UsageError(
                "with --shape a size has several dimensions", hint="--n MxKxN, with --aat --n MxK"
            )
        return super().bench_size(case, device)

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """Square matrices; for kernels, others among them."""
        if dispatch is None:
            return self.tests
        shaped = self.symmetric_tests if case["product"] == "aat" else self.shaped_tests
        options = {"shape": True}
        return (*(one._replace(options=options) for one in shaped), *self.tests)

    def items(self, inputs: HostInputs, case: Case) -> int:
        """Number of elements of the product."""
        del case
        return int(inputs.params["m"]) * int(inputs.params["n"])

    def flops(self, params: Params) -> int:
        """Two operations for each step along k of each element of C."""
        return 2 * int(params["m"]) * int(params["n"]) * int(params["k"])

    def own_flops(self, dispatch: str, inputs: HostInputs) -> int:
        """Half of the operations suffice if the product is symmetric."""
        del dispatch
        halves = 1 if "b" not in inputs.arrays else 2
        return self.flops(inputs.params) * halves // 2

    def course_time(self, variant: str, case: Case) -> CourseTime | None:
        """The course measured A B, and A times its transpose with the kernels named aat_."""
        if not variant.startswith("aat") and case.get("product") != "ab":
            return None
        return super().course_time(variant, case)

    def matrix_shape(self, params: Params) -> tuple[int, int]:
        """C, m x n."""
        return params["m"], params["n"]

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise transposed factors and missing tiles along k."""
        rows, cols = e.inputs.params["m"], e.inputs.params["n"]
        if e.case["product"] == "aat":
            a = np.asarray(e.inputs.arrays["a"], np.float64)
            b = a.T
        else:
            a, b = (np.asarray(e.inputs.arrays[name], np.float64) for name in ("a", "b"))
            b = b if e.case["product"] == "ab" else b.T
        k = a.shape[1]
        if min(rows, cols, k) > 1:
            if rows == cols and e.same((a @ b).T):
                yield Finding(
                    "transposed", "this is the transpose of the product", "c[row * n + col]"
                )
            elif rows == cols == k:
                for label, product in (
                    ("B A", b @ a), ("A B transposed", a @ b.T), ("A transposed B", a.T @ b),
                ):  # fmt: skip
                    if e.same(product):
                        yield Finding(
                            "another product",
                            f"this is {label}, not A B",
                            "rows of A, columns of B",
                        )
                        return
        for tile in tile_of(e)[:1] or TILES:
            whole = k // tile * tile
            if tile < k and e.same(a[:, :tile] @ b[:tile]):
                yield Finding(
                    "only the first tile along k",
                    f"the sum has only the first {tile} of {k} products",
                    "each block walks over all tiles of its row of A and its column of B",
                    "cudalab explain matmul",
                )
                return
            if 0 < whole < k and e.same(a[:, :whole] @ b[:whole]):
                yield Finding(
                    "the last partial tile along k",
                    f"the sum lacks the last {k - whole} of {k} products",
                    "walk over ceil(k / tile) tiles, and load 0 for what is outside",
                    "cudalab explain matmul",
                )
                return
