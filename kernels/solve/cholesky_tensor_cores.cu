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
// PANEL                 = 32      # columns that a strip is factored by
// BLOCK                 = 256     # columns after which the rest is updated
// TILE                  = 128     # rows and columns of a tile of subtract_below
// BK                    = 64      # numbers along k that tensor cores sum
// STAGES                = 6       # of 32 of them
// SPLIT_THREADS         = 256
// UPDATE_THREADS        = 384     # of subtract_below
// SHARED_BYTES          = 196704  # STAGES * 2 * TILE * 2 * 64 + 2 * STAGES * 8
// DIAGONAL_THREADS      = 512     # of factor_diagonal
// BELOW_THREADS         = 256     # of eliminate_below
// BELOW_ROWS            = 64      # of a block of it
// ///
//
// A definite matrix needs no pivots: the factors stay small in any order. So the chain of elections
// that `lu_look_ahead` hides does not exist here. And as A is symmetric, U is D L^T, where D is the
// diagonal of U: A = L D L^T, Cholesky's factors without their square roots. Only tiles on and
// below the diagonal are updated:
//   find_diagonal_scales, load_symmetric   A with rows and columns scaled alike, diagonal 1 to 4
//   factor_diagonal  L and U of a strip's own rows and columns, in one block's shared memory
//   eliminate_below  the strip's columns of L in all rows below, and its rows of U: the same
//                    transposed, times D
//   split_strip      both as two scaled fp16 parts each
//   subtract_products   the next strip's own rows and columns minus their product, so that
//                       factor_diagonal can begin with them, while
//   subtract_below   updates all other tiles on and below the diagonal
//   substitute_lower_chain, substitute_upper_chain   with L and U, both of which are there
//
// A pivot whose sign differs from that of A's first element shows that A is not definite, and
// `lu_look_ahead` takes over. It also does if A is not symmetric, which the residual shows.
//
// A default for definite systems, it is built of more than the rungs before it for the reason that
// `lu_tensor_cores` names.
//
// Limits: one block factors a strip's triangle beside the update, which in small matrices is soon
// done and waits for it: `cholesky_narrow_strips`.
//
// Macros from outside: T (float), PANEL, BLOCK, TILE, BK, STAGES, SPLIT_THREADS, UPDATE_THREADS,
// SHARED_BYTES, DIAGONAL_THREADS, BELOW_THREADS, BELOW_ROWS.
#include "solve/parts/reciprocal.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/solve_upper.cuh"
#include "solve/parts/substitute_chain.cuh"
#include "solve/parts/subtract_products.cuh"

constexpr unsigned FULL = 0xffffffffu;
constexpr unsigned GROUP = BLOCK / TILE;  // tile rows of a strip
constexpr unsigned DIAGONAL_WARPS = DIAGONAL_THREADS / 32;
constexpr unsigned CORNER_WARP = BLOCK / PANEL;  // the first one that has no rows below a triangle
constexpr unsigned TILES_OF_STRIP = BLOCK / PANEL * (BLOCK / PANEL + 1) / 2;

static_assert(CORNER_WARP < DIAGONAL_WARPS, "a thread for each row, and warps that are left");
static_assert((TILES_OF_STRIP * PANEL + BLOCK) * PANEL * sizeof(T) <= SHARED_BYTES, "all tiles");
static_assert(BELOW_THREADS == 256 && BELOW_ROWS == 64, "16 x 16 threads with 4 rows, 2 columns");
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

// The steps of a panel's triangle, in a warp: a lane for each row, whose element of a column is the
// pivot times the multiplier in L. `tile` keeps these elements, which are U transposed; `lower`
// gets L, column by column, and `inverses` those of the pivots. Returns the lane's own pivot.
__device__ inline T factor_corner(T (&tile)[PANEL][PANEL], T (&lower)[PANEL][PANEL + 4],
                                  T (&inverses)[PANEL]) {
    const unsigned lane = threadIdx.x % 32;
    T row[PANEL], own = 0;
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k) row[k] = tile[k][lane];
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k) {
        const T pivot = __shfl_sync(FULL, row[k], k), inverse = reciprocal(pivot);
        const T multiplier = row[k] * inverse;
        if (lane == k) {
            own = pivot;
            inverses[k] = inverse;
        }
        lower[k][lane] = multiplier;
        tile[k][lane] = row[k];
        // By symmetry, column k has the pivot's row, too. What is right of the diagonal means
        // nothing, and no lane asks for it. The next pivot does not wait for shared memory.
        if (k + 1 < PANEL) row[k + 1] -= multiplier * __shfl_sync(FULL, row[k], k + 1);
        __syncwarp();  // the column is complete
#pragma unroll
        for (unsigned i = (k + 2) / 4; i < PANEL / 4; ++i) {
            const Four across = reinterpret_cast<const Four*>(tile[k])[i];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                if (4 * i + j > k + 1) row[4 * i + j] -= multiplier * across.v[j];
        }
    }
    return own;
}

