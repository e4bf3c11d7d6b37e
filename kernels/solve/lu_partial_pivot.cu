// /// cudalab
// summary  = "LU factors by panels, pivots searched in the column"
// order    = 7
// ladder   = "direct methods"
// adds     = "factors by panels of 32 columns: the rest is updated once per panel"
// dispatch = "lu"
// default  = ["cpu"]
//
// [defines]
// PANEL          = 32    # columns of a panel: one for each lane of a warp
// PANEL_THREADS  = 256   # of eliminate_column
// ROWS_PER_WARP  = 8     # of eliminate_column
// TILE           = 128   # of update_trailing, in float; 64 in double
// ///
//
// P A = L U: the k-th pivot is the greatest number of column k at or below row k, each divided by
// the greatest of its row. That keeps the multipliers below 2 in magnitude (rows are scaled by
// powers of two, which is exact and leaves their greatest numbers between 1 and 2), and so the
// rounding errors small for all but a few matrices. The factors then solve A x = f for any f by two
// substitutions, so the solution can be refined with residuals in double.
//
// Column by column, a factorization would read and write the whole matrix n times. Here it goes by
// panels of 32 columns: only the panel is eliminated column by column, and the rest of the matrix
// is updated once per panel, as a product of matrices:
//   find_candidates    the greatest number of the panel's first column in each block's rows
//   eliminate_column   one launch per column. Every block finds the pivot among the candidates,
//                      eliminates its own rows and leaves its candidate for the next column. The
//                      pivot row stays where it is and is not written, so no block waits for
//                      another; the index of the pivot never leaves the device
//   permute_rows       brings the 32 pivot rows to the top of the panel, in all columns
//   solve_rows         the 32 rows of U to the right: substitution with the panel's triangle
//   update_trailing    the rest of the matrix minus its part of L times these rows
//   substitute_lower, substitute_upper   32 unknowns per launch
// Matrices are padded: n to a multiple of 32 by the identity, and by rows and columns of zeros to
// whole tiles, so the kernels have no special cases at the edges.
// Limits: a launch for each column and each 32 unknowns: `lu_substitution_chain`. Partial pivoting
// cannot stop the growth that a few matrices are known for: the residual shows it, and
// `complete_pivot` solves them.
//
// Macros from outside: T (element type), PANEL, PANEL_THREADS, ROWS_PER_WARP, TILE.
#include "common/warp/warp_sum.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/scaled_rows.cuh"
#include "solve/parts/update_by_panel.cuh"

constexpr unsigned FULL = 0xffffffffu;
constexpr unsigned NONE = 0xffffffffu;  // no row
constexpr unsigned PANEL_WARPS = PANEL_THREADS / 32;
constexpr unsigned PANEL_ROWS = PANEL_WARPS * ROWS_PER_WARP;  // of a block

static_assert(PANEL == 32, "lane c works on column c of the panel");

// A row that may become the pivot, and how large its element is. The greater wins, then the upper
// row, so that the choice does not depend on the launch; a NaN wins over all, so that it is seen.
struct Candidate {
    T size;
    unsigned row;
};
__device__ inline Candidate better(Candidate a, Candidate b) {
    if (b.row == NONE) return a;
    if (a.row == NONE) return b;
    const bool a_nan = a.size != a.size, b_nan = b.size != b.size;
    if (a_nan || b_nan) return a_nan ? a : b;
    return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
}
__device__ inline Candidate best_in_warp(Candidate own) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const Candidate other = {__shfl_xor_sync(FULL, own.size, distance),
                                 __shfl_xor_sync(FULL, own.row, distance)};
        own = better(own, other);
    }
    return own;
}

// Leaves the best candidate of the block's warps, each of which has its own in lane `lane_with_it`.
__device__ inline void leave_candidate(Candidate own, unsigned lane_with_it, T* sizes,
                                       unsigned* rows) {
    __shared__ Candidate of_warp[PANEL_WARPS];
    if (threadIdx.x % 32 == lane_with_it) of_warp[threadIdx.x / 32] = own;
    __syncthreads();  // all warps have written theirs
    if (threadIdx.x == 0) {
        Candidate best = of_warp[0];
        for (unsigned w = 1; w < PANEL_WARPS; ++w) best = better(best, of_warp[w]);
        sizes[blockIdx.x] = best.size;
        rows[blockIdx.x] = best.row;
    }
}

__device__ inline T magnitude(T value) {
    return value < 0 ? -value : value;
}

