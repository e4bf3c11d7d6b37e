// /// cudalab
// summary  = "Repair: lanes do not run in step"
// order    = 100
// dispatch = "one_pass"
// defines  = { THREADS_PER_BLOCK = 128, ITEMS_PER_THREAD = 1 }
// applies  = { classes = ["256", "64", "few"] }
// ///

#include "histogram/parts/clear_counts.cuh"

extern "C" __global__ void count(const T* data, unsigned n, unsigned* counts, FirstBad* first_bad) {
    __shared__ unsigned tables[THREADS_PER_BLOCK / 32][NUM_BINS];
    unsigned* table = tables[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32;
    for (unsigned b = lane; b < NUM_BINS; b += 32) table[b] = 0;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    unsigned bin;
    if (i < n && find_class(data[i], i, first_bad, bin)) atomicAdd(&table[bin], 1u);
    __syncwarp();
    for (unsigned b = lane; b < NUM_BINS; b += 32)
        if (table[b] != 0) atomicAdd(&counts[b], table[b]);
}
