// /// cudalab
// summary  = "Rows that begin anywhere: 16 bytes a load and a store all the same, each row shifted"
// order    = 6
// dispatch = "shifted_tiles"
// defines  = { VECTORS_ACROSS = 16, VECTORS_DOWN = 16, THREADS = 256, LANES_DOWN = 8 }
// ///
//
// out[c][r] = in[r][c]. As tiled_sectors, each row of `out` begins at a sector of its own and whole
// sectors are stored, with vectors of V elements (16 bytes) in place of single elements. Loads are
// vectors too: those of a row of `in` that hold the tile's columns, from the one in which the
// first of them lies on. A row has one vector more for that, and its elements lie up to V - 1
// places to the right: how far follows from where the row begins, and is added when they are read.
//
// In shared memory a tile's row is stored as it was loaded, in vectors. A thread reads V elements
// of a column from V rows below each other, single words, and stores them as a vector. Eight lanes
// do that for rows V apart: a vector of padding after each V rows puts them 4 * V * W + 4 words
// apart (W vectors in a row), into different banks. Lanes of other columns may meet them there,
// where the matrix has an odd number of rows and of columns.
//
// Limits: some rows and columns of each tile are read twice, from the cache.

constexpr unsigned V = 16 / sizeof(T);
constexpr unsigned SECTOR_ITEMS = 2 * V;
constexpr unsigned TILE_COLS = VECTORS_ACROSS * V, TILE_ROWS = VECTORS_DOWN * V;
constexpr unsigned ROWS_READ = TILE_ROWS + SECTOR_ITEMS;
constexpr unsigned ROW_VECTORS = VECTORS_ACROSS + 1;  // one more: a row begins inside a vector
constexpr unsigned VECTORS_READ = ROWS_READ * ROW_VECTORS;
constexpr unsigned LOADS = (VECTORS_READ + THREADS - 1) / THREADS;
constexpr unsigned COLS_AT_ONCE = THREADS / LANES_DOWN;

static_assert(VECTORS_DOWN % LANES_DOWN == 0 && TILE_COLS % COLS_AT_ONCE == 0, "whole steps");

struct __align__(16) Vector {
    T items[V];
};

// Where row k of the tile begins in shared memory, in vectors.
__device__ inline unsigned row_place(unsigned k) {
    return k * ROW_VECTORS + k / V;
}

// Tiles are numbered row by row: a grid of one dimension may have 2^31 - 1 blocks, the others only
// 65 535. size_t: a matrix may have more than 2^32 elements.
extern "C" __global__ void __launch_bounds__(THREADS) transpose(const T* in, T* out, unsigned rows,
                                                                unsigned cols) {
    __shared__ Vector tile[VECTORS_READ + ROWS_READ / V];
    const T* const words = tile[0].items;
    const unsigned tiles_across = (cols + TILE_COLS - 1) / TILE_COLS;
    const unsigned first_row = blockIdx.x / tiles_across * TILE_ROWS;
    const unsigned first_col = blockIdx.x % tiles_across * TILE_COLS;
    const size_t total = (size_t)rows * cols;

    // Row k of the tile is row first_row + k - SECTOR_ITEMS of `in`; before row 0 that is a huge
    // number. Vectors are aligned in the whole array, so one may hold the end of a row and the
    // beginning of the next; only the array's last may be incomplete.
    Vector loaded[LOADS];
#pragma unroll
    for (unsigned i = 0; i < LOADS; ++i) {
        const unsigned place = i * THREADS + threadIdx.x;
        const unsigned k = place / ROW_VECTORS, u = place % ROW_VECTORS;
        const unsigned r = first_row + k - SECTOR_ITEMS;
        const size_t vector = ((size_t)r * cols + first_col) / V + u;
        loaded[i] = {};
        if (place < VECTORS_READ && r < rows) {
            if ((vector + 1) * V <= total) {
                loaded[i] = reinterpret_cast<const Vector*>(in)[vector];
            } else {
#pragma unroll
                for (unsigned e = 0; e + 1 < V; ++e)
                    if (vector * V + e < total) loaded[i].items[e] = in[vector * V + e];
            }
        }
    }
#pragma unroll
    for (unsigned i = 0; i < LOADS; ++i) {
        const unsigned place = i * THREADS + threadIdx.x;
        const unsigned k = place / ROW_VECTORS, u = place % ROW_VECTORS;
        if (place < VECTORS_READ) tile[row_place(k) + u] = loaded[i];
    }
    __syncthreads();  // rows of `out` come from all warps of the block

    // `back` elements before the tile's first row is where a sector of this row of `out` begins.
#pragma unroll
    for (unsigned step = 0; step < TILE_COLS; step += COLS_AT_ONCE) {
        const unsigned j = step + threadIdx.x / LANES_DOWN, c = first_col + j;
        if (c >= cols) break;
        const size_t row_of_out = (size_t)c * rows;
        const unsigned back = (unsigned)(row_of_out + first_row) % SECTOR_ITEMS;
#pragma unroll
        for (unsigned first = 0; first < VECTORS_DOWN; first += LANES_DOWN) {
            const unsigned down = first + threadIdx.x % LANES_DOWN;
            const unsigned r = first_row - back + down * V, k = SECTOR_ITEMS - back + down * V;
            Vector vector;
#pragma unroll
            for (unsigned e = 0; e < V; ++e) {
                const unsigned shift = ((r + e) * cols + first_col) % V;
                vector.items[e] = words[row_place(k + e) * V + shift + j];
            }
            if (r < rows && rows - r >= V) {
                *reinterpret_cast<Vector*>(out + row_of_out + r) = vector;
            } else {  // before the first row r is a huge number, and r + e may be 0 again
#pragma unroll
                for (unsigned e = 0; e < V; ++e)
                    if (r + e < rows) out[row_of_out + (r + e)] = vector.items[e];
            }
        }
    }
}
