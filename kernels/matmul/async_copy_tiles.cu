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
// 0.476 ms on an H200, and 0.409 ms with `double_buffered`. And a copy has no longer to arrive than
// one step takes: `async_copy_ring`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, TM, TN, THREADS_PER_BLOCK.
#include "matmul/parts/copied_tiles.cuh"

static_assert(TM == 8 && TN == 8 && BK == 8, "two pieces of 4 x 4 in each direction");
static_assert(BM == 128 && BN == 128 && THREADS_PER_BLOCK == 256, "16 bytes of each tile a thread");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    __shared__ __align__(16) float As[2][BK][BM + 4], Bs[2][BK][BN + 4];
    const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;

    auto copy_tiles = [&](unsigned stage, unsigned p0) {
        copy_transposed<BM>(As[stage], a, row0, m, p0, k);
        if (B_TRANSPOSED) {
            copy_transposed<BN>(Bs[stage], b, col0, n, p0, k);
        } else {
            copy_rows<BN>(Bs[stage], b, col0, n, p0, k);
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

// Source: NVIDIA, CUDA C++ Programming Guide, Asynchronous Data Copies.
