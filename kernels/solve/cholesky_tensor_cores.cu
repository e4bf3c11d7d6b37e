// /// cudalab
// summary  = "Root-free Cholesky factors: half of the matrix, updated on tensor cores"
// order    = 8.9
// ladder   = "direct methods"
// adds     = "no pivots, and half of the work, for definite matrices"
// dispatch = "cholesky"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
// applies  = { dtype = ["float32"] }
//
// [defines]
// PANEL                 = 32      # columns that one launch eliminates
// BLOCK                 = 256     # columns after which the rest is updated
// MAX_THREADS_PER_BLOCK = 512     # of choose_pivots, which is not launched
// ROWS_OF_THREAD        = 2       # of choose_pivots
// TILE                  = 128     # rows and columns of a tile of subtract_below
// BK                    = 32      # numbers along k of a stage
// STAGES                = 4
// SPLIT_THREADS         = 256
// UPDATE_THREADS        = 384     # of subtract_below
// SHARED_BYTES          = 196672  # STAGES * 2 * TILE * 3 * 64 + 2 * STAGES * 8
// ///
//
// A definite matrix needs no pivots: the factors stay small in any order. So the chain of elections
// that `lu_look_ahead` hides does not exist here. And as A is symmetric, U is D L^T, where D is the
// diagonal of U: A = L D L^T, Cholesky's factors without their square roots. Only tiles on and
// below the diagonal are updated:
//   find_diagonal_scales, load_symmetric   A with rows and columns scaled alike, diagonal 1 to 4
//   factor_corner    the triangle of a panel, and its rows of U up to the end of the strip
//   eliminate_rows   all rows below, as in `lu_blocked_panel`
//   mirror_strip     the strip's rows of U right of it: its columns of L, transposed, times D
//   split_strip      both as three bfloat16 parts each
//   subtract_below   the tiles on and below the diagonal minus their product
//   substitute_lower_chain, substitute_upper_chain   with L and U, both of which are there
//
// A pivot whose sign differs from that of A's first element shows that A is not definite, and
// `lu_look_ahead` takes over. It also does if A is not symmetric, which the residual shows.
//
// Macros from outside: T (float), PANEL, BLOCK, MAX_THREADS_PER_BLOCK, ROWS_OF_THREAD, TILE, BK,
// STAGES, SPLIT_THREADS, UPDATE_THREADS, SHARED_BYTES.
#include "solve/lu_tensor_cores.cu"

constexpr unsigned MIRROR_ROWS = 8;       // threads of a block of mirror_strip, along rows
constexpr unsigned GROUP = BLOCK / TILE;  // tile rows of a strip
constexpr unsigned CORNER_THREADS = 256;  // of factor_corner

static_assert(BLOCK % TILE == 0 && BAND % GROUP == 0, "strips and bands are whole tile rows");

// One thread per row of the matrix to factorize: the power of two whose square brings the diagonal
// element's size to 1 up to 4; 1 from n on. row_of = the identity.
extern "C" __global__ void find_diagonal_scales(const T* a, T* scales, unsigned* row_of, unsigned n,
                                                unsigned ld) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ld) return;
    const T element = i < n ? a[(size_t)i * n + i] : (T)1;
    int exponent = 1;  // |element| = m 2^exponent, 1/2 <= m < 1
    if (element != 0 && element - element == 0) frexp(element, &exponent);
    scales[i] = ldexp((T)1, -((exponent - 1) >> 1));
    row_of[i] = i;
}

// One block per row: work = A, scaled; columns and rows from n on are those of the identity, with
// the sign of A's first element, up to `padded` and zero beyond.
extern "C" __global__ void load_symmetric(const T* a, const T* scales, T* work, unsigned n,
                                          unsigned padded, unsigned ld) {
    const unsigned row = blockIdx.x;
    const T scale = scales[row], one = a[0] < 0 ? (T)-1 : (T)1;
    for (unsigned j = threadIdx.x; j < ld; j += blockDim.x) {
        T value = row == j && row < padded ? one : (T)0;
        if (row < n && j < n) value = a[(size_t)row * n + j] * scale * scales[j];
        work[(size_t)row * ld + j] = value;
    }
}

