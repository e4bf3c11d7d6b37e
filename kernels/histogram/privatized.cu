// /// cudalab
// summary  = "A copy of the block's table for each lane, 16-byte loads: no conflict under any skew"
// order    = 7
// dispatch = "one_pass"
// applies  = { classes = ["256", "64", "few"] }
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 256
// ITEMS_PER_THREAD  = 64    # at least; more where MAX_BLOCKS bounds the grid
// MAX_BLOCKS        = 660   # five on each of 132 multiprocessors: 48 registers a thread
// LOADS             = 4     # 16-byte loads under way together
// ///
//
// A block has a table for each lane, interleaved: the counter of class b for lane l is word
// b * 32 + l, in bank l. Lanes of one warp never meet in a counter and never in a bank, whatever
// the data are; only the block's warps share counters, hence atomics, whose result nobody awaits.
// The grid is as large as fits the device at once and goes through the data in strides, so that
// clearing and summing the tables is paid once for many elements.
//
// Limits: 32 copies of 384 counters fill 48 KB. With more classes lanes share a copy, down to one
// for all at 12 288 classes, and the data decide again.
#include "common/clear_counts.cuh"

constexpr unsigned MAX_COUNTERS = 48 * 1024 / 4;

// The largest power of two of copies that fit.
constexpr unsigned copies_that_fit(unsigned copies) {
    return copies * NUM_BINS <= MAX_COUNTERS ? copies : copies_that_fit(copies / 2);
}
constexpr unsigned COPIES = copies_that_fit(32);
constexpr unsigned BATCH = THREADS_PER_BLOCK * LOADS;  // vectors that a block takes at once

static_assert(NUM_BINS <= MAX_COUNTERS, "one copy must fit");
static_assert(THREADS_PER_BLOCK >= ITEMS_PER_VECTOR, "a thread for each item of the tail");

__device__ inline void count_item(T item, unsigned i, unsigned* copy, FirstBad* first_bad) {
    unsigned bin;
    if (find_class(item, i, first_bad, bin)) atomicAdd(&copy[bin * COPIES], 1u);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count(const T* data, unsigned n,
                                                                      unsigned* counts,
                                                                      FirstBad* first_bad) {
    __shared__ unsigned tables[NUM_BINS * COPIES];
    unsigned* copy = tables + threadIdx.x % COPIES;

    for (unsigned i = threadIdx.x; i < NUM_BINS * COPIES; i += THREADS_PER_BLOCK) tables[i] = 0;
    __syncthreads();  // the tables are clear before anyone counts

    const uint4* vectors = reinterpret_cast<const uint4*>(data);
    const unsigned num_vectors = n / ITEMS_PER_VECTOR;
    for (unsigned batch = blockIdx.x * BATCH; batch < num_vectors; batch += gridDim.x * BATCH) {
        // All loads first, so that they are under way together.
        uint4 loaded[LOADS];
#pragma unroll
        for (unsigned k = 0; k < LOADS; ++k) {
            const unsigned v = batch + k * THREADS_PER_BLOCK + threadIdx.x;
            loaded[k] = v < num_vectors ? vectors[v] : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (unsigned k = 0; k < LOADS; ++k) {
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
    // What is left after the last whole vector.
    const unsigned i = num_vectors * ITEMS_PER_VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && i < n) count_item(data[i], i, copy, first_bad);
    __syncthreads();  // all have counted

    // A thread sums the copies of a class. Those of class b begin in bank b * COPIES % 32; each
    // time that wraps, the threads begin one copy further, so that a warp reads 32 banks.
    for (unsigned bin = threadIdx.x; bin < NUM_BINS; bin += THREADS_PER_BLOCK) {
        unsigned sum = 0;
        for (unsigned k = 0; k < COPIES; ++k)
            sum += tables[bin * COPIES + (k + bin * COPIES / 32) % COPIES];
        if (sum != 0) atomicAdd(&counts[bin], sum);  // other blocks add as well
    }
}
