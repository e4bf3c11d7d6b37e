// /// cudalab
// summary  = "The lecture's iteration x + alpha (A x - f), one thread per row"
// order    = 1
// dispatch = "richardson"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 256 }
// ///
//
// x1 = x0 + alpha (A x0 - f), from x = 0 on. The error d = x - (the solution) obeys
// d1 = (I + alpha A) d0, so the iteration converges if and only if |1 + alpha lambda| < 1 for every
// eigenvalue lambda of A. That takes alpha < 0 if all of them lie right of the imaginary axis,
// alpha > 0 if all lie left of it, and no alpha does for a matrix that has both, such as
// [[1, 2], [3, 4]]. Without --alpha the program chooses it from bounds on the eigenvalues.
//
// A thread computes one element of x1: a whole row of A times x0. x1 is a separate array, since all
// threads read x0.
// Limits: the lanes of a warp walk along 32 rows of A, so each of their loads touches 32 places far
// apart: `richardson_coalesced`. Convergence is slow where the eigenvalues differ much in size.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ROWS_PER_BLOCK.
#include "solve/parts/residual.cuh"
#include "solve/parts/spectrum.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) iterate(const T* a, const T* f,
                                                                        const T* x0, T* x1, T alpha,
                                                                        unsigned n) {
    const unsigned row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x;
    if (row >= n) return;
    const T* line = a + (size_t)row * n;
    T sum = 0;
    for (unsigned j = 0; j < n; ++j) sum += line[j] * x0[j];
    x1[row] = x0[row] + alpha * (sum - f[row]);
}

// Source: Saad, Iterative Methods for Sparse Linear Systems. SIAM, 2003.
