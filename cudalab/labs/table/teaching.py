"""The table of a function: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator

import numpy as np

from cudalab.labs.evidence import Evidence, Finding
from cudalab.labs.libraries import CUPY, NUMPY, Compute, Libraries, Problem
from cudalab.labs.teaching import Mutant, PublicTest, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class TableLibraries(Libraries):
    """Whole-array functions."""

    names = (NUMPY, CUPY)

    def compute(self, problem: Problem) -> Compute:
        """Compute in passes over the whole array."""
        xp, n = problem.xp, problem.inputs.params["n"]
        step = np.float32(problem.inputs.arrays["step"].item())

        def tabulate() -> None:
            x = xp.arange(n, dtype=np.float32)
            x *= step
            xp.sqrt(x, out=x)
            xp.sin(x, out=problem.out)

        return tabulate


class Teaching(Base):
    """The table of a function."""

    topic = "memory"
    usual_sizes = Sizes(
        bench={"cuda": 1 << 24, "cpu": 1 << 20},
        timed={"cuda": 32_000_000, "cpu": 500_000},
        sanitized=(1023,),
    )
    tests = (
        PublicTest("nothing at all", 0, "step"),
        PublicTest("one element", 1, "step"),
        PublicTest("a warp and one", 33, "step"),
        PublicTest("a block and one", 257, "step"),
        PublicTest("another step", 1000, "random"),
        PublicTest("one less than whole warps", 2047, "random"),
        PublicTest("many blocks", 70_001, "step"),
        PublicTest("more than 24 bits count", (1 << 24) + 70_001, "step", large=True),
    )
    mutants = (Mutant("accurate", "(float)i *", "(float)(i + 1) *", "off by one"),)
    skeleton = Skeleton("accurate")
    libraries = TableLibraries()

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise other functions, and arguments that start elsewhere."""
        step = float(np.asarray(e.inputs.arrays["step"])[0])
        x = np.arange(e.got.size) * step
        for pattern, values, cause in (
            ("sine without the root", np.sin(x), "y = sin(sqrt(x))"),
            ("root without the sine", np.sqrt(x), "y = sin(sqrt(x))"),
            ("off by one", np.sin(np.sqrt(x + step)), "x = i * step, and i begins at 0"),
        ):
            if e.same(values):
                yield Finding(pattern, f"this is a table of something else: {pattern}", cause)
                return
