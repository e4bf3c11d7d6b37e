// /// cudalab
// summary  = "The same tiles in a ring of stages: copies have several steps to arrive"
// order    = 11.8
// adds     = "a ring of stages instead of two pairs of tiles"
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
// As `async_copy_tiles`, with one change: the two pairs of tiles become a ring of STAGES pairs. A
// step multiplies one pair and starts the copies of the pair that is STAGES - 1 steps ahead, into
// the place that the step before has left. So a copy has several steps to arrive, not one: the
// hardware counts groups of copies, and a step waits only until at most STAGES - 2 of them are
// under way. There is still one barrier per step.
//
// Limits: the lanes of a warp form 2 rows of 16, which need more numbers than a tile that is nearly
// square: `warp_tiles`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK.
#include "matmul/parts/copied_tiles.cuh"

static_assert(TM == 8 && TN == 8 && BK == 8, "two pieces of 4 x 4 in each direction");
static_assert(BM == 128 && BN == 128 && THREADS_PER_BLOCK == 256, "16 bytes of each tile a thread");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    __shared__ __align__(16) float As[STAGES][BK][BM + 4], Bs[STAGES][BK][BN + 4];
    const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
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
                read_four(left + 4 * half, &As[stage][p][half * 64 + ty * 4]);
                read_four(right + 4 * half, &Bs[stage][p][half * 64 + tx * 4]);
            }
#pragma unroll
            for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                for (unsigned j = 0; j < TN; ++j) acc[i][j] += left[i] * right[j];
        }
    }

#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        const unsigned row = row0 + i / 4 * 64 + ty * 4 + i % 4;
        if (row >= m) continue;
#pragma unroll
        for (unsigned half = 0; half < 2; ++half)
            store_four(c + (size_t)row * n, acc[i] + 4 * half, col0 + half * 64 + tx * 4, n);
    }
}

// Source: NVIDIA, Efficient GEMM in CUDA, Pipelining. Documentation of CUTLASS.
