// /// cudalab
// summary  = "The counts in global memory start as whatever is there"
// order    = 102
// dispatch = "one_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// ///
//
// /// expect
// kind   = "uninitialised"
// space  = "global"
// buffer = "counts"
// ///
#include "histogram/parts/histogram_classes.cuh"

extern "C" __global__ void clear_counts(unsigned* counts, FirstBad* first_bad) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *first_bad = NO_BAD_ELEMENT;  // and the counts?
}

extern "C" __global__ void count(const T* data, unsigned n, unsigned* counts, FirstBad* first_bad) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    unsigned bin;
    if (i < n && find_class(data[i], i, first_bad, bin)) atomicAdd(&counts[bin], 1u);  // (1)
}
