// Loads of 16 bytes: one instruction brings 4 words (2 of 8 bytes), so that a thread has more bytes
// under way than with a load a word. Arrays start at a multiple of 16 bytes.
#include "common/reduce_ops.cuh"

constexpr unsigned VECTOR_ITEMS = 16 / sizeof(T);

struct __align__(16) Vector {
    T items[VECTOR_ITEMS];
};

__device__ inline Vector load_vector(const T* data, size_t vector) {
    return reinterpret_cast<const Vector*>(data)[vector];
}

// This thread's share of n items: vectors `first`, `first + stride`, ... of each array, and the
// items behind the last whole vector. LOADS vectors are requested before the first is used: the
// more requests are under way, the less their latency counts.
template <unsigned LOADS>
__device__ inline T reduce_strided(const T* x, const T* y, unsigned n, unsigned first,
                                   unsigned stride, int level) {
    // A value for each place in a vector: independent chains of operations.
    T values[VECTOR_ITEMS];
#pragma unroll
    for (unsigned k = 0; k < VECTOR_ITEMS; ++k) values[k] = identity();

    const unsigned vectors = n / VECTOR_ITEMS;
    unsigned v = first;
    for (; v + (LOADS - 1) * stride < vectors; v += LOADS * stride) {
        Vector a[LOADS], b[LOADS];
#pragma unroll
        for (unsigned l = 0; l < LOADS; ++l) {
            a[l] = load_vector(x, v + l * stride);
#if defined(OP_DOT)
            if (level == 0) b[l] = load_vector(y, v + l * stride);
#endif
        }
#pragma unroll
        for (unsigned l = 0; l < LOADS; ++l)
#pragma unroll
            for (unsigned k = 0; k < VECTOR_ITEMS; ++k)
                values[k] = combine(values[k], value_of(a[l].items[k], b[l].items[k], level));
    }
    for (; v < vectors; v += stride)
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k)
            values[k] = combine(values[k], load(x, y, (size_t)v * VECTOR_ITEMS + k, level));

    const unsigned rest = vectors * VECTOR_ITEMS + first;
    if (rest < n) values[0] = combine(values[0], load(x, y, rest, level));

#pragma unroll
    for (unsigned k = 1; k < VECTOR_ITEMS; ++k) values[0] = combine(values[0], values[k]);
    return values[0];
}
