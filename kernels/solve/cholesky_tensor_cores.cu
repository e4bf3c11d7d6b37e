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
//                    transposed, times D, by products with inverted triangles
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
#include "common/thread/async_copy.cuh"
#include "solve/parts/meet_warps.cuh"
#include "solve/parts/reciprocal.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/solve_upper.cuh"
#include "solve/parts/substitute_chain.cuh"
#include "solve/parts/subtract_products.cuh"
#include "solve/parts/tf32_product.cuh"

constexpr unsigned FULL = 0xffffffffu;
constexpr unsigned GROUP = BLOCK / TILE;  // tile rows of a strip
constexpr unsigned DIAGONAL_WARPS = DIAGONAL_THREADS / 32;
constexpr unsigned STEPS = 8;  // of a phase of factor_diagonal
constexpr unsigned TILES_OF_STRIP = BLOCK / PANEL * (BLOCK / PANEL + 1) / 2;
constexpr unsigned LEFT_ROWS = BLOCK + 8;  // with padding, so that products meet no bank conflicts

static_assert(BLOCK / PANEL < DIAGONAL_WARPS, "a warp for each 32 rows, and warps that are left");
static_assert(BELOW_THREADS == 4 * BELOW_ROWS && BELOW_THREADS % 128 == 0 && BELOW_THREADS <= 256,
              "a warp for 16 rows and 16 columns of a panel; whole pieces of a tile");
static_assert(BELOW_THREADS / 32 >= BLOCK / PANEL, "a warp for each of a strip's triangles");
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

// Where a tile's row k has an element, so that products meet no bank conflicts. Four neighbours
// stay neighbours.
__device__ inline unsigned place_of(unsigned k, unsigned at) {
    return at ^ k % 4 * 8;
}

// STEPS steps of a panel's triangle from `first` on, in a warp: a lane for each row, whose element
// of a column is the pivot times the multiplier in L. `tile` gets these elements, which are U
// transposed, `lower` gets L, both column by column, and `inverses` those of the pivots. `pivot` is
// that of the first step, and then that of the step after the last; `own` becomes the lane's own.
//
// A step waits for the pivot of the one before, so each lane computes the next pivot for itself,
// from elements that are there already. By symmetry, a column has the pivot's row, too. What is
// right of the diagonal means nothing, and no lane asks for it.
__device__ __forceinline__ void factor_columns(T (&row)[PANEL], T& pivot, T& own,
                                               T (&tile)[PANEL][PANEL],
                                               T (&lower)[PANEL][PANEL + 4], T (&inverses)[PANEL],
                                               unsigned first) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned k = first; k < first + STEPS; ++k) {
        const T inverse = reciprocal(pivot), multiplier = row[k] * inverse;
        tile[k][place_of(k, lane)] = row[k];
        lower[k][lane] = multiplier;
        if (lane == k) {
            own = pivot;
            inverses[k] = inverse;
        }
        // The next two columns do not wait for shared memory.
        if (k + 1 < PANEL) {
            const T across = __shfl_sync(FULL, row[k], k + 1);
            pivot = __shfl_sync(FULL, row[k + 1], k + 1) - across * inverse * across;
            row[k + 1] -= multiplier * across;
        }
        if (k + 2 < PANEL) row[k + 2] -= multiplier * __shfl_sync(FULL, row[k], k + 2);
        __syncwarp();  // the column is complete
#pragma unroll
        for (unsigned i = (k + 3) / 4; i < PANEL / 4; ++i) {
            const T* piece = tile[k] + place_of(k, 4 * i);
            const Four across = *reinterpret_cast<const Four*>(piece);
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                if (4 * i + j > k + 2) row[4 * i + j] -= multiplier * across.v[j];
        }
    }
}

