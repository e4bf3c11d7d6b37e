// /// cudalab
// summary  = "LU factors: the rest of the matrix is updated once per block of 256 columns"
// order    = 8
// ladder   = "direct methods"
// adds     = "the matrix updated once per block of columns"
// dispatch = "lu"
//
// [defines]
// PANEL                 = 32    # columns whose pivots one launch finds
// BLOCK                 = 256   # columns after which the rest is updated, in float; half in double
// MAX_THREADS_PER_BLOCK = 640   # of choose_pivots, in float; half in double
// TILE                  = 128   # of update_trailing, in float; half in double
// ///
//
// `lu_elected_panel` reads and writes the rest of the matrix after each panel of 32 columns. Here
// it does so once per strip of BLOCK columns, by a product with as many numbers along k. A panel
// updates only the rest of its strip, for the next panels:
//   choose_pivots    also computes the pivot rows' part of U in the strip's other columns
//   eliminate_rows   also updates the strip's other columns; further blocks exchange the rows in
//                    the columns left and right of the strip
// After a strip:
//   solve_rows       the strip's rows of U to the right
//   update_trailing  the rest of the matrix minus a product: read and written once per strip
//
// Matrices are padded as in `lu_partial_pivot`, so the kernels have no special cases at the edges.
// Limits: a block's registers hold 32 columns and no more; while a panel is eliminated, most of the
// GPU is idle; for small systems the host's work for each launch takes longer than the kernels:
// `lu_graph`.
//
// Macros from outside: T (element type), PANEL, BLOCK, MAX_THREADS_PER_BLOCK, TILE.
#include "solve/parts/choose_pivots.cuh"
#include "solve/parts/eliminate_rows.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/scaled_rows.cuh"
#include "solve/parts/solve_rows.cuh"
#include "solve/parts/substitute_chain.cuh"

constexpr unsigned EDGE = sizeof(T) == 4 ? TILE : TILE / 2;  // rows and columns of a tile

static_assert(EDGE % 64 == 0, "16 threads across with pieces of four");

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

// Source: Volkov and Demmel, LU, QR and Cholesky Factorizations using Vector Capabilities of GPUs.
// UC Berkeley, EECS-2008-49, 2008.
