// /// cudalab
// summary  = "The same with tiles of 64 x 128, 8 x 8 elements a thread"
// order    = 17.7
// dispatch = "cluster_split_k"
// requires = ["sm_90", "clusters", "inline_ptx"]
//
// [defines]
// BM                = 64
// BN                = 128
// BK                = 24
// STAGES            = 4
// TM                = 8
// TN                = 8
// WARP_M            = 32
// WARP_N            = 64
// GROUPS            = 3
// THREADS_PER_BLOCK = 384
// MULTIPROCESSORS   = 132
// PIECE_COST        = 64
// SHARED_BYTES      = 101376  # GROUPS * BM * (BN + 4) * 4
// ///
//
// `group_split_k` with larger tiles and 8 x 8 elements a thread: 16 reads from shared memory for 64
// products instead of 13 for 40. Three groups of warps leave 168 registers a thread. It needs n of
// about 1000.
#include "matmul/group_split_k.cu"
