// Measures an answer: the residual f - A x and the norms that its size is compared with, all in
// double for any T. Blocks of any number of whole warps.
#pragma once
#include "common/warp/warp_sum.cuh"

// One warp per row, neighbouring lanes on neighbouring elements: r = f - A x, and the sums of the
// magnitudes in each row of A, the greatest of which is its norm.
extern "C" __global__ void residual(const T* a, const T* x, const T* f, double* r, double* row_sums,
                                    unsigned n) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    const T* line = a + (size_t)row * n;
    double product = 0, magnitude = 0;
    for (unsigned j = lane; j < n; j += 32) {
        const double element = line[j];
        product += element * x[j];
        magnitude += fabs(element);
    }
    product = sum_over_warp(product);
    magnitude = sum_over_warp(magnitude);
    if (lane == 0) {
        r[row] = f[row] - product;
        row_sums[row] = magnitude;
    }
}

// One block. The greatest magnitudes: norms[0] of r, [1] of row_sums, [2] of x, [3] of f. A NaN is
// greater than any number, so that it cannot hide.
extern "C" __global__ void find_norms(const double* r, const double* row_sums, const T* x,
                                      const T* f, double* norms, unsigned n) {
    __shared__ double of_warp[4][32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double greatest[4] = {};
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        greatest[0] = greater_or_nan(greatest[0], fabs(r[i]));
        greatest[1] = greater_or_nan(greatest[1], row_sums[i]);
        greatest[2] = greater_or_nan(greatest[2], fabs((double)x[i]));
        greatest[3] = greater_or_nan(greatest[3], fabs((double)f[i]));
    }
#pragma unroll
    for (unsigned which = 0; which < 4; ++which) {
        const double value = greatest_in_warp(greatest[which]);
        if (lane == 0) of_warp[which][warp] = value;
    }
    __syncthreads();  // the warps' results are ready; the first four threads combine them
    if (threadIdx.x < 4) {
        double value = 0;
        for (unsigned w = 0; w < blockDim.x / 32; ++w)
            value = greater_or_nan(value, of_warp[threadIdx.x][w]);
        norms[threadIdx.x] = value;
    }
}
