// /// cudalab
// summary  = "The same tiles with an unused column: no conflicts"
// order    = 13
// ladder   = "rows"
// adds     = "an unused column: no bank conflicts"
// dispatch = "tiled_rows"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 32 }
// applies  = { along = ["rows"] }
// ///
//
// Like rows_shared, with rows of the tile one item longer than necessary: the items of a column are
// then 33 words apart and lie in 32 different banks. The unused column costs 128 bytes.
//
// Limits: the tile costs two barriers for every 32 columns, and with one block per 32 rows a matrix
// needs thousands of rows to fill a GPU.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ROWS_PER_BLOCK.
#include "reduce/parts/reduce_ops.cuh"

constexpr unsigned TILE = 32;                         // rows and columns of a tile
constexpr unsigned PARTS = THREADS_PER_BLOCK / TILE;  // threads that share a row of the tile
constexpr unsigned PADDING = 1;

static_assert(ROWS_PER_BLOCK == TILE, "a block takes the rows of a tile");
static_assert(TILE % PARTS == 0, "each part of a tile's row has as many columns");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_rows(const T* x, T* out,
                                                                            unsigned rows,
                                                                            unsigned cols,
                                                                            unsigned count) {
    __shared__ T tile[TILE][TILE + PADDING];
    __shared__ T parts[PARTS][TILE];
    const unsigned lane = threadIdx.x % TILE, warp = threadIdx.x / TILE;
    const unsigned first_row = blockIdx.x * TILE;

    T value = identity();  // of row `lane` of the tile, columns of part `warp`
    for (unsigned first_col = 0; first_col < cols; first_col += TILE) {
        // A warp loads rows of the tile: its lanes read neighbours. The matrix ends anywhere.
        const unsigned col = first_col + lane;
        for (unsigned r = warp; r < TILE; r += PARTS) {
            const unsigned row = first_row + r;
            const bool inside = row < rows && col < cols;
            tile[r][lane] = inside ? load(x, x, (size_t)row * cols + col, 0) : identity();
        }
        __syncthreads();  // the tile is complete

        // Lanes read one column: words 33 apart, each in its own bank.
        for (unsigned k = 0; k < TILE / PARTS; ++k)
            value = combine(value, tile[lane][warp * (TILE / PARTS) + k]);
        __syncthreads();  // the tile has been read: the next one may take its place
    }

    parts[warp][lane] = value;
    __syncthreads();  // all parts are in place
    if (warp == 0 && first_row + lane < rows) {
        value = identity();
        for (unsigned part = 0; part < PARTS; ++part) value = combine(value, parts[part][lane]);
        out[first_row + lane] = finish(value, count);
    }
}

// Source: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA. NVIDIA, 2009.