// A warp subtracts (32 rows of L from row0 on) x (32 columns of U) from a tile; a lane has 8 rows
// and 4 columns.
__device__ inline void subtract_tile(T (&tile)[PANEL][PANEL], const T (*left)[BLOCK], unsigned row0,
                                     const T (&right)[PANEL][PANEL]) {
    const unsigned lane = threadIdx.x % 32, row = lane % 4 * 8, column = lane / 4 * 4;
    T acc[4][8] = {};
#pragma unroll 8
    for (unsigned k = 0; k < PANEL; ++k) {
        const Four low = *reinterpret_cast<const Four*>(left[k] + row0 + row);
        const Four high = *reinterpret_cast<const Four*>(left[k] + row0 + row + 4);
        const Four u = *reinterpret_cast<const Four*>(right[k] + column);
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
#pragma unroll
            for (unsigned i = 0; i < 4; ++i) {
                acc[j][i] += low.v[i] * u.v[j];
                acc[j][4 + i] += high.v[i] * u.v[j];
            }
    }
#pragma unroll
    for (unsigned j = 0; j < 4; ++j)
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            Four* place = reinterpret_cast<Four*>(tile[column + j] + row + 4 * half);
            Four element = *place;
#pragma unroll
            for (unsigned i = 0; i < 4; ++i) element.v[i] -= acc[j][4 * half + i];
            *place = element;
        }
}

