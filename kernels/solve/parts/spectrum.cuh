// Information about the eigenvalues of A before an iteration starts: Gershgorin's circles,
// symmetry, and products with A and its transpose. Blocks of any number of whole warps.
#pragma once
#include "common/warp/warp_sum.cuh"

// One warp per row: the diagonal element and the sum of the magnitudes beside it. Every eigenvalue
// lies in a circle around some diagonal element, with that sum as its radius.
extern "C" __global__ void find_circles(const T* a, double* centers, double* radii, unsigned n) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    const T* line = a + (size_t)row * n;
    double radius = 0;
    for (unsigned j = lane; j < n; j += 32)
        if (j != row) radius += fabs((double)line[j]);
    radius = sum_over_warp(radius);
    if (lane == 0) {
        centers[row] = line[row];
        radii[row] = radius;
    }
}

// Blocks of 32 x 8 threads, blockIdx counts tiles of 32 x 32 elements across and down. Counts the
// pairs a_ij != a_ji: a tile is compared with its mirror image, which is read along its rows, too,
// and transposed in shared memory. Rows of 33 words put a column of the tile in 32 banks.
extern "C" __global__ void count_unsymmetric(const T* a, unsigned* count, unsigned n) {
    __shared__ T mirror[32][33];
    if (blockIdx.x > blockIdx.y) return;  // the whole block: below the diagonal is enough
    const unsigned tx = threadIdx.x;
    const unsigned row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
    T own[4];  // read before the barrier as well: eight loads are in flight at a time
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
        const unsigned ty = threadIdx.y + 8 * k;
        const bool inside = row0 + ty < n && col0 + tx < n;
        own[k] = inside ? a[(size_t)(row0 + ty) * n + col0 + tx] : (T)0;
        const bool mirrored = col0 + ty < n && row0 + tx < n;
        mirror[ty][tx] = mirrored ? a[(size_t)(col0 + ty) * n + row0 + tx] : (T)0;
    }
    __syncthreads();  // the mirror image is complete
    unsigned different = 0;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) different += own[k] != mirror[tx][threadIdx.y + 8 * k];
    if (different) atomicAdd(count, different);  // rare, and a sum of integers has no order
}

// One warp per row: y = A x.
extern "C" __global__ void multiply(const T* a, const double* x, double* y, unsigned n) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    const T* line = a + (size_t)row * n;
    double sum = 0;
    for (unsigned j = lane; j < n; j += 32) sum += (double)line[j] * x[j];
    sum = sum_over_warp(sum);
    if (lane == 0) y[row] = sum;
}

// One thread per column, so that a warp reads neighbours in every row: y = transpose(A) x.
extern "C" __global__ void multiply_transposed(const T* a, const double* x, double* y, unsigned n) {
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n) return;
    double sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += (double)a[(size_t)i * n + column] * x[i];
    y[column] = sum;
}
