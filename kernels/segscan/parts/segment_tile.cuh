// A tile of pairs in the registers of a block: made of keys and items, scanned as any tile, and
// stored as sums. Neither pairs nor flags are ever in memory. T is Pair, OP SegmentedSum.
#pragma once
#include "common/block/scan_tile.cuh"

static_assert(VECTOR_ITEMS == 2, "a row's two keys are one int2");

__device__ inline bool is_whole(const void* keys, const void* items, unsigned start, unsigned n) {
    return n - start >= TILE_ITEMS && ((size_t)keys | (size_t)items) % sizeof(int2) == 0;
}

// Beyond the end of the array there are identities. Whole warps call it.
__device__ inline void load_pairs(const int* keys, const int* items, unsigned start, unsigned n,
                                  T (&pairs)[ITEMS_PER_THREAD]) {
    const bool whole = is_whole(keys, items, start, n);
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        const unsigned i = start + place_in_tile(row);
        if (whole) {
            const int2 key = *reinterpret_cast<const int2*>(keys + i);
            const int2 item = *reinterpret_cast<const int2*>(items + i);
            int left = __shfl_up_sync(FULL_WARP, key.y, 1);  // the lane before has read it
            if (threadIdx.x % 32 == 0 && i > 0) left = keys[i - 1];
            pairs[2 * row] = pair_of(i == 0 || key.x != left, item.x);
            pairs[2 * row + 1] = pair_of(key.y != key.x, item.y);
        } else {
#pragma unroll
            for (unsigned k = i; k < i + 2; ++k)
                pairs[2 * row + (k - i)] = k < n ? pair_at(keys, items, k) : Op::identity();
        }
    }
}

// `before`: for each vector what the items before it in the tile come to; `prefix`: all tiles
// before.
__device__ inline void store_sums(int* out, unsigned start, unsigned n,
                                  const T (&pairs)[ITEMS_PER_THREAD], const T (&before)[ROWS],
                                  T prefix) {
    const bool whole = is_whole(out, out, start, n);
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        const T first = Op()(Op()(prefix, before[row]), pairs[2 * row]);
        const int2 sums = {(int)(unsigned)first, (int)(unsigned)Op()(first, pairs[2 * row + 1])};
        const unsigned i = start + place_in_tile(row);
        if (whole) {
            *reinterpret_cast<int2*>(out + i) = sums;
        } else {
            if (i < n) out[i] = sums.x;
            if (i + 1 < n) out[i + 1] = sums.y;
        }
    }
}
