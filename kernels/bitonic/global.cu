// /// cudalab
// summary  = "A launch for each step of the network, keys in global memory"
// order    = 1
// dispatch = "steps"
// default  = ["cpu"]
// defines  = { THREADS_PER_BLOCK = 256 }
// ///
//
// Merge groups of 2 keys, of 4, of 8, ... until one group is the whole array; each merge is a
// half-cleaner B_size with mirrored partners, then B_size/2, ..., B_2. A thread has one comparator.
// A step needs all of the step before, and between blocks only the end of a launch promises that:
// log n * (log n + 1) / 2 launches, each of which reads and writes all keys.
// Limits: those passes, on a GPU. On a CPU a launch costs less than the barriers that would save
// it, each of which switches between all threads of a block.
#include "bitonic/parts/bitonic_network.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) begin_merge(T* keys, unsigned n,
                                                                            unsigned size) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    compare_exchange(keys, n, mirrored(t, size));
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) clean_halves(T* keys, unsigned n,
                                                                             unsigned stride) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    compare_exchange(keys, n, half_cleaner(t, stride));
}