// One block: L and U of the strip's own rows, in shared memory, as the tiles of U's columns: 32
// columns of A on and below the diagonal, [column][row]. Panel by panel, one warp factors the
// triangle, a thread for each row below computes that row, and warps update the tiles right of the
// panel; of these the first warp takes the next triangle's, and goes on to factor it meanwhile.
// status[0]: 0, or the number (from 1) of the first column whose pivot, times the sign of A's first
// element, is not above `threshold`, negative if the pivot is not finite; status[1]: that pivot.
extern "C" __global__ void __launch_bounds__(DIAGONAL_THREADS, 1) factor_diagonal(
    T* lu, double* status, double threshold, unsigned ld, unsigned start, unsigned strip_end) {
    extern __shared__ __align__(1024) uint4 ring[];
    __shared__ __align__(16) T corner[PANEL][PANEL + 4];  // L of a panel's triangle
    __shared__ T inverses[PANEL];
    auto tiles = reinterpret_cast<T(*)[PANEL][PANEL]>(ring);
    auto left = reinterpret_cast<T(*)[BLOCK]>(tiles + TILES_OF_STRIP);  // L of a panel, [column]
    auto tile_at = [](unsigned i, unsigned j) { return i * (i + 1) / 2 + j; };
    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
    const unsigned panels = (strip_end - start) / PANEL;
    T* origin = lu + (size_t)start * ld + start;

    // A is symmetric: the columns of its lower half are rows of its upper one.
    for (unsigned i = 0; i < panels; ++i)
        for (unsigned e = t; e < (i + 1) * PANEL * PANEL / 4; e += DIAGONAL_THREADS) {
            const unsigned k = e / (PANEL / 4), four = e % (PANEL / 4);
            const T* line = origin + (size_t)k * ld + i * PANEL;
            reinterpret_cast<Four*>(tiles[tile_at(i, k / PANEL)][k % PANEL])[four] =
                reinterpret_cast<const Four*>(line)[four];
        }
    __syncthreads();  // all tiles are there

    const T sign = lu[0] < 0 ? (T)-1 : (T)1;
    auto factor = [&](unsigned p) {
        const T own = factor_corner(tiles[tile_at(p, p)], corner, inverses);
        const bool finite = own - own == 0;
        const unsigned bad = __ballot_sync(FULL, !(finite && sign * own > threshold));
        if (bad && lane == __ffs(bad) - 1 && status[0] == 0) {
            const double number = (double)start + p * PANEL + lane + 1;
            status[0] = finite ? number : -number;
            status[1] = own;
        }
    };
    if (warp == 0) factor(0);
    for (unsigned p = 0; p < panels; ++p) {
        __syncthreads();  // the triangle is factored, and the tiles below it are updated
        T* panel = origin + (size_t)p * PANEL * ld + p * PANEL;
        const unsigned row = PANEL + t;  // of the panel
        if (row < (panels - p) * PANEL) {
            auto& tile = tiles[tile_at(p + row / PANEL, p)];
            __align__(16) T x[PANEL];
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) x[k] = tile[k][lane];
            __syncwarp();  // or the compiler reads all of L before
            solve_upper(corner, x);
            __syncwarp();
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) {
                tile[k][lane] = x[k];
                x[k] *= inverses[k];
                left[k][p * PANEL + row] = x[k];
            }
#pragma unroll
            for (unsigned i = 0; i < PANEL / 4; ++i)
                reinterpret_cast<Four*>(panel + (size_t)row * ld)[i] =
                    reinterpret_cast<Four*>(x)[i];
        } else if (warp >= CORNER_WARP) {
            auto& tile = tiles[tile_at(p, p)];
            for (unsigned k = warp - CORNER_WARP; k < PANEL; k += DIAGONAL_WARPS - CORNER_WARP)
                panel[(size_t)k * ld + lane] = lane < k ? corner[lane][k] : tile[k][lane];
        }
        __syncthreads();  // the panel is complete

        unsigned turn = 0;  // of the warps, with tiles
        for (unsigned i = p + 1; i < panels; ++i)
            for (unsigned j = p + 1; j <= i; ++j, ++turn) {
                // The first one for the first warp, the others for the others.
                const unsigned owner = turn ? 1 + (turn - 1) % (DIAGONAL_WARPS - 1) : 0;
                if (warp != owner) continue;
                subtract_tile(tiles[tile_at(i, j)], left, i * PANEL, tiles[tile_at(j, p)]);
            }
        if (warp == 0 && p + 1 < panels) {
            __syncwarp();  // the triangle's tile is updated
            factor(p + 1);
        }
    }
    // What is above the diagonal's triangles.
    for (unsigned i = 1; i < panels; ++i)
        for (unsigned e = t; e < i * PANEL * PANEL / 4; e += DIAGONAL_THREADS) {
            const unsigned k = e / (PANEL / 4), four = e % (PANEL / 4);
            T* line = origin + (size_t)k * ld + i * PANEL;
            reinterpret_cast<Four*>(line)[four] =
                reinterpret_cast<Four*>(tiles[tile_at(i, k / PANEL)][k % PANEL])[four];
        }
}

