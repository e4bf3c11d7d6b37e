"""Transpose: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator, Sequence

import numpy as np

from cudalab.labs.evidence import TILES, Evidence, Finding, tile_of
from cudalab.labs.libraries import CUPY, NUMPY, Compute, Libraries, Problem, Way
from cudalab.labs.teaching import Mutant, Params, PublicTest, Showcase, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base


class TransposeLibraries(Libraries):
    """Copies by NumPy and CuPy, and by cuBLAS for floats."""

    names = (NUMPY, CUPY)

    def compute(self, problem: Problem) -> Compute:
        """Copy the transposed view of the array."""
        return lambda: problem.xp.copyto(problem.out, problem.arrays["matrix"].T)

    def cupy(self, problem: Problem) -> Sequence[Way]:
        """Floats go through cuBLAS: in its column-major order the transpose is a copy."""
        if problem.out.dtype.kind != "f":
            return super().cupy(problem)
        matrix, cublas = problem.arrays["matrix"], problem.vendor.cublas
        target = problem.out.T  # rows x cols, columns first

        def copy() -> None:
            cublas.geam("N", "N", 1.0, matrix, 0.0, matrix, out=target)

        return [Way(copy, ["cuBLAS geam"])]


class Teaching(Base):
    """Transpose."""

    topic = "coalescing"
    usual_sizes = Sizes(
        bench={"cuda": 8192, "cpu": 1024},
        timed={"cuda": (8192, 8192), "cpu": (700, 700)},
        sanitized=((33, 70), (63, 95)),
        sample=(2, 3),
        is_order=True,
    )
    tests = (
        PublicTest("nothing at all", (0, 0), "uniform"),
        PublicTest("one element", (1, 1), "uniform"),
        PublicTest("a single row", (1, 70_001), "uniform"),
        PublicTest("a single column", (70_001, 1), "uniform"),
        PublicTest("a whole tile", (32, 32), "uniform"),
        PublicTest("whole tiles", (64, 96), "special"),
        PublicTest("a tile and one", (33, 31), "special"),
        PublicTest("wide", (70, 200), "uniform"),
        PublicTest("tall, one less than whole warps", (1087, 65), "uniform"),
        PublicTest("a row of more than 2^24", (1, (1 << 24) + 70_001), "uniform", large=True),
        PublicTest("a column of more than 2^24", ((1 << 24) + 70_001, 1), "uniform", large=True),
    )
    mutants = (
        Mutant(
            "naive", "r < rows && c < cols", "r + 1 < rows && c < cols", "the last row is left out"
        ),
        Mutant("naive", "c * rows + r", "r * cols + c", "a copy"),
    )
    showcases = (Showcase("tiled", "tiled_padded", "bank conflicts"),)
    skeleton = Skeleton("naive")
    libraries = TransposeLibraries()

    def matrix_shape(self, params: Params) -> tuple[int, int]:
        """The answer has cols rows and rows columns."""
        return params["cols"], params["rows"]

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise a copy, and tiles that were moved but not transposed."""
        matrix = np.asarray(e.inputs.arrays["matrix"])
        rows, cols = matrix.shape
        if e.same(matrix) and min(rows, cols) > 1:
            yield Finding(
                "the input itself", "the matrix as it was", "out[c * rows + r] = in[r * cols + c]"
            )
            return
        for tile in tile_of(e)[:1] or TILES:
            if rows % tile == 0 == cols % tile and rows == cols and rows > tile:
                tiles = matrix.reshape(rows // tile, tile, cols // tile, tile)
                if e.same(np.ascontiguousarray(tiles.transpose(2, 1, 0, 3)).reshape(cols, rows)):
                    yield Finding(
                        "tiles moved, not transposed",
                        f"each tile of {tile} is in its new place, but not transposed itself",
                        "read the tile of shared memory with x and y exchanged",
                    )
                    return
