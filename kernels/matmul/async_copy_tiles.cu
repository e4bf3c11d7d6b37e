// /// cudalab
// summary  = "Two pairs of tiles, filled by asynchronous copies"
// order    = 11.6
// adds     = "tiles by asynchronous copies that bypass the registers"
// dispatch = "tiles"
// defines  = { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS_PER_BLOCK = 256 }
// ///
//
// As `double_buffered`, with one change: the tiles come by asynchronous copies (cp.async), straight
// from global to shared memory. They need no registers for numbers on their way and no instructions
// that store them; a thread starts the copies of the next tiles, multiplies, and waits for them
// only at the next barrier.
//
// A copy cannot transpose what it moves, so numbers along k, whose neighbours go to different rows
// of the tile, are copied one by one: a warp copies 8 numbers of each of 4 lines and writes banks
// 4p + line, all different. Rows of B are copied 16 bytes at a time if n % 4 == 0.
// Limits: four 4-byte copies per thread and step where `double_buffered` needs one load of A. They
// cost more than the registers saved, and this rung is slower than the one before: n = 2048 takes
// 0.474 ms on an H200, and 0.407 ms with `double_buffered`. A thread uses a number from shared
// memory for 4 products; `async_copy` uses it more often.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, TM, TN, THREADS_PER_BLOCK.
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
    __shared__ __align__(16) float As[2][BK][LD], Bs[2][BK][LD];
    const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;

    auto copy_tiles = [&](unsigned stage, unsigned p0) {
        copy_transposed(As[stage], a, row0, m, p0, k);
        if (B_TRANSPOSED) {
            copy_transposed(Bs[stage], b, col0, n, p0, k);
        } else {
            copy_rows(Bs[stage], b, col0, n, p0, k);
        }
        commit_copies();
    };

    float acc[TM][TN] = {};
    copy_tiles(0, 0);
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        const unsigned stage = p0 / BK % 2;
        wait_for_copies<0>();
        // The tiles are complete, every thread has waited for its copies. And all have multiplied
        // those of the step before, which the copies that start now overwrite.
        __syncthreads();
        if (p0 + BK < k) copy_tiles(1 - stage, p0 + BK);

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

// Source: NVIDIA, CUDA C++ Programming Guide, Asynchronous Data Copies.
