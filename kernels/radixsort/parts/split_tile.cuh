// Brings the keys of a tile to the bins they belong to, in any order within a bin. Atomics in
// shared memory give each key its place among those of the tile; one atomic in global memory for
// each bin reserves the places that the tile needs in it.
#pragma once
#include "common/thread/prefetch.cuh"
#include "radixsort/parts/resident_blocks.cuh"
#include "radixsort/parts/scan_shared.cuh"

constexpr unsigned MAX_SPLIT_BINS = 1024;  // of a tile

// The shared memory of a split, besides the tile.
struct Bins {
    unsigned places[MAX_SPLIT_BINS];        // counts, then places in the sorted tile
    unsigned output_shift[MAX_SPLIT_BINS];  // from there to where a key goes
};

// Blocks that split tiles of ROWS keys per thread.
template <unsigned ROWS>
constexpr unsigned RESIDENT_SPLITS = resident_blocks(
    BLOCKS_PER_SM, THREADS_PER_BLOCK, ROWS * THREADS_PER_BLOCK * sizeof(Bits) + sizeof(Bins) + 256);

// Calls visit(row) for the rows of THREADS_PER_BLOCK places in which the thread has one of `items`.
// If all rows are full there are no conditions, so that loads of rows overlap.
template <unsigned ROWS, class Visit>
__device__ inline void for_rows(unsigned items, const Visit& visit) {
    if (items >= ROWS * THREADS_PER_BLOCK) {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) visit(row);
    } else {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            if (row * THREADS_PER_BLOCK + threadIdx.x < items) visit(row);
    }
}

// Loads a tile's keys into registers, in rows of THREADS_PER_BLOCK neighbours.
template <unsigned ROWS, class Key>
__device__ inline void load_tile(const Key* in, unsigned n, Bits (&bits)[ROWS]) {
    constexpr unsigned TILE_ITEMS = ROWS * THREADS_PER_BLOCK;
    const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && left > (TILES_AHEAD + 1) * TILE_ITEMS)
        prefetch_to_l2(in + start + TILES_AHEAD * TILE_ITEMS, TILE_ITEMS * sizeof(Key));
    const Key* const first = in + start + threadIdx.x;
    for_rows<ROWS>(left,
                   [&](unsigned row) { bits[row] = ordered_bits(first[row * THREADS_PER_BLOCK]); });
}

// Splits the tile whose keys load_tile() has read. reserve(bin, count) returns where the first of
// `count` keys goes; put(staged, i, place) writes staged[i] there. The whole block calls it.
template <unsigned ROWS, class BinOf, class Reserve, class Put>
__device__ inline void split_tile(const Bits (&bits)[ROWS], unsigned n, const BinOf& bin_of,
                                  unsigned bins, const Reserve& reserve, const Put& put,
                                  Bins& memory) {
    constexpr unsigned TILE_ITEMS = ROWS * THREADS_PER_BLOCK;
    extern __shared__ unsigned long long chunk_memory[];  // a tile
    Bits* const staged = reinterpret_cast<Bits*>(chunk_memory);
    unsigned *const places = memory.places, *const output_shift = memory.output_shift;
    const unsigned left = n - blockIdx.x * TILE_ITEMS;

    for (unsigned b = threadIdx.x; b < bins; b += THREADS_PER_BLOCK) places[b] = 0;
    __syncthreads();  // no thread counts before all counters are zero
    for_rows<ROWS>(left, [&](unsigned row) { atomicAdd(&places[bin_of(bits[row])], 1u); });
    __syncthreads();  // all have counted
    for (unsigned b = threadIdx.x; b < bins; b += THREADS_PER_BLOCK)
        output_shift[b] = places[b] > 0 ? reserve(b, places[b]) : 0;
    __syncthreads();  // the counts have been read
    exclusive_scan_shared<THREADS_PER_BLOCK>(places, bins);
    for (unsigned b = threadIdx.x; b < bins; b += THREADS_PER_BLOCK)
        output_shift[b] -= places[b];  // modulo 2^32
    __syncthreads();                   // the places have been read

    // Lanes with the same bin queue for its counter. If the keys are already sorted, a whole warp
    // often has one bin: its lanes then take a single atomic together.
    const auto share = [](unsigned bin) {
        return __all_sync(FULL_WARP, bin == __shfl_sync(FULL_WARP, bin, 0));
    };
    if (left >= TILE_ITEMS && share(bin_of(bits[0]))) {
        const unsigned lane = threadIdx.x % 32;
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const unsigned bin = bin_of(bits[row]);
            unsigned place = 0;
            if (share(bin)) {
                if (lane == 0) place = atomicAdd(&places[bin], 32u);
                place = __shfl_sync(FULL_WARP, place, 0) + lane;
            } else {
                place = atomicAdd(&places[bin], 1u);
            }
            staged[place] = bits[row];
        }
    } else {
        for_rows<ROWS>(left, [&](unsigned row) {
            staged[atomicAdd(&places[bin_of(bits[row])], 1u)] = bits[row];
        });
    }
    __syncthreads();  // the tile is in the order of its bins

    // Neighbours in `staged` go to neighbouring places, except where the bin changes.
    for_rows<ROWS>(left, [&](unsigned row) {
        const unsigned i = row * THREADS_PER_BLOCK + threadIdx.x;
        put(staged, i, output_shift[bin_of(staged[i])] + i);
    });
}

// Writes keys to `out` as bit patterns, whose order as unsigned numbers is the order of the keys.
__device__ inline auto put_into(Bits* out) {
    return [=](const Bits* staged, unsigned i, unsigned place) { out[place] = staged[i]; };
}
