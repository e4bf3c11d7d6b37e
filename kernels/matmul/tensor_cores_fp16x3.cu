// /// cudalab
// summary  = "Tensor cores, emulated fp32: numbers split into two fp16 parts, three products"
// order    = 26
// ladder   = "tensor cores"
// adds     = "two scaled fp16 parts per number, three products instead of six"
// dispatch = "split_fp16"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 64      # summed by the tensor cores, then promoted
// STAGES            = 6       # of 32 numbers along k
// BLOCKS_PER_TILE   = 1       # as a cluster; each sums a part of k
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 196704  # STAGES * (BM + BN) * 2 * 64 + 2 * STAGES * 8
// ///
//
// Tensor cores multiply fp16 numbers as fast as bfloat16 ones, and an fp16 number has 11 bits
// instead of 8: two of them, with the second one's own sign, hold 23 of a float's 24 bits. Of the
// four products of parts three are summed, half as many as in `tensor_cores_bf16x6`; the fourth is
// below 2^-22 |x y|, and a quarter of that on average.
//
// What fp16 lacks are exponents, 40 instead of 277. So split_factors multiplies each block of
// parts, 128 lines and 64 numbers along k, by a power of two that brings its greatest number to
// 2^14, and second parts by 2^11. Both cost nothing: tensor cores sum 64 numbers along k, first the
// products with second parts, then the others, and each time the sums are promoted, that is, added
// to float sums in registers, one instruction multiplies and adds. Promoting also keeps the error
// small, for tensor cores truncate sums: over all of k, at 4096, it would be four times cuBLAS's.
//
// Blocks in which a number is more than 2^(23 + log2(k)) times as small as the greatest one would
// lose too many bits. Their tiles take the three bfloat16 parts of `tensor_cores_bf16x6`, which
// have the exponents for them, and which the same block makes from the floats on the way; tiles
// with infinities are computed in ordinary float arithmetic. Numbers that are drawn evenly or from
// a normal distribution do not come near.
//
// It improves on `tensor_cores_bf16x6`: half of the products and two thirds of the copies.
// Limits: where numbers span more than some 33 powers of two in a block, there are six products
// again, and each tile splits its numbers anew.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "common/block/fp16_parts.cuh"
#include "matmul/parts/bf16_tile.cuh"

// The ranges in which sums of products of parts are as good as sums of products of floats: those of
// bf16_parts.cuh, whose MAX_EXPONENT also keeps the powers of two that scale blocks in the range of
// floats, and the following. Exponents are as floats store them, 127 more than the power of two.
//
// Sums are multiplied by 2^(exponents of the factors - 2 * 127 - 2 * GREATEST - LOW_BITS), a float.
constexpr unsigned MIN_SCALES = 2 * 127 + 2 * GREATEST + LOW_BITS - 126;
// A number that is 2^-r of the greatest of its block is known to 2^(r - 50) of itself, or 2^-23 if
// that is more. With r up to RANGE + log2(k), that is at most k / 4 units of 2^-24, in both factors
// half of the k units that a sum of k float products may be off.
constexpr unsigned RANGE = 23;
constexpr unsigned MIN_K = 32;

// Whether sums of k products, k up to 2^log_k and more than half of that, may go wrong between
// blocks with these exponents. A block of zeros, with 0 and 255, disturbs none.
__device__ inline bool out_of_range(uint2 a, uint2 b, unsigned log_k) {
    if (a.y == 255 || b.y == 255) return max(a.x, b.x) > MAX_EXPONENT;
    return beyond_bf16(a, b, log_k) || a.x > a.y + RANGE + log_k || b.x > b.y + RANGE + log_k ||
           a.x + b.x < MIN_SCALES;
}

#include "matmul/parts/tile_of_parts.cuh"

// Sources: Ootomo and Yokota, Recovering Single Precision Accuracy from Tensor Cores While
// Surpassing the FP32 Theoretical Peak Performance. arXiv:2203.03341, 2022. Feng et al., EGEMM-TC:
// Accelerating Scientific Computing on Tensor Cores with Extended Precision. PPoPP 2021.
