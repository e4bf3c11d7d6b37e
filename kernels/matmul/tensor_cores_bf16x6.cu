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
#include "matmul/parts/bf16_parts.cuh"

constexpr unsigned STAGE_K = BK;

// The ranges in which sums of products of parts are as good as sums of products of floats.
// Exponents are as floats store them, 127 more than the power of two. All numbers but 0:
constexpr unsigned MAX_EXPONENT = 253;  // below 2^127: no first part is rounded to infinity
constexpr unsigned MIN_EXPONENT = 27;   // from 2^-100: no part is below the normal numbers
// The exponents of two factors, added up. A sum of k products that is below 2^126 is finite, and so
// are all its partial sums. Tensor cores have subnormal numbers too, so what they cut off is below
// 2^-149, which is nothing beside a product of 2^-110 or more.
constexpr unsigned MAX_SUM = 2 * 126 + 126;
constexpr unsigned MIN_SUM = 2 * 127 - 110;
// Everything that is cut off or left out may come near 3 units of 2^-24 |x y|, the maximum that is
// allowed for k = 1.
constexpr unsigned MIN_K = 16;

// Whether sums of k products, k up to 2^log_k, may go wrong between blocks with these ranges.
__device__ inline bool out_of_range(uint2 a, uint2 b, unsigned log_k) {
    return max(a.x, b.x) > MAX_EXPONENT || min(a.y, b.y) < MIN_EXPONENT ||
           a.x + b.x + log_k > MAX_SUM || a.y + b.y < MIN_SUM;
}

// Writes the parts of BK numbers of LINES lines, as split_block does, and returns their exponents.
template <unsigned LINES>
__device__ inline uint2 split_lines(const float* source, unsigned ld, uint4* parts, bool along,
                                    unsigned line0, unsigned p0, unsigned lines, unsigned k) {
    return exponents_of_block(split_block<LINES>(source, ld, parts, along, line0, p0, lines, k));
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
