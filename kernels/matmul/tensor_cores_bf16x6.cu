// /// cudalab
// summary  = "Tensor cores, emulated fp32: numbers split into three bfloat16 parts, six products"
// order    = 19
// ladder   = "tensor cores"
// adds     = "three bfloat16 parts per number, six products: no bit is lost"
// dispatch = "split_bf16"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 32
// STAGES            = 4
// BLOCKS_PER_TILE   = 1       # as a cluster; each sums a part of k
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 196672  # STAGES * (BM + BN) * 3 * 64 + 2 * STAGES * 8
// ///
//
// Tensor cores multiply narrow numbers many times faster than the other units multiply floats. A
// bfloat16 number has the exponents of a float and 8 of its 24 bits. `tensor_cores_bf16` drops the
// rest; here a float is the exact sum of three bfloat16 numbers, x = x0 + x1 + x2, each the rounded
// remainder of those before. Of the nine products of parts the six large ones are summed; the
// others, x1 y2, x2 y1 and x2 y2, are together below 2^-24 |x y|.
//
// split_factors writes the parts of A and B in blocks of 128 lines (rows of A, columns of B) and 32
// numbers along k, with zeros beyond the edges. Each block has the layout that multiply_parts needs
// in shared memory, so that a stage takes two contiguous copies and has no edges. It also records
// the range of exponents of each block.
//
// In multiply_parts a block computes 128 x BN elements. As in `bulk_copies`, one thread keeps a
// ring of STAGES stages filled; two warpgroups of 128 threads compute 64 rows each. Tensor cores
// truncate sums instead of rounding them, so they sum only one stage, small products first; float
// additions sum the stages.
//
// Three parts cannot represent numbers that are very small, very large, infinite or NaN, and
// products may leave the range of floats on the way. Tiles with such numbers are computed in
// ordinary float arithmetic by the same block, much as in `register_tiled_2d`; the other tiles are
// unaffected.
//
// It improves on `async_copy_deep`, which is limited by the rate of float multiplications.
// Limits: the parts take 1.5 times the memory of the matrices, and the time to write them does not
// pay off for small matrices. Sums are added up in another order, so the last bits differ.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "common/block/exponents.cuh"
#include "common/thread/read_along.cuh"
#include "matmul/parts/bf16_parts.cuh"

constexpr unsigned PARTS = BF16_PARTS, STAGE_K = BK;
constexpr unsigned MIN_K = MIN_BF16_K;

static_assert(BK * 2 == LINE_BYTES, "a block's lines are 64 bytes");

// Whether sums of k products, k up to 2^log_k, may go wrong between blocks with these exponents.
__device__ inline bool out_of_range(uint2 a, uint2 b, unsigned log_k) {
    return beyond_bf16(a, b, log_k);
}

// Writes the parts of BK numbers from p0 on, in LINES lines from line0 on, and returns their
// exponents, the greatest one and that of the least number but 0. `source` has `lines` lines of `k`
// numbers, `along` memory or across it, in rows of `ld`.
template <unsigned LINES>
__device__ inline uint2 split_lines(const float* source, unsigned ld, uint4* parts, bool along,
                                    unsigned line0, unsigned p0, unsigned lines, unsigned k) {
    constexpr unsigned LINES_PER_PASS = SPLIT_THREADS / CHUNKS;
    // A word of padding per row: a warp reads 4 chunks c of 8 lines l at once, from banks 8c + l.
    __shared__ float tile[BK][LINES + 1];
    const unsigned t = threadIdx.x, chunk = t % CHUNKS;

    // Columns of B lie across memory: they are read along rows and picked up by columns.
    if (!along) {
#pragma unroll
        for (unsigned i = 0; i < BK * LINES / SPLIT_THREADS; ++i) {
            const unsigned e = t + i * SPLIT_THREADS, p = e / LINES, line = e % LINES;
            const bool inside = p0 + p < k && line0 + line < lines;
            tile[p][line] = inside ? source[(size_t)(p0 + p) * ld + line0 + line] : 0;
        }
        __syncthreads();  // the tile is complete
    }

    uint2 range = make_uint2(0, 255u << 23);
#pragma unroll
    for (unsigned line = t / CHUNKS; line < LINES; line += LINES_PER_PASS) {
        float x[8];
        if (along) {
            read_along(x, source, ld, line0 + line, p0 + 8 * chunk, lines, k);
        } else {
#pragma unroll
            for (unsigned i = 0; i < 8; ++i) x[i] = tile[8 * chunk + i][line];
        }
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
            const unsigned magnitude = __float_as_uint(x[i]) & 0x7FFFFFFF;
            range.x = max(range.x, magnitude);
            if (magnitude) range.y = min(range.y, magnitude);
        }
        split_chunk<LINES * CHUNKS>(x, parts + swizzled(line, chunk));
    }
    return exponents_of_block(range);
}

// Adds the products of a block, which is a stage, to the sums; `read` is called when the tensor
// core has read it.
template <unsigned A_PART, unsigned B_PART, unsigned N, typename Read>
__device__ inline void add_block(float (&sum)[N], float (&acc)[N], const unsigned (&left)[1],
                                 const unsigned (&right)[1], unsigned, const Read& read) {
    multiply_stage<A_PART, B_PART>(acc, left[0], right[0]);
    read();
#pragma unroll
    for (unsigned e = 0; e < N; ++e) sum[e] += acc[e];
}

#include "matmul/parts/tile_of_parts.cuh"

// Source: Ootomo and Yokota, Recovering Single Precision Accuracy from Tensor Cores While
// Surpassing the FP32 Theoretical Peak Performance. arXiv:2203.03341, 2022.
