// /// cudalab
// summary  = "LU factors: a panel's pivots found in one launch, the matrix updated once per block"
// order    = 8
// ladder   = "direct methods"
// adds     = "a panel's pivots in one launch, the matrix updated once per block"
// dispatch = "lu"
//
// [defines]
// PANEL                 = 32    # columns whose pivots one launch finds
// BLOCK                 = 256   # columns after which the rest is updated, in float; half in double
// MAX_THREADS_PER_BLOCK = 512   # of choose_pivots, in float; half in double
// ROWS_OF_THREAD        = 2     # of choose_pivots
// TILE                  = 128   # of update_trailing, in float; half in double
// ///
//
// `lu_substitution_chain` launches a kernel for each column, and most of its time is the cost of
// the launches. Here a panel of 32 columns takes two launches, and its pivots are found before
// anything is eliminated:
//   choose_pivots    an election: each block finds the 32 best rows among its own, by eliminating
//                    them in registers, two per thread; the last block to finish finds the 32 best
//                    among those, brings them to the top of the panel and computes their rows of U
//   eliminate_rows   all rows below: their part of L by substitution with the panel's triangle,
//                    and the update of the strip's other columns; other blocks exchange the rows
//                    in the columns left and right of the strip
// After a strip of BLOCK columns:
//   solve_rows       the strip's rows of U to the right
//   update_trailing  the rest of the matrix minus a product: read and written once per strip
//   substitute_lower_chain, substitute_upper_chain   one launch each
//
// Up to twice MAX_THREADS_PER_BLOCK rows fit into one block, whose pivots are those of
// `lu_partial_pivot`. Beyond that it is tournament pivoting (Grigori, Demmel, Xiang: CALU): a pivot
// is the greatest among the rows that their blocks have elected, not in the whole column, so
// multipliers may exceed 1. In practice they stay small; if they do not, the residual shows it and
// `lu_partial_pivot` takes over. No block waits for another in the election: the last one to arrive
// goes on alone.
//
// Matrices are padded as in `lu_partial_pivot`, so the kernels have no special cases at the edges.
// Limits: a block's registers hold 32 columns and no more; while a panel is eliminated, most of the
// GPU is idle; for small systems the host's work for each launch takes longer than the kernels:
// `lu_graph`.
//
// Macros from outside: T (element type), PANEL, BLOCK, MAX_THREADS_PER_BLOCK, ROWS_OF_THREAD, TILE.
#include "common/warp/warp_sum.cuh"
#include "solve/parts/elect_rows.cuh"
#include "solve/parts/exchange_rows.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/scaled_rows.cuh"
#include "solve/parts/substitute_chain.cuh"

constexpr unsigned STRIP = sizeof(T) == 4 ? BLOCK : BLOCK / 2;  // columns of a block of the matrix
constexpr unsigned EDGE = sizeof(T) == 4 ? TILE : TILE / 2;     // rows and columns of a tile
constexpr unsigned ROWS = sizeof(T) == 4 ? 64 : 32;             // of a block of eliminate_rows
constexpr unsigned SOLVE_THREADS = sizeof(T) == 4 ? 512 : 256;

static_assert(STRIP % PANEL == 0, "whole panels");
static_assert(EDGE % 64 == 0, "16 threads across with pieces of four");

// Turns a column of the panel's rows into one of U. factors: the panel's triangles, column by
// column.
__device__ inline void solve_upper(const T (&factors)[PANEL][PANEL + 4], T (&u)[PANEL]) {
#pragma unroll
    for (unsigned k = 0; k < PANEL - 1; ++k)
#pragma unroll
        for (unsigned i = (k + 1) / 4; i < PANEL / 4; ++i) {
            const Four l = reinterpret_cast<const Four*>(factors[k])[i];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                if (4 * i + j > k) u[4 * i + j] -= l.v[j] * u[k];
        }
}

// Brings the chosen rows to the top, in the columns start to strip_end, and turns their part right
// of the panel into rows of U. One thread per column: no thread reads what another writes.
__device__ inline void raise_rows(const Election& elected, const unsigned (&places)[PANEL], T* lu,
                                  unsigned ld, unsigned start, unsigned strip_end) {
    for (unsigned c = threadIdx.x; c < strip_end - start; c += blockDim.x) {
        T* column = lu + start + c;
        __syncwarp();  // or the compiler reads all of L before the loop, into 500 registers
        // A read waits for the writes before it, which might be to the same place. So the rows at
        // the top are read eight at a time before any of them is written elsewhere.
        T u[PANEL];
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) u[k] = column[(size_t)elected.chosen[k] * ld];
#pragma unroll 1
        for (unsigned first = 0; first < PANEL; first += 8) {
            T top[8];
#pragma unroll
            for (unsigned k = 0; k < 8; ++k) top[k] = column[(size_t)(start + first + k) * ld];
#pragma unroll
            for (unsigned k = 0; k < 8; ++k) {
                const unsigned place = places[first + k];
                if (place != NONE) column[(size_t)place * ld] = top[k];
            }
        }
        if (c < PANEL) {
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) u[k] = elected.factors[c][k];
        } else {
            solve_upper(elected.factors, u);
        }
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) column[(size_t)(start + k) * ld] = u[k];
    }
}

