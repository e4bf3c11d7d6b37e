// /// cudalab
// summary  = "A by its transpose on tensor cores, two fp16 parts: half of the tiles"
// order    = 25
// ladder   = "A by its transpose"
// adds     = "`tensor_cores_fp16x3` for half of the tiles"
// dispatch = "symmetric_fp16"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
// applies  = { product = ["aat"] }
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 64      # summed by the tensor cores, then promoted
// STAGES            = 6       # of 32 numbers along k
// BLOCKS_PER_TILE   = 1
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 196704  # STAGES * (BM + BN) * 2 * 64 + 2 * STAGES * 8
// ///
//
// `aat_tensor_cores` with the two fp16 parts and three products of `tensor_cores_fp16x3`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "matmul/tensor_cores_fp16x3.cu"

// tiles: tile row and tile column for each block.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply_parts_symmetric(
    const uint4* parts, const uint2* ranges, const float* a, float* c, const uint2* tiles,
    unsigned k, unsigned n) {
    const uint2 own = tiles[blockIdx.x];
    multiply_tile<true>(parts, parts, ranges, ranges, a, a, c, n, k, n, own.x, own.y);
}

// Source: Ootomo and Yokota, Recovering Single Precision Accuracy from Tensor Cores While
// Surpassing the FP32 Theoretical Peak Performance. arXiv:2203.03341, 2022.
