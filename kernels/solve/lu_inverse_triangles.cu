// /// cudalab
// summary  = "LU factors: a strip's rows of U as a product with the inverse of its triangle"
// order    = 8.8
// ladder   = "direct methods"
// adds     = "rows of U by the triangle's inverse, on tensor cores"
// dispatch = "lu"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
// applies  = { dtype = ["float32"] }
//
// [defines]
// PANEL                 = 32      # columns whose pivots one launch finds
// BLOCK                 = 256     # columns after which the rest is updated
// MAX_THREADS_PER_BLOCK = 512     # of choose_pivots
// ROWS_OF_THREAD        = 2       # of choose_pivots
// TILE                  = 128     # rows and columns of a tile of subtract_products
// BK                    = 32      # numbers along k of a stage
// STAGES                = 4
// SPLIT_THREADS         = 256
// UPDATE_THREADS        = 384     # of subtract_products
// SHARED_BYTES          = 196672  # STAGES * 2 * TILE * 3 * 64 + 2 * STAGES * 8
// PANEL_SHARE           = 5       # a fifth of the multiprocessors eliminates, the rest updates
// ///
//
// In `lu_look_ahead` everything waits while solve_rows substitutes its way down the strip. But the
// triangle is known earlier, and its inverse with it: so the strip's rows of U, L^-1 A, become one
// more product for tensor cores,
//   L^-1 A = A - (I - L^-1) A
//   order_strip      the exchanges in the strip's own columns, so that its triangle is complete
//   find_remainder   R = I - L^-1; both at the end of the strip's elimination, beside the update
//   exchange_others  the exchanges in all other columns
//   split_rows       R and the strip's rows of A as three bfloat16 parts each
//   subtract_rows    the strip's rows minus their product
// The elements of L are near 1 or below, and so, for most matrices, are those of the inverse. If
// they are not, the residual shows it, and `lu_partial_pivot` takes over.
//
// Macros from outside: T (float), PANEL, BLOCK, MAX_THREADS_PER_BLOCK, ROWS_OF_THREAD, TILE, BK,
// STAGES, SPLIT_THREADS, UPDATE_THREADS, SHARED_BYTES.
#include "solve/lu_look_ahead.cu"

// Exchanges rows in 32 columns of the strip per block.
extern "C" __global__ void __launch_bounds__(256) order_strip(T* lu, const unsigned* pivots,
                                                              unsigned ld, unsigned first,
                                                              unsigned strip_end) {
    exchange_columns(lu, pivots, ld, first, strip_end, first + blockIdx.x * PANEL);
}

// Exchanges rows in 32 columns per block, those of the strip left out.
extern "C" __global__ void __launch_bounds__(256) exchange_others(T* lu, const unsigned* pivots,
                                                                  unsigned ld, unsigned first,
                                                                  unsigned strip_end) {
    const unsigned column = blockIdx.x * PANEL;
    exchange_columns(lu, pivots, ld, first, strip_end,
                     column < first ? column : column - first + strip_end);
}

// remainder (BLOCK x BLOCK) = the identity minus the inverse of the strip's unit lower triangle, 32
// columns per block.
extern "C" __global__ void __launch_bounds__(SOLVE_THREADS) find_remainder(const float* lu,
                                                                           float* remainder,
                                                                           unsigned ld,
                                                                           unsigned start) {
    const unsigned column = blockIdx.x * 32 + threadIdx.x % 32, warp = threadIdx.x / 32;
    constexpr unsigned WARPS = SOLVE_THREADS / 32;
    // A thread reads and writes the same elements here and in solve_columns.
    for (unsigned k = warp; k < BLOCK; k += WARPS)
        remainder[k * BLOCK + column] = k == column ? 1.0f : 0.0f;
    solve_columns(lu, remainder + column, BLOCK, ld, start);
    for (unsigned k = warp; k < BLOCK; k += WARPS) {
        float* element = remainder + k * BLOCK + column;
        *element = (k == column ? 1.0f : 0.0f) - *element;
    }
}

// The first BLOCK / TILE * K_BLOCKS blocks split the remainder; the others the strip's rows right
// of it, tile column by tile column.
extern "C" __global__ void __launch_bounds__(SPLIT_THREADS) split_rows(const float* lu,
                                                                       const float* remainder,
                                                                       uint4* l_parts,
                                                                       uint4* u_parts, unsigned ld,
                                                                       unsigned start) {
    constexpr unsigned BLOCKS = BLOCK / TILE * K_BLOCKS;
    const bool of_remainder = blockIdx.x < BLOCKS;
    const unsigned block = of_remainder ? blockIdx.x : blockIdx.x - BLOCKS;
    const unsigned line0 = block / K_BLOCKS * TILE, k0 = block % K_BLOCKS * BK;
    uint4* target = (of_remainder ? l_parts : u_parts) + (size_t)block * PARTS_BLOCK;
    const float* right = lu + (size_t)start * ld + start + BLOCK;
    split_block<TILE>(of_remainder ? remainder : right, of_remainder ? BLOCK : ld, target,
                      of_remainder, line0, k0, of_remainder ? BLOCK : ld - start - BLOCK, BLOCK);
}

// Turns the strip's rows into rows of U, in so many tile columns.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS, 1) subtract_rows(
    float* lu, const uint4* l_parts, const uint4* u_parts, unsigned tile_columns, unsigned ld,
    unsigned start) {
    extern __shared__ __align__(1024) uint4 ring[];  // the swizzle counts from multiples of 1024
    // A strip higher up, so that the rows below it are the strip's own.
    subtract_from(Rectangle{BLOCK / TILE, 0, tile_columns}, lu - (size_t)BLOCK * ld, l_parts,
                  u_parts, ring, ld, start);
}
