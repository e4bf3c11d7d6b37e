// The comparators of a bitonic sorting network in which every comparator puts the smaller key at
// the smaller index.
//
// A merge joins two ascending halves of a group of `size` keys. Read backwards, the second half
// makes the group a bitonic sequence (up, then down), so the first step compares key k with the
// mirrored key size - 1 - k: a half-cleaner, after which no key of the lower half is greater than
// one of the upper half and both are bitonic. Half-cleaners of half the width follow down to
// neighbours: B_size, ..., B_4, B_2.
//
// Any n: the array is treated as if it were padded with maximal keys to a power of two. No
// comparator moves a key up past a greater one, so the padding would stay in place, and a
// comparator that reaches past n is left out.
#pragma once
#include "common/thread/radix_keys.cuh"

// The two places that a comparator joins.
struct Comparator {
    unsigned low, high;
};

// Half-cleaner: keys `stride` apart in groups of 2 * stride (a power of two).
__device__ inline Comparator half_cleaner(unsigned t, unsigned stride) {
    const unsigned low = 2 * t - (t & (stride - 1));
    return {low, low + stride};
}

// First step of a merge: mirrored keys of groups of `size`.
__device__ inline Comparator mirrored(unsigned t, unsigned size) {
    const unsigned low = 2 * t - (t & (size / 2 - 1));
    return {low, low ^ (size - 1)};
}

// Move the smaller key to `low`, unless there is no key at `high`. Works for keys and for their
// ordered bits, which are their own order.
template <class Key>
__device__ inline void compare_exchange(Key* keys, unsigned n, Comparator c) {
    if (c.high >= n) return;
    const Key low = keys[c.low], high = keys[c.high];
    if (ordered_bits(low) > ordered_bits(high)) {
        keys[c.low] = high;
        keys[c.high] = low;
    }
}
