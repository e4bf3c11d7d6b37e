// /// cudalab
// summary  = "Repair: what was there before"
// order    = 100
// dispatch = "tiles"
// defines  = { TILE_DIM = 16, BLOCK_ROWS = 16 }
// ///

extern "C" __global__ void transpose(const T* in, T* out, unsigned rows, unsigned cols) {
    const unsigned tiles_across = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned r = blockIdx.x / tiles_across * TILE_DIM + threadIdx.y;
    const unsigned c = blockIdx.x % tiles_across * TILE_DIM + threadIdx.x;
    if (r < rows - 1 && c < cols) out[(size_t)c * rows + r] = in[(size_t)r * cols + c];
}
