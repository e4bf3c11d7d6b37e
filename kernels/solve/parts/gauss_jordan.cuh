// Gauss-Jordan elimination in place: turns a matrix into its inverse, step by step.
//
// A step with the pivot in row p and column q subtracts multiples of row p from all other rows, so
// that column q becomes a column of the identity; the same operations on the identity would give
// the inverse, and the column of it that they change is kept where column q has become trivial.
// Rows are not exchanged: row_of_column[q] = p says which row ends up with the unknown of column q.
//
// With multipliers m (m_p = -1) and the pivot row divided by the pivot (1 / pivot in column q) a
// step is one formula for all elements: w_ij = (0 in row p and in column q, else w_ij) - m_i row_j.
#pragma once
#include "common/warp/warp_sum.cuh"

constexpr unsigned STEP_ROWS = 8;  // that a thread updates

struct alignas(16) Four {
    T v[4];
};

// Blocks of 32 x 4 threads: blockIdx.x counts pieces of 128 columns, blockIdx.y of 32 rows. A
// thread takes four columns in eight rows: 16-byte accesses, and its part of the pivot row is read
// once for all of them.
extern "C" __global__ void eliminate(T* work, const T* pivot_row, const T* multipliers,
                                     const unsigned* pivot, unsigned n, unsigned ld) {
    const unsigned column0 = 4 * (blockIdx.x * 32 + threadIdx.x);
    const unsigned row0 = (blockIdx.y * 4 + threadIdx.y) * STEP_ROWS;
    if (column0 >= ld) return;
    const unsigned p = pivot[0], q = pivot[1];
    const Four across = *reinterpret_cast<const Four*>(pivot_row + column0);
#pragma unroll
    for (unsigned k = 0; k < STEP_ROWS; ++k) {
        const unsigned row = row0 + k;
        if (row >= n) return;
        Four* place = reinterpret_cast<Four*>(work + (size_t)row * ld + column0);
        const T multiplier = multipliers[row];
        Four element = *place;
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) {
            const T kept = row == p || column0 + j == q ? (T)0 : element.v[j];
            element.v[j] = kept - multiplier * across.v[j];
        }
        *place = element;
    }
}

// The block of the calling kernel prepares the step: the divided pivot row and the multipliers.
__device__ inline void prepare_step(const T* work, T* pivot_row, T* multipliers, unsigned p,
                                    unsigned q, unsigned n, unsigned ld) {
    const T pivot = work[(size_t)p * ld + q];
    for (unsigned j = threadIdx.x; j < ld; j += blockDim.x)
        pivot_row[j] = j == q ? 1 / pivot : work[(size_t)p * ld + j] / pivot;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        multipliers[i] = i == p ? (T)-1 : work[(size_t)i * ld + q];
}

// A row and a column that may become the pivot. The greater wins, then the upper row: the choice
// does not depend on the launch; a NaN wins over all, so that it shows. Size -1: none.
struct Candidate {
    T size;
    unsigned row, column;
};
__device__ inline Candidate better(Candidate a, Candidate b) {
    const bool a_nan = a.size != a.size, b_nan = b.size != b.size;
    if (a_nan || b_nan) return a_nan ? a : b;
    return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
}
__device__ inline Candidate best_in_warp(Candidate own) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const Candidate other = {__shfl_xor_sync(0xffffffffu, own.size, distance),
                                 __shfl_xor_sync(0xffffffffu, own.row, distance),
                                 __shfl_xor_sync(0xffffffffu, own.column, distance)};
        own = better(own, other);
    }
    return own;
}
// The best of the block's candidates, for every thread.
__device__ inline Candidate best_in_block(Candidate own) {
    __shared__ Candidate of_warp[32];
    own = best_in_warp(own);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
    __syncthreads();  // all warps have written theirs
    Candidate best = of_warp[0];
    for (unsigned w = 1; w < blockDim.x / 32; ++w) best = better(best, of_warp[w]);
    return best;
}

// status[0]: 0, or the number (from 1) of the first step whose pivot is not above `threshold`,
// negative if the pivot is not finite; status[1]: that pivot's size. One thread calls it.
__device__ inline void record_pivot(Candidate best, unsigned* pivot, unsigned* row_of_column,
                                    double* status, double threshold, unsigned step) {
    pivot[0] = best.row;
    pivot[1] = best.column;
    row_of_column[best.column] = best.row;
    const bool finite = best.size - best.size == 0;
    if (status[0] == 0 && !(finite && best.size > threshold)) {
        status[0] = finite ? (double)step + 1 : -(double)step - 1;
        status[1] = best.size;
    }
}

// One warp per unknown: the inverse times b, whose elements are in the order of the rows of A.
extern "C" __global__ void apply_inverse(const T* work, const unsigned* row_of_column, const T* b,
                                         T* y, unsigned n, unsigned ld) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned column = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (column >= n) return;
    const T* line = work + (size_t)row_of_column[column] * ld;
    double sum = 0;
    for (unsigned j = lane; j < n; j += 32) sum += (double)line[j] * b[row_of_column[j]];
    sum = sum_over_warp(sum);
    if (lane == 0) y[column] = (T)sum;
}
