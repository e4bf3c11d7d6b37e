// /// cudalab
// summary  = "A student's sum whose neighbouring threads read STRIDE items apart"
// order    = 1
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 8192, STRIDE = 8 }
// applies  = { along = ["all"] }
// ///
//
// Each thread adds ITEMS items, in groups of STRIDE neighbours: with STRIDE 1 a warp reads 32
// neighbours at a time, with STRIDE 32 each of its lanes reads from a line of its own. All of them
// read the same bytes.

#include "reduce/parts/reduce_ops.cuh"

constexpr unsigned ITEMS = ITEMS_PER_BLOCK / THREADS_PER_BLOCK;
static_assert(ITEMS % STRIDE == 0, "whole groups");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x, first = blockIdx.x * ITEMS_PER_BLOCK;

    T value = identity();
    for (unsigned group = 0; group < ITEMS / STRIDE; ++group) {
        for (unsigned k = 0; k < STRIDE; ++k) {
            const unsigned i = first + (group * THREADS_PER_BLOCK + tid) * STRIDE + k;
            if (i < n) value = combine(value, load(x, y, i, level));
        }
    }
    values[tid] = value;
    __syncthreads();  // all values are in shared memory

    for (unsigned s = THREADS_PER_BLOCK / 2; s > 0; s /= 2) {
        if (tid < s) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();  // the next level reads what other threads wrote at this one
    }
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}
