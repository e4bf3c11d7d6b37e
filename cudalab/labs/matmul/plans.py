"""The launch plans of matmul: which kernels run, in what order, on which memory.

Most launch one kernel:

    multiply(const float *a, const float *b, float *c, unsigned m, unsigned k, unsigned n)

c (m x n) is the product of a (m x k) and b (k x n, or n x k if B_TRANSPOSED is 1). With --aat, b is
a. All matrices are stored in row-major order.
"""

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.labs.base import Job, Step, blocks_for, in_order
from cudalab.labs.inputs import Array

MAX_GRID_Y = 65_535
BAND = 16  # rows of tiles that run together
NO_SQUARE = 0xFFFFFFFF


def dispatch_elements(job: Job) -> Step:
    """One thread per element of C, in blocks of TILE x TILE threads.

    multiply(const float *a, const float *b, float *c, unsigned m, unsigned k, unsigned n)
        c (m x n) = a (m x k) times b (k x n; n x k if B_TRANSPOSED is 1)
    blockIdx.x counts tiles along a row of C, blockIdx.y down a column; beyond 65,535 rows of
    tiles, blockIdx.z continues: tile row = blockIdx.z * gridDim.y + blockIdx.y. Threads outside
    C must do nothing.
    """
    tile = job.define("TILE")
    rows = blocks_for(job.params["m"], tile)
    slices = blocks_for(rows, MAX_GRID_Y)
    grid = (blocks_for(job.params["n"], tile), blocks_for(rows, slices), slices)
    return _multiply(job, grid, (tile, tile))


def dispatch_tiles(job: Job) -> Step:
    """A block of THREADS_PER_BLOCK threads per tile of BM x BN elements of C.

    multiply(const float *a, const float *b, float *c, unsigned m, unsigned k, unsigned n)
        c (m x n) = a (m x k) times b (k x n; n x k if B_TRANSPOSED is 1)
    blockIdx.x counts the tiles row by row. Dynamic shared memory: SHARED_BYTES, if the header
    defines it.
    """
    grid = blocks_for(job.params["m"], job.define("BM")) * blocks_for(
        job.params["n"], job.define("BN")
    )
    shared = job.define("SHARED_BYTES", 0, at_least=0)
    return _multiply(job, grid, job.define("THREADS_PER_BLOCK"), shared)


