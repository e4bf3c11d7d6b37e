// Sums and maxima over the 32 lanes of a warp by shuffles; every lane gets the result, and it is
// the same in every run, since the order of the additions is fixed.
#pragma once

template <class V>
__device__ inline V sum_over_warp(V value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

// The greater of two numbers, or NaN if one of them is NaN.
template <class V>
__device__ inline V greater_or_nan(V a, V b) {
    return b > a || b != b ? b : a;
}

template <class V>
__device__ inline V greatest_in_warp(V value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = greater_or_nan(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}
