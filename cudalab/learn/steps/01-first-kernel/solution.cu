// /// cudalab
// summary  = "Which element is mine?"
// order    = 100
// dispatch = "tiles"
// defines  = { TILE_DIM = 32, BLOCK_ROWS = 8 }
// ///

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
