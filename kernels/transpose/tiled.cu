// /// cudalab
// summary  = "Tiles in shared memory: reads and writes are coalesced, but columns share a bank"
// order    = 2
// adds     = "tiles in shared memory: writes are coalesced, too"
// dispatch = "tiles"
// defines  = { TILE_DIM = 32, BLOCK_ROWS = 8 }
// ///
//
// out[c][r] = in[r][c]. The transposition happens in shared memory, where a column costs no extra
// sectors: a block of 32 x 8 threads reads a tile of 32 x 32 elements row by row, waits, and
// writes it row by row of `out`. Both sides of global memory are coalesced.
//
// Limits: the tile is [32][32]; elements of a column lie 32 words apart, all in one bank, so that a
// warp's read of a column is a 32-way bank conflict (16-way where elements have 8 bytes, twice).
// tiled_padded differs in TILE_WIDTH alone.
//
// Macros from outside: T (element type), TILE_DIM, BLOCK_ROWS.

constexpr unsigned TILE_WIDTH = TILE_DIM;

// Tiles are numbered row by row: a grid of one dimension may have 2^31 - 1 blocks, the others only
// 65 535. size_t: a matrix may have more than 2^32 elements.
extern "C" __global__ void __launch_bounds__(TILE_DIM* BLOCK_ROWS) transpose(const T* in, T* out,
                                                                             unsigned rows,
                                                                             unsigned cols) {
    __shared__ T tile[TILE_DIM][TILE_WIDTH];
    const unsigned tiles_across = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned first_row = blockIdx.x / tiles_across * TILE_DIM;
    const unsigned first_col = blockIdx.x % tiles_across * TILE_DIM;

    // A warp reads part of a row of `in` ...
#pragma unroll
    for (unsigned k = threadIdx.y; k < TILE_DIM; k += BLOCK_ROWS) {
        const unsigned r = first_row + k, c = first_col + threadIdx.x;
        if (r < rows && c < cols) tile[k][threadIdx.x] = in[(size_t)r * cols + c];
    }
    __syncthreads();  // columns are read by warps other than those that wrote the rows
    // ... and writes part of a row of `out`, a column of the tile.
#pragma unroll
    for (unsigned k = threadIdx.y; k < TILE_DIM; k += BLOCK_ROWS) {
        const unsigned r = first_row + threadIdx.x, c = first_col + k;
        if (r < rows && c < cols) out[(size_t)c * rows + r] = tile[threadIdx.x][k];
    }
}

// Source: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA. NVIDIA, 2009.
