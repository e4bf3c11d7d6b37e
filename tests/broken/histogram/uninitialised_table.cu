// /// cudalab
// summary  = "Nobody clears the block's table"
// order    = 101
// dispatch = "one_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// applies  = { classes = ["256", "64", "few"] }
// ///
//
// /// expect
// kind   = "uninitialised"
// space  = "shared"
// buffer = "table"
// ///
#include "histogram/parts/clear_counts.cuh"

extern "C" __global__ void count(const T* data, unsigned n, unsigned* counts, FirstBad* first_bad) {
    __shared__ unsigned table[NUM_BINS];
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    unsigned bin;
    if (i < n && find_class(data[i], i, first_bad, bin)) atomicAdd(&table[bin], 1u);  // (1)
    __syncthreads();
    for (unsigned b = threadIdx.x; b < NUM_BINS; b += THREADS_PER_BLOCK)
        if (table[b] != 0) atomicAdd(&counts[b], table[b]);  // (1)
}
