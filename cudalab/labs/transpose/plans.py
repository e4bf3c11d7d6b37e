"""The launch plans of transpose: which kernels run, in what order, on which memory.

`matrix` is the input, T its element type; rows and cols < 2^31.
"""

from cudalab.labs.base import Job, Step, blocks_for


def dispatch_vector_tiles(job: Job) -> Step:
    """One launch of transpose, as in the plan `tiles`, with THREADS_ACROSS^2 threads per tile.

    A tile is square; each of THREADS_ACROSS threads takes 16 bytes of a row.
    """
    across = job.define("THREADS_ACROSS")
    itemsize = job.buffers["matrix"].dtype.itemsize
    dim = across * 16 // itemsize
    return _tiled(job, (dim, dim), (across, across))


def dispatch_sector_tiles(job: Job) -> Step:
    """One launch of transpose, as in the plan `tiles`, with 32 x WARPS threads per tile.

    A tile has TILE_WORDS words of 4 bytes from each of TILE_ROWS rows of `in`. In each column it
    covers whole 32-byte sectors of `out`, so it may start up to a sector before its first row.
    """
    itemsize = job.buffers["matrix"].dtype.itemsize
    words = job.define("TILE_WORDS", at_least=max(itemsize // 4, 1))
    tile = job.define("TILE_ROWS"), words * 4 // itemsize
    return _tiled(job, tile, (32, job.define("WARPS")), 32 // itemsize - 1)


def dispatch_tiles(job: Job) -> Step:
    """One launch, a block per tile of TILE_DIM x TILE_DIM elements.

    transpose(const T *in, T *out, unsigned rows, unsigned cols)
        out[c * rows + r] = in[r * cols + c]
    blockIdx.x numbers the tiles row by row of `in`. A block has THREADS_ACROSS x BLOCK_ROWS
    threads (TILE_DIM x BLOCK_ROWS if the header does not define THREADS_ACROSS).
    """
    dim = job.define("TILE_DIM")
    across = job.define("THREADS_ACROSS", dim)
    return _tiled(job, (dim, dim), (across, job.define("BLOCK_ROWS")))


def _tiled(job: Job, tile: tuple[int, int], block: tuple[int, int], rows_before: int = 0) -> Step:
    """One launch, a block per tile; tiles may start up to `rows_before` rows earlier."""
    matrix, rows, cols = job.buffers["matrix"], job.params["rows"], job.params["cols"]
    tiles = blocks_for(rows + rows_before, tile[0]) * blocks_for(cols, tile[1])
    out = job.device.empty((cols, rows), matrix.dtype)
    return Step(job.launch("transpose", tiles, block, matrix, out, rows, cols), out)
