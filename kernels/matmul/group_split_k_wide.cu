// /// cudalab
// summary  = "The same with tiles of 64 x 128, 8 x 8 elements a thread, in two groups"
// order    = 17.5
// dispatch = "tiles"
// requires = ["sm_90"]
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
// COPY_STEP         = 2
// BLOCKS_RESIDENT   = 2
// SHARED_BYTES      = 76800  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// `group_split_k` with tiles of which a product of 1000 x 1000 elements has 128, for 132
// multiprocessors. Two groups of four warps: with 8-byte copies of B where n is odd. It has 128
// registers a thread, as for two blocks a multiprocessor: with 165 it took 59 us at n = 1000 on an
// H100, 3 us more than what it was made from with 128. With so few, where copies begin decides how
// many products read three registers of one bank, for which they wait: 6 to 16 of the 1024 of a
// stage as it stands, 61 to 75 with COPY_STEP 0.
// Limits: for devices before 9.0 the compiler does not manage with 128 registers.
#include "matmul/group_split_k.cu"
