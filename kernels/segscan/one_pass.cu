// /// cudalab
// summary  = "One pass: pairs are made as items are loaded, and never written"
// order    = 2
// adds     = "pairs live in registers: keys and items are read once"
// dispatch = "one_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 16, STATUS_BYTES = 16 }
// ///
//
// The scan lab's `decoupled_lookback`, with the same operator: a block reads a tile of keys and
// items, makes the pairs, scans them in its registers, waits for the sum of all tiles before it and
// writes the sums. 12 bytes for each item, the least there is.
//
// Limits: a tile waits for the sums of all tiles before it, though only what comes before its first
// segment's beginning depends on them. Each of these sums takes two words and a fence.
//
// Items of a thread, measured on an H200 with 2^25 items: 4, 8, 12, 16 and 20 take 374, 263, 241,
// 203 and 225 µs.
//
// Macros from outside: THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#include "segscan/parts/segmented_sum.cuh"
#define T Pair
#define OP SegmentedSum
#include "common/device/look_back.cuh"
#include "segscan/parts/segment_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_segments(
    const int* keys, const int* items, int* out, Word* words, Word* ticket, unsigned n) {
    __shared__ T block_prefix;
    const Taken taken = take_tile(words, ticket);

    const unsigned start = taken.tile * TILE_ITEMS;
    T pairs[ITEMS_PER_THREAD], before[ROWS];
    load_pairs(keys, items, start, n, pairs);
    const T tile_sum = scan_tile(pairs, before);
    if (threadIdx.x / 32 == 0) {
        if (threadIdx.x == 0) publish(taken.statuses, taken.tile, tile_sum);
        const T prefix = look_back(taken.statuses, taken.tile, tile_sum);
        if (threadIdx.x == 0) block_prefix = prefix;
    }
    __syncthreads();  // all threads can read the prefix
    store_sums(out, start, n, pairs, before, block_prefix);
}

// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back.
// NVIDIA NVR-2016-002, 2016.
