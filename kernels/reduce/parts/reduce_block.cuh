// Reductions by warp shuffles: a lane reads a register of another lane, so a warp needs neither
// shared memory nor barriers, and a block needs one word per warp and one barrier.
#pragma once
#include "reduce/parts/reduce_ops.cuh"

constexpr unsigned FULL_WARP = 0xffffffffu;

// The values of groups of `lanes` neighbouring lanes (a power of two up to 32) combined, in the
// first lane of each group. The whole warp calls it.
__device__ inline T reduce_lanes(T value, unsigned lanes) {
    for (unsigned distance = lanes / 2; distance > 0; distance /= 2)
        value = combine(value, __shfl_down_sync(FULL_WARP, value, distance, (int)lanes));
    return value;
}

__device__ inline T reduce_warp(T value) {
#pragma unroll
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value = combine(value, __shfl_down_sync(FULL_WARP, value, distance));
    return value;
}

// The values of all THREADS threads (a multiple of 32) combined, in thread 0. The whole block calls
// it; a barrier must separate two calls, since the words of the first may still be in use.
template <unsigned THREADS>
__device__ inline T reduce_block(T value) {
    static_assert(THREADS % 32 == 0, "whole warps");
    constexpr unsigned WARPS = THREADS / 32;
    __shared__ T warp_values[WARPS];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    value = reduce_warp(value);
    if (lane == 0) warp_values[warp] = value;
    __syncthreads();  // the words of all warps are in place
    if (warp == 0) value = reduce_warp(lane < WARPS ? warp_values[lane] : identity());
    return value;
}
