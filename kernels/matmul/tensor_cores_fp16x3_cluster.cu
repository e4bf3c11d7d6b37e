// /// cudalab
// summary  = "Tensor cores, two fp16 parts: two blocks of a cluster share the sums of a tile"
// order    = 27
// ladder   = "tensor cores"
// adds     = "`tensor_cores_cluster` with fp16 parts"
// dispatch = "split_fp16"
// requires = ["clusters", "sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 64      # summed by the tensor cores, then promoted
// STAGES            = 6       # of 32 numbers along k
// BLOCKS_PER_TILE   = 2
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 196704  # STAGES * (BM + BN) * 2 * 64 + 2 * STAGES * 8
// ///
//
// `tensor_cores_fp16x3` with the sums of each tile split along k between two blocks of a cluster,
// for products with few tiles, as in `tensor_cores_cluster`.
//
// Limits: it is slower where every multiprocessor is busy anyway: n = 2048 takes 0.132 ms on an
// H100 instead of 0.116. At 1024 it is 2.25 times as fast as cuBLAS, `tensor_cores_fp16x3` 1.86
// times.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "matmul/tensor_cores_fp16x3.cu"

// Source: Ootomo and Yokota, Recovering Single Precision Accuracy from Tensor Cores While
// Surpassing the FP32 Theoretical Peak Performance. arXiv:2203.03341, 2022.
