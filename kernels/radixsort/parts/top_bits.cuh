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
