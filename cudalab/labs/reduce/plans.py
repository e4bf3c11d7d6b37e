"""The launch plans of reduce: which kernels run, in what order, on which memory.

T is the element type; one of the defines OP_SUM, OP_PROD, OP_MIN, OP_MAX, OP_SUMSQ, OP_MEAN and
OP_DOT chooses the operation. x has the items, y is the second vector of a dot product (else x
again). n, rows, cols < 2^31.
"""

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, Step, blocks_for, padded, passes


def dispatch_multi_pass(job: Job) -> Step:
    """Blocks reduce their items to one value each, level by level, until one value is left.

    reduce_blocks(const T *x, const T *y, T *out, unsigned n, int level, unsigned count)
        out[block] = the block's items combined. At level 0 x (and y) are the inputs, which
        sumsq squares and dot multiplies; at later levels x has the results of the level before.
        At the last level count is the number of inputs, by which a mean divides, else 0.
    Blocks of THREADS_PER_BLOCK threads, one block per ITEMS_PER_BLOCK items, but at most
    MAX_BLOCKS if the header defines it. A sum of n <= ITEMS_PER_BLOCK items needs only x, out
    and n.
    """
    n, per_block = job.params["n"], job.define("ITEMS_PER_BLOCK", at_least=2)
    grids = passes(n, per_block, job.define("MAX_BLOCKS", n))
    results = [job.device.empty(grid, job.buffers["x"].dtype) for grid in grids]
    kernel, threads = job.kernels["reduce_blocks"], job.define("THREADS_PER_BLOCK")

    def run() -> None:
        (x, y), items = _inputs(job), n
        for level, (grid, out) in enumerate(zip(grids, results, strict=True)):
            numbers = np.uint32(items), np.int32(level), np.uint32(n if grid == 1 else 0)
            job.device.launch(kernel, grid, threads, x, y, out, *numbers)
            x, y, items = out, out, grid

    return Step(run, results[-1])