def dispatch_split_k(job: Job) -> Step:
    """Several blocks per tile of C compute pieces of the sums; then the pieces are added.

    multiply_piece(const float *a, const float *b, float *partials,
                   unsigned m, unsigned k, unsigned n, unsigned piece_k)
        partials[piece] (m x n) = columns piece * piece_k, … of a times the same rows of b (columns
        if B_TRANSPOSED is 1); blockIdx.x counts the tiles of BM x BN elements row by row,
        blockIdx.y the pieces; piece_k is a multiple of BK
    add_partials(const float *partials, float *c, unsigned long long num_elements,
                 unsigned pieces)
        c = the sum over the pieces; any number of blocks
    Blocks have THREADS_PER_BLOCK threads. There are about BLOCKS blocks, but every piece has at
    least MIN_PIECE elements along k.
    """
    device, (a, b), (m, k, n) = job.device, _factors(job), _dimensions(job)
    threads = job.define("THREADS_PER_BLOCK")
    tiles = blocks_for(m, job.define("BM")) * blocks_for(n, job.define("BN"))
    max_pieces = max(1, min(job.define("BLOCKS") // tiles, k // job.define("MIN_PIECE")))
    bk = job.define("BK")
    piece_k = blocks_for(blocks_for(k, max_pieces), bk) * bk
    pieces = blocks_for(k, piece_k)
    partials = device.empty((pieces, m, n), np.float32)
    c = device.empty((m, n), np.float32)
    add_blocks = min(blocks_for(m * n, threads), 8 * job.define("BLOCKS"))
    args = a, b, partials, m, k, n, piece_k
    multiply = job.launch("multiply_piece", (tiles, pieces), threads, *args)
    add = job.launch("add_partials", add_blocks, threads, partials, c, np.uint64(m * n), pieces)
    return Step(in_order(multiply, add), c)


def dispatch_stream_k(job: Job) -> Step:
    """Equal shares of all steps of all tiles, for AT_ONCE blocks; one launch.

    multiply_stream(const float *a, const float *b, float *c, float *partials, unsigned *flags,
                    unsigned *ticket, unsigned m, unsigned k, unsigned n)
        c (m x n) = a (m x k) times b (k x n; n x k if B_TRANSPOSED is 1). A tile has BM x BN
        elements and takes blocks_for(k, BK) steps; block i has the steps from steps * i / blocks on
        of all tiles' steps. partials: BM x BN elements per block; flags: one per block, those and
        the ticket are 0 before and after each launch
    Blocks have THREADS_PER_BLOCK threads. Dynamic shared memory: SHARED_BYTES. There are at most as
    many blocks as steps.
    """
    device, (a, b), (m, k, n) = job.device, _factors(job), _dimensions(job)
    bm, bn, bk = (job.define(name) for name in ("BM", "BN", "BK"))
    threads, shared = job.define("THREADS_PER_BLOCK"), job.define("SHARED_BYTES", at_least=0)
    steps = blocks_for(m, bm) * blocks_for(n, bn) * blocks_for(k, bk)
    blocks = min(job.define("AT_ONCE"), steps)
    partials = device.empty((blocks, bm, bn), np.float32)
    flags = device.to_device(np.zeros(blocks, np.uint32))
    ticket = device.to_device(np.zeros(1, np.uint32))
    c = device.empty((m, n), np.float32)
    args = (a, b, c, partials, flags, ticket, m, k, n)
    return Step(job.launch("multiply_stream", blocks, threads, *args, shared_bytes=shared), c)


def dispatch_whole_waves(job: Job) -> Step:
    """Tiles in waves of AT_ONCE blocks; those of the last wave are split along k.

    align_rows(const float *b, float *aligned, unsigned k, unsigned n, unsigned stride)
        copies b (k x n) to rows of `stride` elements, a multiple of 4; any number of blocks
    multiply_waves(const float *a, const float *b, float *c, float *partials, unsigned m,
                   unsigned k, unsigned n, unsigned stride, unsigned whole, unsigned pieces,
                   unsigned piece_k)
        c (m x n) = a (m x k) times b (k rows of n elements, `stride` apart; n x k if
        B_TRANSPOSED is 1), in tiles of BM x BN elements. Each of the first `whole` blocks
        computes one tile; after them, `pieces` consecutive blocks share one, each for piece_k
        elements along k, a multiple of BK. If pieces > 1, their sums go to partials, BM x BN
        elements per block
    add_pieces(const float *partials, float *c, unsigned m, unsigned n, unsigned whole,
               unsigned pieces)
        computes the tiles from `whole` on; blockIdx.y counts them, a thread has four elements
    Blocks have THREADS_PER_BLOCK threads. Dynamic shared memory of multiply_waves:
    SHARED_BYTES. align_rows runs if n is not a multiple of 4 and k and n are at least
    ALIGN_FROM, add_pieces if there is more than one piece. If nothing needs to be aligned or
    split, `multiply` runs instead, as in the plan `tiles`.
    """
    device, (a, b), (m, k, n) = job.device, _factors(job), _dimensions(job)
    bm, bn, bk = (job.define(name) for name in ("BM", "BN", "BK"))
    threads, shared = job.define("THREADS_PER_BLOCK"), job.define("SHARED_BYTES", at_least=0)
    tiles, at_once = blocks_for(m, bm) * blocks_for(n, bn), job.define("AT_ONCE")
    whole, pieces, piece_k = whole_waves(
        tiles, k, bk, at_once, job.define("PIECE_COST", at_least=0)
    )
    split = tiles - whole
    align = (
        job.case["product"] == "ab" and n % 4 and min(k, n) >= job.define("ALIGN_FROM", at_least=0)
    )
    if pieces == 1 and not align:
        return dispatch_tiles(job)
    partials = device.empty((split * pieces if pieces > 1 else 1, bm, bn), np.float32)
    c = device.empty((m, n), np.float32)
    launches, stride, aligned = [], n, b
    if align:
        stride = blocks_for(n, 4) * 4
        aligned = device.empty((k, stride), np.float32)
        blocks = min(blocks_for(k * stride, 4 * threads), 16 * at_once)
        launches.append(job.launch("align_rows", blocks, threads, b, aligned, k, n, stride))
    grid, add_grid = whole + split * pieces, (blocks_for(bm * bn, 4 * threads), split)
    args = a, aligned, c, partials, m, k, n, stride, whole, pieces, piece_k
    launches.append(job.launch("multiply_waves", grid, threads, *args, shared_bytes=shared))
    add = job.launch("add_pieces", add_grid, threads, partials, c, m, n, whole, pieces)
    return Step(in_order(*launches, *([add] if pieces > 1 else [])), c)


def dispatch_symmetric(job: Job) -> Step:
    """The squares of BM x BM elements on one side of the diagonal, two per block.

    multiply_symmetric(const float *a, float *c, const unsigned *squares, unsigned k,
                       unsigned n)
        c (n x n) = a (n x k) times its transpose; block i computes the squares that start in
        row squares[3 i] and columns squares[3 i + 1] and squares[3 i + 2] (2^32 - 1: no second
        square), and mirrors each to the other side of the diagonal
    Blocks have THREADS_PER_BLOCK threads. Dynamic shared memory: SHARED_BYTES.
    """
    device, a = job.device, job.buffers["a"]
    n, k, threads = job.params["n"], job.params["k"], job.define("THREADS_PER_BLOCK")
    pairs = deal_squares(blocks_for(n, job.define("BM")))
    squares = device.to_device(
        np.where(pairs < 0, NO_SQUARE, pairs * job.define("BM")).astype(np.uint32)
    )
    c = device.empty((n, n), np.float32)
    shared, args = job.define("SHARED_BYTES", at_least=0), (a, c, squares, k, n)
    multiply = job.launch("multiply_symmetric", len(pairs), threads, *args, shared_bytes=shared)
    return Step(multiply, c)


def dispatch_symmetric_bf16(job: Job) -> Step:
    """Split a into parts in scratch memory, then compute the tiles on one side of the diagonal.

    split_factors: as in the plan `split_bf16`
    multiply_parts_symmetric(const uint4 *parts, const uint2 *ranges, const float *a, float *c,
                             const uint2 *tiles, unsigned k, unsigned n)
        c (n x n) = a (n x k) times its transpose, from the parts, or from a where the parts are
        not accurate enough; block i, of THREADS_PER_BLOCK threads, computes the tile of BM x BM
        elements in tile row tiles[i].x and tile column tiles[i].y, and mirrors it to the other
        side of the diagonal. Dynamic shared memory: SHARED_BYTES
    """
    return _symmetric_parts(job, parts=3)


def dispatch_symmetric_fp16(job: Job) -> Step:
    """Split a into parts in scratch memory, then compute the tiles on one side of the diagonal.

    split_factors and multiply_parts_symmetric: as in the plan `symmetric_bf16`, with two fp16
    numbers instead of three bfloat16 ones
    """
    return _symmetric_parts(job, parts=2)


def _symmetric_parts(job: Job, parts: int) -> Step:
    device, a = job.device, job.buffers["a"]
    k, n = job.params["k"], job.params["n"]
    bm, bk = job.define("BM"), job.define("BK")
    split_blocks = blocks_for(n, bm) * blocks_for(k, bk)
    parts_of_a = device.empty((split_blocks, parts, bm, bk), np.uint16)
    ranges = device.empty((split_blocks, 2), np.uint32)
    pairs = deal_squares(blocks_for(n, bm))
    squares = np.concatenate([pairs[:, [0, 1]], pairs[:, [0, 2]]], axis=1).reshape(-1, 2)
    squares = squares[squares[:, 1] >= 0]
    tiles = device.to_device(squares.astype(np.uint32))
    c = device.empty((n, n), np.float32)
    split_threads, threads = job.define("SPLIT_THREADS"), job.define("THREADS_PER_BLOCK")
    shared = job.define("SHARED_BYTES", at_least=0)
    split_args = a, a, parts_of_a, parts_of_a, ranges, ranges, n, k, n
    split = job.launch("split_factors", split_blocks, split_threads, *split_args)
    args = parts_of_a, ranges, a, c, tiles, k, n
    multiply = job.launch(
        "multiply_parts_symmetric", len(squares), threads, *args, shared_bytes=shared
    )
    return Step(in_order(split, multiply), c, notes=policy_notes(job))


def dispatch_packed(job: Job) -> Step:
    """Pack both factors into tiles in scratch memory, then multiply those.

    A tile holds BM rows of a, or BN columns of b, and BK elements along k: BK rows of BM + 4 or
    BN + 4 words. Tiles are counted along k first.

    pack_factors(const float *a, const float *b, float *a_tiles, float *b_tiles, unsigned m,
                 unsigned k, unsigned n)
        a block of THREADS_PER_BLOCK threads per tile, those of a first; b is n x k if
        B_TRANSPOSED is 1
    multiply_packed(const float *a_tiles, const float *b_tiles, float *c, unsigned m, unsigned k,
                    unsigned n)
        c (m x n); a block of THREADS_PER_BLOCK + 32 threads computes BM x BN elements. Dynamic
        shared memory: SHARED_BYTES
    """
    device, (a, b), (m, k, n) = job.device, _factors(job), _dimensions(job)
    bm, bn, bk = (job.define(name) for name in ("BM", "BN", "BK"))
    rows, columns, k_tiles = blocks_for(m, bm), blocks_for(n, bn), blocks_for(k, bk)
    a_tiles = device.empty((rows * k_tiles, bk, bm + 4), np.float32)
    b_tiles = device.empty((columns * k_tiles, bk, bn + 4), np.float32)
    c = device.empty((m, n), np.float32)
    threads, shared = job.define("THREADS_PER_BLOCK"), job.define("SHARED_BYTES", at_least=0)
    blocks = (rows + columns) * k_tiles
    pack = job.launch("pack_factors", blocks, threads, a, b, a_tiles, b_tiles, m, k, n)
    args, grid = (a_tiles, b_tiles, c, m, k, n), rows * columns
    multiply = job.launch("multiply_packed", grid, threads + 32, *args, shared_bytes=shared)
    return Step(in_order(pack, multiply), c)


def dispatch_split_bf16(job: Job) -> Step:
    """Split the factors into parts in scratch memory, then add products of parts.

    A block of parts covers BM rows of a, or BN columns of b, and BK elements along k (fewer at
    the ends): three times BM x BK (BN x BK) bfloat16. Blocks are counted along k first.

    split_factors(const float *a, const float *b, uint4 *a_parts, uint4 *b_parts,
                  uint2 *a_ranges, uint2 *b_ranges, unsigned m, unsigned k, unsigned n)
        writes each block's parts, and what multiply_parts must know about the range of its
        elements; blockIdx.x counts the blocks of a, then those of b, of SPLIT_THREADS threads.
        With --aat and BM = BN there are only those of a, and b's pointers are a's
    multiply_parts(const uint4 *a_parts, const uint4 *b_parts, const uint2 *a_ranges,
                   const uint2 *b_ranges, const float *a, const float *b, float *c,
                   unsigned m, unsigned k, unsigned n)
        c (m x n) = a (m x k) times b (k x n; n x k if B_TRANSPOSED is 1), from the parts, or from
        a and b where the parts are not accurate enough; a block of THREADS_PER_BLOCK threads
        per tile of BM x BN elements. Dynamic shared memory: SHARED_BYTES
    """
    return _split(job, parts=3)


def dispatch_split_fp16(job: Job) -> Step:
    """Split the factors into parts in scratch memory, then add products of parts.

    split_factors and multiply_parts: as in the plan `split_bf16`, with two fp16 numbers instead of
    three bfloat16 ones
    """
    return _split(job, parts=2)


def _split(job: Job, parts: int) -> Step:
    device, (a, b), (m, k, n) = job.device, _factors(job), _dimensions(job)
    bm, bn, bk = (job.define(name) for name in ("BM", "BN", "BK"))
    k_blocks = blocks_for(k, bk)
    a_blocks, b_blocks = blocks_for(m, bm) * k_blocks, blocks_for(n, bn) * k_blocks
    a_parts = b_parts = device.empty((a_blocks, parts, bm, bk), np.uint16)
    a_ranges = b_ranges = device.empty((a_blocks, 2), np.uint32)
    blocks = a_blocks
    if b is not a or bm != bn:
        b_parts = device.empty((b_blocks, parts, bn, bk), np.uint16)
        b_ranges = device.empty((b_blocks, 2), np.uint32)
        blocks += b_blocks
    c = device.empty((m, n), np.float32)
    split_threads, threads = job.define("SPLIT_THREADS"), job.define("THREADS_PER_BLOCK")
    grid = (blocks_for(m, bm) * blocks_for(n, bn), job.define("BLOCKS_PER_TILE"))
    shared = job.define("SHARED_BYTES", at_least=0)
    scratch = (a_parts, b_parts, a_ranges, b_ranges)
    split = job.launch("split_factors", blocks, split_threads, a, b, *scratch, m, k, n)
    args = *scratch, a, b, c, m, k, n
    multiply = job.launch("multiply_parts", grid, threads, *args, shared_bytes=shared)
    return Step(in_order(split, multiply), c, notes=policy_notes(job))


def _factors(job: Job) -> tuple[Buffer, Buffer]:
    """Both factors; with --aat the second is the first, whose transpose is meant."""
    a = job.buffers["a"]
    return a, job.buffers.get("b", a)


def _dimensions(job: Job) -> tuple[int, int, int]:
    """m, k and n: A has m x k elements, B k x n."""
    m, k, n = (job.params[name] for name in "mkn")
    return m, k, n


def _multiply(
    job: Job, grid: int | tuple[int, ...], block: int | tuple[int, ...], shared_bytes: int = 0
) -> Step:
    sizes = m, _, n = _dimensions(job)
    c = job.device.empty((m, n), np.float32)
    args = *_factors(job), c, *sizes
    multiply = job.launch("multiply", grid, block, *args, shared_bytes=shared_bytes)
    return Step(multiply, c, notes=precision_notes(job))


def policy_notes(job: Job) -> list[str]:
    """The note for the user if `choose` has taken tensor cores."""
    policy = job.params.get("policy")
    return [policy] if policy else []


def precision_notes(job: Job) -> list[str]:
    """The note of a lossy variant."""
    name, precision = job.variant.name, job.variant.precision
    return (
        [f"{name}: A and B are rounded to {precision}: not a float32 product"] if precision else []
    )


def whole_waves(tiles: int, k: int, bk: int, at_once: int, piece_cost: int) -> tuple[int, int, int]:
    """Return (tiles in whole waves of `at_once` blocks, pieces of each other tile, piece_k).

    piece_k, the elements of a piece along k, is a multiple of bk. A piece costs piece_k +
    `piece_cost`; the cheapest number of pieces is chosen.
    """
    whole = tiles // at_once * at_once
    rest = tiles - whole
    best = (k, 1, k)
    for max_pieces in range(2, min(blocks_for(k, bk), at_once) + 1):
        piece_k = blocks_for(blocks_for(k, max_pieces), bk) * bk
        pieces = blocks_for(k, piece_k)
        cost = blocks_for(rest * pieces, at_once) * (piece_k + piece_cost)
        best = min(best, (cost, pieces, piece_k))
    return whole, *best[1:]


def deal_squares(size: int) -> Array:
    """List the squares on and above the diagonal of a symmetric matrix, two of a row at a time.

    Each entry is (row, column, another column), int64; `size` is the number of rows of squares. By
    symmetry a square may count for the row of either of its indices: of two rows with an odd number
    of squares, one passes a square to the other, so that squares pair up; at most one is left alone
    (another column: -1). The order is by bands of rows, and by columns within a band, so that
    neighbours in the list read the same rows of the factors.
    """
    rows = [list(range(row, size)) for row in range(size)]
    odd = [row for row in range(size) if len(rows[row]) % 2]
    for one, other in zip(odd[::2], odd[1::2], strict=False):
        rows[one].remove(other)
        rows[other].insert(0, one)
    pairs = [
        (row, columns[i], columns[i + 1] if i + 1 < len(columns) else -1)
        for row, columns in enumerate(rows)
        for i in range(0, len(columns), 2)
    ]
    pairs.sort(key=lambda pair: (pair[0] // BAND, pair[1], pair[0]))
    return np.array(pairs, np.int64).reshape(-1, 3)
