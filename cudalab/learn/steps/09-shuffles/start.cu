// /// cudalab
// summary  = "From register to register"
// order    = 100
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 512 }
// applies  = { along = ["all"] }
// ///

#include "reduce/parts/reduce_ops.cuh"

static_assert(ITEMS_PER_BLOCK == 2 * THREADS_PER_BLOCK, "a thread loads two items");
static_assert((THREADS_PER_BLOCK & (THREADS_PER_BLOCK - 1)) == 0, "a tree halves a power of two");
static_assert(THREADS_PER_BLOCK >= 64, "the last warp takes 64 values");

// Levels 32 to 1, called by the whole first warp. Every lane takes part at every level: what the
// upper lanes compute is not used, and no lane leaves a barrier out.
__device__ inline void reduce_last_warp(T* values, unsigned lane) {
#pragma unroll
    for (unsigned s = 32; s > 0; s /= 2) {
        const T value = combine(values[lane], values[lane + s]);
        __syncwarp();  // all lanes have read before any lane writes
        values[lane] = value;
        __syncwarp();  // all lanes have written before the next level reads
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x;
    const unsigned i = blockIdx.x * ITEMS_PER_BLOCK + tid, j = i + THREADS_PER_BLOCK;

    T value = i < n ? load(x, y, i, level) : identity();
    if (j < n) value = combine(value, load(x, y, j, level));
    values[tid] = value;
    __syncthreads();  // all values are in shared memory

    for (unsigned s = THREADS_PER_BLOCK / 2; s > 32; s /= 2) {
        if (tid < s) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();  // the next level reads what other threads wrote at this one
    }
    if (tid < 32) reduce_last_warp(values, tid);
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}

// Source: Harris, Optimizing Parallel Reduction in CUDA. NVIDIA, 2007.
