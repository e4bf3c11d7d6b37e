// /// cudalab
// summary  = "Chebyshev: steps that fit an interval of eigenvalues"
// order    = 4
// adds     = "steps that fit an interval of eigenvalues"
// dispatch = "chebyshev"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 8 }
// ///
//
// If A is symmetric and all its eigenvalues lie in [low, high], on one side of zero, the residual
// polynomial that is smallest on that interval is Chebyshev's. Its three-term recurrence makes each
// step from the residual and the step before: d1 = c1 d0 + c2 (f - A x0), x1 = x0 + d1. The number
// of iterations grows with the square root of high / low, where Richardson's grows with high / low.
//
// c1 and c2 depend on the interval alone, so an iteration is one launch and needs no dot products,
// which cost `conjugate_gradient` two more launches. Like any iteration it begins when all blocks
// of the one before have ended: each row reads all of x0. One warp per row. Limits: refuses
// matrices that are not symmetric or have eigenvalues on both sides of zero; an interval that is
// much too wide costs iterations, one that is too narrow costs convergence. If the diagonal is
// dominant, this rung is slower than `jacobi`, which needs fewer iterations there: n = 1024 takes
// 0.794 ms on an H100, and 0.365 ms with `jacobi`.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ROWS_PER_BLOCK.
#include "solve/parts/residual.cuh"
#include "solve/parts/spectrum.cuh"

static_assert(ROWS_PER_BLOCK == THREADS_PER_BLOCK / 32, "one warp a row");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) iterate(const T* a, const T* f,
                                                                        const T* x0, T* x1, T* d,
                                                                        T c1, T c2, unsigned n) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 32;
    if (row >= n) return;  // the whole warp
    const T* line = a + (size_t)row * n;
    T sum = 0;
    for (unsigned j = lane; j < n; j += 32) sum += line[j] * x0[j];
    sum = sum_over_warp(sum);
    if (lane == 0) {
        // c1 == 0 starts the recurrence: d is not set then.
        const T step = c2 * (f[row] - sum) + (c1 == 0 ? (T)0 : c1 * d[row]);
        d[row] = step;
        x1[row] = x0[row] + step;
    }
}

// Source: Golub and Varga, Chebyshev Semi-Iterative Methods, Successive Overrelaxation Iterative
// Methods, and Second Order Richardson Iterative Methods, Part I. Numerische Mathematik 3, 1961.
