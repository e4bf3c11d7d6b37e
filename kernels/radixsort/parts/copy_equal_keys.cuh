// A bucket of equal keys is already sorted, so it is copied.
#pragma once
#include "radixsort/parts/top_bits.cuh"

// Copies the keys if they are equal; with pairs also their values, n items further on. The whole
// block calls it. Not inline: the caller has no register to spare.
template <class Key>
__device__ __noinline__ bool copy_if_equal(const Key* in, T* out, unsigned items, unsigned n = 0) {
    const Bits bits = ordered_bits(in[0]);
    bool equal = true;
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS)
        equal &= ordered_bits(in[i]) == bits;
    if (!__syncthreads_and(equal)) return false;  // one key that differs is enough
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) {
        out[i] = from_ordered_bits<T>(bits);
        if constexpr (PAIRS) out[n + i] = in[n + i];
    }
    return true;
}
