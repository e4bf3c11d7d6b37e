// /// cudalab
// summary  = "An assertion that the last block does not keep"
// order    = 116
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"], op = ["sum"] }
// ///
//
// /// expect
// kind = "crash"
// ///
#include <assert.h>

extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    __shared__ T sum;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    assert(i < n);  // (1)
    atomicAdd(&sum, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
