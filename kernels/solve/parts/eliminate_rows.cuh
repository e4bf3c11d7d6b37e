// The rows below a panel: their part of L, and the update of the strip's other columns.
#pragma once
#include "solve/parts/exchange_rows.cuh"
#include "solve/parts/four.cuh"

constexpr unsigned ROWS = sizeof(T) == 4 ? 64 : 32;  // of a block of eliminate_rows

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
