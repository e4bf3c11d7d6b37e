// /// cudalab
// summary  = "Tiles of 32 rows in shared memory: coalesced loads, conflicts in every column"
// order    = 12
// ladder   = "rows"
// adds     = "tiles in shared memory: coalesced loads"
// dispatch = "tiled_rows"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 32 }
// applies  = { along = ["rows"] }
// ///
//
// A block takes 32 rows and goes through them in tiles of 32 columns. Warps load the tile row by
// row, lanes side by side, so global memory is read in whole sectors; then lane r combines
// items of row r of the tile, each warp its share of the columns. The warps' values of a row are
// combined at the end.
//
// Compared with rows_global: every byte of a sector is used, and eight threads share a row.
// Limits: lanes that go along rows read the tile by columns. A row is 32 words long, so all 32
// lanes hit one bank: a 32-way conflict for each word (16-way, twice as many words, for 8-byte
// items). nvcc joins a thread's four reads into one of 16 bytes, of which a quarter of a warp is
// served at a time, 8 lanes on the same four banks: 32 wavefronts for four words, where 4 would do.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ROWS_PER_BLOCK.
#include "reduce/parts/reduce_ops.cuh"

constexpr unsigned TILE = 32;                         // rows and columns of a tile
constexpr unsigned PARTS = THREADS_PER_BLOCK / TILE;  // threads that share a row of the tile
constexpr unsigned PADDING = 0;

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

        // Lanes read one column: words 32 apart, all in one bank.
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