// candidates: PANEL for each block. arrived: 0 before and after. status[0]: 0, or the number (from
// 1) of the first column whose pivot is not above `threshold`, negative if the pivot is not finite;
// status[1]: that pivot's size. Blocks of whole warps share the rows from start to end.
extern "C" __global__ void __launch_bounds__(MAX_ELECTION_THREADS) choose_pivots(
    T* lu, const T* relative, unsigned* row_of, unsigned* candidates, unsigned* arrived,
    unsigned* pivots, double* status, double threshold, unsigned end, unsigned ld, unsigned start,
    unsigned strip_end) {
    __shared__ Election elected;
    __shared__ unsigned places[PANEL];
    __shared__ bool is_last;
    const unsigned lane = threadIdx.x;  // in the first warp
    // The first round elects among the block's own rows. The last block goes on: each further round
    // elects among as many candidates as there is room for, including the best of the rounds
    // before.
    const unsigned num_candidates = gridDim.x > 1 ? gridDim.x * PANEL : 0;
    const unsigned at_a_time = blockDim.x * ROWS_OF_THREAD, own = threadIdx.x * ROWS_OF_THREAD;
    unsigned done = 0, rows[ROWS_OF_THREAD];
#pragma unroll
    for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) {
        const unsigned row = start + blockIdx.x * at_a_time + own + e;
        rows[e] = row < end ? row : NONE;
    }
    while (true) {
        elect_rows(elected, lu, relative, row_of, rows, ld, start);
        if (done == 0 && num_candidates > 0) {
            if (lane < PANEL) candidates[blockIdx.x * PANEL + lane] = elected.chosen[lane];
            __syncthreads();  // all candidates are written
            if (lane == 0) {
                __threadfence();  // a block that sees the arrival must see the candidates
                is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;  // ends as 0
                __threadfence();  // candidates are read after the arrivals
            }
            __syncthreads();  // every thread knows whether this block is the last
            if (!is_last) return;
        }
        if (done >= num_candidates) break;
        const unsigned kept = done ? PANEL : 0;
#pragma unroll
        for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) {
            const unsigned next = done + own + e - kept;
            rows[e] = NONE;
            if (own + e < kept) {
                rows[e] = elected.chosen[own + e];
            } else if (next < num_candidates) {
                rows[e] = __ldcg(candidates + next);  // written by blocks that may run elsewhere
            }
        }
        done += at_a_time - kept;
        __syncthreads();  // all have read the rows elected before
    }

    if (threadIdx.x < 32) {
        const unsigned pivot = elected.chosen[lane];
        const T size = elected.sizes[lane];
        const bool finite = size - size == 0;
        const unsigned bad = __ballot_sync(FULL, !(finite && size > threshold));
        if (bad && lane == __ffs(bad) - 1 && status[0] == 0) {
            const double number = (double)start + lane + 1;
            status[0] = finite ? number : -number;
            status[1] = size;
        }
        const unsigned place = new_place(pivot, start);
        const unsigned chosen_number = row_of[pivot], top_number = row_of[start + lane];
        __syncwarp();  // all numbers have been read
        row_of[start + lane] = chosen_number;
        if (place != NONE) row_of[place] = top_number;
        places[lane] = place;
        pivots[start + lane] = pivot;
    }
    __syncthreads();  // the moves are known
    raise_rows(elected, places, lu, ld, start, strip_end);
}

// Computes the panel's part of L for ROWS rows below it, one thread per row: solves x U = a, with a
// in registers. x goes to `left` as [k][row], and to the matrix.
__device__ inline void solve_left(const T (&panel)[ROWS][PANEL + 1],
                                  const T (&triangle)[PANEL][PANEL + 4], const T (&inverses)[PANEL],
                                  T (&left)[PANEL][ROWS], T* line) {
    __align__(16) T x[PANEL];
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k) x[k] = panel[threadIdx.x][k];
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k) {
        x[k] *= inverses[k];
        left[k][threadIdx.x] = x[k];
#pragma unroll
        for (unsigned i = (k + 1) / 4; i < PANEL / 4; ++i) {
            const Four u = reinterpret_cast<const Four*>(triangle[k])[i];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                if (4 * i + j > k) x[4 * i + j] -= x[k] * u.v[j];
        }
    }
    if (line == nullptr) return;
