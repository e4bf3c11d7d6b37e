// Buckets of keys that share their top bits, and how large a bucket a block can sort.
#pragma once
#include "radixsort/parts/scatter_digits.cuh"

constexpr int BITS = 8 * sizeof(Bits);
constexpr unsigned BUCKET_ITEMS = BUCKET_KEYS_PER_THREAD * BUCKET_THREADS;
constexpr unsigned GROUP_BITS = 8, GROUPS = 1u << GROUP_BITS;  // of the first of two splits

// Which bucket a key belongs to: that of its top bits.
struct TopBits {
    static constexpr unsigned COPY_ROWS = PAIRS ? 4 : 16;  // keys that a thread copies at once
    int top_bits;
    __device__ unsigned operator()(Bits key) const { return key >> (BITS - top_bits); }
    __device__ unsigned buckets() const { return 1u << top_bits; }
    // The bits in which the buckets of a group differ.
    __device__ int low_bits() const { return top_bits - (int)GROUP_BITS; }
};

// Copies the keys if they are equal, with pairs also their values, n items further on. The whole
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
