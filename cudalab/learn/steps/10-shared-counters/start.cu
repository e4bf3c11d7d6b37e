// /// cudalab
// summary  = "Count where it is near"
// order    = 100
// dispatch = "one_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// ///

#include "histogram/parts/clear_counts.cuh"

static_assert(ITEMS_PER_THREAD == 1, "a thread for each element");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count(const T* data, unsigned n,
                                                                      unsigned* counts,
                                                                      FirstBad* first_bad) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i >= n) return;

    unsigned bin;
    if (find_class(data[i], i, first_bad, bin)) atomicAdd(&counts[bin], 1u);
}