#pragma unroll
    for (unsigned i = 0; i < PANEL / 4; ++i)
        reinterpret_cast<Four*>(line)[i] = reinterpret_cast<Four*>(x)[i];
}

// Eliminates ROWS rows below the panel: computes their part of L and updates the strip's columns
// right of the panel.
__device__ inline void eliminate_tile(T* lu, unsigned end, unsigned ld, unsigned start,
                                      unsigned strip_end, unsigned tile) {
    constexpr unsigned EACH = ROWS / 16;  // rows of a thread, of four columns each
    __shared__ T panel[ROWS][PANEL + 1];  // a word of padding: a thread reads a row
    __shared__ __align__(16) T triangle[PANEL][PANEL + 4];
    __shared__ T inverses[PANEL];
    __shared__ __align__(16) T left[PANEL][ROWS];
    __shared__ Four right[PANEL][16];
    const unsigned t = threadIdx.x, tx = t % 16, ty = t / 16;
    const unsigned row0 = start + PANEL + tile * ROWS;

    // The rows of U for 64 columns, which are in flight while the previous 64 are computed.
    Four next[PANEL / 16];
    auto fetch = [&](unsigned col) {
#pragma unroll
        for (unsigned i = 0; i < PANEL / 16; ++i) {
            const T* line = lu + (size_t)(start + ty + 16 * i) * ld + col;
            next[i] = col < strip_end ? *reinterpret_cast<const Four*>(line) : Four();
        }
    };
    fetch(start + PANEL + 4 * tx);
    for (unsigned e = t; e < PANEL * PANEL; e += 256) {
        const unsigned k = e / PANEL, c = e % PANEL;
        const T element = lu[(size_t)(start + k) * ld + start + c];
        triangle[k][c] = element;
        if (k == c) inverses[k] = 1 / element;
    }
    for (unsigned e = t; e < ROWS * PANEL; e += 256) {
        const unsigned row = row0 + e / PANEL;
        panel[e / PANEL][e % PANEL] = row < end ? lu[(size_t)row * ld + start + e % PANEL] : (T)0;
    }
    __syncthreads();  // panel and triangle are complete
    if (t < ROWS) {
        const unsigned row = row0 + t;
        solve_left(panel, triangle, inverses, left,
                   row < end ? lu + (size_t)row * ld + start : nullptr);
    }

    for (unsigned col0 = start + PANEL; col0 < strip_end; col0 += 64) {
        const unsigned col = col0 + 4 * tx;
        const bool inside = col < strip_end;
#pragma unroll
        for (unsigned i = 0; i < PANEL / 16; ++i) right[ty + 16 * i][tx] = next[i];
        __syncthreads();  // both factors are complete
        fetch(col + 64);
        Four elements[EACH];
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i) {
            const unsigned row = row0 + ty * EACH + i;
            const T* place = lu + (size_t)row * ld + col;
            elements[i] = row < end && inside ? *reinterpret_cast<const Four*>(place) : Four();
        }
        T acc[EACH][4] = {};
#pragma unroll 8
        for (unsigned k = 0; k < PANEL; ++k) {
            const Four u = right[k][tx];
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i)
#pragma unroll
                for (unsigned j = 0; j < 4; ++j) acc[i][j] += left[k][ty * EACH + i] * u.v[j];
        }
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i) {
            const unsigned row = row0 + ty * EACH + i;
            if (row >= end || !inside) continue;
            Four element = elements[i];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) element.v[j] -= acc[i][j];
            *reinterpret_cast<Four*>(lu + (size_t)row * ld + col) = element;
        }
        __syncthreads();  // all have read `right` before the next columns overwrite it
    }
}

// Exchanges rows in 32 other columns as choose_pivots has done in the strip.
__device__ inline void exchange_rows(T* lu, const unsigned* pivots, unsigned ld, unsigned start,
                                     unsigned column0) {
    constexpr unsigned EACH = PANEL / 8;  // rows per warp, of the pivots and of the panel's top
    __shared__ unsigned place_of[PANEL];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T* column = lu + column0 + lane;
    if (warp == 0) place_of[lane] = new_place(pivots[start + lane], start);
    T chosen[EACH], top[EACH];
#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
        const unsigned k = warp * EACH + i;
        chosen[i] = column[(size_t)pivots[start + k] * ld];
        top[i] = column[(size_t)(start + k) * ld];
    }
    __syncthreads();  // everything to be moved has been read, and the moves are known
