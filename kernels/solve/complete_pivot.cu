// /// cudalab
// summary  = "Gauss-Jordan with pivots searched in the whole matrix"
// order    = 9
// ladder   = "pivots from the whole matrix"
// adds     = "`gauss_jordan` with pivots searched in all rows and columns"
// dispatch = "gauss_jordan"
// defines  = { SEARCH_THREADS = 256 }
// ///
//
// Like `gauss_jordan`, but the next pivot is the greatest number of all rows and columns that have
// had none. Pivots from one column can let the numbers double at every step, as in Wilkinson's
// matrix (1 on the diagonal and in the last column, -1 below), until the original ones are lost;
// with complete pivoting no matrix is known in which they grow much.
//
// find_row_candidates leaves each row's greatest number, choose_pivot takes the greatest of these
// and prepares the step, eliminate performs it. The other methods turn to this one if refinement
// cannot reduce their error.
// Limits: the search reads the whole matrix once more in every step.
//
// Macros from outside: T (element type), SEARCH_THREADS.
#include "solve/parts/gauss_jordan.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/scaled_rows.cuh"

static_assert(SEARCH_THREADS % 32 == 0, "whole warps");

// One warp per row. taken[i]: row i, or from n on column i - n, has had a pivot.
extern "C" __global__ void find_row_candidates(const T* work, const T* relative,
                                               const unsigned char* taken, T* sizes,
                                               unsigned* columns, unsigned n, unsigned ld) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    Candidate own = {-1, row, 0};
    if (!taken[row]) {
        const T* line = work + (size_t)row * ld;
        for (unsigned j = lane; j < n; j += 32) {
            const T size = (line[j] < 0 ? -line[j] : line[j]) * relative[row];
            // Within a lane columns ascend; between lanes the lower column wins below.
            if (!taken[n + j] && (size > own.size || size != size)) own = {size, row, j};
        }
    }
    // The order between equal sizes is that of `row`: let the column take its place.
    const Candidate best = best_in_warp({own.size, own.column, own.column});
    if (lane == 0) {
        sizes[row] = best.size;
        columns[row] = best.column;
    }
}

// One block.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS) choose_pivot(
    const T* work, const T* sizes, const unsigned* columns, unsigned char* taken, T* pivot_row,
    T* multipliers, unsigned* pivot, unsigned* row_of_column, double* status, double threshold,
    unsigned n, unsigned ld, unsigned step) {
    Candidate own = {-1, 0, 0};
    for (unsigned row = threadIdx.x; row < n; row += SEARCH_THREADS)
        if (!taken[row]) own = better(own, {sizes[row], row, columns[row]});
    const Candidate best = best_in_block(own);
    prepare_step(work, pivot_row, multipliers, best.row, best.column, n, ld);
    if (threadIdx.x == 0) {
        taken[best.row] = 1;
        taken[n + best.column] = 1;
        record_pivot(best, pivot, row_of_column, status, threshold, step);
    }
}

// Source: Wilkinson, Error Analysis of Direct Methods of Matrix Inversion. Journal of the ACM
// 8(3), 1961.