// Eliminates BELOW_ROWS rows per block below a strip: their columns of L, and the same as columns
// of U. Panel by panel, all threads subtract the product of what is known of L with the strip's
// triangle, and then a thread for each row substitutes. The triangle comes in tiles of 32 rows and
// columns, each on its way while the one before is used.
extern "C" __global__ void __launch_bounds__(BELOW_THREADS, 2) eliminate_below(T* lu, unsigned ld,
                                                                               unsigned start) {
    extern __shared__ __align__(1024) uint4 ring[];
    __shared__ __align__(16) T right[2][PANEL][PANEL];
    auto left = reinterpret_cast<T(*)[BELOW_ROWS + 4]>(ring);  // A, then L, [column][row]
    const unsigned t = threadIdx.x, tx = t % 16, ty = t / 16;
    const unsigned row0 = start + BLOCK + blockIdx.x * BELOW_ROWS;
    T* rows = lu + (size_t)row0 * ld + start;

    Four next;
    auto fetch = [&](unsigned p, unsigned q) {
        const T* line = lu + (size_t)(start + q * PANEL + t / 8) * ld + start + p * PANEL;
        if (p * PANEL < BLOCK) next = reinterpret_cast<const Four*>(line)[t % 8];
    };
    fetch(0, 0);
    // A warp reads 64 bytes of 8 rows each.
#pragma unroll 4
    for (unsigned e = t; e < BELOW_ROWS * BLOCK / 4; e += BELOW_THREADS) {
        const unsigned row = e / 32 % (BELOW_ROWS / 8) * 8 + e % 8;
        const unsigned four = e / (BELOW_ROWS * 4) * 4 + e % 32 / 8;
        const Four line = reinterpret_cast<const Four*>(rows + (size_t)row * ld)[four];
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) left[4 * four + j][row] = line.v[j];
    }

    unsigned set = 0;
    for (unsigned p = 0; p < BLOCK / PANEL; ++p) {
        T acc[2][4] = {};
        for (unsigned q = 0; q <= p; ++q) {
            set ^= 1;
            reinterpret_cast<Four*>(right[set][t / 8])[t % 8] = next;
            // The tile is complete, and so is L left of the panel. The other set was read before.
            __syncthreads();
            if (q < p) {
                fetch(p, q + 1);
#pragma unroll 8
                for (unsigned k = 0; k < PANEL; ++k) {
                    const Four l = *reinterpret_cast<const Four*>(left[q * PANEL + k] + 4 * ty);
                    const T u0 = right[set][k][2 * tx], u1 = right[set][k][2 * tx + 1];
#pragma unroll
                    for (unsigned i = 0; i < 4; ++i) {
                        acc[0][i] += l.v[i] * u0;
                        acc[1][i] += l.v[i] * u1;
                    }
                }
            } else {
                fetch(p + 1, 0);
            }
        }
        if (p > 0) {
#pragma unroll
            for (unsigned j = 0; j < 2; ++j) {
                Four* place = reinterpret_cast<Four*>(left[p * PANEL + 2 * tx + j] + 4 * ty);
                Four element = *place;
#pragma unroll
                for (unsigned i = 0; i < 4; ++i) element.v[i] -= acc[j][i];
                *place = element;
            }
            __syncthreads();  // the panel's columns are complete
        }
        if (t < BELOW_ROWS) {
            T(*column)[BELOW_ROWS + 4] = left + p * PANEL;
            T* above = lu + (size_t)(start + p * PANEL) * ld + row0 + t;  // U's column
            __align__(16) T x[PANEL];
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) x[k] = column[k][t];
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) {
                if (k % 8 == 0) __syncwarp();  // or the compiler reads the whole triangle before
                *above = x[k];
                above += ld;
                x[k] *= reciprocal(right[set][k][k]);
                column[k][t] = x[k];
#pragma unroll
                for (unsigned i = (k + 1) / 4; i < PANEL / 4; ++i) {
                    const Four u = reinterpret_cast<const Four*>(right[set][k])[i];
#pragma unroll
                    for (unsigned j = 0; j < 4; ++j)
                        if (4 * i + j > k) x[4 * i + j] -= x[k] * u.v[j];
                }
            }
            Four* line = reinterpret_cast<Four*>(rows + (size_t)t * ld + p * PANEL);
#pragma unroll
            for (unsigned i = 0; i < PANEL / 4; ++i) line[i] = reinterpret_cast<Four*>(x)[i];
        }
    }
}

// The tiles on and below the diagonal of so many tile rows, and those above it that belong to the
// corner of a strip; without the corner of the next strip, which is updated before.
struct Triangle {
    unsigned rows;

    __device__ unsigned band(unsigned top) const { return min(rows - top, BAND); }

    // The number of tiles of the band that begins at tile row `top`, right of its first columns,
    // which are all below the diagonal.
    __device__ unsigned corner(unsigned top) const {
        const unsigned height = band(top), groups = height / GROUP, rest = height % GROUP;
        const unsigned next = top ? 0 : min(height, GROUP);
        return GROUP * (groups * height - GROUP * (groups * (groups - 1) / 2)) + rest * rest -
               next * next;
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
        unsigned column = 0, first = top ? 0 : GROUP;
        while (number >= height - first) {
            number -= height - first;
            ++column;
            first = max(column / GROUP * GROUP, top ? 0 : GROUP);
        }
        return make_uint2(top + first + number, top + column);
    }
};

// Updates these tiles below the strip.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS, 1) subtract_below(
    float* lu, const uint4* l_parts, const uint4* u_parts, const unsigned* l_exponents,
    const unsigned* u_exponents, unsigned tile_rows, unsigned ld, unsigned start) {
    extern __shared__ __align__(1024) uint4 ring[];  // the swizzle counts from multiples of 1024
    subtract_from(Triangle{tile_rows}, lu, Strip{l_parts, u_parts, l_exponents, u_exponents}, ring,
                  ld, start);
}

// Source: Golub and Van Loan, Matrix Computations. Johns Hopkins University Press, 2013.
