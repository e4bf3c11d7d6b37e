"""Reduce: sizes, tests, mistakes, mutants, libraries, the course's times and exercises."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from cudalab.labs.evidence import SANITIZE, Evidence, Finding, block_sizes
from cudalab.labs.inputs import Array, Case, HostInputs
from cudalab.labs.libraries import CUB, CUPY, NUMPY, Compute, Libraries, Problem
from cudalab.labs.reduce.lab import LAB
from cudalab.labs.teaching import (
    CourseTime,
    Exercise,
    Mutant,
    PublicTest,
    Showcase,
    Sizes,
    Skeleton,
)
from cudalab.labs.teaching import Teaching as Base


class ReduceLibraries(Libraries):
    """The reductions of NumPy and CuPy, and CUB's for whole arrays."""

    names = (NUMPY, CUPY, CUB)

    def why_not(self, name: str, case: Case) -> str | None:
        """CUB does not reduce rows or columns here."""
        if name == CUB and case["along"] != "all":
            return f"cub is compared on whole arrays, not on {case['along']}"
        return None

    def compute(self, problem: Problem) -> Compute:
        """Reduce the array, its rows or its columns in one call; dot products by BLAS."""
        xp, case = problem.xp, problem.case
        x = problem.arrays["x"]
        y = problem.arrays.get("y", x)
        op, dtype = case["op"], x.dtype
        axis = {"all": None, "rows": 1, "cols": 0}[case["along"]]
        target = problem.out.reshape(()) if axis is None else problem.out
        if op in ("sumsq", "dot"):
            if axis is None:
                return lambda: xp.dot(x, y, out=target)
            subscripts = "ij,ij->i" if axis == 1 else "ij,ij->j"

            def sum_squares() -> None:
                target[...] = xp.einsum(subscripts, x, x)

            return sum_squares
        if op == "max":
            return lambda: xp.max(x, axis=axis, out=target)
        if op == "min":  # CuPy 14.2's `min` mistakes `out` for a dtype

            def minimum() -> None:
                target[...] = xp.min(x, axis=axis)

            return minimum
        combine = {"sum": xp.sum, "prod": xp.prod, "mean": xp.mean}[op]
        return lambda: combine(x, axis=axis, dtype=dtype, out=target)

    def cub(self, case: Case) -> dict[str, str]:
        """Choose the operator."""
        return {"OPERATION": "reduce", "OP": case["op"].capitalize()}


