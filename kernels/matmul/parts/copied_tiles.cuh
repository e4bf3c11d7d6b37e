// Tiles of the factors in shared memory, filled by asynchronous copies: [p][line], in rows of 4
// words more than a tile has lines, so that rows start at multiples of 16 bytes.
//
// Macros from outside: BK, THREADS_PER_BLOCK.
#pragma once
#include "common/thread/async_copy.cuh"

// Start copying a tile of a matrix whose lines run along k. Zeros past the edges, where nothing is
// read: any valid address does.
template <unsigned LINES>
__device__ inline void copy_transposed(float (*tile)[LINES + 4], const float* source,
                                       unsigned line0, unsigned lines, unsigned p0, unsigned k) {
    const unsigned p = threadIdx.x % BK;
#pragma unroll
    for (unsigned i = 0; i < LINES * BK / THREADS_PER_BLOCK; ++i) {
        const unsigned line = threadIdx.x / BK + i * (THREADS_PER_BLOCK / BK);
        const bool inside = line0 + line < lines && p0 + p < k;
        const float* at = source + (size_t)(line0 + line) * k + p0 + p;
        copy_async(&tile[p][line], inside ? at : source, inside);
    }
}

// Start copying a tile of B itself, k x n.
template <unsigned LINES>
__device__ inline void copy_rows(float (*tile)[LINES + 4], const float* b, unsigned col0,
                                 unsigned n, unsigned p0, unsigned k) {
    if (n % 4 == 0) {
#pragma unroll
        for (unsigned i = 0; i < BK * LINES / 4 / THREADS_PER_BLOCK; ++i) {
            const unsigned e = threadIdx.x + i * THREADS_PER_BLOCK;
            const unsigned p = e / (LINES / 4), col = e % (LINES / 4) * 4;
            const bool inside = p0 + p < k && col0 + col < n;
            const float* at = b + (size_t)(p0 + p) * n + col0 + col;
            copy_async_16(&tile[p][col], inside ? at : b, inside);
        }
    } else {
#pragma unroll
        for (unsigned i = 0; i < BK * LINES / THREADS_PER_BLOCK; ++i) {
            const unsigned e = threadIdx.x + i * THREADS_PER_BLOCK, p = e / LINES, col = e % LINES;
            const bool inside = p0 + p < k && col0 + col < n;
            const float* at = b + (size_t)(p0 + p) * n + col0 + col;
            copy_async(&tile[p][col], inside ? at : b, inside);
        }
    }
}

// Sixteen bytes from shared memory into registers.
__device__ inline void read_four(float* values, const float* shared) {
    *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(shared);
}

// Stores four neighbours of a row of C, n elements long, those that are inside.
__device__ inline void store_four(float* row, const float* v, unsigned col, unsigned n) {
    float* place = row + col;
    if (n % 4 == 0) {
        if (col < n) *reinterpret_cast<float4*>(place) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
            if (col + j < n) place[j] = v[j];
    }
}
