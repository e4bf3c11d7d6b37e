// What follows a panel's elimination: its rows of U, and the update of the matrix by one product.
#pragma once
#include "solve/parts/four.cuh"

constexpr unsigned EDGE = sizeof(T) == 4 ? TILE : TILE / 2;  // rows and columns of a tile

static_assert(EDGE % 64 == 0, "16 threads across with pieces of four");

// Computes the panel's rows of U to the right of it: one thread per column, 32 unknowns in
// registers.
extern "C" __global__ void __launch_bounds__(128) solve_rows(T* lu, unsigned ld, unsigned start) {
    __shared__ T triangle[PANEL][PANEL];
    for (unsigned e = threadIdx.x; e < PANEL * PANEL; e += 128)
        triangle[e / PANEL][e % PANEL] = lu[(size_t)(start + e / PANEL) * ld + start + e % PANEL];
    __syncthreads();  // the triangle is complete
    const unsigned column = start + PANEL + blockIdx.x * 128 + threadIdx.x;
    if (column >= ld) return;
    T u[PANEL];
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k) u[k] = lu[(size_t)(start + k) * ld + column];
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k)
#pragma unroll
        for (unsigned i = k + 1; i < PANEL; ++i) u[i] -= triangle[i][k] * u[k];
#pragma unroll
    for (unsigned k = 1; k < PANEL; ++k) lu[(size_t)(start + k) * ld + column] = u[k];
}

// Subtracts (the panel's columns of L) x (its rows of U) from the matrix below and right of the
// panel. A block computes a tile, a thread EDGE / 16 x EDGE / 16 elements: rows that follow each
// other, columns in pieces of four, read 16 bytes at a time. Ls is kept transposed, in rows of
// EDGE + 1: a store along k goes to 32 banks; its reads are broadcasts, one word for 16 lanes.
extern "C" __global__ void __launch_bounds__(256) update_trailing(T* lu, unsigned ld,
                                                                  unsigned start) {
    constexpr unsigned EACH = EDGE / 16, PIECES = EACH / 4;
    __shared__ T Ls[PANEL][EDGE + 1];
    __shared__ Four Us[PANEL][EDGE / 4];
    const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const unsigned row0 = start + PANEL + blockIdx.y * EDGE,
                   col0 = start + PANEL + blockIdx.x * EDGE;

    for (unsigned e = threadIdx.x; e < PANEL * EDGE; e += 256) {
        const unsigned row = e / PANEL, k = e % PANEL;
        Ls[k][row] = lu[(size_t)(row0 + row) * ld + start + k];
    }
    for (unsigned e = threadIdx.x; e < PANEL * EDGE / 4; e += 256) {
        const unsigned k = e / (EDGE / 4), four = e % (EDGE / 4);
        Us[k][four] =
            *reinterpret_cast<const Four*>(lu + (size_t)(start + k) * ld + col0 + 4 * four);
    }
    __syncthreads();  // both factors are complete; k ends with the panel: there is no other barrier

    T acc[EACH][EACH] = {};
#pragma unroll 4
    for (unsigned k = 0; k < PANEL; ++k) {
        __align__(16) T left[EACH], right[EACH];
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i) left[i] = Ls[k][ty * EACH + i];
#pragma unroll
        for (unsigned piece = 0; piece < PIECES; ++piece)
            *reinterpret_cast<Four*>(right + 4 * piece) = Us[k][piece * 16 + tx];
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i)
#pragma unroll
            for (unsigned j = 0; j < EACH; ++j) acc[i][j] += left[i] * right[j];
    }

#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
        T* line = lu + (size_t)(row0 + ty * EACH + i) * ld + col0 + 4 * tx;
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
