// Prefix sums over a warp by shuffles, without shared memory.
#pragma once
#include "common/thread/operators.cuh"

constexpr unsigned FULL_WARP = 0xffffffffu;

// The values of lanes 0 to this one, summed or combined by another operator.
template <class V, class Op = Sum<V>>
__device__ inline V inclusive_scan_warp(V value, Op op = Op()) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        V left = __shfl_up_sync(FULL_WARP, value, distance);
        if (lane >= distance) value = op(left, value);
    }
    return value;
}
