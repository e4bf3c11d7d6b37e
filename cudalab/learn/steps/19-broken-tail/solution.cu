// /// cudalab
// summary  = "Repair: one element too many"
// order    = 100
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"], op = ["sum"] }
// ///

#include "reduce/parts/reduce_ops.cuh"

extern "C" __global__ void reduce_blocks(const T* x, const T* y, T* out, unsigned n, int level,
                                         unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * THREADS_PER_BLOCK + tid;
    values[tid] = 0;
    if (i < n) values[tid] = x[i];
    __syncthreads();

    for (unsigned s = THREADS_PER_BLOCK / 2; s > 0; s /= 2) {
        if (tid < s) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}
