// /// cudalab
// summary  = "128 x 256 tiles: 8 x 16 elements a thread"
// order    = 11.88
// adds     = "twice the tile: a number from shared memory serves more products"
// dispatch = "tiles"
//
// [defines]
// BM                = 128
// BN                = 256
// BK                = 8
// STAGES            = 4
// TM                = 8
// TN                = 16
// THREADS_PER_BLOCK = 256
// SHARED_BYTES      = 50176  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// As `warp_tiles`, with one change: a thread computes 8 x 16 elements, a warp 64 x 64, a block 128
// x 256. A thread reads 24 numbers from shared memory for 128 products, where 16 serve 64 there,
// and a block reads 384 numbers from global memory for 32,768 products, where 256 serve 16,384.
//
// 128 sums and what they are computed from leave no registers for a second block on a
// multiprocessor, and the ring is larger than the 48 KB that a kernel may declare: its size is
// given at the launch. Limits: few tiles: a matrix of order 1024 has 32 of them. And with one
// block, 8 warps on a multiprocessor, two on each scheduler, there is little else to do while a
// warp waits for what it reads from shared memory: `read_ahead`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "matmul/parts/copied_tiles.cuh"

static_assert(TM == 8 && TN == 16 && BK == 8, "2 x 4 pieces of 4 x 4");
static_assert(BM == 128 && BN == 256 && THREADS_PER_BLOCK == 256,
              "2 x 4 warps of 64 x 64 elements");
static_assert(SHARED_BYTES == STAGES * BK * (BM + BN + 8) * 4, "what the stages need");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    auto As = reinterpret_cast<float (*)[BK][BM + 4]>(ring);
    auto Bs = reinterpret_cast<float (*)[BK][BN + 4]>(ring + STAGES * BK * (BM + 4));
    // This thread's first row and column in the tile.
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned lane_row = lane / 8 * 2 + lane / 2 % 2, lane_col = lane / 4 % 2 * 2 + lane % 2;
    const unsigned down = warp % 2 * 64 + lane_row * 4, across = warp / 2 * 64 + lane_col * 4;
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
            for (unsigned g = 0; g < TM / 4; ++g)
                read_four(left + 4 * g, &As[stage][p][down + 32 * g]);
#pragma unroll
            for (unsigned g = 0; g < TN / 4; ++g)
                read_four(right + 4 * g, &Bs[stage][p][across + 16 * g]);
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
        for (unsigned g = 0; g < TN / 4; ++g)
            store_four(c + (size_t)row * n, acc[i] + 4 * g, col0 + across + 16 * g, n);
    }
}

// Source: NVIDIA, Efficient GEMM in CUDA, Threadblock-level GEMM. Documentation of CUTLASS.