// A warp subtracts (rows of L) x (columns of U) from 16 ROWS rows and 16 columns of a tile. `left`
// has the rows of the tile.
template <unsigned ROWS>
__device__ inline void subtract_part(T (&tile)[PANEL][PANEL], const T (*left)[LEFT_ROWS],
                                     const T (&right)[PANEL][PANEL], unsigned row0,
                                     unsigned column0) {
    T product[ROWS][2][4];
    multiply_tf32<ROWS, PANEL>(
        product, [&](unsigned row, unsigned k) { return left[k][row0 + row]; },
        [&](unsigned k, unsigned column) { return right[k][place_of(k, column0 + column)]; });
#pragma unroll
    for (unsigned m = 0; m < ROWS; ++m)
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
#pragma unroll
            for (unsigned i = 0; i < 4; ++i) {
                const unsigned column = column0 + 8 * h + column_of_product(i);
                const unsigned row = row0 + 16 * m + row_of_product(i);
                tile[column][place_of(column, row)] -= product[m][h][i];
            }
}

// One block: L and U of the strip's own rows, in shared memory, as the tiles of U's columns: 32
// columns of A on and below the diagonal, [column][row]. A panel takes five phases. In the first
// four, a warp factors a quarter of the triangle, a row per lane; in the last four, a warp for each
// 32 rows below goes the quarter's steps. In the first phase, the other warps finish the tiles that
// these rows are in, and in the last four, what is left to do for the panel before.
// status[0]: 0, or the number (from 1) of the first column whose pivot, times the sign of A's first
// element, is not above `threshold`, negative if the pivot is not finite; status[1]: that pivot.
extern "C" __global__ void __launch_bounds__(DIAGONAL_THREADS, 1) factor_diagonal(
    T* lu, double* status, double threshold, unsigned ld, unsigned start, unsigned strip_end) {
    extern __shared__ __align__(1024) uint4 ring[];
    __shared__ T inverses[PANEL];  // of the pivots
    // L of a panel and of the one before, the triangle and the rows below, [column][row].
    __shared__ __align__(16) T corners[2][PANEL][PANEL + 4];
    auto tiles = reinterpret_cast<T(*)[PANEL][PANEL]>(ring);
    auto lefts = reinterpret_cast<T(*)[PANEL][LEFT_ROWS]>(tiles + TILES_OF_STRIP);
    auto tile_at = [](unsigned i, unsigned j) { return i * (i + 1) / 2 + j; };
    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
    const unsigned panels = (strip_end - start) / PANEL;
    T* origin = lu + (size_t)start * ld + start;

    // A is symmetric: the columns of its lower half are rows of its upper one.
    for (unsigned i = 0; i < panels; ++i)
        for (unsigned e = t; e < (i + 1) * PANEL * PANEL / 4; e += DIAGONAL_THREADS) {
            const unsigned k = e / (PANEL / 4), four = e % (PANEL / 4);
            const T* line = origin + (size_t)k * ld + i * PANEL;
            T* target = tiles[tile_at(i, k / PANEL)][k % PANEL];
            copy_async_16(target + place_of(k, 4 * four), line + 4 * four);
        }
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();  // all tiles are there

    // Subtracts a panel's product from half of a tile's columns.
    auto subtract_half = [&](unsigned p, unsigned i, unsigned j, unsigned half) {
        auto left = reinterpret_cast<const T(*)[LEFT_ROWS]>(lefts[p % 2][0] + i * PANEL);
        subtract_part<2>(tiles[tile_at(i, j)], left, tiles[tile_at(j, p)], 0, 16 * half);
    };
    // Writes a panel's L of 32 rows below the triangle.
    auto write_rows = [&](unsigned p, unsigned i) {
        const auto& left = lefts[p % 2];
        const unsigned row = i * PANEL + lane;
        Four* line = reinterpret_cast<Four*>(origin + (size_t)row * ld + p * PANEL);
#pragma unroll
        for (unsigned four = 0; four < PANEL / 4; ++four) {
            Four piece;
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) piece.v[j] = left[4 * four + j][row];
            line[four] = piece;
        }
    };
    // Writes L and U of a panel's triangle.
    auto write_triangle = [&](unsigned p) {
        const auto& tile = tiles[tile_at(p, p)];
        const auto& corner = corners[p % 2];
        T* panel = origin + (size_t)p * PANEL * (ld + 1) + lane;
#pragma unroll 8
        for (unsigned k = 0; k < PANEL; ++k)
            panel[(size_t)k * ld] = lane < k ? corner[lane][k] : tile[k][place_of(k, lane)];
    };
    // What is left to do for a panel when the next one's tiles are updated, by `warps` warps.
    auto finish = [&](unsigned p, unsigned turn, unsigned warps) {
        const unsigned below = panels - p - 1;  // tiles
        const unsigned halves = below > 0 ? below * (below - 1) : 0;
        for (unsigned job = turn; job < halves + below + 1; job += warps) {
            if (job < halves) {
                unsigned i = 0, j = job / 2;
                while (j > i) j -= ++i;
                subtract_half(p, p + 2 + i, p + 2 + j, job % 2);
            } else if (job < halves + below) {
                write_rows(p, p + 1 + job - halves);
            } else {
                write_triangle(p);
            }
        }
    };

    const T sign = lu[0] < 0 ? (T)-1 : (T)1;
    for (unsigned p = 0; p < panels; ++p) {
        const unsigned rows = panels - p;  // warps with rows of the panel
        auto& triangle = tiles[tile_at(p, p)];
        auto& corner = corners[p % 2];
        __align__(16) T x[PANEL];  // the thread's row
        T pivot = 0, own = 0;
        if (warp == 0) {
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) x[k] = triangle[k][place_of(k, lane)];
            pivot = __shfl_sync(FULL, x[0], 0);
            factor_columns(x, pivot, own, triangle, corner, inverses, 0);
        } else if (p > 0) {
            for (unsigned job = warp - 1; job < 2 * (rows - 1); job += DIAGONAL_WARPS - 1)
                subtract_half(p - 1, p + 1 + job / 2, p, job % 2);
        }
        __syncthreads();  // the first quarter is factored, and the panel's tiles are updated
        if (warp < rows) {
            auto& tile = tiles[tile_at(p + warp, p)];
            auto& left = lefts[p % 2];
            if (warp > 0) {
#pragma unroll
                for (unsigned k = 0; k < PANEL; ++k) x[k] = tile[k][place_of(k, lane)];
            }
#pragma unroll
            for (unsigned first = 0; first < PANEL; first += STEPS) {
                if (warp == 0) {
                    if (first + STEPS < PANEL)
                        factor_columns(x, pivot, own, triangle, corner, inverses, first + STEPS);
                } else {
                    solve_upper(corner, x, first, STEPS);
#pragma unroll
                    for (unsigned k = first; k < first + STEPS; ++k) {
                        tile[k][place_of(k, lane)] = x[k];
                        left[k][p * PANEL + t] = x[k] * inverses[k];
                    }
                }
                if (first + STEPS < PANEL) meet_warps(rows);  // the next quarter is factored
            }
        } else if (p > 0) {
            finish(p - 1, warp - rows, DIAGONAL_WARPS - rows);
        }
        __syncthreads();  // the panel is complete, and so is the one before
        if (warp == 0) {
            const bool finite = own - own == 0;
            const unsigned bad = __ballot_sync(FULL, !(finite && sign * own > threshold));
            if (bad && lane == __ffs(bad) - 1 && status[0] == 0) {
                const double number = (double)start + p * PANEL + lane + 1;
                status[0] = finite ? number : -number;
                status[1] = own;
            }
        }
        if (p + 1 == panels) break;
        if (warp < 4) {  // a quarter of the next triangle each
            auto left = reinterpret_cast<const T(*)[LEFT_ROWS]>(lefts[p % 2][0] + (p + 1) * PANEL);
            subtract_part<1>(tiles[tile_at(p + 1, p + 1)], left, tiles[tile_at(p + 1, p)],
                             warp / 2 * 16, warp % 2 * 16);
        }
        __syncthreads();  // the next triangle is updated
    }
    finish(panels - 1, warp, DIAGONAL_WARPS);
    // What is above the diagonal's triangles.
    for (unsigned i = 1; i < panels; ++i)
        for (unsigned e = t; e < i * PANEL * PANEL / 4; e += DIAGONAL_THREADS) {
            const unsigned k = e / (PANEL / 4), four = e % (PANEL / 4);
            T* line = origin + (size_t)k * ld + i * PANEL;
            const T* source = tiles[tile_at(i, k / PANEL)][k % PANEL] + place_of(k, 4 * four);
            reinterpret_cast<Four*>(line)[four] = *reinterpret_cast<const Four*>(source);
        }
}

