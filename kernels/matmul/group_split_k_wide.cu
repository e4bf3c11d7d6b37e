// /// cudalab
// summary  = "The same with tiles of 64 x 128, 8 x 8 elements per thread, in two groups"
// order    = 17.5
// ladder   = "small products"
// adds     = "tiles of 64 x 128, in two groups"
// dispatch = "tiles"
// requires = ["shared_96kb"]
//
// [defines]
// BM                = 64
// BN                = 128
// BK                = 32
// STAGES            = 3
// TM                = 8
// TN                = 8
// GROUPS            = 2
// THREADS_PER_BLOCK = 256
// COPY_STEP         = 12
// SHARED_BYTES      = 76800  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// `group_split_k` with tiles of 64 x 128: a product of 1000 x 1000 elements has 128 of them, for
// 132 multiprocessors. There are two groups of four warps, and copies of B have 8 bytes if n is
// odd. It matters where in a stage the copies begin. At the thirteenth of its sixteen steps they
// are late enough not to delay the reads of the stage's first steps: products of 1001 and 1024 then
// take 2 to 5 % less time on an H100 than if they begin at the first step.
// Limits: 75 KB of shared memory per block, and few sizes that it fits. A product of 777 x 777 has
// 91 tiles and is slower, 0.0588 ms on an H100 instead of 0.0324 with `group_split_k_80`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN, GROUPS,
// THREADS_PER_BLOCK, COPY_STEP, SHARED_BYTES.
#include "matmul/group_split_k.cu"
