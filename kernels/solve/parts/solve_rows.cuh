// A strip's rows of U right of it, panel by panel.
#pragma once
#include "solve/parts/four.cuh"

constexpr unsigned STRIP = sizeof(T) == 4 ? BLOCK : BLOCK / 2;  // columns of a block of the matrix
constexpr unsigned SOLVE_THREADS = sizeof(T) == 4 ? 512 : 256;

static_assert(STRIP % PANEL == 0, "whole panels");

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
