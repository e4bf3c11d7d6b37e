// /// cudalab
// summary  = "The same with tiles of 64 x 128, 8 x 8 elements a thread"
// order    = 17
// dispatch = "cluster_split_k"
// requires = ["sm_90", "clusters", "inline_ptx"]
//
// [defines]
// BM                = 64
// BN                = 128
// BK                = 16
// STAGES            = 4
// TM                = 8
// TN                = 8
// WARP_M            = 32
// WARP_N            = 64
// THREADS_PER_BLOCK = 128
// MULTIPROCESSORS   = 132
// PIECE_COST        = 64
// SHARED_BYTES      = 75776  # STAGES * BK * (BM + BN + 8) * 4 + BM * BN * 3 / 4 * 4
// ///
//
// `cluster_split_k` with tiles twice as wide and 8 x 8 elements a thread: 16 reads from shared
// memory for 64 products instead of 12 for 32. It needs n of about 1000.
#include "matmul/cluster_split_k.cu"
