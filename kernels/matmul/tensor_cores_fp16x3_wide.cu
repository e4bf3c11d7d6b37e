// /// cudalab
// summary  = "Tensor cores, two fp16 parts: tiles of 128 x 192"
// order    = 28
// ladder   = "tensor cores"
// adds     = "`tensor_cores_wide` with fp16 parts"
// dispatch = "split_fp16"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
//
// [defines]
// BM                = 128
// BN                = 192
// BK                = 64      # summed by the tensor cores, then promoted
// STAGES            = 5       # of 32 numbers along k
// BLOCKS_PER_TILE   = 1
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 204880  # STAGES * (BM + BN) * 2 * 64 + 2 * STAGES * 8
// ///
//
// `tensor_cores_fp16x3` with tiles half as wide again, as in `tensor_cores_wide`: waves of blocks
// end at other sizes.
//
// Limits: where its waves end badly it is slower: n = 2048 has 176 tiles, two waves of which the
// second is a third full, and takes 0.149 ms on an H100, 0.116 with the 256 tiles of
// `tensor_cores_fp16x3`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "matmul/tensor_cores_fp16x3.cu"

// Source: Ootomo and Yokota, Recovering Single Precision Accuracy from Tensor Cores While
// Surpassing the FP32 Theoretical Peak Performance. arXiv:2203.03341, 2022.
