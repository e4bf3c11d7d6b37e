// A scan in one pass: every item is read once and written once. A block scans a tile in registers,
// publishes its sum, waits until the sums before it are known, and writes its items.
#pragma once
#include "common/block/scan_tile.cuh"
#include "common/device/look_back.cuh"

// The block's tile is handed to `begin` before its items are loaded. words and ticket: see
// take_tile.
template <class Begin>
__device__ inline void scan_next_tile(const T* in, T* out, Word* words, Word* ticket, unsigned n,
                                      Begin begin) {
    __shared__ T block_prefix;
    const Taken taken = take_tile(words, ticket);

    const unsigned start = taken.tile * TILE_ITEMS, left = n - start;
    begin(in + start, left);
    T items[ITEMS_PER_THREAD], before[ROWS];
    load_tile(in + start, left, items);
    const T tile_sum = scan_tile(items, before);
    if (threadIdx.x / 32 == 0) {
        if (threadIdx.x == 0) publish(taken.statuses, taken.tile, tile_sum);
        const T prefix = look_back(taken.statuses, taken.tile, tile_sum);
        if (threadIdx.x == 0) block_prefix = prefix;
    }
    __syncthreads();  // all threads can read the prefix
    store_tile<INCLUSIVE, true>(out + start, left, items, before, block_prefix);
}
