// /// cudalab
// summary  = "Count where it is near"
// order    = 100
// dispatch = "one_pass"
// applies  = { classes = ["256", "64", "few"] }
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 64 }
// ///

#include "histogram/parts/clear_counts.cuh"

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK * ITEMS_PER_THREAD;

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count(const T* data, unsigned n,
                                                                      unsigned* counts,
                                                                      FirstBad* first_bad) {
    __shared__ unsigned table[NUM_BINS];
    const unsigned block_start = blockIdx.x * ITEMS_PER_BLOCK;

    for (unsigned bin = threadIdx.x; bin < NUM_BINS; bin += THREADS_PER_BLOCK) table[bin] = 0;
    __syncthreads();  // the table is clear before anyone counts

#pragma unroll 4
    for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
        const unsigned i = block_start + k * THREADS_PER_BLOCK + threadIdx.x;
        unsigned bin;
        if (i < n && find_class(data[i], i, first_bad, bin)) atomicAdd(&table[bin], 1u);
    }
    __syncthreads();  // all have counted

    for (unsigned bin = threadIdx.x; bin < NUM_BINS; bin += THREADS_PER_BLOCK)
        if (table[bin] != 0) atomicAdd(&counts[bin], table[bin]);  // other blocks add as well
}
