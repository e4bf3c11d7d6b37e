// /// cudalab
// summary  = "The lecture's last warp: a volatile array instead of __syncwarp()"
// order    = 104
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"] }
// ///
//
// /// expect
// kind    = "race"
// missing = "__syncwarp"
// space   = "shared"
// buffer  = "values"
// says    = "independent thread scheduling"
// ///
#include "reduce/parts/reduce_ops.cuh"

extern "C" __global__ void reduce_blocks(const T* x, const T* y, T* out, unsigned n, int level,
                                         unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * THREADS_PER_BLOCK + tid;
    values[tid] = i < n ? load(x, y, i, level) : identity();
    __syncthreads();

    for (unsigned s = THREADS_PER_BLOCK / 2; s > 32; s /= 2) {
        if (tid < s) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();
    }
    if (tid < 32) {
        volatile T* last = values;
        last[tid] = combine(last[tid], last[tid + 32]);  // (1)
        last[tid] = combine(last[tid], last[tid + 16]);  // (1) lanes do not run in step
        last[tid] = combine(last[tid], last[tid + 8]);   // (1)
        last[tid] = combine(last[tid], last[tid + 4]);   // (1)
        last[tid] = combine(last[tid], last[tid + 2]);   // (1)
        last[tid] = combine(last[tid], last[tid + 1]);   // (1)
    }
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}
