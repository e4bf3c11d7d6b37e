// /// cudalab
// summary  = "Reads along rows, writes down columns: only the reads are coalesced"
// order    = 1
// dispatch = "tiles"
// defines  = { TILE_DIM = 32, BLOCK_ROWS = 8 }
// ///
//
// out[c][r] = in[r][c]. A block of 32 x 8 threads takes a tile of 32 x 32 elements, a thread four
// of them, 8 rows apart. A warp reads 32 neighbours of a row, which fill 4 sectors of 32 bytes (8
// if elements have 8 bytes), and writes them into a column: 32 places a whole row of `out` apart,
// each in a sector of its own.
// Limits: each of these sectors is written for the sake of one element; whether the rest of it is
// used depends on the L2 cache keeping the sector until its neighbours are written.
//
// Macros from outside: T (element type), TILE_DIM, BLOCK_ROWS.

// Tiles are numbered row by row: a grid of one dimension may have 2^31 - 1 blocks, the others only
// 65 535. size_t: a matrix may have more than 2^32 elements.
extern "C" __global__ void __launch_bounds__(TILE_DIM* BLOCK_ROWS) transpose(const T* in, T* out,
                                                                             unsigned rows,
                                                                             unsigned cols) {
    const unsigned tiles_across = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned first_row = blockIdx.x / tiles_across * TILE_DIM;
    const unsigned c = blockIdx.x % tiles_across * TILE_DIM + threadIdx.x;
#pragma unroll
    for (unsigned k = threadIdx.y; k < TILE_DIM; k += BLOCK_ROWS) {
        const unsigned r = first_row + k;
        if (r < rows && c < cols) out[(size_t)c * rows + r] = in[(size_t)r * cols + c];
    }
}

// Source: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA. NVIDIA, 2009.