// Candidates for the first column of a panel. One thread per row: the column is read in strides,
// once per panel.
extern "C" __global__ void __launch_bounds__(PANEL_THREADS) find_candidates(
    const T* lu, const T* relative, const unsigned* row_of, T* sizes, unsigned* rows, unsigned end,
    unsigned ld, unsigned column) {
    Candidate own = {0, NONE};
    const unsigned block_start = column + blockIdx.x * PANEL_ROWS;
    for (unsigned row = block_start + threadIdx.x; row < block_start + PANEL_ROWS && row < end;
         row += PANEL_THREADS) {
        const T size = magnitude(lu[(size_t)row * ld + column]) * relative[row_of[row]];
        own = better(own, {size, row});
    }
    leave_candidate(best_in_warp(own), 0, sizes, rows);
}

// Column `column` of the panel that starts at column and row `start`. status[0]: 0, or the number
// (from 1) of the first column whose pivot is not above `threshold`, negative if the pivot is not
// finite; status[1]: that pivot's size. taken[row]: the row was a pivot of this panel.
extern "C" __global__ void __launch_bounds__(PANEL_THREADS) eliminate_column(
    T* lu, const T* relative, const unsigned* row_of, unsigned char* taken, const T* sizes,
    const unsigned* rows, T* next_sizes, unsigned* next_rows, unsigned* pivots, double* status,
    double threshold, unsigned num_candidates, unsigned end, unsigned ld, unsigned start,
    unsigned column) {
    __shared__ T pivot_row[PANEL];
    __shared__ unsigned pivot_at;
    __shared__ T pivot_value;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned c = column - start;  // in the panel

    if (warp == 0) {
        Candidate best = {0, NONE};
        for (unsigned i = lane; i < num_candidates; i += 32)
            best = better(best, {sizes[i], rows[i]});
        best = best_in_warp(best);
        const T* line = lu + (size_t)best.row * ld + start;
        // Columns up to this one are final: zeros there leave them unchanged.
        pivot_row[lane] = lane > c ? line[lane] : (T)0;
        if (lane == 0) {
            pivot_at = best.row;
            pivot_value = line[c];
            if (blockIdx.x == 0) {
                pivots[column] = best.row;
                const bool finite = best.size - best.size == 0;
                if (status[0] == 0 && !(finite && best.size > threshold)) {
                    status[0] = finite ? (double)column + 1 : -(double)column - 1;
                    status[1] = best.size;
                }
            }
        }
    }
    __syncthreads();  // the pivot row is ready
    const unsigned pivot = pivot_at;
    const T across = pivot_row[lane];

    // A warp takes ROWS_PER_WARP rows, a lane a column of them: whole cache lines. All lanes need
    // the element in column c, which lane c then overwrites with the multiplier.
    const unsigned first = start + (blockIdx.x * PANEL_WARPS + warp) * ROWS_PER_WARP;
    T value[ROWS_PER_WARP], multiplier[ROWS_PER_WARP];
    bool active[ROWS_PER_WARP];
#pragma unroll
    for (unsigned k = 0; k < ROWS_PER_WARP; ++k) {
        const unsigned row = first + k;
        active[k] = row < end && row != pivot && !taken[row];
        if (active[k]) {
            value[k] = lu[(size_t)row * ld + start + lane];
            multiplier[k] = lu[(size_t)row * ld + column] / pivot_value;
        }
    }
    __syncwarp();  // all lanes have read column c and `taken`
    Candidate own = {0, NONE};
#pragma unroll
    for (unsigned k = 0; k < ROWS_PER_WARP; ++k) {
        const unsigned row = first + k;
        if (active[k]) {
            const T updated = lane == c ? multiplier[k] : value[k] - multiplier[k] * across;
            if (lane >= c) lu[(size_t)row * ld + start + lane] = updated;
            if (lane == c + 1) own = better(own, {magnitude(updated) * relative[row_of[row]], row});
        }
        if (row == pivot && lane == 0) taken[row] = 1;
    }
    if (c + 1 < PANEL) leave_candidate(own, c + 1, next_sizes, next_rows);
}