class Teaching(Base):
    """Reduce."""

    topic = "reduction"
    usual_sizes = Sizes(
        bench={"cuda": 1 << 26, "cpu": 1 << 20},
        timed={"cuda": 64_000_000, "cpu": 1_000_000},
        sanitized=(1023, 20_001),
    )
    matrix_sizes = Sizes(
        bench={"cuda": 8192, "cpu": 1024},
        timed={"cuda": 8192, "cpu": 1024},
        sanitized=((63, 70), (300, 40)),
        sample=(2, 4),
        is_order=True,
    )
    tests = (
        PublicTest("nothing at all", 0, "uniform"),
        PublicTest("one item", 1, "uniform"),
        PublicTest("a warp and one", 33, "all-ones"),
        PublicTest("less than a block", 200, "uniform"),
        PublicTest("a whole block", 256, "all-ones"),
        PublicTest("sums that cancel", 1000, "cancelling"),
        PublicTest("a block and one", 257, "uniform"),
        PublicTest("one less than whole warps", 3007, "all-ones"),  # a lost one exceeds the bound
        PublicTest("a wide range", 5000, "wide-range"),
        PublicTest("many blocks", 99_329, "uniform"),  # 97 times 1024, and one
        PublicTest("more than 24 bits count", (1 << 24) + 70_001, "uniform", large=True),
    )
    float_tests = (PublicTest("some items are NaN", 5000, "nan"),)
    # Not for sums of floats: an atomicAdd in a GPU's global memory takes numbers near 0 for 0.
    end_tests = (PublicTest("the ends of the type", 1025, "ends"),)
    extreme_tests = (  # for a minimum and a maximum, in the place of those for sums
        PublicTest("the last is the greatest", 3007, "sorted"),
        PublicTest("the first is the greatest", 5000, "reversed"),
    )
    matrix_tests = (
        PublicTest("one element", (1, 1), "uniform"),
        PublicTest("a single row", (1, 100), "all-ones"),
        PublicTest("a single column", (100, 1), "all-ones"),
        PublicTest("a whole tile", (32, 32), "uniform"),
        PublicTest("a tile and one", (33, 31), "uniform"),
        PublicTest("wide", (70, 200), "uniform"),
        PublicTest("tall", (300, 65), "nan"),
        PublicTest("one less than whole warps", (63, 95), "all-ones"),
        PublicTest("rising", (65, 300), "sorted"),
        PublicTest("falling", (300, 70), "reversed"),
        PublicTest("tall and narrow", (100_003, 3), "all-ones"),
        PublicTest("a million rows", (1_100_031, 1), "uniform", large=True),
        PublicTest("a million columns, in whole segments", (1, 17 << 16), "uniform", large=True),
    )
    mutants = (
        Mutant("sequential", "i < n ?", "i < n - 1 ?", "the last item is left out"),
        Mutant(
            "sequential", "__syncthreads();  // the next level", "// the next level",
            "a barrier is missing", shows_on_gpu=False,
        ),
        Mutant("sequential", "values[0], count", "values[1], count", "another thread's sum"),
    )  # fmt: skip
    showcases = (
        Showcase("interleaved_strided", "sequential", "bank conflicts"),
        Showcase("rows_shared", "rows_shared_padded", "bank conflicts"),
    )
    skeleton = Skeleton("sequential")
    course_times: ClassVar = {
        "interleaved_modulo": CourseTime((19.09,)),
        "interleaved_strided": CourseTime((11.91,)),
        "sequential": CourseTime((10.62,)),
        "first_add_on_load": CourseTime((9.10,)),
        "unrolled_last_warp": CourseTime((8.67,)),
    }
    libraries = ReduceLibraries()
    scattered = True

    def sizes(self, case: Case) -> Sizes:
        """The sizes; for rows and columns they are orders of matrices."""
        return self.usual_sizes if case.get("along", "all") == "all" else self.matrix_sizes

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """Vectors, or matrices for rows and columns."""
        del dispatch
        if case.get("along", "all") != "all":
            # Lost items of both signs stay within the bound of a long sum.
            dist = "all-ones" if case["op"] in ("sum", "mean") else "uniform"
            return [one._replace(dist=dist) if one.large else one for one in self.matrix_tests]
        is_float, is_extreme = case["dtype"].startswith("float"), case["op"] in ("min", "max")
        more: tuple[PublicTest, ...] = self.float_tests if is_float else ()
        if is_extreme:
            more = (*more, *self.extreme_tests)
        if is_extreme or not is_float:
            more = (*more, *self.end_tests)
        return (*more, *self.tests)

    def items(self, inputs: HostInputs, case: Case) -> int:
        """Number of items read: 2 n for a dot product."""
        params = inputs.params
        n = int(params["n"]) if "n" in params else int(params["rows"]) * int(params["cols"])
        return n * (2 if case.get("op") == "dot" else 1)

    def course_time(self, variant: str, case: Case) -> CourseTime | None:
        """The course's time, for a sum of integers only."""
        if (case.get("op"), case.get("dtype")) != ("sum", "int32"):
            return None
        return super().course_time(variant, case)

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise a wrong start, a missing division, missing items, blocks not added."""
        case, x = e.case, e.input("x")
        params, side = e.inputs.params, "cols" if case["along"] == "rows" else "rows"
        if case["op"] == "mean" and e.same(e.expected * int(params.get("n") or params[side])):
            yield Finding(
                "not divided", "this is the sum", "divide by the number of items for the mean"
            )
            return
        if case["op"] == "max" and not e.got[e.wrong].any() and (e.expected[e.wrong] < 0).all():
            yield Finding(
                "maximum from 0",
                "0 where all items are negative",
                "a maximum starts from the least value of the type, or from the first item, not "
                "from 0",
            )
            return
        if case["along"] != "all" or case["op"] not in ("sum", "sumsq", "dot"):
            return
        terms = x.astype(np.float64) if x.dtype.kind == "f" else x
        if case["op"] != "sum":
            terms = terms * (e.input("y") if "y" in e.inputs.arrays else terms)
        yield from _partial_sums(e, terms)

    def exercises(self) -> Sequence[Exercise]:
        """The tasks of the hand-out, each with a `global` and a `shared` variant."""
        vectors = {"global": "global_halving", "shared": "sequential"}
        rows = {
            "global": "rows_global",
            "shared": "rows_shared",
            "shared, padded": "rows_shared_padded",
        }
        cols = {"global": "cols_global", "shared": "cols_shared"}
        tasks = [
            ("dot product", "dot", "all", vectors),
            ("row sums", "sum", "rows", rows),
            ("row means", "mean", "rows", rows),
            ("column means", "mean", "cols", cols),
            ("row maxima", "max", "rows", rows),
            ("row minima", "min", "rows", rows),
            ("row sums of squares", "sumsq", "rows", rows),
        ]
        return [
            Exercise(
                title,
                LAB.complete({"op": op, "along": along}),
                variants,
                (1000, 10_000_000) if along == "all" else (1000, 4000),
            )
            for title, op, along, variants in tasks
        ]


def _partial_sums(e: Evidence, terms: Array) -> Iterator[Finding]:
    n = len(terms)

    def total(part: Array) -> Array:
        return np.atleast_1d(part.sum(dtype=terms.dtype))

    if e.same(total(terms[:-1])):
        yield Finding(
            "the last item is missing",
            "the sum of all items but the last",
            "off by one: i < n, not i < n - 1",
            SANITIZE,
        )
    elif e.same(total(terms[1:])):
        yield Finding(
            "the first item is missing", "the sum of all items but the first", "start at 0"
        )
    elif terms.dtype.kind != "f" and e.same(total(terms) + terms.dtype.type(n)):
        twice = ", or every item is counted twice" if e.same(2 * total(terms)) else ""
        yield Finding(
            "the header added",
            f"too large by n = {n:,}{twice}",
            "the first 4 bytes are n, the number of items, and not an item",
        )
    elif n > 1 and e.same(2 * total(terms)):
        yield Finding("twice the sum", "every item is counted twice", "two threads add each item")
    else:
        for block in block_sizes(e):
            whole = n // block * block
            if 0 < whole < n and e.same(total(terms[:whole])):
                yield Finding(
                    "the last partial block",
                    f"the sum of the first {whole:,} items: the last {n - whole:,} are missing",
                    f"n is no multiple of {block:,}: launch ceil(n / block) blocks, and load 0 "
                    "beyond the end",
                    SANITIZE,
                )
                return
            if block < n and e.same(total(terms[:block])):
                yield Finding(
                    "only the first block",
                    f"the sum of the first {block:,} items",
                    "every block leaves a partial sum: these must be added too, by a second launch",
                    "cudalab explain reduction",
                )
                return
        if n >= 64 and e.same(total(terms.reshape(-1)[::2][: n // 2])):
            yield Finding("every other item", "the sum of every other item", "a stride of 2")
