// A sweep over the keys for each digit, each in a launch of its own, after a count of all digits.
#pragma once
#include "common/thread/prefetch.cuh"
#include "radixsort/parts/take_tile.cuh"

constexpr unsigned COPIES = 64 / sizeof(T);  // 64 KB of counters, for any type

// counts[pass * RADIX + digit] += the occurrences of the digit: the whole grid calls it, in blocks
// of THREADS. Takes 4 * PASSES * RADIX * COPIES bytes of dynamic shared memory.
template <unsigned THREADS, unsigned COPIES, unsigned LOADS>
__device__ inline void count_all_keys(const T* keys, unsigned* counts, unsigned n) {
    extern __shared__ unsigned long long digit_memory[];
    unsigned* const counters = reinterpret_cast<unsigned*>(digit_memory);
    clear_counters<COPIES, THREADS>(counters);
    __syncthreads();  // no thread counts before all counters are zero
    count_keys<COPIES, LOADS>(keys, n, blockIdx.x * THREADS + threadIdx.x, gridDim.x * THREADS,
                              counters);
    __syncthreads();  // all have counted
    add_counters<COPIES, THREADS>(counters, counts);
}

// The counts are zero before the first launch.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_all_digits(const T* keys,
                                                                                 unsigned* counts,
                                                                                 unsigned n) {
    count_all_keys<THREADS_PER_BLOCK, COPIES, 2>(keys, counts, n);
}

// A block for each pass finds out where each digit begins in the pass's output, and clears the
// counts.
extern "C" __global__ void __launch_bounds__(RADIX) place_digits(unsigned* counts,
                                                                 unsigned* digit_starts) {
    const unsigned i = blockIdx.x * RADIX + threadIdx.x;
    const unsigned count = counts[i];
    unsigned total;
    digit_starts[i] = exclusive_scan_block<RADIX>(count, total);
    counts[i] = 0;
}

// ticket: the launch's number in the high half, the next tile in the low half.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) sweep(
    const T* in, T* out, const unsigned* digit_starts, Word* statuses, Word* ticket, unsigned n,
    int shift) {
    __shared__ int hidden_shift;
    if (threadIdx.x == 0) hidden_shift = shift;
    const Word taken = take_tile(ticket);
    const unsigned tile = (unsigned)taken;
    const unsigned start = tile * CHUNK_ITEMS;
    const unsigned tile_items = n - start < CHUNK_ITEMS ? n - start : CHUNK_ITEMS;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && n - start > (TILES_AHEAD + 1) * CHUNK_ITEMS) {
        const T* ahead = in + start + TILES_AHEAD * CHUNK_ITEMS;
        prefetch_to_l2(ahead, CHUNK_ITEMS * sizeof(T));
        if (PAIRS) prefetch_to_l2(ahead + n, CHUNK_ITEMS * sizeof(T));
    }
    // Launches count from 1: a word that is zero holds nothing.
    LookBack<3> places{
        statuses, tile, (unsigned)(taken >> 32) + 1,
        threadIdx.x < RADIX ? digit_starts[shift / RADIX_BITS * RADIX + threadIdx.x] : 0};
    scatter_chunk<CHUNK_ROWS>(in, out, n, start, tile_items, shift, hidden_shift, places);
}
