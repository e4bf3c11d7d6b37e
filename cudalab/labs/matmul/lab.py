"""Multiplies matrices of float32"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cudalab.errors import UsageError
from cudalab.formats import Payload, as_bytes
from cudalab.labs.base import Array, Case, Inputs, Job, Lab, Option, Size, Step, blocks_for
from cudalab.labs.compare import SHOWN, Mismatches, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cudalab.backends.base import Buffer
    from cudalab.formats import InputStream

MAX_GRID_Y = 65_535
# What `choose` goes by, as measured on an H100: docs/performance/matmul.md.
FEW_ELEMENTS = 1_700**2  # of C: tiles of 128 x 256 are fewer than its multiprocessors
LONG_SUMS = 768  # numbers along k
TENSOR_CORES_FROM = 512  # rows, columns and k
TENSOR_CORES_PRODUCTS = 720**3
SQUARES_FROM = 720  # rows of a matrix that is multiplied by its transpose
MULTIPROCESSORS = 132
BAND = 16  # rows of tiles that run together
NO_SQUARE = 0xFFFFFFFF
UNIT = 2.0**-24  # u: half the distance from 1 to the next float32
SMALLEST = 2.0**-149  # the least positive float32


class MatMul(Lab):
    """Stream: int32 n, then A and B, n x n each, row by row. Answer: C = A B without a header.

    With --aat the stream has one matrix and the answer is A times its transpose; with --abt the
    answer is A times the transpose of B. With --shape the stream starts with int32 m, k, n (with
    --aat: m, k), A is m x k, B k x n (with --abt: n x k), C m x n. Full float32 accuracy: no TF32.
    """

    name = "matmul"
    axes: ClassVar = {"product": ("ab", "aat", "abt"), "dtype": ("float32",)}
    flags: ClassVar = {
        "product": {
            "aat": "One matrix in, A times its transpose out.",
            "abt": "A times the transpose of B.",
        }
    }
    options = (Option("--shape", bool, "The header is m, k, n (with --aat: m, k)."),)
    example_size = "500"
    distributions = ("uniform", "integers", "positive", "wide", "cancelling")

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, and B_TRANSPOSED: 1 where b is stored n x k (with --aat it is a itself)."""
        return {"T": "float", "B_TRANSPOSED": int(case["product"] != "ab")}

    def choose(self, inputs: Inputs, case: Case, device: str) -> list[str] | None:
        """On a GPU: the tiles that suit the matrices' sizes, on tensor cores for large products.

        Tensor cores only where their errors were measured to be no larger than those of a product
        in float32 (docs/performance/matmul.md); the inputs' parameter `policy` is what the user is
        told then. Other variants follow for devices that lack what the first ones require.
        """
        if device != "cuda":
            return None
        m, k, n = (inputs.params[name] for name in "mkn")
        names = []
        if on_tensor_cores(m, k, n, case["product"]):
            symmetric = case["product"] == "aat"
            names.append("aat_tensor_cores" if symmetric else tensor_core_tiles(m, k, n))
            inputs.params["policy"] = (
                f"auto: {names[0]}: float32 emulated on tensor cores, with errors no larger than "
                "in float32 arithmetic"
            )
        if k >= 128 and m * n <= FEW_ELEMENTS:
            names += dict.fromkeys((small_tiles(m, k, n), "group_split_k"))
        return names or None

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Header n, or the shape; then A, and B unless the product is A times its transpose."""
        if not case.get("shape"):
            (n,) = stream.header("n")
            m, k = n, n
        elif case["product"] == "aat":
            m, k = stream.header("m", "k")
            n = m
        else:
            m, k, n = stream.header("m", "k", "n")
        arrays: dict[str, Any] = {"a": stream.payload("A", np.float32, m, k)}
        if case["product"] != "aat":
            shape = (k, n) if case["product"] == "ab" else (n, k)
            arrays["b"] = stream.payload("B", np.float32, *shape)
        return Inputs(arrays, {"m": m, "k": k, "n": n})

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """C, m x n, without a header."""
        del case
        return stream.payload("C", np.float32, inputs.params["m"], inputs.params["n"]).array()

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """C when it has no elements, or when they are sums of nothing (k = 0)."""
        del case
        m, k, n = (inputs.params[name] for name in "mkn")
        if m and k and n:
            return None
        for name, data in inputs.arrays.items():  # one factor may have elements all the same
            inputs.arrays[name] = data.array() if isinstance(data, Payload) else data
        return np.zeros((m, n), np.float32)

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Square matrices of order n, or with --shape those of (m, k, n), with --aat (m, k)."""
        one_matrix = case["product"] == "aat"
        if isinstance(n, int):
            m = k = n
        else:
            wanted = 2 if one_matrix else 3
            if not case.get("shape") or len(n) != wanted:
                raise UsageError(
                    f"matmul: the size {'x'.join(map(str, n))} has {len(n)} dimensions",
                    hint="--n ORDER, or with --shape --n MxKxN (with --aat: MxK)",
                )
            m, k, n = (*n, n[0])[:3]
        header = ([m, k] if one_matrix else [m, k, n]) if case.get("shape") else [n]
        yield np.array(header, "<i4").tobytes()
        a, b = draw(m, k, n, dist, seed)
        yield as_bytes(a)
        if not one_matrix:
            yield as_bytes(b if case["product"] == "ab" else np.ascontiguousarray(b.T))

    def reference(self, inputs: Inputs, case: Case) -> Array:
        """NumPy's product of the matrices in float64."""
        a, b = factors(inputs, case)
        with np.errstate(all="ignore"):
            product: Array = a @ b
        return product

    def compare(self, got: Array, inputs: Inputs, case: Case) -> Mismatches | None:
        """Element-wise, |C - C64| <= (k + 2) u (|A||B|); infinities and NaNs must agree.

        A sum of k products, in any order, fused or not, makes at most k roundings on the way of
        each product: (1 + u)^k - 1 <= (k + 1) u for every k u < 0.1. One more u covers the
        rounding of C64 to float32. Results below the normal range are rounded to multiples of
        2^-149: half of that for each operation, 2 k of them.
        """
        k = inputs.params["k"]
        got = got.reshape(inputs.params["m"], inputs.params["n"])
        expected, magnitude, allowed = _within(inputs, case)
        with np.errstate(all="ignore"):
            finite = np.isfinite(expected)
            right = finite & (np.abs(got - expected) <= allowed)
        # Elements that are no numbers: the same NaN or infinity. A sum whose terms do not fit
        # float32 may become infinite on the way, or NaN when it does in both directions.
        right |= np.isnan(expected) & np.isnan(got)
        right |= np.isinf(expected) & (got == expected)
        right |= finite & ~np.isfinite(got) & (magnitude >= (1 - k * UNIT) * 2.0**128)
        wrong = np.flatnonzero(~right)
        if not len(wrong):
            return None
        flat_got, flat_expected = got.reshape(-1), expected.reshape(-1)
        first = [(int(i), show(flat_expected[i]), show(flat_got[i])) for i in wrong[:SHOWN]]
        found = Mismatches(len(wrong), got.size, first)
        row, col = divmod(int(wrong[0]), got.shape[1])
        found.findings.append(f"the first is row {row}, column {col} of {got.shape[0]} rows")
        with np.errstate(all="ignore"):
            excess = np.abs(got - expected) / np.where(allowed > 0, allowed, np.nan)
        if np.isfinite(excess).any():
            found.findings.append(
                f"the greatest error is {np.nanmax(excess):.3g} times what "
                f"(k + 2) 2^-24 |A||B| allows, k = {k}"
            )
        return found

    def bounds(self, inputs: Inputs, case: Case) -> tuple[Array, Array] | None:
        """The product in float64, and the bound of `compare`."""
        expected, _, allowed = _within(inputs, case)
        return expected, allowed

    # Launch plans. Both launch one kernel,
    #     multiply(const float *a, const float *b, float *c, unsigned m, unsigned k, unsigned n)
    # c, m x n, is the product of a, m x k, and b: k x n, or n x k where B_TRANSPOSED is 1. With
    # --aat b is a. All matrices are stored row by row.

    def dispatch_elements(self, job: Job) -> Step:
        """One thread an element of C, in blocks of TILE x TILE threads.

        multiply(const float *a, const float *b, float *c, unsigned m, unsigned k, unsigned n)
            c (m x n) = a (m x k) times b (k x n; n x k where B_TRANSPOSED is 1)
        blockIdx.x counts tiles along a row of C, blockIdx.y down a column; where there are more
        than 65,535 rows of tiles, blockIdx.z goes on: tile row = blockIdx.z * gridDim.y +
        blockIdx.y. Threads outside of C must do nothing.
        """
        tile = job.define("TILE")
        rows = blocks_for(job.params["m"], tile)
        slices = blocks_for(rows, MAX_GRID_Y)
        grid = (blocks_for(job.params["n"], tile), blocks_for(rows, slices), slices)
        return _multiply(job, grid, (tile, tile))

    def dispatch_tiles(self, job: Job) -> Step:
        """A tile of BM x BN elements of C a block of THREADS_PER_BLOCK threads.

        multiply(const float *a, const float *b, float *c, unsigned m, unsigned k, unsigned n)
            c (m x n) = a (m x k) times b (k x n; n x k where B_TRANSPOSED is 1)
        blockIdx.x counts the tiles row by row. Dynamic shared memory: SHARED_BYTES, where the
        header defines it.
        """
        grid = blocks_for(job.params["m"], job.define("BM")) * blocks_for(
            job.params["n"], job.define("BN")
        )
        shared = job.define("SHARED_BYTES", 0, least=0)
        return _multiply(job, grid, job.define("THREADS_PER_BLOCK"), shared)

    def dispatch_split_k(self, job: Job) -> Step:
        """Several blocks a tile of C, each a piece of the sums; then the pieces are added.

        multiply_piece(const float *a, const float *b, float *partials,
                       unsigned m, unsigned k, unsigned n, unsigned piece_k)
            partials[piece] (m x n) = columns piece * piece_k, … of a times those rows of b (its
            columns where B_TRANSPOSED is 1); blockIdx.x counts the tiles of BM x BN elements row by
            row, blockIdx.y the pieces; piece_k is a multiple of BK
        add_partials(const float *partials, float *c, unsigned long long num_elements,
                     unsigned pieces)
            c = the sum over the pieces; any number of blocks
        Blocks have THREADS_PER_BLOCK threads. There are about BLOCKS blocks, but no piece below
        MIN_PIECE numbers along k.
        """
        backend, a = job.backend, job.buffers["a"]
        b = job.buffers.get("b", a)
        m, k, n = (job.params[name] for name in "mkn")
        threads = job.define("THREADS_PER_BLOCK")
        tiles = blocks_for(m, job.define("BM")) * blocks_for(n, job.define("BN"))
        wanted = max(1, min(job.define("BLOCKS") // tiles, k // job.define("MIN_PIECE")))
        bk = job.define("BK")
        piece_k = blocks_for(blocks_for(k, wanted), bk) * bk
        pieces = blocks_for(k, piece_k)
        partials = backend.empty((pieces, m, n), np.float32)
        c = backend.empty((m, n), np.float32)
        multiply, add = job.kernels["multiply_piece"], job.kernels["add_partials"]
        sizes = (np.uint32(m), np.uint32(k), np.uint32(n), np.uint32(piece_k))
        add_blocks = min(blocks_for(m * n, threads), 8 * job.define("BLOCKS"))

        def run() -> None:
            backend.launch(multiply, (tiles, pieces), threads, a, b, partials, *sizes)
            count = np.uint64(m * n)
            backend.launch(add, add_blocks, threads, partials, c, count, np.uint32(pieces))

        return Step(run, c)

    def dispatch_whole_waves(self, job: Job) -> Step:
        """Tiles in waves of MULTIPROCESSORS blocks; those of the last wave split along k.

        align_rows(const float *b, float *aligned, unsigned k, unsigned n, unsigned stride)
            b (k x n) into rows of `stride` numbers, a multiple of 4; any number of blocks
        multiply_waves(const float *a, const float *b, float *c, float *partials, unsigned m,
                       unsigned k, unsigned n, unsigned stride, unsigned whole, unsigned pieces,
                       unsigned piece_k)
            c (m x n) = a (m x k) times b (k rows of `stride` numbers, n of them b's; n x k where
            B_TRANSPOSED is 1), in tiles of BM x BN elements. Blocks below `whole` compute one
            each; of those behind, `pieces` in a row share one, each piece_k numbers along k, a
            multiple of BK. If pieces > 1 their sums go to partials, BM x BN numbers a block
        add_pieces(const float *partials, float *c, unsigned m, unsigned n, unsigned whole,
                   unsigned pieces)
            the tiles from `whole` on; blockIdx.y counts them, and a thread has four elements
        Blocks have THREADS_PER_BLOCK threads. Dynamic shared memory of multiply_waves:
        SHARED_BYTES. align_rows runs where n is no multiple of 4 and k and n are at least
        ALIGN_FROM; add_pieces where there is more than one piece. Where nothing is to be aligned
        or split, `multiply` runs instead, as in the plan `tiles`.
        """
        backend, a = job.backend, job.buffers["a"]
        b = job.buffers.get("b", a)
        m, k, n = (job.params[name] for name in "mkn")
        bm, bn, bk = (job.define(name) for name in ("BM", "BN", "BK"))
        threads, shared = job.define("THREADS_PER_BLOCK"), job.define("SHARED_BYTES", least=0)
        tiles = blocks_for(m, bm) * blocks_for(n, bn)
        whole, pieces, piece_k = whole_waves(
            tiles, k, bk, job.define("MULTIPROCESSORS"), job.define("PIECE_COST", least=0)
        )
        split = tiles - whole
        align = (
            job.case["product"] == "ab" and n % 4 and min(k, n) >= job.define("ALIGN_FROM", least=0)
        )
        if pieces == 1 and not align:
            return self.dispatch_tiles(job)
        partials = backend.empty((split * pieces if pieces > 1 else 1, bm, bn), np.float32)
        c = backend.empty((m, n), np.float32)
        u = np.uint32
        stride, aligned = n, b
        if align:
            stride = blocks_for(n, 4) * 4
            aligned = backend.empty((k, stride), np.float32)
        align_blocks = min(blocks_for(k * stride, 4 * threads), 16 * job.define("MULTIPROCESSORS"))
        multiply, add = job.kernels["multiply_waves"], job.kernels["add_pieces"]
        plan = (u(m), u(k), u(n), u(stride), u(whole), u(pieces), u(piece_k))
        add_grid = (blocks_for(bm * bn, 4 * threads), split)

        def run() -> None:
            if align:
                kernel = job.kernels["align_rows"]
                backend.launch(kernel, align_blocks, threads, b, aligned, u(k), u(n), u(stride))
            grid = whole + split * pieces
            backend.launch(
                multiply, grid, threads, a, aligned, c, partials, *plan, shared_bytes=shared
            )
            if pieces > 1:
                sizes = (u(m), u(n), u(whole), u(pieces))
                backend.launch(add, add_grid, threads, partials, c, *sizes)

        return Step(run, c)

    def dispatch_symmetric(self, job: Job) -> Step:
        """The squares of BM x BM elements on one side of the diagonal, two a block.

        multiply_symmetric(const float *a, float *c, const unsigned *squares, unsigned k,
                           unsigned n)
            c (n x n) = a (n x k) times its transpose; block i computes the squares that start in
            row squares[3 i] and in the columns squares[3 i + 1] and squares[3 i + 2] (2^32 - 1: no
            second square), and stores each also on the other side of the diagonal
        Blocks have THREADS_PER_BLOCK threads. Dynamic shared memory: SHARED_BYTES.
        """
        backend, a = job.backend, job.buffers["a"]
        n, k = np.uint32(job.params["n"]), np.uint32(job.params["k"])
        pairs = deal_squares(blocks_for(job.params["n"], job.define("BM")))
        squares = backend.to_device(
            np.where(pairs < 0, NO_SQUARE, pairs * job.define("BM")).astype(np.uint32)
        )
        c = backend.empty((job.params["n"], job.params["n"]), np.float32)
        kernel, threads = job.kernels["multiply_symmetric"], job.define("THREADS_PER_BLOCK")
        shared = job.define("SHARED_BYTES", least=0)

        def run() -> None:
            blocks = len(pairs)
            backend.launch(kernel, blocks, threads, a, c, squares, k, n, shared_bytes=shared)

        return Step(run, c)

    def dispatch_symmetric_bf16(self, job: Job) -> Step:
        """Parts of a in scratch memory, then the tiles of BM x BM elements on one side.

        split_factors: as in the plan `split_bf16`
        multiply_parts_symmetric(const uint4 *parts, const uint2 *ranges, const float *a, float *c,
                                 const uint2 *tiles, unsigned k, unsigned n)
            c (n x n) = a (n x k) times its transpose, from the parts, or from a where parts would
            not do; block i, of THREADS_PER_BLOCK threads, computes the tile in tile row tiles[i].x
            and tile column tiles[i].y, and stores it also on the other side of the diagonal.
            Dynamic shared memory: SHARED_BYTES
        """
        backend, a = job.backend, job.buffers["a"]
        k, n = job.params["k"], job.params["n"]
        bm, bk = job.define("BM"), job.define("BK")
        split_blocks = blocks_for(n, bm) * blocks_for(k, bk)
        parts = backend.empty((split_blocks, 3, bm, bk), np.uint16)
        ranges = backend.empty((split_blocks, 2), np.uint32)
        pairs = deal_squares(blocks_for(n, bm))
        squares = np.concatenate([pairs[:, [0, 1]], pairs[:, [0, 2]]], axis=1).reshape(-1, 2)
        squares = squares[squares[:, 1] >= 0]
        tiles = backend.to_device(squares.astype(np.uint32))
        c = backend.empty((n, n), np.float32)
        split, multiply = job.kernels["split_factors"], job.kernels["multiply_parts_symmetric"]
        split_threads, threads = job.define("SPLIT_THREADS"), job.define("THREADS_PER_BLOCK")
        shared = job.define("SHARED_BYTES", least=0)
        sizes = (np.uint32(k), np.uint32(n))

        def run() -> None:
            scratch = (parts, parts, ranges, ranges)
            backend.launch(split, split_blocks, split_threads, a, a, *scratch, sizes[1], *sizes)
            arguments = (parts, ranges, a, c, tiles, *sizes)
            backend.launch(multiply, len(squares), threads, *arguments, shared_bytes=shared)

        return Step(run, c, notes=policy_notes(job))

    def dispatch_split_bf16(self, job: Job) -> Step:
        """Parts of the factors in scratch memory, then sums of products of parts.

        Lines are the rows of a and the columns of b. A block covers BM of them (BN of b's) and BK
        numbers along k, the last ones less; blocks are counted tile row by tile row, along k
        inside. A block of parts has three times BM x BK (BN x BK) bfloat16.

        split_factors(const float *a, const float *b, uint4 *a_parts, uint4 *b_parts,
                      uint2 *a_ranges, uint2 *b_ranges, unsigned m, unsigned k, unsigned n)
            writes each block's parts, and what multiply_parts has to know of its numbers' range;
            blockIdx.x counts the blocks of a, then those of b, of SPLIT_THREADS threads. With
            --aat and BM = BN there are only those of a, and b's pointers are a's
        multiply_parts(const uint4 *a_parts, const uint4 *b_parts, const uint2 *a_ranges,
                       const uint2 *b_ranges, const float *a, const float *b, float *c,
                       unsigned m, unsigned k, unsigned n)
            c (m x n) = a (m x k) times b (k x n; n x k where B_TRANSPOSED is 1), from the parts, or
            from a and b where parts would not do; a block of THREADS_PER_BLOCK threads a tile of
            BM x BN elements. Dynamic shared memory: SHARED_BYTES
        """
        backend, a = job.backend, job.buffers["a"]
        b = job.buffers.get("b", a)
        m, k, n = (job.params[name] for name in "mkn")
        bm, bn, bk = (job.define(name) for name in ("BM", "BN", "BK"))
        k_blocks = blocks_for(k, bk)
        a_blocks, b_blocks = blocks_for(m, bm) * k_blocks, blocks_for(n, bn) * k_blocks
        a_parts = b_parts = backend.empty((a_blocks, 3, bm, bk), np.uint16)
        a_ranges = b_ranges = backend.empty((a_blocks, 2), np.uint32)
        blocks = a_blocks
        if b is not a or bm != bn:
            b_parts = backend.empty((b_blocks, 3, bn, bk), np.uint16)
            b_ranges = backend.empty((b_blocks, 2), np.uint32)
            blocks += b_blocks
        c = backend.empty((m, n), np.float32)
        split, multiply = job.kernels["split_factors"], job.kernels["multiply_parts"]
        split_threads, threads = job.define("SPLIT_THREADS"), job.define("THREADS_PER_BLOCK")
        grid = (blocks_for(m, bm) * blocks_for(n, bn), job.define("BLOCKS_A_TILE"))
        shared = job.define("SHARED_BYTES", least=0)
        scratch = (a_parts, b_parts, a_ranges, b_ranges)
        sizes = (np.uint32(m), np.uint32(k), np.uint32(n))

        def run() -> None:
            backend.launch(split, blocks, split_threads, a, b, *scratch, *sizes)
            backend.launch(multiply, grid, threads, *scratch, a, b, c, *sizes, shared_bytes=shared)

        return Step(run, c, notes=policy_notes(job))


LAB = MatMul()


def _multiply(
    job: Job,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    shared_bytes: int = 0,
) -> Step:
    backend, a = job.backend, job.buffers["a"]
    b = job.buffers.get("b", a)
    m, k, n = (job.params[name] for name in "mkn")
    c: Buffer = backend.empty((m, n), np.float32)
    kernel = job.kernels["multiply"]
    sizes = (np.uint32(m), np.uint32(k), np.uint32(n))

    def run() -> None:
        backend.launch(kernel, grid, block, a, b, c, *sizes, shared_bytes=shared_bytes)

    return Step(run, c)


def policy_notes(job: Job) -> list[str]:
    """What the user is told where `choose` has taken tensor cores."""
    policy = job.params.get("policy")
    return [policy] if policy else []


def on_tensor_cores(m: int, k: int, n: int, product: str) -> bool:
    """Whether tensor cores were measured to be no less exact than cuBLAS in float32, and faster.

    cuBLAS's errors are small where it splits long sums of few elements. With --aat the elements on
    the diagonal are sums of squares, for which its errors are smaller than for others.
    """
    least = min(m, n)
    if min(least, k) < TENSOR_CORES_FROM or m * k * n < TENSOR_CORES_PRODUCTS:
        return False
    if product == "aat":
        return m >= 2048 or (SQUARES_FROM <= m <= 1024 and k <= 2 * m)
    return k <= 3 * least or least >= 720


def tensor_core_tiles(m: int, k: int, n: int) -> str:
    """The variant on tensor cores whose waves of blocks take the least time on an H100.

    In numbers along k for tiles of 128 x 128: tiles of 128 x 192 take 0.96 times as long as half as
    many again; to be shared by two blocks costs as much as 200.
    """
    rows, square, wide = blocks_for(m, 128), blocks_for(n, 128), blocks_for(n, 192)
    costs = {
        "tensor_cores_bf16x6": blocks_for(rows * square, MULTIPROCESSORS) * k,
        "tensor_cores_cluster": blocks_for(2 * rows * square, MULTIPROCESSORS) * (k / 2 + 200),
        "tensor_cores_wide": blocks_for(rows * wide, MULTIPROCESSORS) * 1.5 * 0.96 * k,
    }
    return min(costs, key=costs.__getitem__)


def small_tiles(m: int, k: int, n: int) -> str:
    """The variant for few elements whose fullest multiprocessor has the least to do, on an H100.

    In elements of C; in tiles of 32 x 64 and 64 x 80 one takes a thirtieth and a tenth longer.
    Where long sums of few elements would leave most multiprocessors idle, blocks share a tile; and
    where a row of B is shorter than a copy.
    """
    tiles = {
        "group_split_k": blocks_for(m, 32) * blocks_for(n, 64),
        "group_split_k_80": blocks_for(m, 64) * blocks_for(n, 80),
        "group_split_k_wide": blocks_for(m, 64) * blocks_for(n, 128),
    }
    if n < 4 or (k >= LONG_SUMS and tiles["group_split_k"] <= MULTIPROCESSORS // 2):
        return "split_k"
    each = {"group_split_k": 32 * 66, "group_split_k_80": 64 * 88, "group_split_k_wide": 64 * 128}
    return min(tiles, key=lambda name: blocks_for(tiles[name], MULTIPROCESSORS) * each[name])


def whole_waves(tiles: int, k: int, bk: int, at_once: int, piece_cost: int) -> tuple[int, int, int]:
    """How many tiles fill waves of `at_once` blocks, how many pieces each other one is split into,
    and how many numbers along k a piece has, a multiple of bk.

    A piece costs its numbers along k and `piece_cost`; the number of pieces is the cheapest.
    """
    whole = tiles // at_once * at_once
    rest = tiles - whole
    best = (k, 1, k)
    for wanted in range(2, min(blocks_for(k, bk), at_once) + 1):
        piece_k = blocks_for(blocks_for(k, wanted), bk) * bk
        pieces = blocks_for(k, piece_k)
        cost = blocks_for(rest * pieces, at_once) * (piece_k + piece_cost)
        best = min(best, (cost, pieces, piece_k))
    return whole, *best[1:]


def deal_squares(size: int) -> Array:
    """Every pair of numbers below `size` once, as (row, column, another column), int64.

    A pair is a square of a symmetric matrix, and may stand in the row of either of its numbers: two
    rows with an odd number of squares exchange one, so that in each row they come in twos; in one
    row at most a square is left alone (another column: -1). The rows are in bands, within a band
    column by column: neighbours in the list read the same rows of the factors.
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


def factors(inputs: Inputs, case: Case) -> tuple[Array, Array]:
    """Both factors of the product in float64, m x k and k x n."""
    a = inputs.arrays["a"]
    b = inputs.arrays.get("b", a)
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    return a.astype(np.float64), (b if case["product"] == "ab" else b.T).astype(np.float64)


def _within(inputs: Inputs, case: Case) -> tuple[Array, Array, Array]:
    """The product in float64, that of the magnitudes, and the bound that follows from it."""
    a, b = factors(inputs, case)
    k = inputs.params["k"]
    with np.errstate(all="ignore"):
        magnitude = np.abs(a) @ np.abs(b)
        return a @ b, magnitude, (k + 2) * UNIT * magnitude + k * SMALLEST


def draw(m: int, k: int, n: int, dist: str, seed: int) -> tuple[Array, Array]:
    """Draw A (m x k) and B (k x n): PCG64's raw output and exact arithmetic only."""
    raw = np.random.PCG64(seed)

    def uniform(rows: int, cols: int) -> Array:
        """Multiples of 2^-23 in [-1, 1), which float32 holds exactly."""
        bits = raw.random_raw(rows * cols) >> np.uint64(40)
        return ((bits.astype(np.int64) - 2**23) / 2.0**23).astype(np.float32).reshape(rows, cols)

    a, b = uniform(m, k), uniform(k, n)
    match dist:
        case "uniform":
            pass
        case "integers":  # -8 to 7: sums of 2^17 products are exact
            a, b = np.floor(a * np.float32(8)), np.floor(b * np.float32(8))
        case "positive":
            a, b = np.abs(a), np.abs(b)
        case "wide":  # every element its own exponent, -20 to 11
            a, b = (
                np.ldexp(part, np.floor(uniform(*part.shape) * np.float32(16)).astype(np.int32) - 4)
                for part in (a, b)
            )
        case "cancelling":  # A = [X X], B = [Y; -Y + Z / 8192]: the sums nearly vanish
            half = k // 2
            a[:, half : 2 * half] = a[:, :half]
            b[half : 2 * half] = b[half : 2 * half] / np.float32(8192) - b[:half]
        case _:
            raise ValueError(f"unknown distribution {dist!r}")
    return a, b
