// /// cudalab
// summary  = "Each thread transposes its own tile: no cooperation, no coalescing"
// order    = 6
// ladder   = "a core's loop"
// adds     = "a tile per thread"
// dispatch = "tiles"
// default  = ["cpu"]
// defines  = { TILE_DIM = 32, BLOCK_ROWS = 1, THREADS_ACROSS = 1 }
// ///
//
// out[c][r] = in[r][c], tile by tile, a thread per tile: the 32 cache lines that a tile's rows
// occupy and the 32 of its columns stay in a core's first-level cache until all their elements have
// been used. There is no barrier.
//
// That suits a CPU's cache: a loop over whole rows would write `cols` lines before it came back to
// the first.
// On a GPU it is slow: the lanes of a warp would work on 32 tiles far apart, and here a block has
// only one thread.
//
// Macros from outside: T (element type), TILE_DIM.

extern "C" __global__ void transpose(const T* in, T* out, unsigned rows, unsigned cols) {
    const unsigned tiles_across = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned first_row = blockIdx.x / tiles_across * TILE_DIM;
    const unsigned first_col = blockIdx.x % tiles_across * TILE_DIM;
    const unsigned height = rows - first_row < TILE_DIM ? rows - first_row : TILE_DIM;
    const unsigned width = cols - first_col < TILE_DIM ? cols - first_col : TILE_DIM;

    // size_t: a matrix may have more than 2^32 elements.
    const T* const from = in + (size_t)first_row * cols + first_col;
    T* const to = out + (size_t)first_col * rows + first_row;
    for (unsigned c = 0; c < width; ++c)
        for (unsigned r = 0; r < height; ++r) to[(size_t)c * rows + r] = from[(size_t)r * cols + c];
}
