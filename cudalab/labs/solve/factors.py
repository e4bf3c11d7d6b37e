"""The direct methods of solve: factors or an inverse, the launches that make and use them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cudalab.labs.base import blocks_for
from cudalab.labs.solve.spectrum import RefusalError

if TYPE_CHECKING:
    from cudalab.backends.base import Buffer
    from cudalab.labs.base import Job

UNIT = {"float32": 2.0**-23, "float64": 2.0**-52}  # the distance from 1 to the next number
THREADS = 256  # of the kernels that all variants share
CHUNK = 64  # rows of a column in which a thread looks for the greatest element
PANEL = 32  # columns
MIN_THREADS = 256  # of an election, which then also moves as many columns at a time
CHAIN_THREADS = 256  # of a substitution in one launch


class SingularError(RefusalError):
    """There is no unique solution, or none can be told from rounding errors."""


class Direct:
    """A method that prepares the matrix once and then solves for any right-hand side."""

    next_method: str | None = "complete_pivot"  # for a matrix that this one does not solve
    finds_greatest = True  # as pivots: where they are too small, the matrix is singular

    def __init__(self, job: Job, padded: int, ld: int) -> None:
        """A matrix of ld x ld elements, the identity from n to padded, zeros from there."""
        self.job = job
        self.n, self.padded, self.ld = job.params["n"], padded, ld
        dtype, empty = np.dtype(job.case["dtype"]), job.device.empty
        self.work = empty((ld, ld), dtype)
        self.scales, self.relative, self.column_scales = (empty(ld, dtype) for _ in range(3))
        self.greatest_of = empty(ld, f"uint{8 * dtype.itemsize}")
        self.row_of = empty(ld, np.uint32)
        self.b, self.y = (empty(ld, dtype) for _ in range(2))
        self.taken, self.status = empty(2 * ld, np.uint8), empty(2, np.float64)
        self.none_taken = job.device.to_device(np.zeros(2 * ld, np.uint8))
        self.no_status = job.device.to_device(np.zeros(2))
        self.threshold = np.float64(math.sqrt(self.n) * UNIT[dtype.name])

    def factorize(self) -> None:
        """Launch what prepares a copy of A; `check` tells later whether it could."""
        job, launch, kernels = self.job, self.job.device.launch, self.job.kernels
        n, padded, ld = map(np.uint32, (self.n, self.padded, self.ld))
        job.device.copy(self.none_taken, self.taken)
        job.device.copy(self.no_status, self.status)
        launch(
            kernels["load_scaled_rows"], warp_blocks(self.ld), THREADS, job.buffers["a"],
            self.work, self.scales, self.relative, self.row_of, self.greatest_of, n, padded, ld,
        )  # fmt: skip
        chunks = blocks_for(self.n, THREADS), blocks_for(self.n, CHUNK)
        sizes = kernels["find_column_sizes"]
        launch(sizes, chunks, THREADS, self.work, self.greatest_of, n, ld)
        launch(
            kernels["scale_columns"], chunks, THREADS, self.work, self.greatest_of,
            self.column_scales, n, ld,
        )  # fmt: skip
        self.eliminate()

    def check(self) -> None:
        """SingularError if a pivot was missing; waits for the factors."""
        step, pivot = self.job.device.to_host(self.status)
        if step > 0:  # negative: the numbers have overflown, which the residual will show
            digits = int(math.log2(UNIT[self.job.case["dtype"]]))
            raise SingularError(
                f"A is singular: in step {int(step)} of {self.n} no pivot is above {pivot:.3g}, "
                f"rows and columns scaled to 1; up to sqrt(n) 2^{digits} = {self.threshold:.3g} "
                "counts as zero",
                hint="the equations depend on each other, or almost: there is no unique solution",
            )

    def correct(self, r: Buffer, norms: Buffer, x: Buffer) -> None:
        """Solve A d = r and add d to x; the first of `norms` is that of r."""
        launch, kernels, n = self.job.device.launch, self.job.kernels, np.uint32(self.n)
        launch(
            kernels["load_right_hand_side"], blocks_for(self.ld, THREADS), THREADS, r, norms,
            self.scales, self.row_of, self.b, n, np.uint32(self.ld),
        )  # fmt: skip
        self.substitute()
        launch(
            kernels["add_correction"], blocks_for(self.n, THREADS), THREADS, x, self.y,
            self.column_scales, norms, n,
        )  # fmt: skip

    def eliminate(self) -> None:
        """Turn `work` into what solves; `status` tells of a pivot that is none."""
        raise NotImplementedError

    def substitute(self) -> None:
        """From the right-hand side `b` to the solution `y`."""
        raise NotImplementedError


class Factors(Direct):
    """L and U in place of the matrix, padded so that no kernel meets an edge."""

    def __init__(self, job: Job) -> None:
        dtype = np.dtype(job.case["dtype"])
        item_words = dtype.itemsize // 4
        # Of a tile of the trailing update.
        self.edge = job.define("TILE", least=item_words) // item_words
        padded = blocks_for(job.params["n"], PANEL) * PANEL
        super().__init__(job, padded, padded + self.edge - PANEL)
        warps = job.define("PANEL_THREADS", least=32) // 32
        self.panel_rows = warps * job.define("ROWS_PER_WARP")
        blocks, empty = blocks_for(padded, self.panel_rows), job.device.empty
        self.candidates = [(empty(blocks, dtype), empty(blocks, np.uint32)) for _ in range(2)]
        self.pivots = empty(padded, np.uint32)

    def eliminate(self) -> None:
        """A panel of 32 columns after the other: nothing is read back."""
        launch, kernels, end = self.job.device.launch, self.job.kernels, self.padded
        find, eliminate = kernels["find_candidates"], kernels["eliminate_column"]
        permute, solve = kernels["permute_rows"], kernels["solve_rows"]
        update, threads = kernels["update_trailing"], self.job.define("PANEL_THREADS")
        lu, rows = self.work, (self.relative, self.row_of)
        last, ld = np.uint32(end), np.uint32(self.ld)
        for start in range(0, end, PANEL):
            blocks, first = blocks_for(end - start, self.panel_rows), np.uint32(start)
            found, other = self.candidates
            launch(find, blocks, threads, lu, *rows, *found, last, ld, first)
            for column in range(start, start + PANEL):
                launch(
                    eliminate, blocks, threads, lu, *rows, self.taken, *found, *other, self.pivots,
                    self.status, self.threshold, np.uint32(blocks), last, ld, first,
                    np.uint32(column),
                )  # fmt: skip
                found, other = other, found
            moved = (lu, self.row_of, self.taken, self.pivots, ld, first)
            launch(permute, end // PANEL, 256, *moved)
            rest = end - start - PANEL
            launch(solve, blocks_for(rest, 128), 128, lu, ld, first)
            tiles = blocks_for(rest, self.edge)
            launch(update, (tiles, tiles), 256, lu, ld, first)

    def substitute(self) -> None:
        """L y = b downwards, U b = y upwards: 32 unknowns a launch."""
        launch, kernels, end = self.job.device.launch, self.job.kernels, self.padded
        lower, upper = kernels["substitute_lower"], kernels["substitute_upper"]
        sizes = np.uint32(end), np.uint32(self.ld)
        for start in range(0, end, PANEL):
            blocks = max(1, blocks_for(end - start - PANEL, THREADS))
            launch(lower, blocks, THREADS, self.work, self.b, self.y, *sizes, np.uint32(start))
        for start in reversed(range(0, end, PANEL)):
            blocks = max(1, blocks_for(start, THREADS))
            launch(upper, blocks, THREADS, self.work, self.y, self.b, *sizes, np.uint32(start))
        self.b, self.y = self.y, self.b


class BlockedFactors(Direct):
    """L and U in place of the matrix, two launches a panel and two a block."""

    next_method = "lu_partial_pivot"  # which takes no pivot but the greatest of the whole column

    def __init__(self, job: Job) -> None:
        dtype = np.dtype(job.case["dtype"])
        # The kernels count in 16-byte pieces: half of everything in double.
        item_words = dtype.itemsize // 4
        self.strip = job.define("BLOCK", least=PANEL * item_words) // item_words
        self.edge = job.define("TILE", least=item_words) // item_words
        self.most_threads = job.define("MOST_THREADS", least=32 * item_words) // item_words
        self.rows_each = job.define("ROWS_OF_THREAD")
        self.rows = 256 // dtype.itemsize  # of a block of eliminate_rows
        self.solve_threads = 2048 // dtype.itemsize
        padded = blocks_for(job.params["n"], PANEL) * PANEL
        self.finds_greatest = padded <= self.most_threads * self.rows_each
        super().__init__(job, padded, padded + self.edge - PANEL)
        empty = job.device.empty
        self.pivots = empty(padded, np.uint32)
        self.candidates = empty(self.ld, np.uint32)  # a panel's blocks have 32 rows or more
        self.counters = [job.device.to_device(np.zeros(1, np.uint32)) for _ in range(3)]
        self.between = empty(self.ld, dtype)  # of the two substitutions; all bits set: not known
        not_known = np.full(self.ld * dtype.itemsize, 0xFF, np.uint8).view(dtype)
        job.device.copy(not_known, self.between)

    def election(self, rows: int) -> tuple[int, int]:
        """Blocks and threads that find the pivots among `rows` rows.

        One block while it can hold them; else blocks about as large as the number of their
        candidates, so that the two rounds take equally long.
        """
        each, most = self.rows_each, self.most_threads
        of_block = rows if rows <= most * each else _square_root(PANEL * rows)
        threads = min(max(blocks_for(of_block, 32 * each) * 32, MIN_THREADS), most)
        return blocks_for(rows, threads * each), threads

    def eliminate(self) -> None:
        """Strip after strip, panel after panel: nothing is read back."""
        launch, kernels, end = self.job.device.launch, self.job.kernels, self.padded
        choose, eliminate = kernels["choose_pivots"], kernels["eliminate_rows"]
        solve, update = kernels["solve_rows"], kernels["update_trailing"]
        lu, last, ld = self.work, np.uint32(end), np.uint32(self.ld)
        rows = (self.relative, self.row_of, self.candidates, self.counters[0], self.pivots)
        for first in range(0, end, self.strip):
            strip_end = min(first + self.strip, end)
            for start in range(first, strip_end, PANEL):
                panel = last, ld, np.uint32(start), np.uint32(strip_end)
                blocks, threads = self.election(end - start)
                launch(choose, blocks, threads, lu, *rows, self.status, self.threshold, *panel)
                tiles = blocks_for(end - start - PANEL, self.rows)
                others = (start + end - strip_end) // 32
                launch(eliminate, tiles + others, 256, lu, self.pivots, *panel)
            rest = end - strip_end
            launch(solve, rest // 32, self.solve_threads, lu, ld, np.uint32(first))
            tiles = blocks_for(rest, self.edge)
            launch(update, (tiles, tiles), 256, lu, ld, np.uint32(first))

    def substitute(self) -> None:
        """L y = b, then U x = y: a launch each."""
        launch, kernels = self.job.device.launch, self.job.kernels
        links, ld = self.padded // PANEL, np.uint32(self.ld)
        lower, upper = self.counters[1:]
        launch(
            kernels["substitute_lower"], links, CHAIN_THREADS, self.work, self.b, self.between,
            self.y, lower, ld,
        )  # fmt: skip
        launch(
            kernels["substitute_upper"], links, CHAIN_THREADS, self.work, self.between, self.y,
            upper, ld,
        )  # fmt: skip


class Inverse(Direct):
    """The inverse of the scaled matrix in its place."""

    def __init__(self, job: Job, *, complete: bool) -> None:
        n = job.params["n"]
        super().__init__(job, n, blocks_for(n, 4) * 4)
        self.complete = complete
        if complete:
            self.next_method = None
        dtype, empty = np.dtype(job.case["dtype"]), job.device.empty
        self.pivot_row, self.multipliers = (empty(self.ld, dtype) for _ in range(2))
        self.pivot = empty(2, np.uint32)
        self.row_of_column = empty(n, np.uint32)
        self.candidates = empty(n, dtype), empty(n, np.uint32)

    def eliminate(self) -> None:
        """Two or three launches a step; nothing is read back."""
        launch, kernels, threads = self.job.device.launch, self.job.kernels, THREADS
        search, eliminate = kernels["choose_pivot"], kernels["eliminate"]
        prepared = self.pivot_row, self.multipliers, self.pivot
        record = self.row_of_column, self.status, self.threshold
        sizes = np.uint32(self.n), np.uint32(self.ld)
        grid = blocks_for(self.ld, 128), blocks_for(self.n, 32)
        found: tuple[Buffer, ...] = self.candidates if self.complete else (self.relative,)
        for step in range(self.n):
            if self.complete:
                launch(
                    kernels["find_row_candidates"], warp_blocks(self.n), threads,
                    self.work, self.relative, self.taken, *found, *sizes,
                )  # fmt: skip
            launch(
                search, 1, self.job.define("SEARCH_THREADS"),
                self.work, *found, self.taken, *prepared, *record, *sizes, np.uint32(step),
            )  # fmt: skip
            launch(eliminate, grid, (32, 4), self.work, *prepared, *sizes)

    def substitute(self) -> None:
        """Multiply by the inverse."""
        sizes = np.uint32(self.n), np.uint32(self.ld)
        kernel, rows = self.job.kernels["apply_inverse"], self.row_of_column
        launch = self.job.device.launch
        launch(kernel, warp_blocks(self.n), THREADS, self.work, rows, self.b, self.y, *sizes)


def _square_root(number: int) -> int:
    """Rounded up."""
    return math.isqrt(number - 1) + 1


def warp_blocks(rows: int) -> int:
    """Blocks for one warp a row."""
    return blocks_for(rows, THREADS // 32)
