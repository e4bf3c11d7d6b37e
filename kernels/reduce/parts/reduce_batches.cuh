// Batches of vectors: what a block loads at a time is contiguous.
#pragma once
#include "reduce/parts/reduce_vectors.cuh"

// One thread's share of n items, if its block takes batches of neighbouring vectors, LOADS for each
// of its THREADS threads; the grid strides over the batches.
template <unsigned THREADS, unsigned LOADS>
__device__ inline T reduce_batches(const T* x, const T* y, unsigned n, int level) {
    constexpr unsigned BATCH = THREADS * LOADS;
    T values[VECTOR_ITEMS];  // independent chains of operations
#pragma unroll
    for (unsigned k = 0; k < VECTOR_ITEMS; ++k) values[k] = identity();

    const unsigned vectors = n / VECTOR_ITEMS;
    for (unsigned batch = blockIdx.x * BATCH; batch < vectors; batch += gridDim.x * BATCH) {
        unsigned v = batch + threadIdx.x;
        if (batch + BATCH <= vectors)
            combine_vectors<LOADS>(values, x, y, v, THREADS, level);
        else
            for (; v < vectors; v += THREADS) combine_vectors<1>(values, x, y, v, THREADS, level);
    }
    const unsigned i = vectors * VECTOR_ITEMS + threadIdx.x;
    if (blockIdx.x == 0 && i < n) values[0] = combine(values[0], load(x, y, i, level));

#pragma unroll
    for (unsigned k = 1; k < VECTOR_ITEMS; ++k) values[0] = combine(values[0], values[k]);
    return values[0];
}
