"""The direct methods of solve: the launches that compute and use factors or an inverse."""

import math
from typing import NamedTuple

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, blocks_for
from cudalab.labs.solve.launches import THREADS, arguments, launch, warp_blocks
from cudalab.labs.solve.spectrum import RefusalError

UNIT = {"float32": 2.0**-23, "float64": 2.0**-52}  # the distance from 1 to the next number
CHUNK = 64  # rows of a column that a thread searches for the greatest element
PANEL = 32  # columns
MIN_THREADS = 256  # for an election, which then also moves as many columns at a time
CHAIN_THREADS = 256  # for a substitution in one launch
LINK = 64  # unknowns of a block there


class SingularError(RefusalError):
    """There is no unique solution, or rounding errors hide it."""


class Direct:
    """A method that prepares the matrix once and then solves for any right-hand side."""

    next_method: str | None = "complete_pivot"  # for a matrix that this method does not solve
    finds_greatest = True  # pivots are the greatest; if they are too small, A is singular

    def __init__(self, job: Job, padded: int, ld: int) -> None:
        """Allocate ld x ld elements: A, the identity from n to padded, zeros from there."""
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
        """Launch the preparation of a copy of A; `check` says later whether it succeeded."""
        self.job.device.copy(self.none_taken, self.taken)
        self.job.device.copy(self.no_status, self.status)
        self.load()
        self.eliminate()

    def load(self) -> None:
        """Fill `work`: scale the rows of A, and then its columns."""
        job, n, ld = self.job, self.n, self.ld
        launch(
            job, "load_scaled_rows", warp_blocks(ld), THREADS,
            a=job.buffers["a"], work=self.work, scales=self.scales, relative=self.relative,
            row_of=self.row_of, greatest_of=self.greatest_of, n=n, padded=self.padded, ld=ld,
        )  # fmt: skip
        chunks = blocks_for(n, THREADS), blocks_for(n, CHUNK)
        launch(
            job, "find_column_sizes", chunks, THREADS,
            work=self.work, greatest_of=self.greatest_of, n=n, ld=ld,
        )  # fmt: skip
        launch(
            job, "scale_columns", chunks, THREADS,
            work=self.work, greatest_of=self.greatest_of, column_scales=self.column_scales,
            n=n, ld=ld,
        )  # fmt: skip

    def check(self) -> None:
        """Wait for the factors; raise a SingularError if a pivot was missing."""
        step, pivot = self.job.device.to_host(self.status)
        if step > 0:  # negative: numbers have overflowed, which the residual will show
            digits = int(math.log2(UNIT[self.job.case["dtype"]]))
            raise SingularError(
                f"A is singular: in step {int(step)} of {self.n} no pivot is above {pivot:.3g}, "
                f"rows and columns scaled to 1; up to sqrt(n) 2^{digits} = {self.threshold:.3g} "
                "counts as zero",
                hint="the equations depend on each other, or almost: there is no unique solution",
            )

    def correct(self, r: Buffer, norms: Buffer, x: Buffer) -> None:
        """Solve A d = r and add d to x; the first of `norms` is that of r."""
        launch(
            self.job, "load_right_hand_side", blocks_for(self.ld, THREADS), THREADS,
            r=r, norms=norms, scales=self.scales, row_of=self.row_of, b=self.b,
            n=self.n, ld=self.ld,
        )  # fmt: skip
        self.substitute()
        launch(
            self.job, "add_correction", blocks_for(self.n, THREADS), THREADS,
            x=x, correction=self.y, column_scales=self.column_scales, norms=norms, n=self.n,
        )  # fmt: skip

    def eliminate(self) -> None:
        """Turn `work` into factors or the inverse; `status` records a missing pivot."""
        raise NotImplementedError

    def substitute(self) -> None:
        """Compute the solution `y` for the right-hand side `b`."""
        raise NotImplementedError


class Candidates(NamedTuple):
    """The best row for a pivot in each block's rows, and how large its element is."""

    sizes: Buffer
    rows: Buffer


