// /// cudalab
// summary  = "Jacobi: each equation solved for its own unknown"
// order    = 3
// adds     = "a separate step size for each row: no alpha"
// dispatch = "jacobi"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 8 }
// ///
//
// x1_i = x0_i + (f_i - (A x0)_i) / a_ii: Richardson's iteration with a separate step size for each
// row, so rows of different size do no harm and there is no alpha to choose.
//
// It converges if A is strictly diagonally dominant: in every row |a_ii| exceeds the sum of the
// other |a_ij|. Each iteration shrinks the error at least by the greatest quotient of that sum and
// |a_ii|. One warp per row, as in `richardson_coalesced`.
// Limits: refuses matrices that are not diagonally dominant; close to the limit it is slow.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ROWS_PER_BLOCK.
#include "solve/parts/residual.cuh"
#include "solve/parts/spectrum.cuh"

static_assert(ROWS_PER_BLOCK == THREADS_PER_BLOCK / 32, "one warp a row");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) iterate(const T* a, const T* f,
                                                                        const T* x0, T* x1,
                                                                        unsigned n) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 32;
    if (row >= n) return;  // the whole warp
    const T* line = a + (size_t)row * n;
    T sum = 0;
    for (unsigned j = lane; j < n; j += 32) sum += line[j] * x0[j];
    sum = sum_over_warp(sum);
    if (lane == 0) x1[row] = x0[row] + (f[row] - sum) / line[row];
}

// Source: Saad, Iterative Methods for Sparse Linear Systems. SIAM, 2003.
