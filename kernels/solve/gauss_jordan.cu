// /// cudalab
// summary  = "Gauss-Jordan: the inverse in place, pivots searched in the column"
// order    = 6
// ladder   = "direct methods"
// dispatch = "gauss_jordan"
// defines  = { SEARCH_THREADS = 256 }
// ///
//
// n steps turn A into its inverse: step k takes the greatest number of column k in the rows that
// have not been pivots (each row scaled to the same size) and subtracts multiples of its row from
// all others, above and below. All n * n elements change independently, so a step is one launch of
// as many threads as there are elements, which suits a GPU: there is no shrinking triangle, and no
// substitution afterwards, since x is the inverse times f.
//
// choose_pivot finds the pivot and prepares the step, in one block; eliminate performs it. Two
// launches per step, and the index of the pivot never leaves the device. Limits: 2 n^3 operations,
// three times those of LU factors, and every step reads and writes the whole matrix:
// `lu_partial_pivot` does it once for 32 columns. An inverse is less accurate than factors; the
// solution is refined with residuals in double.
//
// Macros from outside: T (element type), SEARCH_THREADS.
#include "solve/parts/gauss_jordan.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/scaled_rows.cuh"

static_assert(SEARCH_THREADS % 32 == 0, "whole warps");

// One block. taken[row]: the row was a pivot.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS) choose_pivot(
    const T* work, const T* relative, unsigned char* taken, T* pivot_row, T* multipliers,
    unsigned* pivot, unsigned* row_of_column, double* status, double threshold, unsigned n,
    unsigned ld, unsigned step) {
    Candidate own = {-1, 0, step};
    for (unsigned row = threadIdx.x; row < n; row += SEARCH_THREADS) {
        const T element = work[(size_t)row * ld + step];
        const T size = (element < 0 ? -element : element) * relative[row];
        if (!taken[row]) own = better(own, {size, row, step});
    }
    const Candidate best = best_in_block(own);
    prepare_step(work, pivot_row, multipliers, best.row, step, n, ld);
    if (threadIdx.x == 0) {
        taken[best.row] = 1;
        record_pivot(best, pivot, row_of_column, status, threshold, step);
    }
}

// Source: Higham, Accuracy and Stability of Numerical Algorithms. SIAM, 2002.
