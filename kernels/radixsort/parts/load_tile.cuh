// A tile's keys in registers, in rows of THREADS_PER_BLOCK neighbours.
#pragma once
#include "common/thread/prefetch.cuh"

template <unsigned ROWS, class Key>
__device__ inline void load_tile(const Key* in, unsigned n, Bits (&bits)[ROWS]) {
    constexpr unsigned TILE_ITEMS = ROWS * THREADS_PER_BLOCK;
    const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && left > (TILES_AHEAD + 1) * TILE_ITEMS)
        prefetch_to_l2(in + start + TILES_AHEAD * TILE_ITEMS, TILE_ITEMS * sizeof(Key));
    const Key* const first = in + start + threadIdx.x;
    const auto load_row = [&](unsigned row) {
        bits[row] = ordered_bits(first[row * THREADS_PER_BLOCK]);
    };
    if (left >= TILE_ITEMS) {  // no conditions: the loads overlap
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) load_row(row);
    } else {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            if (row * THREADS_PER_BLOCK + threadIdx.x < left) load_row(row);
    }
}
