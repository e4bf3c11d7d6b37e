// From an element to its class, for both element types, and the start of a count.
//
// A byte's class is byte * NUM_BINS >> 8: the 256 values are spread over the classes. A 32-bit
// element is its class; an invalid class is an error of the input: the first such element is kept
// as index << 32 | value, whose minimum belongs to the first index.
#pragma once

using FirstBad = unsigned long long;
constexpr FirstBad NO_BAD_ELEMENT = ~0ull;

constexpr unsigned ITEMS_PER_WORD = 4 / sizeof(T);
constexpr unsigned ITEMS_PER_VECTOR = 4 * ITEMS_PER_WORD;  // in a 16-byte load

static_assert(NUM_BINS >= 1 && (sizeof(T) == 4 || NUM_BINS <= 256), "a byte has 256 values");

// Item k of a word that was loaded whole.
__device__ inline T item_of(unsigned word, unsigned k) {
    return (T)(word >> (8 * k));
}

// Whether element i has a class; `bin` is that class.
__device__ inline bool find_class(unsigned char byte, unsigned i, FirstBad* first_bad,
                                  unsigned& bin) {
    (void)i, (void)first_bad;
    bin = byte * NUM_BINS >> 8;
    return true;
}
__device__ inline bool find_class(unsigned value, unsigned i, FirstBad* first_bad, unsigned& bin) {
    bin = value;
    if (value < NUM_BINS) return true;
    atomicMin(first_bad, (FirstBad)i << 32 | value);  // many threads may find one
    return false;
}
