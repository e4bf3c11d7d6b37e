// Prefix sums over a block by warp shuffles, with one word per warp and one barrier. A tree in
// shared memory needs one barrier per level instead.
#pragma once
#include "common/warp/warp_scan.cuh"

// Sum of the values of the threads before this one, and in `total` that of all THREADS (a multiple
// of 32). A barrier must separate two calls, since some warps may still be reading the first one's
// warp totals.
template <unsigned THREADS, class V>
__device__ inline V exclusive_scan_block(V value, V& total) {
    constexpr unsigned WARPS = THREADS / 32;
    __shared__ V warp_totals[WARPS];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    const V inclusive = inclusive_sum_warp(value);
    if (lane == 31) warp_totals[warp] = inclusive;
    __syncthreads();  // all warp totals are ready

    // Every warp scans the totals for itself: that is cheaper than a second barrier.
    const V totals = inclusive_sum_warp(lane < WARPS ? warp_totals[lane] : V(0));
    total = __shfl_sync(FULL_WARP, totals, WARPS - 1);
    const V before_warp = __shfl_sync(FULL_WARP, totals, warp > 0 ? warp - 1 : 0);
    return inclusive - value + (warp > 0 ? before_warp : V(0));
}
