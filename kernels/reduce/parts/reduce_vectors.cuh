// Loads of 16 bytes: one instruction brings 4 words (2 of 8 bytes), so that a thread has more bytes
// in flight than with one load per word. Arrays start at a multiple of 16 bytes.
#pragma once
#include "reduce/parts/reduce_ops.cuh"

constexpr unsigned VECTOR_ITEMS = 16 / sizeof(T);

struct __align__(16) Vector {
    T items[VECTOR_ITEMS];
};

__device__ inline Vector load_vector(const T* data, size_t vector) {
    return reinterpret_cast<const Vector*>(data)[vector];
}

// LOADS vectors, `stride` apart, combined into a value for each place in a vector. All are
// requested before the first is used: the more requests are in flight, the less their latency
// matters.
template <unsigned LOADS>
__device__ inline void combine_vectors(T (&values)[VECTOR_ITEMS], const T* x, const T* y, size_t v,
                                       unsigned stride, int level) {
    Vector a[LOADS];
#pragma unroll
    for (unsigned l = 0; l < LOADS; ++l) a[l] = load_vector(x, v + l * stride);
#if defined(OP_DOT)
    Vector b[LOADS];
#pragma unroll
    for (unsigned l = 0; l < LOADS; ++l) b[l] = level == 0 ? load_vector(y, v + l * stride) : a[l];
#else
    const Vector(&b)[LOADS] = a;
#endif
    // Places outside, loads inside: the other way round g++ 12 -O2 drops additions of 8-byte
    // integers when it vectorises these loops.
#pragma unroll
    for (unsigned k = 0; k < VECTOR_ITEMS; ++k)
#pragma unroll
        for (unsigned l = 0; l < LOADS; ++l)
            values[k] = combine(values[k], value_of(a[l].items[k], b[l].items[k], level));
}

// One thread's share of n items: the vectors first, first + stride, ..., and one of the items after
// the last whole vector. first < stride, and stride >= VECTOR_ITEMS.
template <unsigned LOADS>
__device__ inline T reduce_strided(const T* x, const T* y, unsigned n, unsigned first,
                                   unsigned stride, int level) {
    T values[VECTOR_ITEMS];  // independent chains of operations
#pragma unroll
    for (unsigned k = 0; k < VECTOR_ITEMS; ++k) values[k] = identity();

    const unsigned vectors = n / VECTOR_ITEMS;
    unsigned v = first;
    for (; v + (LOADS - 1) * stride < vectors; v += LOADS * stride)
        combine_vectors<LOADS>(values, x, y, v, stride, level);
    for (; v < vectors; v += stride) combine_vectors<1>(values, x, y, v, stride, level);
    const unsigned i = vectors * VECTOR_ITEMS + first;
    if (i < n) values[0] = combine(values[0], load(x, y, i, level));

#pragma unroll
    for (unsigned k = 1; k < VECTOR_ITEMS; ++k) values[0] = combine(values[0], values[k]);
    return values[0];
}
