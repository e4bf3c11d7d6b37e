// /// cudalab
// summary  = "The same with tiles of 64 x 80, 8 x 10 elements per thread"
// order    = 17
// ladder   = "small products"
// adds     = "tiles of 64 x 80"
// dispatch = "tiles"
// requires = ["sm_80", "shared_160kb"]
//
// [defines]
// BM                = 64
// BN                = 80
// BK                = 64
// STAGES            = 3
// TM                = 8
// TN                = 10
// GROUPS            = 4
// THREADS_PER_BLOCK = 256
// COPY_STEP         = 2
// SHARED_BYTES      = 116736  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// `group_split_k` with tiles of 64 x 80: a product of 777 x 777 elements has 130 of them, for 132
// multiprocessors; it would have 169 tiles of 64 x 64, or 91 of 64 x 128. 18 reads from shared
// memory serve 80 products, where 12 served 32.
// It fits few other sizes: n = 2048 is slower, 0.475 ms on an H100 instead of 0.439.
// Limits: 114 KB of shared memory per block, which data-centre GPUs have from compute capability
// 8.0 on.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN, GROUPS,
// THREADS_PER_BLOCK, COPY_STEP, SHARED_BYTES.
#include "matmul/group_split_k.cu"
