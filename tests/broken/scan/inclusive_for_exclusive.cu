// /// cudalab
// summary  = "Every item has itself in its sum: no access is wrong, and yet the answer is"
// order    = 103
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// applies  = { dtype = ["int32"], op = ["sum"] }
// ///
//
// /// expect
// kind = "wrong_answer"
// ///
#include "common/thread/operators.cuh"

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK;
using Op = OP<T>;
#include "common/device/add_block_sums.cuh"

__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n) {
    __shared__ T items[ITEMS_PER_BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * ITEMS_PER_BLOCK + tid;
    items[tid] = i < n ? in[i] : 0;
    __syncthreads();
    T sum = 0;
    for (unsigned k = 0; k <= tid; ++k) sum += items[k];
    if (i < n) out[i] = sum;
    if (tid == ITEMS_PER_BLOCK - 1) block_sums[blockIdx.x] = sum;
}

extern "C" __global__ void scan_blocks(const T* in, T* out, T* block_sums, unsigned n) {
    scan_block(in, out, block_sums, n);
}
extern "C" __global__ void scan_block_sums(T* sums, T* sums_above, unsigned n) {
    scan_block(sums, sums, sums_above, n);
}
