// The tables of a block that counts in shared memory, up to MAX_COPIES where they fit,
// interleaved: the counter of class b in copy l is word b * COPIES + l. With 32 copies that is
// bank l: lanes of a warp never meet in a counter and never in a bank, for any data.
#pragma once
#include "histogram/parts/clear_counts.cuh"

#ifndef MAX_COPIES
#define MAX_COPIES 32  // one for each lane
#endif

constexpr unsigned MAX_COUNTERS = 48 * 1024 / 4 - 2;  // two words are for the variant

// The largest power of two of copies that fit.
constexpr unsigned copies_that_fit(unsigned copies) {
    return copies * NUM_BINS <= MAX_COUNTERS ? copies : copies_that_fit(copies / 2);
}
constexpr unsigned COPIES = copies_that_fit(MAX_COPIES);

static_assert(NUM_BINS <= MAX_COUNTERS, "one copy must fit");
static_assert(THREADS_PER_BLOCK >= ITEMS_PER_VECTOR, "a thread for each item of the tail");

// A barrier must follow.
__device__ inline void clear_tables(unsigned* tables) {
    for (unsigned i = threadIdx.x; i < NUM_BINS * COPIES; i += THREADS_PER_BLOCK) tables[i] = 0;
}

// Lanes share counters with other warps only: hence atomics, whose result is not used.
__device__ inline void count_item(T item, unsigned i, unsigned* copy, FirstBad* first_bad) {
    unsigned bin;
    if (find_class(item, i, first_bad, bin)) atomicAdd(&copy[bin * COPIES], 1u);
}

// Count the vectors from `batch` on, NUM_LOADS per thread.
template <unsigned NUM_LOADS>
__device__ inline void count_batch(const T* data, unsigned batch, unsigned num_vectors,
                                   unsigned* copy, FirstBad* first_bad) {
    const uint4* vectors = reinterpret_cast<const uint4*>(data);
    // All loads first, so that all are in flight together.
    uint4 loaded[NUM_LOADS];
#pragma unroll
    for (unsigned k = 0; k < NUM_LOADS; ++k) {
        const unsigned v = batch + k * THREADS_PER_BLOCK + threadIdx.x;
        loaded[k] = v < num_vectors ? vectors[v] : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (unsigned k = 0; k < NUM_LOADS; ++k) {
        const unsigned v = batch + k * THREADS_PER_BLOCK + threadIdx.x;
        const unsigned words[4] = {loaded[k].x, loaded[k].y, loaded[k].z, loaded[k].w};
        if (v < num_vectors) {
#pragma unroll
            for (unsigned j = 0; j < ITEMS_PER_VECTOR; ++j) {
                const T item = item_of(words[j / ITEMS_PER_WORD], j % ITEMS_PER_WORD);
                count_item(item, v * ITEMS_PER_VECTOR + j, copy, first_bad);
            }
        }
    }
}

// What is left after the last whole vector: one block does it.
__device__ inline void count_tail(const T* data, unsigned n, unsigned* copy, FirstBad* first_bad) {
    const unsigned i = n / ITEMS_PER_VECTOR * ITEMS_PER_VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && i < n) count_item(data[i], i, copy, first_bad);
}

// Add the tables to the counts, after a barrier. A thread sums the copies of a class. Those of
// class b begin in bank b * COPIES % 32; each time that wraps, the threads begin one copy further,
// so that a warp reads 32 banks.
__device__ inline void add_tables(const unsigned* tables, unsigned* counts) {
    for (unsigned bin = threadIdx.x; bin < NUM_BINS; bin += THREADS_PER_BLOCK) {
        unsigned sum = 0;
        for (unsigned k = 0; k < COPIES; ++k)
            sum += tables[bin * COPIES + (k + bin * COPIES / 32) % COPIES];
        if (sum != 0) atomicAdd(&counts[bin], sum);  // other blocks add as well
    }
}
