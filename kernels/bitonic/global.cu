// /// cudalab
// summary  = "A launch for each step of the network, keys in global memory"
// order    = 2
// adds     = "the first step of a merge is mirrored: no directions"
// dispatch = "steps"
// defines  = { THREADS_PER_BLOCK = 256 }
// ///
//
// `alternating` without directions: all groups go up. Two neighbours then form a bitonic sequence
// only if the second one is read backwards; so the first step of a merge compares mirrored keys, k
// with size - 1 - k, and leaves two bitonic halves as B_size would. For eight keys:
//
//     B_size of `alternating`   0-4  1-5  2-6  3-7
//     mirrored                  0-7  1-6  2-5  3-4
//
// B_size/2, ..., B_2 follow as before. All comparators sort the same way, and padding is never
// moved.
//
// A thread has one comparator. A step needs the whole step before, and across blocks only the end
// of a launch guarantees that: log n * (log n + 1) / 2 launches, each of which reads and writes all
// keys.
// Limits: those passes, on a GPU. On a CPU a launch costs less than the barriers that would replace
// it, each of which switches between all threads of a block.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK.
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

// Source: Batcher, Sorting Networks and Their Applications. AFIPS Spring Joint Computer Conference,
// 1968.
