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
// Limits: a thread uses a number from shared memory for 4 products; `async_copy` uses it more
// often. Not yet measured on a GPU.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK.
#include "common/thread/async_copy.cuh"

static_assert(TM == 8 && TN == 8 && BK == 8, "two pieces of 4 x 4 in each direction");
static_assert(BM == 128 && BN == 128 && THREADS_PER_BLOCK == 256, "16 bytes of each tile a thread");

constexpr unsigned LD = BM + 4;  // words per row of a tile; a multiple of 4 keeps rows aligned

// Start copying a tile of a matrix whose lines run along k, stored as [p][line]. Zeros past the
// edges, where nothing is read: any valid address does.
__device__ inline void copy_transposed(float tile[BK][LD], const float* source, unsigned line0,
                                       unsigned lines, unsigned p0, unsigned k) {
    const unsigned p = threadIdx.x % BK;
#pragma unroll
    for (unsigned i = 0; i < BM * BK / THREADS_PER_BLOCK; ++i) {
        const unsigned line = threadIdx.x / BK + i * (THREADS_PER_BLOCK / BK);
        const bool inside = line0 + line < lines && p0 + p < k;
        const float* at = source + (size_t)(line0 + line) * k + p0 + p;
        copy_async(&tile[p][line], inside ? at : source, inside);
    }
}

// Start copying a tile of B itself.
__device__ inline void copy_rows(float tile[BK][LD], const float* b, unsigned col0, unsigned n,
                                 unsigned p0, unsigned k) {
    if (n % 4 == 0) {
        const unsigned p = threadIdx.x / 32, col = threadIdx.x % 32 * 4;
        const bool inside = p0 + p < k && col0 + col < n;
        const float* at = b + (size_t)(p0 + p) * n + col0 + col;
        copy_async_16(&tile[p][col], inside ? at : b, inside);
    } else {
#pragma unroll
        for (unsigned i = 0; i < BK * BN / THREADS_PER_BLOCK; ++i) {
            const unsigned e = threadIdx.x + i * THREADS_PER_BLOCK, p = e / BN, col = e % BN;
            const bool inside = p0 + p < k && col0 + col < n;
            const float* at = b + (size_t)(p0 + p) * n + col0 + col;
            copy_async(&tile[p][col], inside ? at : b, inside);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    __shared__ __align__(16) float As[STAGES][BK][LD], Bs[STAGES][BK][LD];
    const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;

    // Past the end of k there is nothing to copy, but the group counts.
    auto copy_tiles = [&](unsigned stage, unsigned p0) {
        if (p0 < k) {
            copy_transposed(As[stage], a, row0, m, p0, k);
            if (B_TRANSPOSED) {
                copy_transposed(Bs[stage], b, col0, n, p0, k);
            } else {
                copy_rows(Bs[stage], b, col0, n, p0, k);
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
                *reinterpret_cast<float4*>(left + 4 * half) =
                    *reinterpret_cast<const float4*>(&As[stage][p][half * 64 + ty * 4]);
                *reinterpret_cast<float4*>(right + 4 * half) =
                    *reinterpret_cast<const float4*>(&Bs[stage][p][half * 64 + tx * 4]);
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
        for (unsigned half = 0; half < 2; ++half) {
            const unsigned col = col0 + half * 64 + tx * 4;
            float* place = c + (size_t)row * n + col;
            const float* v = acc[i] + 4 * half;
            if (n % 4 == 0) {
                if (col < n)
                    *reinterpret_cast<float4*>(place) = make_float4(v[0], v[1], v[2], v[3]);
            } else {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j)
                    if (col + j < n) place[j] = v[j];
            }
        }
    }
}

// Source: NVIDIA, Efficient GEMM in CUDA, Pipelining. Documentation of CUTLASS.