def dispatch_halving(job: Job) -> Step:
    """Pairs are combined level by level in global memory; each level halves the items.

    combine_halves(const T *x, const T *y, T *out, unsigned n, int level, unsigned count)
        out[i] = x[i] combined with x[i + half] (if there is one), half = n - n / 2; from
        level 1 on in place. level and count as in the plan `multi_pass`.
    Blocks of THREADS_PER_BLOCK threads, one thread for each of the `half` pairs.
    """
    n, threads = job.params["n"], job.define("THREADS_PER_BLOCK")
    kernel, dtype = job.kernels["combine_halves"], job.buffers["x"].dtype
    scratch, out = job.device.empty(n - n // 2, dtype), job.device.empty(1, dtype)

    def run() -> None:
        (x, y), items, level = _inputs(job), n, 0
        while level == 0 or items > 1:
            half = items - items // 2
            target = scratch if half > 1 else out
            numbers = np.uint32(items), np.int32(level), np.uint32(n if half == 1 else 0)
            grid = blocks_for(half, threads)
            job.device.launch(kernel, grid, threads, x, y, target, *numbers)
            x, y, items, level = target, target, half, level + 1

    return Step(run, out)


def dispatch_single_pass(job: Job) -> Step:
    """One launch: each block writes a partial result, and the last one to finish reduces them.

    reduce_array(const T *x, const T *y, T *partials, unsigned *ticket, T *out, unsigned n)
        *out = the n items combined, by as many blocks as partials has elements. *ticket is 0
        before the first run and must be 0 again after each.
    Blocks of THREADS_PER_BLOCK threads, one block per ITEMS_PER_BLOCK items, at most MAX_BLOCKS.
    """
    n, dtype = job.params["n"], job.buffers["x"].dtype
    grid = min(blocks_for(n, job.define("ITEMS_PER_BLOCK")), job.define("MAX_BLOCKS"))
    threads = job.define("THREADS_PER_BLOCK")
    partials, out = job.device.empty(grid, dtype), job.device.empty(1, dtype)
    ticket = job.device.to_device(np.zeros(1, np.uint32))
    args = (*_inputs(job), partials, ticket, out, n)
    return Step(job.launch("reduce_array", grid, threads, *args), out)


def dispatch_rows(job: Job) -> Step:
    """Rows are cut into segments, whose results form shorter rows, until one segment is left.

    reduce_rows(const T *x, const T *y, T *out, unsigned rows, unsigned cols, unsigned lanes,
                int level, unsigned count)
        out[row * segments + s] = items s * ITEMS_PER_SEGMENT to (s + 1) * ITEMS_PER_SEGMENT - 1
        of the row combined, segments = ceil(cols / ITEMS_PER_SEGMENT). level and count as in
        the plan `multi_pass`. Without --rows the array is one row.
    Blocks of THREADS_PER_BLOCK threads, `lanes` of them per segment: the smallest power of two
    that is at least cols, but at most MAX_LANES. Without ITEMS_PER_SEGMENT in the header, a
    segment is a row.
    """
    rows, cols = job.params.get("rows", 1), job.params.get("cols", job.params.get("n", 0))
    per_segment = job.define("ITEMS_PER_SEGMENT", cols, at_least=2)
    kernel, max_lanes = job.kernels["reduce_rows"], job.define("MAX_LANES")
    threads = job.define("THREADS_PER_BLOCK", at_least=max_lanes)
    widths = [cols, *passes(cols, per_segment)]
    dtype = job.buffers["x"].dtype
    results = [job.device.empty(rows * segments, dtype) for segments in widths[1:]]

    def run() -> None:
        x, y = _inputs(job)
        for level, out in enumerate(results):
            width, segments = widths[level : level + 2]
            lanes = min(padded(width), max_lanes)
            grid = blocks_for(rows * segments, threads // lanes)
            sizes = np.uint32(rows), np.uint32(width), np.uint32(lanes)
            last = np.int32(level), np.uint32(cols if segments == 1 else 0)
            job.device.launch(kernel, grid, threads, x, y, out, *sizes, *last)
            x, y = out, out

    return Step(run, results[-1])


def dispatch_tiled_rows(job: Job) -> Step:
    """One launch, a block per ROWS_PER_BLOCK rows.

    reduce_rows(const T *x, T *out, unsigned rows, unsigned cols, unsigned count)
        out[row] = the row's items combined; count = cols, by which a mean divides
    Blocks of THREADS_PER_BLOCK threads.
    """
    return _one_launch(job, "reduce_rows", job.params["rows"], job.define("ROWS_PER_BLOCK"))


def dispatch_cols(job: Job) -> Step:
    """One launch, a thread per column.

    reduce_cols(const T *x, T *out, unsigned rows, unsigned cols, unsigned count)
        out[col] = the column's items combined; count = rows, by which a mean divides
    Blocks of THREADS_PER_BLOCK threads.
    """
    threads = job.define("THREADS_PER_BLOCK")
    return _one_launch(job, "reduce_cols", job.params["cols"], threads)


def dispatch_col_segments(job: Job) -> Step:
    """Rows are grouped into segments, whose results form fewer rows, until one row is left.

    reduce_cols(const T *x, T *out, unsigned rows, unsigned cols, unsigned width, int level,
                unsigned count)
        With strips = ceil(cols / width), block b takes strip b % strips, of `width` columns, and
        segment b / strips, of ITEMS_PER_BLOCK / width rows:
        out[segment * cols + col] = the column's items of the segment combined. level and
        count as in the plan `multi_pass`.
    Blocks of THREADS_PER_BLOCK threads; width is the smallest power of two that is at least
    cols, but at most 32.
    """
    rows, cols, x = job.params["rows"], job.params["cols"], job.buffers["x"]
    width = min(padded(cols), 32)
    strips = blocks_for(cols, width)
    per_segment = job.define("ITEMS_PER_BLOCK", at_least=2 * width) // width
    heights = [rows, *passes(rows, per_segment)]
    results = [job.device.empty(segments * cols, x.dtype) for segments in heights[1:]]
    kernel, threads = job.kernels["reduce_cols"], job.define("THREADS_PER_BLOCK")

    def run() -> None:
        source = x
        for level, out in enumerate(results):
            height, segments = heights[level : level + 2]
            sizes = np.uint32(height), np.uint32(cols), np.uint32(width)
            last = np.int32(level), np.uint32(rows if segments == 1 else 0)
            job.device.launch(kernel, strips * segments, threads, source, out, *sizes, *last)
            source = out

    return Step(run, results[-1])


def _inputs(job: Job) -> tuple[Buffer, Buffer]:
    x = job.buffers["x"]
    return x, job.buffers.get("y", x)


def _one_launch(job: Job, name: str, results: int, per_block: int) -> Step:
    """Reduce the matrix to `results` values in one launch, `per_block` by each block."""
    rows, cols, x = job.params["rows"], job.params["cols"], job.buffers["x"]
    out = job.device.empty(results, x.dtype)
    grid, threads = blocks_for(results, per_block), job.define("THREADS_PER_BLOCK")
    count = rows * cols // results
    return Step(job.launch(name, grid, threads, x, out, rows, cols, count), out)