class Factors(Direct):
    """L and U in place of the matrix, padded so that kernels need no special cases at edges."""

    def __init__(self, job: Job) -> None:
        dtype = np.dtype(job.case["dtype"])
        item_words = dtype.itemsize // 4
        # Rows and columns of a tile of the trailing update.
        self.edge = job.define("TILE", at_least=item_words) // item_words
        padded = blocks_for(job.params["n"], PANEL) * PANEL
        super().__init__(job, padded, padded + max(self.edge, LINK) - PANEL)
        self.threads = job.define("PANEL_THREADS", at_least=32)
        self.panel_rows = self.threads // 32 * job.define("ROWS_PER_WARP")  # per block
        blocks, empty = blocks_for(padded, self.panel_rows), job.device.empty
        self.candidates = [
            Candidates(empty(blocks, dtype), empty(blocks, np.uint32)) for _ in range(2)
        ]
        self.pivots = empty(padded, np.uint32)

    def eliminate(self) -> None:
        """Eliminate panels of 32 columns; nothing is read back."""
        job, lu, ld = self.job, self.work, self.ld
        for start in range(0, self.padded, PANEL):
            self.eliminate_panel(start)
            launch(
                job, "permute_rows", self.padded // PANEL, 256,
                lu=lu, row_of=self.row_of, taken=self.taken, pivots=self.pivots, ld=ld,
                start=start,
            )  # fmt: skip
            rest = self.padded - start - PANEL
            launch(job, "solve_rows", blocks_for(rest, 128), 128, lu=lu, ld=ld, start=start)
            tiles = blocks_for(rest, self.edge)
            launch(job, "update_trailing", (tiles, tiles), 256, lu=lu, ld=ld, start=start)

    def eliminate_panel(self, start: int) -> None:
        """Eliminate column by column, each with the pivot among the candidates of the last."""
        job, end, ld = self.job, self.padded, self.ld
        blocks = blocks_for(end - start, self.panel_rows)
        first, second = self.candidates
        launch(
            job, "find_candidates", blocks, self.threads,
            lu=self.work, relative=self.relative, row_of=self.row_of, sizes=first.sizes,
            rows=first.rows, end=end, ld=ld, column=start,
        )  # fmt: skip
        arguments_by_turn = [
            arguments(
                lu=self.work, relative=self.relative, row_of=self.row_of, taken=self.taken,
                sizes=now.sizes, rows=now.rows, next_sizes=then.sizes, next_rows=then.rows,
                pivots=self.pivots, status=self.status, threshold=self.threshold,
                num_candidates=blocks, end=end, ld=ld, start=start,
            )
            for now, then in ((first, second), (second, first))
        ]  # fmt: skip
        kernel = job.kernels["eliminate_column"]
        for number in range(PANEL):
            column = np.uint32(start + number)
            job.device.launch(kernel, blocks, self.threads, *arguments_by_turn[number % 2], column)

    def substitute(self) -> None:
        """Solve L y = b downwards and U b = y upwards, 32 unknowns per launch."""
        job, lu, end, ld = self.job, self.work, self.padded, self.ld
        for start in range(0, end, PANEL):
            blocks = max(1, blocks_for(end - start - PANEL, THREADS))
            launch(
                job, "substitute_lower", blocks, THREADS,
                lu=lu, b=self.b, y=self.y, end=end, ld=ld, start=start,
            )  # fmt: skip
        for start in reversed(range(0, end, PANEL)):
            blocks = max(1, blocks_for(start, THREADS))
            launch(
                job, "substitute_upper", blocks, THREADS,
                lu=lu, b=self.y, y=self.b, end=end, ld=ld, start=start,
            )  # fmt: skip
        self.b, self.y = self.y, self.b


