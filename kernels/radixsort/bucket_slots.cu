// /// cudalab
// summary  = "Short arrays: a split by the top bits into slots, which are sorted in shared memory"
// order    = 6
// ladder   = "short arrays"
// adds     = "one split by the top bits into slots, each sorted in shared memory"
// dispatch = "bucket_slots"
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["keys"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// SHORT_KEYS_PER_THREAD  = 8      # in registers: a tile
// KEYS_PER_THREAD        = 32     # the same for an array that is too long for slots
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 18     # the maximum that a block can sort: a slot
// MAX_BIN_BITS           = 13     # of a bucket
// MAX_BLOCKS             = "2 * MULTIPROCESSORS"  # of the safe path
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile that is prefetched
// ///
//
// `single_launch` moves every key four times, and its blocks wait for each other between the
// sweeps; `one_block` sorts no more than a block can hold. Two launches are enough for more: a
// split by the top bits puts keys into buckets, and when a bucket fits into the shared memory of a
// block, the block sorts it as `one_block` sorts an array. The order within a bucket does not
// matter, so ranks come from atomics instead of votes, and the blocks of the split need not know
// about each other: a tile reserves its part of a bucket with one atomic.
//
// The sizes of the buckets are not known before the split, and a count would take another read. So
// each bucket has a slot with room for as many keys as a block can sort. For up to 2^21 keys, 2^8
// slots are enough.
//
// The counting sort within a bucket is by the bits below the top ones.
//
// Keys may spread unevenly over the slots. If keys repeat, there may be many in a bucket, but few
// values: those for which a slot has no room are counted in a table, first by tiles, so that few
// atomics in global memory add to one counter, and a third launch writes each value as many times.
// If a bucket has more than eight, or if its bins are too full, a word on the device says so, and
// the third launch sorts the input by sweeps. If all buckets fit, it returns at once.
//
// Limits: a longer array has too many buckets for one split and is sorted by sweeps. So are keys
// that share their top bits, such as small integers, after a split that was of no use. An array
// that one block can sort is sorted slower than by `one_block`: 2^13 keys take 14.1 µs on an H200
// instead of 12.7.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, SHORT_KEYS_PER_THREAD, KEYS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD,
// MAX_BIN_BITS, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/bucket_slots.cuh"

// Sorts an array that is too long for slots.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) sweep_all(
    const T* in, T* spare, T* out, Progress* progress, Word* statuses, unsigned n) {
    sweep_all_passes<CHUNK_ROWS>(in, spare, out, progress, statuses, n);
}

// Source: Stehle and Jacobsen, A Memory Bandwidth-Efficient Hybrid Radix Sort on GPUs. SIGMOD 2017.
