// /// cudalab
// summary  = "Arrays that fit into a block's shared memory are sorted there, in one block"
// order    = 5.5
// ladder   = "short arrays"
// adds     = "an array that fits is sorted in a block's shared memory"
// dispatch = "one_block"
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["keys"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// MAX_BLOCKS             = "2 * MULTIPROCESSORS"
// KEYS_PER_THREAD        = 8      # in registers: a tile of a sweep
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 18     # the maximum that a block can sort
// MAX_BIN_BITS           = 13
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile that is prefetched
// ///
//
// `single_launch` reads and writes global memory once for each digit. An array of up to 9,216 keys
// fits into the shared memory of a block. The block reads it once, sorts it there and writes it
// once, and no block waits for another.
//
// The block does not go digit by digit either. A counting sort by the top 13 bits, with atomics in
// shared memory, leaves bins of about one key each if the keys are spread over their range. The
// keys of a bin then count how many others in it are smaller (parts/sort_bucket.cuh). Atomics count
// in any order; that does not show, since equal keys are the same.
//
// In a bin with many keys, each would look at all others. So if a bin has more than 24 that are not
// all equal, the block gives up: a word on the device says so, and the launch that follows sorts by
// sweeps. Otherwise that launch returns at once.
//
// Limits: one multiprocessor of all works. Keys that share their top bits are sorted by sweeps.
// Longer arrays are sorted as in `single_launch`.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD, MAX_BIN_BITS, RADIX_BITS,
// TILES_AHEAD.
#include "radixsort/parts/sort_bucket.cuh"
#include "radixsort/single_launch.cu"

extern "C" __global__ void __launch_bounds__(BUCKET_THREADS) sort_block(const T* in, T* out,
                                                                        unsigned* failed,
                                                                        unsigned n, int bin_bits) {
    sort_bucket<true>(in, out, n, 0, BITS, bin_bits, [&] { *(volatile unsigned*)failed = 1; });
}

// The safe path, for keys that the block has left.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) sweep_all_left(
    unsigned* failed, const T* in, T* spare, T* out, Progress* progress, Word* statuses,
    unsigned n) {
    if (!load(failed)) return;
    if (sweep_all_passes<CHUNK_ROWS>(in, spare, out, progress, statuses, n)) *failed = 0;
}