// Moves the panel's pivot rows to its top, and the rows that were there to the places left free.
// A block does it for 32 columns of the matrix; the first also moves the rows' numbers.
extern "C" __global__ void __launch_bounds__(256) permute_rows(T* lu, unsigned* row_of,
                                                               unsigned char* taken,
                                                               const unsigned* pivots, unsigned ld,
                                                               unsigned start) {
    __shared__ T chosen[PANEL][32], top[PANEL][32];
    __shared__ unsigned pivot[PANEL];
    __shared__ unsigned moved[PANEL];  // the row of the top that goes to pivot[k]'s place
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned column = blockIdx.x * 32 + lane;

    if (warp == 0) {
        const unsigned own = pivots[start + lane];
        unsigned stays = 0;  // bit i: row i of the top is itself a pivot
        for (unsigned k = 0; k < PANEL; ++k) {
            const unsigned other = __shfl_sync(FULL, own, k) - start;
            if (other < PANEL) stays |= 1u << other;
        }
        // The k-th place outside the top gets the k-th row that is not a pivot; there are as many.
        const bool outside = own - start >= PANEL;
        const unsigned places = __ballot_sync(FULL, outside);
        unsigned homeless = ~stays;
        for (unsigned before = __popc(places & ((1u << lane) - 1)); before > 0; --before)
            homeless &= homeless - 1;
        pivot[lane] = own;
        moved[lane] = outside ? __ffs(homeless) - 1 : NONE;
    }
    __syncthreads();  // the moves are known

    for (unsigned k = warp; k < PANEL; k += 8) {
        chosen[k][lane] = lu[(size_t)pivot[k] * ld + column];
        top[k][lane] = lu[(size_t)(start + k) * ld + column];
    }
    unsigned chosen_number = 0, top_number = 0;
    if (blockIdx.x == 0 && warp == 0) {
        chosen_number = row_of[pivot[lane]];
        top_number = row_of[start + lane];
    }
    __syncthreads();  // everything to be moved has been read

    for (unsigned k = warp; k < PANEL; k += 8) {
        lu[(size_t)(start + k) * ld + column] = chosen[k][lane];
        if (moved[k] != NONE) lu[(size_t)pivot[k] * ld + column] = top[moved[k]][lane];
    }
    if (blockIdx.x == 0 && warp == 0) {
        const unsigned from = moved[lane] == NONE ? 0 : moved[lane];
        const unsigned number = __shfl_sync(FULL, top_number, from);
        row_of[start + lane] = chosen_number;
        if (moved[lane] != NONE) row_of[pivot[lane]] = number;
        taken[pivot[lane]] = 0;
    }
}

// Unknowns start to start + 31 of L y = b or U y = b, which a warp computes: lane i keeps row i.
template <bool LOWER>
__device__ inline T solve_triangle(const T* lu, const T* b, unsigned ld, unsigned start) {
    const unsigned lane = threadIdx.x % 32;
    const T* line = lu + (size_t)(start + lane) * ld + start;
    T value = b[start + lane];
    for (unsigned step = 0; step < PANEL; ++step) {
        const unsigned k = LOWER ? step : PANEL - 1 - step;
        if (!LOWER && lane == k) value /= line[k];
        const T known = __shfl_sync(FULL, value, k);
        if (LOWER ? lane > k : lane < k) value -= line[k] * known;
    }
    return value;
}

// Every block computes the 32 unknowns for itself and subtracts their part from its own rows of b,
// one thread per row; the first block keeps them in y (b is still being read by others).
template <bool LOWER>
__device__ inline void substitute(const T* lu, T* b, T* y, unsigned end, unsigned ld,
                                  unsigned start) {
    __shared__ T known[PANEL];
    if (threadIdx.x < 32) {
        known[threadIdx.x] = solve_triangle<LOWER>(lu, b, ld, start);
        if (blockIdx.x == 0) y[start + threadIdx.x] = known[threadIdx.x];
    }
    __syncthreads();  // the unknowns are ready
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned row = LOWER ? start + PANEL + i : i;
    if (row >= (LOWER ? end : start)) return;
    const T* line = lu + (size_t)row * ld + start;
    T sum = 0;
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k) sum += line[k] * known[k];
    b[row] -= sum;
}
extern "C" __global__ void substitute_lower(const T* lu, T* b, T* y, unsigned end, unsigned ld,
                                            unsigned start) {
    substitute<true>(lu, b, y, end, ld, start);
}
extern "C" __global__ void substitute_upper(const T* lu, T* b, T* y, unsigned end, unsigned ld,
                                            unsigned start) {
    substitute<false>(lu, b, y, end, ld, start);
}

// Source: Golub and Van Loan, Matrix Computations. Johns Hopkins University Press, 2013.
