// /// cudalab
// summary  = "Threads without an item return before the block's barriers"
// order    = 103
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"] }
// ///
//
// /// expect
// kind   = "barrier_divergence"
// note   = true
// says   = "compute capability 7.0"
// ///
#include "reduce/parts/reduce_ops.cuh"

extern "C" __global__ void reduce_blocks(const T* x, const T* y, T* out, unsigned n, int level,
                                         unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * THREADS_PER_BLOCK + tid;
    values[tid] = identity();
    if (i >= n) return;
    values[tid] = load(x, y, i, level);
    __syncthreads();  // (1) the last block's tail has left

    for (unsigned s = THREADS_PER_BLOCK / 2; s > 0; s /= 2) {
        if (tid < s) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();  // (1)
    }
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}
