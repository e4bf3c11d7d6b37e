// Prefix sums over a warp by shuffles, without shared memory.
#pragma once

constexpr unsigned FULL_WARP = 0xffffffffu;

// The values of lanes 0 to this one, combined by an operator.
template <class V, class Op>
__device__ inline V inclusive_scan_warp(V value, Op op) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        V left = __shfl_up_sync(FULL_WARP, value, distance);
        if (lane >= distance) value = op(left, value);
    }
    return value;
}

// The same, summed.
template <class V>
__device__ inline V inclusive_sum_warp(V value) {
    return inclusive_scan_warp(value, [](V left, V right) { return left + right; });
}