// The inverse of a panel's unit triangle, swizzled, in its place, by a warp: a lane for each row.
__device__ inline void invert_unit(T (&triangle)[PANEL][PANEL]) {
    const unsigned lane = threadIdx.x % 32;
    __align__(16) T x[PANEL];
#pragma unroll
    for (unsigned k = 0; k < PANEL; ++k) x[k] = k == lane ? (T)1 : (T)0;
#pragma unroll
    for (unsigned k = 0; k < PANEL; k += STEPS) {
        __syncwarp();  // or the compiler reads the whole triangle before
        solve_upper(triangle, x, k, STEPS);
    }
    __syncwarp();  // all lanes have read the triangle
#pragma unroll
    for (unsigned i = 0; i < PANEL / 4; ++i)
        *reinterpret_cast<Four*>(triangle[lane] + place_of(lane, 4 * i)) =
            reinterpret_cast<Four*>(x)[i];
}

// Eliminates BELOW_ROWS rows per block below a strip: their columns of L, and the same as columns
// of U. Panel by panel, the product of what is known of L with the strip's triangle is subtracted,
// and a product with the inverse of the panel's own triangle takes the place of a substitution. The
// triangle comes in tiles of 32 rows and columns, each on its way while the one before is used.
extern "C" __global__ void __launch_bounds__(BELOW_THREADS, 2) eliminate_below(T* lu, unsigned ld,
                                                                               unsigned start) {
    extern __shared__ __align__(1024) uint4 ring[];
    __shared__ __align__(16) T right[2][PANEL][PANEL];
    __shared__ __align__(16) T own[BLOCK / PANEL][PANEL][PANEL];  // D^-1 U of the panels, inverted
    __shared__ T inverses[BLOCK];                                 // of the pivots
    auto left = reinterpret_cast<T(*)[BELOW_ROWS + 8]>(ring);     // A, then L, [column][row]
    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
    const unsigned row0 = start + BLOCK + blockIdx.x * BELOW_ROWS;
    T* rows = lu + (size_t)row0 * ld + start;
    const T* strip = lu + (size_t)start * ld + start;

    constexpr unsigned FOURS = PANEL / 4, EACH = PANEL * FOURS / BELOW_THREADS;  // of a tile
    Four next[EACH];
    auto fetch = [&](unsigned p, unsigned q) {
        if (p * PANEL >= BLOCK) return;
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i) {
            const unsigned k = q * PANEL + i * (BELOW_THREADS / FOURS) + t / FOURS;
            next[i] = reinterpret_cast<const Four*>(strip + (size_t)k * ld + p * PANEL)[t % FOURS];
        }
    };
    fetch(1, 0);
    const T* triangle = strip + (size_t)warp * PANEL * (ld + 1);
    T pivots[FOURS];
    Four lines[FOURS];
    if (warp < BLOCK / PANEL) {
#pragma unroll
        for (unsigned i = 0; i < FOURS; ++i) {
            const unsigned k = 4 * i + lane / FOURS;
            pivots[i] = triangle[(size_t)k * ld + k];
            lines[i] = reinterpret_cast<const Four*>(triangle + (size_t)k * ld)[lane % FOURS];
        }
    }
    // A warp reads 64 bytes of 8 rows each.
