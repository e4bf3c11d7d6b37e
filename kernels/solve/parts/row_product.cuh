// A row of A times a vector, by one warp. The time is that of reading A: its elements come from
// memory and are used once, so what counts is how many bytes are in flight. A lane loads 16 bytes
// (of the vector, too, which stays in the cache), and starts several loads before it waits for one.
//
// All rows are read at the same time, from left to right or from right to left. A caller that
// alternates starts with what was read last: as much of A as the L2 cache holds.
#pragma once
#include "common/warp/warp_sum.cuh"
#include "solve/parts/four.cuh"

// Rows of n elements start at multiples of 16 bytes only where n is a multiple of four.
__device__ inline T row_product(const T* line, const T* x, unsigned n, bool backwards) {
    const unsigned lane = threadIdx.x % 32;
    T sums[4] = {};  // an addition waits for the one before it
    if (n % 4 == 0) {
        const Four* left = reinterpret_cast<const Four*>(line);
        const Four* right = reinterpret_cast<const Four*>(x);
#pragma unroll 4
        for (unsigned i = lane; i < n / 4; i += 32) {
            const unsigned at = backwards ? n / 4 - 1 - i : i;
            const Four element = left[at], factor = right[at];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) sums[j] += element.v[j] * factor.v[j];
        }
    } else {
#pragma unroll 8
        for (unsigned i = lane; i < n; i += 32) {
            const unsigned at = backwards ? n - 1 - i : i;
            sums[0] += line[at] * x[at];
        }
    }
    return sum_over_warp((sums[0] + sums[1]) + (sums[2] + sums[3]));
}