// One block: L and U of the panel's triangle, in a warp's registers, a row for each lane; then its
// rows of U up to strip_end, a column for each thread. status[0]: 0, or the number (from 1) of the
// first column whose pivot, times the sign of A's first element, is not above `threshold`, negative
// if the pivot is not finite; status[1]: that pivot.
extern "C" __global__ void __launch_bounds__(CORNER_THREADS) factor_corner(
    T* lu, double* status, double threshold, unsigned ld, unsigned start, unsigned strip_end) {
    __shared__ __align__(16) T factors[PANEL][PANEL + 4];  // [column][row]
    T* corner = lu + (size_t)start * ld + start;
    if (threadIdx.x < 32) {
        const unsigned lane = threadIdx.x;
        const T sign = lu[0] < 0 ? (T)-1 : (T)1;
        __align__(16) T row[PANEL];
#pragma unroll
        for (unsigned i = 0; i < PANEL / 4; ++i)
            reinterpret_cast<Four*>(row)[i] =
                reinterpret_cast<const Four*>(corner + (size_t)lane * ld)[i];
        T own = 0;  // this lane's pivot
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) {
            const T pivot = __shfl_sync(FULL, row[k], k);
            if (lane == k) own = pivot;
            const T multiplier = lane > k ? row[k] / pivot : (T)0;
            if (lane > k) row[k] = multiplier;
#pragma unroll
            for (unsigned j = k + 1; j < PANEL; ++j)
                row[j] -= multiplier * __shfl_sync(FULL, row[j], k);
        }
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) factors[k][lane] = row[k];
        const bool finite = own - own == 0;
        const unsigned bad = __ballot_sync(FULL, !(finite && sign * own > threshold));
        if (bad && lane == __ffs(bad) - 1 && status[0] == 0) {
            const double number = (double)start + lane + 1;
            status[0] = finite ? number : -number;
            status[1] = own;
        }
    }
    __syncthreads();  // the triangle is complete
    for (unsigned c = threadIdx.x; c < strip_end - start; c += CORNER_THREADS) {
        __syncwarp();  // or the compiler reads all of L before the loop
        T u[PANEL];
        if (c < PANEL) {
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) u[k] = factors[c][k];
        } else {
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) u[k] = corner[(size_t)k * ld + c];
            solve_upper(factors, u);
        }
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) corner[(size_t)k * ld + c] = u[k];
    }
}

// Writes the strip's rows of U right of it, 32 columns in blockIdx.x, 32 rows in blockIdx.y.
extern "C" __global__ void __launch_bounds__(32 * MIRROR_ROWS) mirror_strip(T* lu, unsigned ld,
                                                                            unsigned start) {
    __shared__ T tile[32][33];  // a word of padding: a warp reads a column
    const unsigned k0 = start + blockIdx.y * 32, line0 = start + BLOCK + blockIdx.x * 32;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned i = warp; i < 32; i += MIRROR_ROWS)
        tile[i][lane] = lu[(size_t)(line0 + i) * ld + k0 + lane];
    __syncthreads();  // the tile is complete
    for (unsigned i = warp; i < 32; i += MIRROR_ROWS) {
        const size_t row = k0 + i;
        lu[row * ld + line0 + lane] = tile[lane][i] * lu[row * ld + row];
    }
}

// The tiles on and below the diagonal of so many tile rows, and those above it that belong to the
// corner of a strip.
struct Triangle {
    unsigned rows;

    __device__ unsigned band(unsigned top) const { return min(rows - top, BAND); }

    // The number of tiles of the band that begins at tile row `top`, right of its first columns,
    // which are all below the diagonal.
    __device__ unsigned corner(unsigned top) const {
        const unsigned height = band(top), groups = height / GROUP, rest = height % GROUP;
        return GROUP * (groups * height - GROUP * (groups * (groups - 1) / 2)) + rest * rest;
    }

    __device__ unsigned count() const {
        unsigned sum = 0;
        for (unsigned top = 0; top < rows; top += BAND) sum += top * band(top) + corner(top);
        return sum;
    }

    // In bands of BAND tile rows, column by column, as in Rectangle.
    __device__ uint2 at(unsigned number) const {
        unsigned top = 0;
        while (number >= top * band(top) + corner(top)) {
            number -= top * band(top) + corner(top);
            top += BAND;
        }
        const unsigned height = band(top);
        if (number < top * height) return make_uint2(top + number % height, number / height);
        number -= top * height;
        unsigned column = 0, first = 0;
        while (number >= height - first) {
            number -= height - first;
            ++column;
            first = column / GROUP * GROUP;
        }
        return make_uint2(top + first + number, top + column);
    }
};

// Updates these tiles below the strip.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS, 1) subtract_below(
    float* lu, const uint4* l_parts, const uint4* u_parts, unsigned tile_rows, unsigned ld,
    unsigned start) {
    extern __shared__ __align__(1024) uint4 ring[];  // the swizzle counts from multiples of 1024
    subtract_from(Triangle{tile_rows}, lu, l_parts, u_parts, ring, ld, start);
}
