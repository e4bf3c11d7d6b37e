// /// cudalab
// summary  = "One atomic addition to global memory for each element"
// order    = 1
// dispatch = "one_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// ///
//
// One thread per element: it finds the class and increments its counter in global memory. Threads
// that meet in a counter must not lose an addition, so it is atomic: the memory system does it, and
// serially where the counter is the same.
// Limits: every element costs a trip to the L2 cache, and few classes, or one that holds most of
// the data, make all threads wait for a few counters.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, ITEMS_PER_THREAD.
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
