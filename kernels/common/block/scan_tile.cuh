// A tile of TILE_ITEMS items in the registers of a block: loaded, scanned, stored.
//
// A warp has 32 * ITEMS_PER_THREAD consecutive items, in rows of one 16-byte vector per lane: loads
// and stores of a warp are 512 neighbouring bytes, and no item passes through shared memory. Rows
// are scanned by shuffles, one after another; one word per warp and one barrier join the warps.
//
// Nothing is ever subtracted: inf - inf is NaN, and a large sum minus a large item has lost its low
// digits.
#pragma once
#include "common/thread/operators.cuh"
#include "common/warp/warp_scan.cuh"

constexpr unsigned TILE_ITEMS = THREADS_PER_BLOCK * ITEMS_PER_THREAD;
constexpr unsigned VECTOR_ITEMS = 16 / sizeof(T);
constexpr unsigned ROWS = ITEMS_PER_THREAD / VECTOR_ITEMS;
constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;

static_assert(ITEMS_PER_THREAD % VECTOR_ITEMS == 0, "whole vectors");
static_assert(THREADS_PER_BLOCK % 32 == 0 && WARPS <= 32, "a warp scans the totals of all warps");

using Op = OP<T>;

struct __align__(16) Vector {
    T items[VECTOR_ITEMS];
};

// Index in the tile of this thread's vector of a row.
__device__ inline unsigned place_in_tile(unsigned row) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    return ((warp * ROWS + row) * 32 + lane) * VECTOR_ITEMS;
}

// `in` is where the tile starts, `left` the number of items from there to the end of the array.
// Past the end there are identities.
__device__ inline void load_tile(const T* in, unsigned left, T (&items)[ITEMS_PER_THREAD]) {
    if (left >= TILE_ITEMS) {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const Vector vector = *reinterpret_cast<const Vector*>(in + place_in_tile(row));
#pragma unroll
            for (unsigned k = 0; k < VECTOR_ITEMS; ++k)
                items[row * VECTOR_ITEMS + k] = vector.items[k];
        }
        return;
    }
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row)
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) {
            const unsigned place = place_in_tile(row) + k;
            items[row * VECTOR_ITEMS + k] = place < left ? in[place] : Op::identity();
        }
}

// The sum of a vector of this thread.
__device__ inline T sum_of_row(const T (&items)[ITEMS_PER_THREAD], unsigned row) {
    T sum = items[row * VECTOR_ITEMS];
#pragma unroll
    for (unsigned k = 1; k < VECTOR_ITEMS; ++k) sum = Op()(sum, items[row * VECTOR_ITEMS + k]);
    return sum;
}

// For each of this thread's vectors the sum of all items of the tile before it; returns the sum of
// the tile. The whole block calls it; a barrier must separate two calls, since some warps may still
// be reading the first one's warp totals.
__device__ inline T scan_tile(const T (&items)[ITEMS_PER_THREAD], T (&before)[ROWS]) {
    __shared__ T warp_totals[WARPS];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    T warp_total = Op::identity();
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        const T inclusive = inclusive_scan_warp(sum_of_row(items, row), Op());
        const T left = __shfl_up_sync(FULL_WARP, inclusive, 1);
        before[row] = lane > 0 ? Op()(warp_total, left) : warp_total;
        warp_total = Op()(warp_total, __shfl_sync(FULL_WARP, inclusive, 31));
    }
    if (lane == 0) warp_totals[warp] = warp_total;
    __syncthreads();  // all warp totals are ready

    // Every warp scans the totals for itself: that is cheaper than a second barrier.
    const T totals = inclusive_scan_warp(lane < WARPS ? warp_totals[lane] : Op::identity(), Op());
    const T before_warp = __shfl_sync(FULL_WARP, totals, warp > 0 ? warp - 1 : 0);
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row)
        if (warp > 0) before[row] = Op()(before_warp, before[row]);
    return __shfl_sync(FULL_WARP, totals, WARPS - 1);
}

// Store an answer that no kernel reads again: its lines may be evicted first.
__device__ inline void store_last(Vector* to, const Vector& vector) {
    uint4 words;
    memcpy(&words, &vector, sizeof words);
    __stcs(reinterpret_cast<uint4*>(to), words);
}

// Store the tile's scan; `prefix` combines all items before the tile. `last`: no kernel reads it
// again in this run.
template <bool inclusive, bool last = false>
__device__ inline void store_tile(T* out, unsigned left, const T (&items)[ITEMS_PER_THREAD],
                                  const T (&before)[ROWS], T prefix) {
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        T running = Op()(prefix, before[row]);
        Vector vector;
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) {
            const T through = Op()(running, items[row * VECTOR_ITEMS + k]);
            vector.items[k] = inclusive ? through : running;
            running = through;
        }
        const unsigned place = place_in_tile(row);
        if (left >= TILE_ITEMS) {
            if (last)
                store_last(reinterpret_cast<Vector*>(out + place), vector);
            else
                *reinterpret_cast<Vector*>(out + place) = vector;
        } else {
#pragma unroll
            for (unsigned k = 0; k < VECTOR_ITEMS; ++k)
                if (place + k < left) out[place + k] = vector.items[k];
        }
    }
}
