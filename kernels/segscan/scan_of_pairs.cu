// /// cudalab
// summary  = "Pairs of a flag and an item are scanned by another operator"
// order    = 1
// dispatch = "pairs"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 4 }
// ///
//
// A scan needs an associative operator, and nothing else. So the kernels of the scan lab, all of
// them unchanged, scan the segments of an array: an item becomes a pair of a flag, which is 1 where
// a segment begins, and its value; and (f, x) with (g, y) behind it becomes (1, y) if g is 1, else
// (f, x + y). segscan/parts/segmented_sum.cuh keeps both in a word of 8 bytes.
//
// Limits: pairs are written, scanned in two passes, and read again: an item of 4 bytes with its key
// costs 60 bytes, where 12 are enough.
//
// Macros from outside: THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#include "segscan/parts/scan_pairs.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) make_pairs(const int* keys,
                                                                           const int* items,
                                                                           T* pairs, unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n) pairs[i] = pair_at(keys, items, i);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) take_sums(const T* pairs, int* out,
                                                                          unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n) out[i] = (int)(unsigned)pairs[i];
}

// Source: Schwartz, Ultracomputers. ACM TOPLAS 2, 1980; Blelloch, Prefix Sums and Their
// Applications. CMU-CS-90-190, 1990; Sengupta, Harris, Zhang and Owens, Scan Primitives for GPU
// Computing. Graphics Hardware, 2007.
