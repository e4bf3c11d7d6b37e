// /// cudalab
// summary  = "A by its transpose on tensor cores, emulated fp32: half of the tiles"
// order    = 24
// ladder   = "A by its transpose"
// adds     = "`tensor_cores_bf16x6` for half of the tiles"
// dispatch = "symmetric_bf16"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
// applies  = { product = ["aat"] }
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 32
// STAGES            = 4
// BLOCKS_PER_TILE   = 1
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 196672  # STAGES * (BM + BN) * 3 * 64 + 2 * STAGES * 8
// ///
//
// `tensor_cores_bf16x6` for the tiles on the diagonal and on one side of it, paired as in
// `aat_symmetric`. A tile is stored, then transposed in shared memory and stored a second time. The
// parts of A serve as both factors.
//
// Limits: six products of parts for each product of floats, as in `tensor_cores_bf16x6`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "matmul/tensor_cores_bf16x6.cu"

// tiles: tile row and tile column for each block.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply_parts_symmetric(
    const uint4* parts, const uint2* ranges, const float* a, float* c, const uint2* tiles,
    unsigned k, unsigned n) {
    const uint2 own = tiles[blockIdx.x];
    multiply_tile<true>(parts, parts, ranges, ranges, a, a, c, n, k, n, own.x, own.y);
}

// Source: Ootomo and Yokota, Recovering Single Precision Accuracy from Tensor Cores While
// Surpassing the FP32 Theoretical Peak Performance. arXiv:2203.03341, 2022.
