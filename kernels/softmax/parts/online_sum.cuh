// The maximum and the sum of exponentials in a single pass: a sum belongs to the maximum so far,
// and is multiplied by exp(old - new) when that grows.
#pragma once

struct OnlineSum {
    float greatest = -3.402823466e+38f;  // the least finite float: see thread_per_row.cu
    float sum = 0;                       // of exp(x - greatest)
};

// Two sums become one. An item x alone is {x, 1}.
__device__ inline OnlineSum joined(OnlineSum a, OnlineSum b) {
    OnlineSum both;
    both.greatest = fmaxf(a.greatest, b.greatest);
    both.sum = a.sum * expf(a.greatest - both.greatest) + b.sum * expf(b.greatest - both.greatest);
    return both;
}

__device__ inline void add_item(OnlineSum& a, float x) {
    const float greatest = fmaxf(a.greatest, x);
    a.sum = a.sum * expf(a.greatest - greatest) + expf(x - greatest);
    a.greatest = greatest;
}

// The sum of all 32 lanes, in each of them.
__device__ inline OnlineSum joined_in_warp(OnlineSum a) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        OnlineSum other;
        other.greatest = __shfl_xor_sync(0xffffffffu, a.greatest, distance);
        other.sum = __shfl_xor_sync(0xffffffffu, a.sum, distance);
        a = joined(a, other);
    }
    return a;
}
