// /// cudalab
// summary  = "Rows at any alignment: many loads in flight, and only whole sectors are stored"
// order    = 5
// ladder   = "rows at any alignment"
// adds     = "stores that start at whole sectors"
// dispatch = "sector_tiles"
// defines  = { TILE_WORDS = 64, TILE_ROWS = 64, WARPS = 16 }
// ///
//
// out[c][r] = in[r][c]. Memory moves in sectors of 32 bytes, S elements. Where the number of rows
// is not a multiple of S, rows of `out` begin at different places in sectors, and tiles ending at
// the same row in all columns store parts of sectors on either side: two requests, of two blocks,
// for the same 32 bytes. Here a block begins each row of `out` at its own sector, up to
// S - 1 elements before the tile's first row. The elements for that are in S more rows of `in`,
// which the block above reads as well: reading a sector twice costs less than storing it in parts,
// as the second read finds it in the L2 cache.
//
// Loads are single elements, so no row needs to be aligned. A thread requests all of its elements
// before it uses the first: 10 loads of 4 bytes in flight instead of tiled_padded's four.
// Limits: where all rows begin at multiples of 16 bytes, tiled_vectorized needs no second reads.
//
// Macros from outside: T (element type), TILE_WORDS, TILE_ROWS, WARPS.

constexpr unsigned SECTOR_ITEMS = 32 / sizeof(T);
constexpr unsigned TILE_COLS = TILE_WORDS * 4 / sizeof(T);
constexpr unsigned ROWS_READ = TILE_ROWS + SECTOR_ITEMS;
constexpr unsigned ROWS_PER_WARP = (ROWS_READ + WARPS - 1) / WARPS;
constexpr unsigned LOADS_PER_ROW = TILE_COLS / 32;

static_assert(TILE_COLS % 32 == 0 && TILE_ROWS % 32 == 0, "a warp moves 32 neighbours");

// Tiles are numbered row by row: a grid of one dimension may have 2^31 - 1 blocks, the others only
// 65 535. size_t: a matrix may have more than 2^32 elements.
extern "C" __global__ void __launch_bounds__(32 * WARPS) transpose(const T* in, T* out,
                                                                   unsigned rows, unsigned cols) {
    __shared__ T tile[ROWS_READ][TILE_COLS + 1];  // a padding column: no bank conflicts
    const unsigned tiles_across = (cols + TILE_COLS - 1) / TILE_COLS;
    const unsigned first_row = blockIdx.x / tiles_across * TILE_ROWS;
    const unsigned first_col = blockIdx.x % tiles_across * TILE_COLS;
    const unsigned lane = threadIdx.x, warp = threadIdx.y;

    // Row k of the tile is row first_row + k - SECTOR_ITEMS of `in`; before row 0 that is a huge
    // number. Row 0 of the tile would only be needed if a sector could begin a whole one earlier.
    T loaded[ROWS_PER_WARP][LOADS_PER_ROW];
#pragma unroll
    for (unsigned i = 0; i < ROWS_PER_WARP; ++i)
#pragma unroll
        for (unsigned s = 0; s < LOADS_PER_ROW; ++s) {
            const unsigned k = i * WARPS + warp, r = first_row + k - SECTOR_ITEMS;
            const unsigned c = first_col + s * 32 + lane;
            if (k < ROWS_READ && r < rows && c < cols) loaded[i][s] = in[(size_t)r * cols + c];
        }
#pragma unroll
    for (unsigned i = 0; i < ROWS_PER_WARP; ++i)
#pragma unroll
        for (unsigned s = 0; s < LOADS_PER_ROW; ++s) {
            const unsigned k = i * WARPS + warp;
            if (k < ROWS_READ) tile[k][s * 32 + lane] = loaded[i][s];
        }
    __syncthreads();  // rows of `out` come from all warps of the block

    // `back` elements before the tile's first row is where a sector of this row of `out` begins.
#pragma unroll 4
    for (unsigned j = warp; j < TILE_COLS && first_col + j < cols; j += WARPS) {
        const size_t row_of_out = (size_t)(first_col + j) * rows;
        const unsigned back = (unsigned)(row_of_out + first_row) % SECTOR_ITEMS;
#pragma unroll
        for (unsigned s = 0; s < TILE_ROWS; s += 32) {
            const unsigned r = first_row - back + s + lane;
            if (r < rows) out[row_of_out + r] = tile[SECTOR_ITEMS - back + s + lane][j];
        }
    }
}