#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
        const unsigned k = warp * EACH + i;
        column[(size_t)(start + k) * ld] = chosen[i];
        if (place_of[k] != NONE) column[(size_t)place_of[k] * ld] = top[i];
    }
}

// The first blocks eliminate, ROWS rows each; the others exchange rows in 32 columns each, first
// those left of the panel, then those from strip_end on.
extern "C" __global__ void __launch_bounds__(256) eliminate_rows(T* lu, const unsigned* pivots,
                                                                 unsigned end, unsigned ld,
                                                                 unsigned start,
                                                                 unsigned strip_end) {
    const unsigned tiles = (end - start - PANEL + ROWS - 1) / ROWS;
    if (blockIdx.x < tiles) {
        eliminate_tile(lu, end, ld, start, strip_end, blockIdx.x);
    } else {
        const unsigned column = (blockIdx.x - tiles) * 32;
        exchange_rows(lu, pivots, ld, start, column < start ? column : column - start + strip_end);
    }
}

// Solves L X = B, L the unit lower triangle of the strip, for a block's 32 columns of STRIP rows: a
// lane's column begins at `column`, in rows of `column_ld`, and X takes the place of B. Panel by
// panel, one warp solves a triangle, with a lane per column, and then all warps update the rows
// below it. L is requested before it is needed: the triangles through shared memory, the rows one
// row ahead.
__device__ inline void solve_columns(const T* lu, T* column, unsigned column_ld, unsigned ld,
                                     unsigned start) {
    constexpr unsigned WARPS = SOLVE_THREADS / 32, FOURS = PANEL / 4;
    __shared__ T u[STRIP][32];
    __shared__ Four triangle[PANEL][FOURS];
    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
    const bool loads = t < PANEL * FOURS;  // a piece of a triangle
    for (unsigned k = warp; k < STRIP; k += WARPS) u[k][lane] = column[(size_t)k * column_ld];

    Four piece = {};
    auto fetch = [&](unsigned top) {
        const T* l = lu + (size_t)(start + top + t / FOURS) * ld + start + top;
        if (loads && top < STRIP) piece = reinterpret_cast<const Four*>(l)[t % FOURS];
    };
    fetch(0);
    for (unsigned top = 0; top < STRIP; top += PANEL) {
        if (loads) triangle[t / FOURS][t % FOURS] = piece;
        __syncthreads();  // triangle and rows are complete; the rows above are subtracted
        fetch(top + PANEL);
        T x[PANEL];
        if (warp == 0) {
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) x[k] = u[top + k][lane];
            // Four columns of L at a time, so that the rows below do not wait for each other.
#pragma unroll
            for (unsigned four = 0; four < FOURS; ++four)
#pragma unroll
                for (unsigned i = 4 * four + 1; i < PANEL; ++i) {
                    const Four line = triangle[i][four];
#pragma unroll
                    for (unsigned j = 0; j < 4; ++j)
                        if (4 * four + j < i) x[i] -= line.v[j] * x[4 * four + j];
                }
#pragma unroll
            for (unsigned k = 1; k < PANEL; ++k) u[top + k][lane] = x[k];
        }
        // The rows of L below, one for each warp, while the next one is on its way.
        const T* below = lu + (size_t)(start + top + PANEL) * ld + start + top;
        Four now[FOURS] = {}, next[FOURS] = {};
        auto fetch_row = [&](unsigned row) {
            const Four* line = reinterpret_cast<const Four*>(below + (size_t)row * ld);
#pragma unroll
            for (unsigned i = 0; i < FOURS; ++i) next[i] = line[i];
        };
        const unsigned rows = STRIP - top - PANEL;
        if (warp < rows) fetch_row(warp);
        __syncthreads();  // this panel's rows of U are complete
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) x[k] = u[top + k][lane];
        for (unsigned row = warp; row < rows; row += WARPS) {
#pragma unroll
            for (unsigned i = 0; i < FOURS; ++i) now[i] = next[i];
            if (row + WARPS < rows) fetch_row(row + WARPS);
            T sums[4] = {};  // four, since an addition waits for the one before it
#pragma unroll
            for (unsigned i = 0; i < FOURS; ++i)
#pragma unroll
                for (unsigned j = 0; j < 4; ++j) sums[j] += now[i].v[j] * x[4 * i + j];
            u[top + PANEL + row][lane] -= sums[0] + sums[1] + (sums[2] + sums[3]);
        }
    }
    __syncthreads();  // all rows are complete
    for (unsigned k = warp; k < STRIP; k += WARPS) column[(size_t)k * column_ld] = u[k][lane];
}

