// /// cudalab
// summary  = "From register to register"
// order    = 100
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 512 }
// applies  = { along = ["all"] }
// ///

#include "reduce/parts/reduce_block.cuh"

static_assert(ITEMS_PER_BLOCK == 2 * THREADS_PER_BLOCK, "a thread loads two items");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    const unsigned i = blockIdx.x * ITEMS_PER_BLOCK + threadIdx.x, j = i + THREADS_PER_BLOCK;

    T value = i < n ? load(x, y, i, level) : identity();
    if (j < n) value = combine(value, load(x, y, j, level));
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) out[blockIdx.x] = finish(value, count);
}
