// /// cudalab
// summary  = "Warps compute tiles of their own: 64 x 32 elements, by 8 x 4 lanes"
// order    = 11.84
// adds     = "a nearly square tile for each warp, so that its lanes share what they read"
// dispatch = "tiles"
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 8
// STAGES            = 4
// TM                = 8
// TN                = 8
// THREADS_PER_BLOCK = 256
// ///
//
// As `async_copy_ring`, with one change: who computes what. There the lanes of a warp form 2 rows
// of 16: for each p they need 16 numbers of A and 128 of B. Here they form 8 rows of 4 and compute
// a tile of 64 x 32 elements, which needs 64 + 32 numbers: 96 instead of 144. The 8 warps of a
// block form 2 rows of 4. The upper left corner of a warp's 8 x 4 lanes:
//
//      0   1   4   5
//      2   3   6   7
//      8   9  12  13
//     10  11  14  15
//
// Shared memory serves a quarter of a warp at a time if each lane reads 16 bytes, so a read takes 4
// wavefronts; but only 2 if every lane t reads the same as t xor 1, or every lane the same as t xor
// 2. In this order the lanes t and t xor 1 are in one row and read the same of A, t and t xor 2 in
// one column and read the same of B. So the four reads for 64 products of each lane take 8
// wavefronts, where those of the rung before take 12. (`cudalab profile matmul` counts them.)
// Limits: a thread reads 16 numbers for 64 products: `large_tiles`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK.
#include "matmul/parts/copied_tiles.cuh"

static_assert(TM == 8 && TN == 8 && BK == 8, "two pieces of 4 x 4 in each direction");
static_assert(BM == 128 && BN == 128 && THREADS_PER_BLOCK == 256,
              "2 x 4 warps of 64 x 32 elements");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    __shared__ __align__(16) float As[STAGES][BK][BM + 4], Bs[STAGES][BK][BN + 4];
    // This thread's first row and column in the tile.
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned lane_row = lane / 8 * 2 + lane / 2 % 2, lane_col = lane / 4 % 2 * 2 + lane % 2;
    const unsigned down = warp % 2 * 64 + lane_row * 4, across = warp / 2 * 32 + lane_col * 4;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;

    // Past the end of k there is nothing to copy, but the group counts.
    auto copy_tiles = [&](unsigned stage, unsigned p0) {
        if (p0 < k) {
            copy_transposed<BM>(As[stage], a, row0, m, p0, k);
            if (B_TRANSPOSED) {
                copy_transposed<BN>(Bs[stage], b, col0, n, p0, k);
            } else {
                copy_rows<BN>(Bs[stage], b, col0, n, p0, k);
            }
        }
        commit_copies();
    };

    float acc[TM][TN] = {};
#pragma unroll 1
    for (unsigned stage = 0; stage < STAGES - 1; ++stage) copy_tiles(stage, stage * BK);
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        const unsigned stage = p0 / BK % STAGES;
        wait_for_copies<STAGES - 2>();
        // The tiles are complete, every thread has waited for its copies. And all have multiplied
        // those of the step before, which the copies that start now overwrite.
        __syncthreads();
        copy_tiles((stage + STAGES - 1) % STAGES, p0 + (STAGES - 1) * BK);

#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            __align__(16) float left[TM], right[TN];
#pragma unroll
            for (unsigned half = 0; half < 2; ++half) {
                read_four(left + 4 * half, &As[stage][p][down + 32 * half]);
                read_four(right + 4 * half, &Bs[stage][p][across + 16 * half]);
            }
#pragma unroll
            for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                for (unsigned j = 0; j < TN; ++j) acc[i][j] += left[i] * right[j];
        }
    }

#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        const unsigned row = row0 + down + i / 4 * 32 + i % 4;
        if (row >= m) continue;
#pragma unroll
        for (unsigned half = 0; half < 2; ++half)
            store_four(c + (size_t)row * n, acc[i] + 4 * half, col0 + across + 16 * half, n);
    }
}

// Source: NVIDIA, Efficient GEMM in CUDA, Warp-level GEMM. Documentation of CUTLASS.
