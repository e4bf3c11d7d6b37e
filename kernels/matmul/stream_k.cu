// /// cudalab
// summary  = "Stream-K: blocks that stay take equal shares of all steps of all tiles"
// order    = 17.7
// ladder   = "small products"
// adds     = "equal shares of all steps, for blocks that stay"
// dispatch = "stream_k"
//
// [defines]
// BM                = 128
// BN                = 256
// BK                = 8
// STAGES            = 5
// TM                = 8
// TN                = 16
// THREADS_PER_BLOCK = 256
// AT_ONCE           = "MULTIPROCESSORS"  # blocks: one on each
// SHARED_BYTES      = 62720  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// A product of 40 tiles keeps 40 of 132 multiprocessors busy; one of 140 tiles keeps them all busy
// for one wave, and 8 of them for a second. `split_k` cuts each tile into pieces of one size and
// hopes that their number suits the GPU. Here the work is what is counted: a tile is k / BK steps,
// all tiles one after the other are a stream of steps, and each of as many persistent blocks as run
// at a time takes an equal share of it, wherever that begins and ends. With four blocks for three
// tiles, block 1 has the last quarter of tile 0 and the first half of tile 1.
//
// The block with the last step of a tile stores the tile. It adds the sums of the blocks before it,
// in their order, so that the result is the same in every run; each of these has left them in
// `partials`, and raised its flag. A block leaves at most one such part, that of its last tile. It
// computes this one first and the tile that others began last: then what it waits for has been
// ready for long.
//
// Blocks wait only for blocks that began before them: numbers are drawn, as tiles of a scan are, so
// it does not matter how many of them run at a time.
//
// Limits: up to AT_ONCE parts of 128 KB are written and read once more, and a tile that many blocks
// share is put together by one of them.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "common/device/signals.cuh"
#include "matmul/async_copy.cu"

constexpr unsigned TILE = BM * BN;

// Draws this block's number; the last one sets the ticket back for the next launch.
__device__ inline unsigned draw_number(unsigned* ticket) {
    __shared__ unsigned number;
    if (threadIdx.x == 0) number = atomicInc(ticket, gridDim.x - 1);
    __syncthreads();  // all threads can read the number
    return number;
}

// Leaves this block's sums of a part of a tile for the block that has the tile's end.
__device__ inline void leave_part(float* part, unsigned* flag, const float (&acc)[TM][TN]) {
    store_elements<true>(part, acc, row_in_tile(), column_in_tile(), BM, BN);
    __syncthreads();  // all threads have stored theirs
    if (threadIdx.x == 0) {
        fence_device();  // whoever sees the flag sees the sums
        atomicExch(flag, 1);
    }
}

// Waits for another block's part, adds it to acc, and lowers its flag for the next launch.
__device__ inline void add_part(float (&acc)[TM][TN], const float* part, unsigned* flag) {
    if (threadIdx.x == 0) {
        while (atomicCAS(flag, 1, 0) == 0) __nanosleep(64);
        fence_device();  // the sums are read after their flag
    }
    __syncthreads();  // the part is there
#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        const float* row = part + (row_in_tile() + i / 4 * 32 + i % 4) * BN + column_in_tile();
#pragma unroll
        for (unsigned g = 0; g < TN / 4; ++g) {
            const float4 v = *reinterpret_cast<const float4*>(row + g * 16);
            acc[i][4 * g] += v.x;
            acc[i][4 * g + 1] += v.y;
            acc[i][4 * g + 2] += v.z;
            acc[i][4 * g + 3] += v.w;
        }
    }
}

// The first step of a block's share.
__device__ inline unsigned first_step(unsigned block, unsigned steps) {
    return (unsigned)((unsigned long long)steps * block / gridDim.x);
}

template <bool WIDE>
__device__ inline void multiply_share(float* ring, const float* a, const float* b, float* c,
                                      float* partials, unsigned* flags, unsigned block, unsigned m,
                                      unsigned k, unsigned n) {
    const unsigned tile_steps = (k + BK - 1) / BK;
    const unsigned steps = (m + BM - 1) / BM * ((n + BN - 1) / BN) * tile_steps;
    const unsigned begin = first_step(block, steps);
    for (unsigned end = first_step(block + 1, steps); end > begin;) {
        const unsigned tile = (end - 1) / tile_steps, tile_begin = tile * tile_steps;
        const unsigned from = max(begin, tile_begin);
        const unsigned k_begin = (from - tile_begin) * BK;
        const unsigned k_end = min(k, (end - tile_begin) * BK);
        const bool has_end = end == tile_begin + tile_steps;
        end = from;

        const uint2 first = first_element(tile, m, n);
        float acc[TM][TN] = {};
        __syncthreads();  // all have done with the ring, and with the part that was added last
        sum_tile<WIDE>(acc, ring, a, b, m, k, n, first.x, first.y, first.y + BN / 2, k_begin,
                       k_end);
        if (!has_end) {
            leave_part(partials + (size_t)block * TILE, flags + block, acc);
            continue;
        }
        for (unsigned other = block; first_step(other, steps) > tile_begin;) {
            --other;  // the blocks before this one, back to the tile's first step
            add_part(acc, partials + (size_t)other * TILE, flags + other);
        }
        store_elements<WIDE>(c, acc, first.x + row_in_tile(), first.y + column_in_tile(), m, n);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply_stream(
    const float* a, const float* b, float* c, float* partials, unsigned* flags, unsigned* ticket,
    unsigned m, unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    const unsigned block = draw_number(ticket);
    if (n % 4 == 0) {
        multiply_share<true>(ring, a, b, c, partials, flags, block, m, k, n);
    } else {
        multiply_share<false>(ring, a, b, c, partials, flags, block, m, k, n);
    }
}

// Source: Osama et al., Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
// Multiplication on the GPU. PPoPP 2023, arXiv:2301.03598. There the block with a tile's first step
// stores it, and each block goes through its share from left to right.
