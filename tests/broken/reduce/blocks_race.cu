// /// cudalab
// summary  = "Every block writes the one result"
// order    = 110
// dispatch = "single_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256, MAX_BLOCKS = 256 }
// applies  = { along = ["all"], op = ["max"] }
// ///
//
// /// expect
// kind   = ["race", "lost_update"]
// space  = "global"
// buffer = "out"
// ///
#include "reduce/parts/reduce_ops.cuh"

extern "C" __global__ void reduce_array(const T* x, const T* y, T* partials, unsigned* ticket,
                                        T* out, unsigned n) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x;
    T best = identity();
    for (unsigned i = blockIdx.x * THREADS_PER_BLOCK + tid; i < n;
         i += gridDim.x * THREADS_PER_BLOCK)
        best = combine(best, x[i]);
    values[tid] = best;
    __syncthreads();
    for (unsigned s = THREADS_PER_BLOCK / 2; s > 0; s /= 2) {
        if (tid < s) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();
    }
    if (tid == 0) out[0] = blockIdx.x == 0 ? values[0] : combine(out[0], values[0]);  // (1)
}
