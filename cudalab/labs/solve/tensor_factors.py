"""Factors whose updates are products of tensor cores, in emulated float32."""

import numpy as np

from cudalab.backends.base import stream
from cudalab.labs.base import Job, blocks_for
from cudalab.labs.solve.factors import PANEL, BlockedFactors, SingularError, StripFactors
from cudalab.labs.solve.launches import THREADS, launch


class Products:
    """Updates of the matrix by a strip's columns of L and rows of U, split into fp16 parts."""

    def __init__(self, method: StripFactors) -> None:
        self.method, job = method, method.job
        bk = job.define("BK")
        self.blocks = method.strip // bk  # of a tile
        count = blocks_for(method.padded, method.edge) * self.blocks
        self.parts = {
            **{name: job.device.empty((count, 2, method.edge, bk), np.uint16)
               for name in ("l_parts", "u_parts")},
            **{name: job.device.empty(count, np.uint32)
               for name in ("l_exponents", "u_exponents")},
        }  # fmt: skip
        self.split_threads = job.define("SPLIT_THREADS")
        self.update_threads = job.define("UPDATE_THREADS")
        self.shared_bytes = job.define("SHARED_BYTES")
        self.cores = job.device.multiprocessors

    def split(self, first: int, tiles: int) -> None:
        """Write the parts of the strip's L and U."""
        method = self.method
        launch(
            method.job, "split_strip", 2 * tiles * self.blocks, self.split_threads,
            lu=method.work, **self.parts, ld=method.ld, start=first,
        )  # fmt: skip

    def subtract(self, first: int, tiles: int, first_column: int, columns: int, cores: int) -> None:
        """Update these tile columns in blocks that share the tiles, one per multiprocessor."""
        method = self.method
        launch(
            method.job, "subtract_products", min(tiles * columns, cores), self.update_threads,
            self.shared_bytes, lu=method.work, **self.parts, tile_rows=tiles,
            first_column=first_column, tile_columns=columns, ld=method.ld, start=first,
        )  # fmt: skip


class TensorFactors(BlockedFactors):
    """The same factors, with the updates on tensor cores."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.products = Products(self)

    def update(self, first: int, tiles: int) -> None:
        """Split the strip's L and U, and subtract their product, on all multiprocessors."""
        self.products.split(first, tiles)
        self.products.subtract(first, tiles, 0, tiles, self.products.cores)


class LookAheadFactors(TensorFactors):
    """The same factors; the next strip is eliminated beside the update of all that follows it."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        cores = self.products.cores
        self.updating = cores - max(1, cores // job.define("PANEL_SHARE"))
        self.streams = [stream(job.device) for _ in range(2)]

    def eliminate(self) -> None:
        """Eliminate the first strip; then update, and eliminate the next one meanwhile."""
        strip, products = self.strip, self.products
        self.eliminate_strip(0)
        for first in range(0, self.padded, strip):
            strip_end = min(first + strip, self.padded)
            rest = self.padded - strip_end
            self.exchange(first, strip_end)
            self.solve_rows(first, rest)
            tiles = blocks_for(rest, self.edge)
            products.split(first, tiles)
            next_columns = min(tiles, strip // self.edge)
            products.subtract(first, tiles, 0, next_columns, products.cores)
            eliminating, updating = self.streams
            with eliminating:
                self.eliminate_strip(strip_end)
            with updating:
                products.subtract(first, tiles, next_columns, tiles - next_columns, self.updating)

    def exchange(self, first: int, strip_end: int) -> None:
        """Exchange rows wherever the strip's elimination has not."""
        launch(
            self.job, "exchange_strip", self.padded // PANEL, 256,
            lu=self.work, pivots=self.pivots, ld=self.ld, first=first, strip_end=strip_end,
        )  # fmt: skip

    def eliminate_strip(self, first: int) -> None:
        """Eliminate panel by panel; exchange rows in this strip only, right of each panel."""
        strip_end = min(first + self.strip, self.padded)
        for start in range(first, strip_end, PANEL):
            self.choose_pivots(start, strip_end)
            self.eliminate_rows(start, strip_end, exchanged=0)


class CholeskyFactors(StripFactors):
    """L and D L^T of a definite matrix in place of it, by tensor cores, without pivots."""

    next_method = "lu_look_ahead"
    finds_greatest = False

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.products = Products(self)
        self.column_scales = self.scales
        self.diagonal_threads = job.define("DIAGONAL_THREADS")
        self.below_threads, self.below_rows = job.define("BELOW_THREADS"), job.define("BELOW_ROWS")
        self.streams = [stream(job.device) for _ in range(2)]

    def load(self) -> None:
        """Fill `work`: scale rows and columns of A alike."""
        job, n, ld = self.job, self.n, self.ld
        launch(
            job, "find_diagonal_scales", blocks_for(ld, THREADS), THREADS,
            a=job.buffers["a"], scales=self.scales, row_of=self.row_of, n=n, ld=ld,
        )  # fmt: skip
        launch(
            job, "load_symmetric", ld, THREADS,
            a=job.buffers["a"], scales=self.scales, work=self.work, n=n, padded=self.padded, ld=ld,
        )  # fmt: skip

    def check(self) -> None:
        """Wait for the factors; raise a SingularError if a pivot shows that A is not definite."""
        step, pivot = self.job.device.to_host(self.status)
        if step > 0:  # negative: numbers have overflowed, which the residual will show
            raise SingularError(
                f"A is not definite: in step {int(step)} of {self.n} the pivot is {pivot:.3g}"
            )

    def eliminate(self) -> None:
        """Factor the first strip's diagonal; then update, and factor the next one's meanwhile."""
        products = self.products
        self.factor_diagonal(0)
        for first in range(0, self.padded - self.strip, self.strip):
            strip_end = first + self.strip
            tiles = blocks_for(self.padded - strip_end, self.edge)
            self.eliminate_below(first, self.padded - strip_end)
            products.split(first, tiles)
            corner = min(tiles, self.strip // self.edge)
            for_diagonal, for_updates = self.streams
            with for_diagonal:
                products.subtract(first, corner, 0, corner, products.cores)
                self.factor_diagonal(strip_end)
            with for_updates:
                self.subtract_below(first, tiles, (tiles - corner) * (tiles + corner + 1) // 2)

    def factor_diagonal(self, first: int) -> None:
        """Compute L and U of the strip's own rows, with the pivots as they come."""
        panels = self.strip // PANEL
        tiles, padded_rows = panels * (panels + 1) // 2, self.strip + 8
        launch(
            self.job, "factor_diagonal", 1, self.diagonal_threads,
            (tiles * PANEL + 2 * padded_rows) * PANEL * 4,
            lu=self.work, status=self.status, threshold=self.threshold, ld=self.ld, start=first,
            strip_end=min(first + self.strip, self.padded),
        )  # fmt: skip

    def eliminate_below(self, first: int, rest: int) -> None:
        """Compute the strip's L in the `rest` rows below, and its U right of it."""
        rows = self.below_rows
        launch(
            self.job, "eliminate_below", blocks_for(rest, rows), self.below_threads,
            self.strip * (rows + 8) * 4, lu=self.work, ld=self.ld, start=first,
        )  # fmt: skip

    def subtract_below(self, first: int, tiles: int, count: int) -> None:
        """Subtract the product of the strip's L and U from `count` tiles, those not yet updated."""
        products = self.products
        launch(
            self.job, "subtract_below", min(count, products.cores - 1), products.update_threads,
            products.shared_bytes, lu=self.work, **products.parts, tile_rows=tiles,
            ld=self.ld, start=first,
        )  # fmt: skip
