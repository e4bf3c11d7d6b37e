// /// cudalab
// summary  = "A by its transpose: half of the tiles, each also stored transposed"
// order    = 22
// ladder   = "A by its transpose"
// adds     = "`async_copy` for half of the tiles, each stored twice"
// dispatch = "symmetric"
// applies  = { product = ["aat"] }
// default  = ["cuda"]
//
// [defines]
// BM                = 128
// BN                = 256
// BK                = 8
// STAGES            = 5
// TM                = 8
// TN                = 16
// THREADS_PER_BLOCK = 256
// SHARED_BYTES      = 62720  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// The product of A and its transpose is symmetric: of each pair of elements mirrored at the
// diagonal only one is computed, by the tiles of `async_copy`, and stored twice.
//
// The unit is a square of 128 x 128. A block computes two squares in the same rows of C, but not
// necessarily adjacent ones: the copies fetch each square's columns separately. The launch plan
// pairs the squares so that at most one is left without a partner. That matters because blocks run
// in waves: at n = 4096 there are 528 squares on and above the diagonal, 264 blocks, which are two
// for each of an H100's 132 multiprocessors; tiles of 256 columns that merely touch the diagonal
// would be 272, and eight of them a third wave.
//
// A warp mirrors its 64 x 64 elements 16 columns at a time in shared memory that the tiles no
// longer need; the rows that it then stores are 64 neighbours of C.
// Limits: k is not split; few squares leave multiprocessors idle.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "matmul/async_copy.cu"

constexpr unsigned SQUARE = 128;
constexpr unsigned NO_SQUARE = 0xffffffffu;
constexpr unsigned LDM = 64 + 4;  // words per row of a mirrored piece; keeps rows aligned

static_assert(BM == SQUARE && BN == 2 * SQUARE, "two squares a block");
static_assert(SHARED_BYTES >= THREADS_PER_BLOCK / 32 * 16 * LDM * 4, "a piece for each warp");

// Stores the warp's elements, from row0 and col0 on, to C from column row0 and row col0 on.
template <bool WIDE>
__device__ inline void store_mirrored(float* piece, float* c, const float (&acc)[TM][TN],
                                      unsigned row0, unsigned col0, unsigned n) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned g = 0; g < TN / 4; ++g) {
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
#pragma unroll
            for (unsigned half = 0; half < 2; ++half) {
                float* target = piece + (lane % 4 * 4 + j) * LDM + half * 32 + lane / 4 * 4;
                *reinterpret_cast<float4*>(target) =
                    make_float4(acc[4 * half][4 * g + j], acc[4 * half + 1][4 * g + j],
                                acc[4 * half + 2][4 * g + j], acc[4 * half + 3][4 * g + j]);
            }
        __syncwarp();  // the piece is complete
        for (unsigned pass = 0; pass < 8; ++pass) {
            const unsigned line = pass * 2 + lane / 16, along = lane % 16 * 4;
            const unsigned row = col0 + g * 16 + line, col = row0 + along;
            const float4 v = *reinterpret_cast<const float4*>(piece + line * LDM + along);
            if (row >= n) continue;
            float* target = c + (size_t)row * n + col;
            if (WIDE) {
                if (col < n) *reinterpret_cast<float4*>(target) = v;
            } else {
                if (col < n) target[0] = v.x;
                if (col + 1 < n) target[1] = v.y;
                if (col + 2 < n) target[2] = v.z;
                if (col + 3 < n) target[3] = v.w;
            }
        }
        __syncwarp();  // it has been read before the next columns overwrite it
    }
}

template <bool WIDE>
__device__ inline void multiply_squares(float* ring, const float* a, float* c, unsigned row0,
                                        unsigned col0, unsigned middle, unsigned k, unsigned n) {
    float acc[TM][TN] = {};
    const unsigned other = middle == NO_SQUARE ? col0 : middle;
    sum_tile<WIDE>(acc, ring, a, a, n, k, n, row0, col0, other, 0, k);
    __syncthreads();  // all have multiplied before the mirrored pieces overwrite the tiles

    const unsigned warp = threadIdx.x / 32, second = warp / 4;  // four warps per square
    const unsigned square = second ? middle : col0;
    if (square == NO_SQUARE) return;
    const unsigned warp_row = row0 + warp % 2 * 64, warp_col = square + warp / 2 % 2 * 64;
    store_elements<WIDE>(c, acc, row0 + row_in_tile(), square + column_in_tile() - second * SQUARE,
                         n, n);
    // A square on the diagonal holds its own mirror image.
    if (square != row0) store_mirrored<WIDE>(ring + warp * 16 * LDM, c, acc, warp_row, warp_col, n);
}

// squares: for each block the first row of its squares, the first column of each; NO_SQUARE if
// there is no second one.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply_symmetric(
    const float* a, float* c, const unsigned* squares, unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    const unsigned* own = squares + 3 * blockIdx.x;
    if (n % 4 == 0) {
        multiply_squares<true>(ring, a, c, own[0], own[1], own[2], k, n);
    } else {
        multiply_squares<false>(ring, a, c, own[0], own[1], own[2], k, n);
    }
}

// Source: Dongarra, Du Croz, Hammarling and Duff, A Set of Level 3 Basic Linear Algebra
// Subprograms. ACM Transactions on Mathematical Software 16(1), 1990. There it is SYRK.
