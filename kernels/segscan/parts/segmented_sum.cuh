// Sums that begin again where a segment begins, as a scan like any other.
//
// An item is a pair in one word: bit 32 says that a segment begins with it, the low half is its
// value. Pairs are combined by an operator that is associative, which is all that a scan asks for:
// what comes before the beginning of a segment is forgotten.
#pragma once
using Pair = unsigned long long;

template <class V>
struct SegmentedSum {
    static __device__ V identity() { return 0; }
    __device__ V operator()(V left, V right) const {
        if (right >> 32) return right;
        return left >> 32 << 32 | (unsigned)((unsigned)left + (unsigned)right);
    }
};

__device__ inline Pair pair_of(bool begins, int item) {
    return (Pair)begins << 32 | (unsigned)item;
}

// A segment begins where a key differs from the one before.
__device__ inline Pair pair_at(const int* keys, const int* items, unsigned i) {
    return pair_of(i == 0 || keys[i] != keys[i - 1], items[i]);
}
