// /// cudalab
// summary  = "Whole warps at work"
// order    = 100
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"] }
// ///

#include "reduce/parts/reduce_ops.cuh"

static_assert(ITEMS_PER_BLOCK == THREADS_PER_BLOCK, "a thread loads one item");
static_assert((THREADS_PER_BLOCK & (THREADS_PER_BLOCK - 1)) == 0, "a tree halves a power of two");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + tid;

    values[tid] = i < n ? load(x, y, i, level) : identity();
    __syncthreads();  // all values are in shared memory

    for (unsigned s = 1; s < THREADS_PER_BLOCK; s *= 2) {
        const unsigned left = 2 * s * tid;
        if (left < THREADS_PER_BLOCK) values[left] = combine(values[left], values[left + s]);
        __syncthreads();  // the next level reads what other threads wrote at this one
    }
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}

// Source: Harris, Optimizing Parallel Reduction in CUDA. NVIDIA, 2007.