class ChainedFactors(Factors):
    """The same factors, with each substitution in one launch."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.chain = SubstitutionChain(self)

    def substitute(self) -> None:
        """Solve L y = b, then U x = y, in one launch each."""
        self.chain.substitute()


class StripFactors(Direct):
    """L and U in place of the matrix, strip by strip of BLOCK columns; substitutions in a chain.

    A file without BLOCK has strips of one panel.
    """

    def __init__(self, job: Job) -> None:
        # The kernels count in 16-byte pieces: half of everything in double.
        item_words = np.dtype(job.case["dtype"]).itemsize // 4
        panel = PANEL * item_words
        self.strip = job.define("BLOCK", panel, at_least=panel) // item_words
        self.edge = job.define("TILE", at_least=item_words) // item_words
        padded = blocks_for(job.params["n"], PANEL) * PANEL
        super().__init__(job, padded, padded + max(self.edge, LINK) - PANEL)
        self.chain = SubstitutionChain(self)

    def substitute(self) -> None:
        """Solve L y = b, then U x = y, in one launch each."""
        self.chain.substitute()


class BlockedFactors(StripFactors):
    """The same factors, with two launches per panel and two per block."""

    next_method = "lu_partial_pivot"  # which always takes the greatest pivot of the whole column

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        itemsize = np.dtype(job.case["dtype"]).itemsize
        item_words = itemsize // 4
        self.max_threads = (
            job.define("MAX_THREADS_PER_BLOCK", at_least=64 * item_words) // item_words
        )
        self.rows = 256 // itemsize  # per block of eliminate_rows
        self.solve_threads = 2048 // itemsize
        self.finds_greatest = self.padded <= self.max_threads
        empty = job.device.empty
        self.pivots = empty(self.padded, np.uint32)
        self.candidates = empty(self.ld, np.uint32)  # a panel's blocks have 32 rows or more
        self.arrived = job.device.to_device(np.zeros(1, np.uint32))

    def election(self, rows: int) -> tuple[int, int]:
        """The numbers of blocks and threads that find the pivots among `rows` rows.

        One block if it has a thread for each row; else blocks with about as many rows as there are
        candidates in all, so that the two rounds take equally long.
        """
        block_rows = rows if rows <= self.max_threads else math.isqrt(PANEL * rows - 1) + 1
        threads = max(blocks_for(block_rows, 32) * 32, MIN_THREADS)
        threads = min(threads, self.max_threads)
        return blocks_for(rows, threads), threads

    def eliminate(self) -> None:
        """Eliminate strip by strip, panel by panel; nothing is read back."""
        for first in range(0, self.padded, self.strip):
            strip_end = min(first + self.strip, self.padded)
            for start in range(first, strip_end, PANEL):
                self.eliminate_panel(start, strip_end)
            rest = self.padded - strip_end
            self.solve_rows(first, rest)
            self.update(first, blocks_for(rest, self.edge))

    def solve_rows(self, first: int, rest: int) -> None:
        """Compute the strip's rows of U in the `rest` columns right of it."""
        launch(
            self.job, "solve_rows", rest // 32, self.solve_threads,
            lu=self.work, ld=self.ld, start=first,
        )  # fmt: skip

    def update(self, first: int, tiles: int) -> None:
        """Subtract the product of the strip's L and U from the tiles x tiles below and right."""
        launch(
            self.job, "update_trailing", (tiles, tiles), 256,
            lu=self.work, ld=self.ld, start=first,
        )  # fmt: skip

    def eliminate_panel(self, start: int, strip_end: int) -> None:
        """Find the panel's pivots, eliminate the rows below, exchange rows in all columns."""
        self.choose_pivots(start, strip_end)
        self.eliminate_rows(start, strip_end, exchanged=start + self.padded - strip_end)

    def choose_pivots(self, start: int, strip_end: int) -> None:
        """Find the panel's pivots and bring their rows to its top, in the rest of the strip too."""
        launch(
            self.job, "choose_pivots", *self.election(self.padded - start),
            lu=self.work, relative=self.relative, row_of=self.row_of, candidates=self.candidates,
            arrived=self.arrived, pivots=self.pivots, status=self.status,
            threshold=self.threshold, end=self.padded, ld=self.ld, start=start,
            strip_end=strip_end,
        )  # fmt: skip

    def eliminate_rows(self, start: int, strip_end: int, *, exchanged: int) -> None:
        """Eliminate the rows below the panel; exchange rows in so many columns outside of it."""
        tiles = blocks_for(self.padded - start - PANEL, self.rows)
        launch(
            self.job, "eliminate_rows", tiles + exchanged // 32, 256,
            lu=self.work, pivots=self.pivots, end=self.padded, ld=self.ld, start=start,
            strip_end=strip_end,
        )  # fmt: skip


