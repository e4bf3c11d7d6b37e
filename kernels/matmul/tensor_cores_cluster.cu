// /// cudalab
// summary  = "Tensor cores, emulated fp32: two blocks of a cluster share the sums of a tile"
// order    = 20
// ladder   = "tensor cores"
// adds     = "two blocks of a cluster share the sums of a tile"
// dispatch = "split_bf16"
// requires = ["clusters", "sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 32
// STAGES            = 4
// BLOCKS_PER_TILE   = 2
// THREADS_PER_BLOCK = 384
// SPLIT_THREADS     = 256
// SHARED_BYTES      = 196672  # STAGES * (BM + BN) * 3 * 64 + 2 * STAGES * 8
// ///
//
// `tensor_cores_bf16x6` with the sums of each tile split along k between two blocks, which form a
// cluster: each reads the other's sums from its shared memory (distributed shared memory) and
// stores half of the rows. That makes twice as many blocks, each half as long, for products with
// few tiles: n = 1024 has 64 of them for 132 multiprocessors.
//
// Limits: with more tiles every multiprocessor is busy anyway, and the exchange makes it slower: n
// = 2048 takes 0.193 ms on an H100 instead of 0.167.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#include "matmul/tensor_cores_bf16x6.cu"

// Source: NVIDIA, CUDA C++ Programming Guide, Distributed Shared Memory.
