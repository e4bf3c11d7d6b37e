// /// cudalab
// summary  = "The same with stages of 64 along k: a barrier every 64 steps"
// order    = 13
// adds     = "stages of 64 along k: fewer barriers"
// dispatch = "tiles"
// requires = ["sm_90", "shared_224kb"]
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
// `async_copy` with two stages of 64 numbers along k instead of five of 8: a barrier comes after 64
// steps instead of 8, and while a stage is multiplied, slice by slice, the other is filled.
// Limits: 196 KB of shared memory per block, which data-centre GPUs have from 9.0 on.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "matmul/async_copy.cu"
