// /// cudalab
// summary  = "The lecture's iteration, one warp per row"
// order    = 2
// adds     = "a warp per row: coalesced loads"
// dispatch = "richardson"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 8 }
// ///
//
// As `richardson`, but the 32 lanes of a warp share a row: they read neighbouring elements of A and
// of x0, whole cache lines, and add up their partial sums by shuffles. Each element of A is read
// once per iteration and used once, so the time is that of reading A from memory.
// Limits: those of the iteration itself, see `richardson`.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ROWS_PER_BLOCK.
#include "solve/parts/residual.cuh"
#include "solve/parts/spectrum.cuh"

static_assert(ROWS_PER_BLOCK == THREADS_PER_BLOCK / 32, "one warp a row");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) iterate(const T* a, const T* f,
                                                                        const T* x0, T* x1, T alpha,
                                                                        unsigned n) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 32;
    if (row >= n) return;  // the whole warp
    const T* line = a + (size_t)row * n;
    T sum = 0;
    for (unsigned j = lane; j < n; j += 32) sum += line[j] * x0[j];
    sum = sum_over_warp(sum);
    if (lane == 0) x1[row] = x0[row] + alpha * (sum - f[row]);
}

// Source: Bell and Garland, Efficient Sparse Matrix-Vector Multiplication on CUDA. NVIDIA
// NVR-2008-004, 2008.
