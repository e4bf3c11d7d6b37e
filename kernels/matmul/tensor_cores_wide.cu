// /// cudalab
// summary  = "Tensor cores, emulated fp32: tiles of 128 x 192"
// order    = 21
// ladder   = "tensor cores"
// adds     = "tiles of 128 x 192"
// dispatch = "split_bf16"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
//
// [defines]
// BM                = 128
// BN                = 192
// BK                = 32
// STAGES            = 3
// BLOCKS_PER_TILE   = 1
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 184368  # STAGES * (BM + BN) * 3 * 64 + 2 * STAGES * 8
// ///
//
// `tensor_cores_bf16x6` with tiles half as wide again: a stage's products read (128 + 192) lines
// for 128 x 192 elements, 0.83 times as much shared memory per element, and waves end at other
// sizes. The sums take 192 registers per thread; the warpgroup that only starts copies gives up its
// own.
//
// Limits: which tiles fill the waves better depends on the size. At n = 2048 there are 176, two
// waves of which the second is a third full, and it is slower: 0.217 ms on an H100, and 0.167 ms
// with the 256 tiles of `tensor_cores_bf16x6`, which fill two waves.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "matmul/tensor_cores_bf16x6.cu"

// Source: Ootomo and Yokota, Recovering Single Precision Accuracy from Tensor Cores While
// Surpassing the FP32 Theoretical Peak Performance. arXiv:2203.03341, 2022.