class ElectedFactors(BlockedFactors):
    """The same factors, with the whole matrix updated after each panel."""

    def solve_rows(self, first: int, rest: int) -> None:
        """Compute the panel's rows of U in the `rest` columns right of it."""
        launch(
            self.job, "solve_rows", blocks_for(rest, 128), 128,
            lu=self.work, ld=self.ld, start=first,
        )  # fmt: skip


class SubstitutionChain:
    """Both substitutions with a method's factors, in one launch each, and their buffers."""

    def __init__(self, method: Direct) -> None:
        """Mark the unknowns between the two substitutions as unknown: all bits set."""
        self.method, device = method, method.job.device
        dtype = np.dtype(method.job.case["dtype"])
        unknown = np.full(method.ld * dtype.itemsize, 0xFF, np.uint8).view(dtype)
        self.between = device.empty(method.ld, dtype)
        device.copy(unknown, self.between)
        self.lower_ticket, self.upper_ticket = (
            device.to_device(np.zeros(1, np.uint32)) for _ in range(2)
        )

    def substitute(self) -> None:
        """Compute the method's solution `y` for its right-hand side `b`."""
        method, links = self.method, blocks_for(self.method.padded, LINK)
        launch(
            method.job, "substitute_lower_chain", links, CHAIN_THREADS,
            lu=method.work, b=method.b, between=self.between, solution=method.y,
            ticket=self.lower_ticket, end=method.padded, ld=method.ld,
        )  # fmt: skip
        launch(
            method.job, "substitute_upper_chain", links, CHAIN_THREADS,
            lu=method.work, between=self.between, solution=method.y, ticket=self.upper_ticket,
            end=method.padded, ld=method.ld,
        )  # fmt: skip


class Inverse(Direct):
    """The inverse of the scaled matrix, in place."""

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
        self.sizes, self.columns = empty(n, dtype), empty(n, np.uint32)

    def eliminate(self) -> None:
        """Eliminate with two or three launches per step; nothing is read back."""
        job, device, sizes = self.job, self.job.device, {"n": self.n, "ld": self.ld}
        candidates = {"relative": self.relative}
        if self.complete:
            candidates = {"sizes": self.sizes, "columns": self.columns}
        choice = arguments(
            work=self.work, **candidates, taken=self.taken, pivot_row=self.pivot_row,
            multipliers=self.multipliers, pivot=self.pivot, row_of_column=self.row_of_column,
            status=self.status, threshold=self.threshold, **sizes,
        )  # fmt: skip
        prepared = arguments(
            work=self.work, pivot_row=self.pivot_row, multipliers=self.multipliers,
            pivot=self.pivot, **sizes,
        )  # fmt: skip
        choose, eliminate = job.kernels["choose_pivot"], job.kernels["eliminate"]
        threads = job.define("SEARCH_THREADS")
        grid = blocks_for(self.ld, 128), blocks_for(self.n, 32)
        for step in range(self.n):
            if self.complete:
                launch(
                    job, "find_row_candidates", warp_blocks(self.n), THREADS,
                    work=self.work, relative=self.relative, taken=self.taken, **candidates, **sizes,
                )  # fmt: skip
            device.launch(choose, 1, threads, *choice, np.uint32(step))
            device.launch(eliminate, grid, (32, 4), *prepared)

    def substitute(self) -> None:
        """Multiply by the inverse."""
        launch(
            self.job, "apply_inverse", warp_blocks(self.n), THREADS,
            work=self.work, row_of_column=self.row_of_column, b=self.b, y=self.y,
            n=self.n, ld=self.ld,
        )  # fmt: skip
