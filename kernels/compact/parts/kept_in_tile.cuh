// The items of a tile in the registers of a block, and the places of those that are kept.
//
// A warp has ITEMS_PER_THREAD rows of 32 consecutive items, a lane one item of each. kept[row] has
// a bit for each lane whose item is kept: the number of bits below its own is what is kept before
// it in the row. Beyond the end of the array there are zeros, which are not kept.
#pragma once
#include "common/warp/warp_scan.cuh"

// Index of a thread's item of a row in the whole array.
__device__ inline unsigned index_of(unsigned tile, unsigned row) {
    const unsigned warp = tile * (THREADS_PER_BLOCK / 32) + threadIdx.x / 32;
    return (warp * ITEMS_PER_THREAD + row) * 32 + threadIdx.x % 32;
}

// Loads a tile; returns how many of its items the warp keeps.
__device__ inline unsigned load_kept(const ITEM* in, unsigned tile, unsigned n,
                                     ITEM (&items)[ITEMS_PER_THREAD],
                                     unsigned (&kept)[ITEMS_PER_THREAD]) {
#pragma unroll
    for (unsigned row = 0; row < ITEMS_PER_THREAD; ++row) {
        const unsigned i = index_of(tile, row);
        items[row] = i < n ? in[i] : (ITEM)0;
    }
    unsigned count = 0;
#pragma unroll
    for (unsigned row = 0; row < ITEMS_PER_THREAD; ++row) {
        kept[row] = __ballot_sync(FULL_WARP, items[row] != (ITEM)0);
        count += __popc(kept[row]);
    }
    return count;
}

// How many items earlier warps of the block keep, and in `total` all of them. `count` is the warp's
// own number. The whole block calls it, once.
__device__ inline unsigned kept_by_earlier_warps(unsigned count, unsigned& total) {
    constexpr unsigned WARPS_OF_BLOCK = THREADS_PER_BLOCK / 32;
    static_assert(THREADS_PER_BLOCK % 32 == 0 && WARPS_OF_BLOCK <= 32, "a warp scans all counts");
    __shared__ unsigned counts[WARPS_OF_BLOCK];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) counts[warp] = count;
    __syncthreads();  // the counts of all warps are in place
    const unsigned own = lane < WARPS_OF_BLOCK ? counts[lane] : 0;
    const unsigned through = inclusive_sum_warp(own);
    total = __shfl_sync(FULL_WARP, through, WARPS_OF_BLOCK - 1);
    return __shfl_sync(FULL_WARP, through - own, warp);
}

// Moves the tile's items: the kept ones to the front, in their order, and a zero to the end for
// each of the others. `before` is how many items before the warp's first one are kept.
__device__ inline void move_items(ITEM* out, unsigned tile, unsigned n, unsigned before,
                                  const ITEM (&items)[ITEMS_PER_THREAD],
                                  const unsigned (&kept)[ITEMS_PER_THREAD]) {
    const unsigned lane = threadIdx.x % 32, lanes_below = (1u << lane) - 1;
#pragma unroll
    for (unsigned row = 0; row < ITEMS_PER_THREAD; ++row) {
        const unsigned i = index_of(tile, row), place = before + __popc(kept[row] & lanes_below);
        if (kept[row] >> lane & 1)
            out[place] = items[row];
        else if (i < n)
            out[n - 1 - (i - place)] = (ITEM)0;
        before += __popc(kept[row]);
    }
}
