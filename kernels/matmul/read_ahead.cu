// /// cudalab
// summary  = "Registers for two steps: one is read while the other is multiplied"
// order    = 11.92
// adds     = "the next step's numbers, read from shared memory ahead of this one's products"
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
// As `large_tiles`, with one change: a thread has registers for the numbers of two values of p. It
// reads those of p + 1 from shared memory before it multiplies those of p, so that the products do
// not wait for the reads. This is double buffering once more, from shared memory to registers.
//
// Within the unrolled steps of a stage the compiler moves reads forward by itself. It may not move
// them over a barrier, and that is what the change brings: the first numbers of the next stage are
// read, behind its barrier, before the last products of this one.
// Limits: the 1024 products of a stage share the schedulers with the instructions that compute
// addresses: `async_copy`.
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

    __align__(16) float left[2][TM], right[2][TN];
    auto read_step = [&](unsigned set, unsigned stage, unsigned p) {
#pragma unroll
        for (unsigned g = 0; g < TM / 4; ++g)
            read_four(&left[set][4 * g], &As[stage][p][down + 32 * g]);
#pragma unroll
        for (unsigned g = 0; g < TN / 4; ++g)
            read_four(&right[set][4 * g], &Bs[stage][p][across + 16 * g]);
    };

    float acc[TM][TN] = {};
#pragma unroll 1
    for (unsigned stage = 0; stage < STAGES - 1; ++stage) copy_tiles(stage, stage * BK);
    wait_for_copies<STAGES - 2>();
    __syncthreads();  // the first stage is complete
    read_step(0, 0, 0);
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        const unsigned stage = p0 / BK % STAGES;
        copy_tiles((stage + STAGES - 1) % STAGES, p0 + (STAGES - 1) * BK);

#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            if (p + 1 < BK) {
                read_step((p + 1) % 2, stage, p + 1);
            } else {
                wait_for_copies<STAGES - 2>();
                // The next stage is complete. And all have read this one, which the copies that
                // start in the next step overwrite.
                __syncthreads();
                if (p0 + BK < k) read_step(0, (stage + 1) % STAGES, 0);
            }
#pragma unroll
            for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                for (unsigned j = 0; j < TN; ++j) acc[i][j] += left[p % 2][i] * right[p % 2][j];
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

// Source: NVIDIA, Efficient GEMM in CUDA, Pipelining. Documentation of CUTLASS.
