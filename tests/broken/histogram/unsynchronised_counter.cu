// /// cudalab
// summary  = "Counters in global memory without atomics"
// order    = 100
// dispatch = "one_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// ///
//
// /// expect
// kind   = "lost_update"
// space  = "global"
// buffer = "counts"
// ///
#include "histogram/parts/clear_counts.cuh"

extern "C" __global__ void count(const T* data, unsigned n, unsigned* counts, FirstBad* first_bad) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    unsigned bin;
    if (i < n && find_class(data[i], i, first_bad, bin)) counts[bin] = counts[bin] + 1;  // (1)
}
