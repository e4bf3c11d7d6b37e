// A copy of A to factorize, its rows and then its columns scaled by powers of two, which is exact.
// It makes pivots of rows of different size comparable, and a column of small numbers is not
// mistaken for one without a pivot.
#pragma once
#include "common/warp/warp_sum.cuh"
#include "solve/parts/size_bits.cuh"

constexpr unsigned CHUNK = 64;  // rows of a column that a thread examines

// The power of two that brings a size to 1 up to 2; 1 for zero, infinity and NaN. The limits keep
// it a normal number.
__device__ inline T scale_for(T size) {
    int exponent = 1;  // size = m 2^exponent, 1/2 <= m < 1
    if (size > 0 && size - size == 0) frexp(size, &exponent);
    const int limit = sizeof(T) == 4 ? 126 : 1022;
    exponent = exponent - 1 < -limit ? -limit : exponent - 1;
    return ldexp((T)1, -exponent);
}

// One warp per row. work (rows of `ld` elements) = A with row i times scales[i], its greatest
// magnitude then 1 to 2; relative[i] is 1 over that magnitude, so that |work_ij| * relative[i] is a
// pivot's size in a row scaled to exactly 1. Columns and rows from n on are those of the identity
// up to `padded` and zero beyond. `row_of` starts as the identity, `greatest_of` (the columns') as
// zero. A row of zeros, NaNs or infinities stays unchanged.
extern "C" __global__ void load_scaled_rows(const T* a, T* work, T* scales, T* relative,
                                            unsigned* row_of, SizeBits* greatest_of, unsigned n,
                                            unsigned padded, unsigned ld) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= ld) return;
    T greatest = row < n ? (T)0 : (T)1;
    if (row < n) {
        for (unsigned j = lane; j < n; j += 32) {
            const T element = a[(size_t)row * n + j];
            greatest = greater_or_nan(greatest, element < 0 ? -element : element);
        }
        greatest = greatest_in_warp(greatest);
    }
    const T scale = scale_for(greatest);
    T* line = work + (size_t)row * ld;
    for (unsigned j = lane; j < ld; j += 32) {
        T value = row == j && row < padded ? (T)1 : (T)0;
        if (row < n) value = j < n ? a[(size_t)row * n + j] * scale : (T)0;
        line[j] = value;
    }
    if (lane == 0) {
        scales[row] = scale;
        relative[row] = greatest > 0 ? 1 / (greatest * scale) : (T)1;
        row_of[row] = row;
        greatest_of[row] = 0;
    }
}

// One thread per column of CHUNK rows: greatest_of[column] = the bits of its greatest magnitude.
extern "C" __global__ void find_column_sizes(const T* work, SizeBits* greatest_of, unsigned n,
                                             unsigned ld) {
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n) return;
    const unsigned first = blockIdx.y * CHUNK, last = first + CHUNK < n ? first + CHUNK : n;
    T greatest = 0;
#pragma unroll 16
    for (unsigned row = first; row < last; ++row) {
        const T element = work[(size_t)row * ld + column];
        greatest = greater_or_nan(greatest, element < 0 ? -element : element);
    }
    SizeBits bits;
    memcpy(&bits, &greatest, sizeof(T));
    atomicMax(greatest_of + column, bits);  // a maximum has no order
}

// As many threads: scales columns to a greatest magnitude of 1 to 2; most have it after the rows.
extern "C" __global__ void scale_columns(T* work, const SizeBits* greatest_of, T* column_scales,
                                         unsigned n, unsigned ld) {
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n) return;
    T greatest;
    memcpy(&greatest, greatest_of + column, sizeof(T));
    const T scale = scale_for(greatest);
    if (blockIdx.y == 0) column_scales[column] = scale;
    if (scale == 1) return;
    const unsigned first = blockIdx.y * CHUNK, last = first + CHUNK < n ? first + CHUNK : n;
#pragma unroll 8
    for (unsigned row = first; row < last; ++row) work[(size_t)row * ld + column] *= scale;
}
