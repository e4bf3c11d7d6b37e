// /// cudalab
// summary  = "16 bytes per load and store; small squares are transposed in registers"
// order    = 4
// adds     = "16 bytes per access, small squares transposed in registers"
// dispatch = "vector_tiles"
// default  = ["cuda"]
// defines  = { THREADS_ACROSS = 16, MIN_BLOCKS = 4 }
// ///
//
// out[c][r] = in[r][c]. A vector is 16 bytes: V elements. A thread loads V vectors from V rows
// below each other, a V x V square, turns it in registers, and puts the V rows of the turned square
// into shared memory; then it takes V vectors from there and stores them. A warp has 32 * V vectors
// in flight instead of four times 32 elements, and every instruction moves four times as much.
//
// No padding: rows of the tile are whole vectors, so a padding column would break them. Instead the
// vectors of a row are permuted (swizzled): vector u of row r lies at u ^ (r / V). Eight lanes move
// at a time, 128 bytes, all banks once. They store to rows V apart in one vector column: r / V
// differs, so do the places. They load neighbouring vectors of one row: a permutation of these.
//
// Rows that do not begin at a multiple of 16 bytes (the number of columns, or of rows for `out`, is
// no multiple of V), and tiles at the edge, move element by element.
//
// Macros from outside: T (element type), THREADS_ACROSS, MIN_BLOCKS.

constexpr unsigned V = 16 / sizeof(T);
constexpr unsigned TILE_DIM = THREADS_ACROSS * V;

static_assert((THREADS_ACROSS & (THREADS_ACROSS - 1)) == 0, "places are swizzled by bits");

struct __align__(16) Vector {
    T items[V];
};

// The V elements from `from` on, of which `left` are inside the matrix.
__device__ inline Vector load(const T* from, unsigned left, bool aligned) {
    if (aligned && left >= V) return *reinterpret_cast<const Vector*>(from);
    Vector vector = {};
#pragma unroll
    for (unsigned k = 0; k < V; ++k)
        if (k < left) vector.items[k] = from[k];
    return vector;
}
__device__ inline void store(T* to, const Vector& vector, unsigned left, bool aligned) {
    if (aligned && left >= V) {
        *reinterpret_cast<Vector*>(to) = vector;
        return;
    }
#pragma unroll
    for (unsigned k = 0; k < V; ++k)
        if (k < left) to[k] = vector.items[k];
}
// How many of `size` elements lie at `first` or after it.
__device__ inline unsigned left_of(unsigned first, unsigned size) {
    return first < size ? size - first : 0;
}

// Tiles are numbered row by row: a grid of one dimension may have 2^31 - 1 blocks, the others only
// 65 535. size_t: a matrix may have more than 2^32 elements.
extern "C" __global__ void __launch_bounds__(THREADS_ACROSS* THREADS_ACROSS, MIN_BLOCKS) transpose(
    const T* in, T* out, unsigned rows, unsigned cols) {
    __shared__ Vector tile[TILE_DIM][THREADS_ACROSS];
    const unsigned tiles_across = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned first_row = blockIdx.x / tiles_across * TILE_DIM;
    const unsigned first_col = blockIdx.x % tiles_across * TILE_DIM;
    const unsigned across = threadIdx.x, down = threadIdx.y;

    const unsigned from_row = first_row + down * V, from_col = first_col + across * V;
    Vector square[V];
#pragma unroll
    for (unsigned k = 0; k < V; ++k) {
        const unsigned left = from_row + k < rows ? left_of(from_col, cols) : 0;
        square[k] = load(in + (size_t)(from_row + k) * cols + from_col, left, cols % V == 0);
    }
#pragma unroll
    for (unsigned k = 0; k < V; ++k) {
        Vector turned;
#pragma unroll
        for (unsigned j = 0; j < V; ++j) turned.items[j] = square[j].items[k];
        tile[across * V + k][down ^ across] = turned;
    }
    __syncthreads();  // rows of `out` come from all warps of the block

    const unsigned to_row = first_col + down * V, to_col = first_row + across * V;
#pragma unroll
    for (unsigned k = 0; k < V; ++k) {
        const unsigned left = to_row + k < cols ? left_of(to_col, rows) : 0;
        store(out + (size_t)(to_row + k) * rows + to_col, tile[down * V + k][across ^ down], left,
              rows % V == 0);
    }
}