#pragma unroll 8
    for (unsigned e = t; e < BELOW_ROWS * BLOCK / 4; e += BELOW_THREADS) {
        const unsigned row = e / 32 % (BELOW_ROWS / 8) * 8 + e % 8;
        const unsigned four = e / (BELOW_ROWS * 4) * 4 + e % 32 / 8;
        const Four line = reinterpret_cast<const Four*>(rows + (size_t)row * ld)[four];
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) left[4 * four + j][row] = line.v[j];
    }
    if (warp < BLOCK / PANEL) {
#pragma unroll
        for (unsigned i = 0; i < FOURS; ++i) {
            const unsigned k = 4 * i + lane / FOURS;
            const T inverse = reciprocal(pivots[i]);
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) lines[i].v[j] *= inverse;
            reinterpret_cast<Four*>(own[warp][k])[lane % FOURS] = lines[i];
            if (lane % FOURS == 0) inverses[warp * PANEL + k] = inverse;
        }
        __syncwarp();  // the triangle is complete
        invert_unit(own[warp]);
    }

    // A warp has 16 rows and 16 columns of a panel.
    const unsigned row1 = warp / 2 * 16, column1 = warp % 2 * 16;
    T product[1][2][4];
    auto multiply = [&](unsigned q, const T(&u)[PANEL][PANEL]) {
        multiply_tf32<1, PANEL>(
            product, [&](unsigned row, unsigned k) { return left[q * PANEL + k][row1 + row]; },
            [&](unsigned k, unsigned column) { return u[k][place_of(k, column1 + column)]; });
    };
    unsigned set = 0;
    for (unsigned p = 0; p < BLOCK / PANEL; ++p) {
        T sum[2][4] = {};
        for (unsigned q = 0; q < p; ++q) {
            set ^= 1;
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i) {
                const unsigned k = i * (BELOW_THREADS / FOURS) + t / FOURS;
                *reinterpret_cast<Four*>(right[set][k] + place_of(k, t % FOURS * 4)) = next[i];
            }
            // The tile is complete, and so is L left of the panel. The other set was read before.
            __syncthreads();
            if (q + 1 < p)
                fetch(p, q + 1);
            else
                fetch(p + 1, 0);
            multiply(q, right[set]);
#pragma unroll
            for (unsigned h = 0; h < 2; ++h)
#pragma unroll
                for (unsigned i = 0; i < 4; ++i) sum[h][i] += product[0][h][i];
        }
        if (p > 0) {
#pragma unroll
            for (unsigned h = 0; h < 2; ++h)
#pragma unroll
                for (unsigned i = 0; i < 4; ++i) {
                    const unsigned column = p * PANEL + column1 + 8 * h + column_of_product(i);
                    left[column][row1 + row_of_product(i)] -= sum[h][i];
                }
        }
        __syncthreads();  // the panel's columns are complete, and so are the inverses
        multiply(p, own[p]);
        __syncthreads();  // all have read the panel's columns
#pragma unroll
        for (unsigned h = 0; h < 2; ++h) {
            const unsigned column = p * PANEL + column1 + 8 * h + column_of_product(0);
            const T by0 = inverses[column], by1 = inverses[column + 1];
#pragma unroll
            for (unsigned i = 0; i < 4; i += 2) {
                const unsigned row = row1 + row_of_product(i);
                const T u0 = product[0][h][i], u1 = product[0][h][i + 1];
                T* above = lu + (size_t)(start + column) * ld + row0 + row;  // U's columns
                above[0] = u0;
                above[ld] = u1;
                left[column][row] = u0 * by0;
                left[column + 1][row] = u1 * by1;
                T* line = rows + (size_t)row * ld + column;
                *reinterpret_cast<float2*>(line) = make_float2(u0 * by0, u1 * by1);
            }
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
