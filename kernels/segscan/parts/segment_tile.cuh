// A tile of pairs in the registers of a block: made of keys and items, scanned as any tile, and
// stored as sums. Neither pairs nor flags are ever in memory. T is Pair, OP SegmentedSum.
#pragma once
#include "common/block/scan_tile.cuh"

// Beyond the end of the array there are identities.
__device__ inline void load_pairs(const int* keys, const int* items, unsigned start, unsigned n,
                                  T (&pairs)[ITEMS_PER_THREAD]) {
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row)
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) {
            const unsigned i = start + place_in_tile(row) + k;
            pairs[row * VECTOR_ITEMS + k] = i < n ? pair_of(keys, items, i) : Op::identity();
        }
}

// `before`: for each vector what the items before it in the tile come to; `prefix`: all tiles
// before.
__device__ inline void store_sums(int* out, unsigned start, unsigned n,
                                  const T (&pairs)[ITEMS_PER_THREAD], const T (&before)[ROWS],
                                  T prefix) {
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        T running = Op()(prefix, before[row]);
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) {
            running = Op()(running, pairs[row * VECTOR_ITEMS + k]);
            const unsigned i = start + place_in_tile(row) + k;
            if (i < n) out[i] = (int)(unsigned)running;
        }
    }
}
