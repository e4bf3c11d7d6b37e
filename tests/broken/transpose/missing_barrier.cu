// /// cudalab
// summary  = "A tile is read by columns while other warps still write its rows"
// order    = 101
// dispatch = "tiles"
// defines  = { TILE_DIM = 32, BLOCK_ROWS = 32 }
// ///
//
// /// expect
// kind    = "race"
// missing = "__syncthreads"
// space   = "shared"
// buffer  = "tile"
// ///
extern "C" __global__ void transpose(const T* in, T* out, unsigned rows, unsigned cols) {
    __shared__ T tile[TILE_DIM][TILE_DIM + 1];
    const unsigned tiles_across = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned first_row = blockIdx.x / tiles_across * TILE_DIM;
    const unsigned first_col = blockIdx.x % tiles_across * TILE_DIM;
    const unsigned x = threadIdx.x, y = threadIdx.y;
    if (first_row + y < rows && first_col + x < cols)
        tile[y][x] = in[(size_t)(first_row + y) * cols + first_col + x];  // (1)
    if (first_row + x < rows && first_col + y < cols)
        out[(size_t)(first_col + y) * rows + first_row + x] = tile[x][y];  // (2)
}
