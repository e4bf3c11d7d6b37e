// /// cudalab
// summary  = "The same with stages of 64 along k"
// order    = 23
// ladder   = "A by its transpose"
// adds     = "stages of 64 along k"
// dispatch = "symmetric"
// requires = ["sm_90", "shared_224kb"]
// applies  = { product = ["aat"] }
// default  = ["cuda"]
//
// [defines]
// BM                = 128
// BN                = 256
// BK                = 64
// STAGES            = 2
// TM                = 8
// TN                = 16
// THREADS_PER_BLOCK = 256
// SHARED_BYTES      = 200704  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// `aat_symmetric` with the stages of `async_copy_deep`: a barrier every 64 steps.
// Limits: 196 KB of shared memory per block, which data-centre GPUs have from 9.0 on.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "matmul/aat_symmetric.cu"
