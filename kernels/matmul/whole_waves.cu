// /// cudalab
// summary  = "Full waves of tiles only: those that would not fill the last wave are split along k"
// order    = 18
// adds     = "the last wave's tiles split along k"
// dispatch = "whole_waves"
// requires = ["sm_90", "shared_224kb"]
// default  = ["cuda"]
//
// [defines]
// BM                = 128
// BN                = 256
// BK                = 64
// STAGES            = 2
// TM                = 8
// TN                = 16
// THREADS_PER_BLOCK = 256
// AT_ONCE           = "MULTIPROCESSORS"  # blocks: one on each
// PIECE_COST        = 64      # the cost of a piece besides its products, in steps along k
// ALIGN_FROM        = 2048    # rows of B: from here on an aligned copy is worth its time
// SHARED_BYTES      = 200704  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// A block of `async_copy_deep` fills a multiprocessor, so as many tiles run at a time as there are
// multiprocessors. At n = 3000 there are 288: two waves of 132, and 24 tiles during which most
// multiprocessors are idle. Here the tiles that do not fill a wave are split along k, at n = 3000
// into 5 pieces each, 120 blocks that take a fifth of the time. A piece's sums go to an array of
// its own; add_pieces adds them up in a fixed order. The launch plan chooses the number of pieces.
//
// Where the rows of B do not start at multiples of 16 bytes, align_rows copies B into rows that do:
// then 16-byte copies work for all matrices. (Rows of A run along k, in 4-byte copies anyway.)
// Limits: the sums of a piece take 128 KB of memory, written and read once.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "matmul/async_copy.cu"

constexpr unsigned TILE = BM * BN;

// Copies b, k x n, into rows of `stride` numbers, a multiple of 4. A thread copies four numbers.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) align_rows(const float* b,
                                                                           float* aligned,
                                                                           unsigned k, unsigned n,
                                                                           unsigned stride) {
    const size_t threads = (size_t)gridDim.x * THREADS_PER_BLOCK, fours = (size_t)k * (stride / 4);
    for (size_t i = (size_t)blockIdx.x * THREADS_PER_BLOCK + threadIdx.x; i < fours; i += threads) {
        const size_t row = i / (stride / 4);
        const unsigned col = (unsigned)(i % (stride / 4)) * 4;
        const float* from = b + row * n + col;
        float4 v = make_float4(from[0], 0, 0, 0);
        if (col + 1 < n) v.y = from[1];
        if (col + 2 < n) v.z = from[2];
        if (col + 3 < n) v.w = from[3];
        *reinterpret_cast<float4*>(aligned + row * stride + col) = v;
    }
}

template <bool WIDE>
__device__ inline void multiply_block(float* ring, const float* a, const float* b, float* c,
                                      float* partials, unsigned m, unsigned k, unsigned n,
                                      unsigned stride, unsigned whole, unsigned pieces,
                                      unsigned piece_k) {
    const unsigned beyond = blockIdx.x < whole ? 0 : blockIdx.x - whole;
    const unsigned tile = blockIdx.x < whole ? blockIdx.x : whole + beyond / pieces;
    const unsigned k_begin = beyond % pieces * piece_k;
    const unsigned k_end = blockIdx.x < whole ? k : min(k, k_begin + piece_k);
    const uint2 first = first_element(tile, m, n);
    float acc[TM][TN] = {};
    sum_tile<WIDE>(acc, ring, a, b, m, k, stride, first.x, first.y, first.y + BN / 2, k_begin,
                   k_end);
    const unsigned row = row_in_tile(), column = column_in_tile();
    if (blockIdx.x >= whole && pieces > 1) {  // a tile's sums, row by row, without edges
        store_elements<true>(partials + (size_t)beyond * TILE, acc, row, column, BM, BN);
    } else if (n % 4 == 0) {
        store_elements<true>(c, acc, first.x + row, first.y + column, m, n);
    } else {
        store_elements<false>(c, acc, first.x + row, first.y + column, m, n);
    }
}

// Blocks below `whole` sum a whole tile each; of the blocks after them, every `pieces` share a
// tile.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply_waves(
    const float* a, const float* b, float* c, float* partials, unsigned m, unsigned k, unsigned n,
    unsigned stride, unsigned whole, unsigned pieces, unsigned piece_k) {
    extern __shared__ __align__(16) float ring[];
    if (stride % 4 == 0) {
        multiply_block<true>(ring, a, b, c, partials, m, k, n, stride, whole, pieces, piece_k);
    } else {
        multiply_block<false>(ring, a, b, c, partials, m, k, n, stride, whole, pieces, piece_k);
    }
}

// A thread adds up four neighbours of the split tiles; blockIdx.y is the tile's number among them.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) add_pieces(
    const float* partials, float* c, unsigned m, unsigned n, unsigned whole, unsigned pieces) {
    const unsigned place = (blockIdx.x * THREADS_PER_BLOCK + threadIdx.x) * 4;
    const uint2 first = first_element(whole + blockIdx.y, m, n);
    const unsigned row = first.x + place / BN, col = first.y + place % BN;
    if (row >= m || col >= n) return;
    const float* from = partials + (size_t)blockIdx.y * pieces * TILE + place;
    float4 sum = *reinterpret_cast<const float4*>(from);
    for (unsigned piece = 1; piece < pieces; ++piece) {
        const float4 v = *reinterpret_cast<const float4*>(from + piece * TILE);
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    float* target = c + (size_t)row * n + col;
    if (n % 4 == 0) {
        *reinterpret_cast<float4*>(target) = sum;
    } else {
        target[0] = sum.x;
        if (col + 1 < n) target[1] = sum.y;
        if (col + 2 < n) target[2] = sum.z;
        if (col + 3 < n) target[3] = sum.w;
    }
}

// Source: Osama et al., Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
// Multiplication on the GPU. PPoPP 2023, arXiv:2301.03598. It splits all tiles, not the last
// wave's.