// Computes the strip's rows of U to the right of it, 32 columns per block.
extern "C" __global__ void __launch_bounds__(SOLVE_THREADS) solve_rows(T* lu, unsigned ld,
                                                                       unsigned start) {
    const unsigned column = start + STRIP + blockIdx.x * 32 + threadIdx.x % 32;
    solve_columns(lu, lu + (size_t)start * ld + column, ld, ld, start);
}

// Subtracts (the strip's columns of L) x (its rows of U) from the matrix below and right of the
// strip. As in the product `double_buffered`, a block computes a tile, and a thread
// EDGE / 16 x EDGE / 16 elements in pieces of four. Of two pairs of slabs along k, one is loaded
// while the other is multiplied.
extern "C" __global__ void __launch_bounds__(256, 2) update_trailing(T* lu, unsigned ld,
                                                                     unsigned start) {
    constexpr unsigned EACH = EDGE / 16, PIECES = EACH / 4;
    constexpr unsigned SLAB = 1024 / EDGE;  // numbers along k: four of each factor per thread
    __shared__ __align__(16) T Ls[2][SLAB][EDGE + 4];
    __shared__ Four Us[2][SLAB][EDGE / 4];
    const unsigned t = threadIdx.x, tx = t % 16, ty = t / 16;
    const unsigned row0 = start + STRIP + blockIdx.y * EDGE;
    const unsigned col0 = start + STRIP + blockIdx.x * EDGE;
    const unsigned row_l = t / (SLAB / 4), k_l = t % (SLAB / 4) * 4;
    const unsigned k_u = t / (EDGE / 4), four_u = t % (EDGE / 4);
    const T* l_at = lu + (size_t)(row0 + row_l) * ld + start + k_l;
    const T* u_at = lu + (size_t)(start + k_u) * ld + col0 + 4 * four_u;

    T acc[EACH][EACH] = {};
    Four next_l = *reinterpret_cast<const Four*>(l_at);
    Four next_u = *reinterpret_cast<const Four*>(u_at);
    for (unsigned k0 = 0; k0 < STRIP; k0 += SLAB) {
        const unsigned stage = k0 / SLAB % 2;
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) Ls[stage][k_l + j][row_l] = next_l.v[j];
        Us[stage][k_u][four_u] = next_u;
        // The slabs are complete. Those of the step before may still be read: the step after this
        // one overwrites them, after the next barrier.
        __syncthreads();
        if (k0 + SLAB < STRIP) {
            l_at += SLAB;
            u_at += (size_t)SLAB * ld;
            next_l = *reinterpret_cast<const Four*>(l_at);
            next_u = *reinterpret_cast<const Four*>(u_at);
        }
#pragma unroll 8
        for (unsigned k = 0; k < SLAB; ++k) {
            __align__(16) T left[EACH], right[EACH];
#pragma unroll
            for (unsigned piece = 0; piece < PIECES; ++piece) {
                *reinterpret_cast<Four*>(left + 4 * piece) =
                    *reinterpret_cast<const Four*>(&Ls[stage][k][64 * piece + 4 * ty]);
                *reinterpret_cast<Four*>(right + 4 * piece) = Us[stage][k][16 * piece + tx];
            }
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i)
#pragma unroll
                for (unsigned j = 0; j < EACH; ++j) acc[i][j] += left[i] * right[j];
        }
    }

#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
        T* line = lu + (size_t)(row0 + i / 4 * 64 + ty * 4 + i % 4) * ld + col0 + 4 * tx;
#pragma unroll
        for (unsigned piece = 0; piece < PIECES; ++piece) {
            Four* place = reinterpret_cast<Four*>(line + 64 * piece);
            Four element = *place;
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) element.v[j] -= acc[i][4 * piece + j];
            *place = element;
        }
    }
}

// `b` is the right-hand side, `between` the solution of L; see substitute_chain for the rest.
extern "C" __global__ void __launch_bounds__(CHAIN_THREADS) substitute_lower_chain(
    const T* lu, const T* b, T* between, T* solution, unsigned* ticket, unsigned ld) {
    substitute_chain<true>(lu, b, between, solution, ticket, ld);
}
extern "C" __global__ void __launch_bounds__(CHAIN_THREADS) substitute_upper_chain(
    const T* lu, T* between, T* solution, unsigned* ticket, unsigned ld) {
    substitute_chain<false>(lu, between, solution, between, ticket, ld);
}
