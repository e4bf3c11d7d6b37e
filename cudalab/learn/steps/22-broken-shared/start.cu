// /// cudalab
// summary  = "Repair: a place too few"
// order    = 100
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// applies  = { dtype = ["int32"], op = ["sum"] }
// ///

#include "common/thread/operators.cuh"

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK;
using Op = OP<T>;
#include "common/device/add_block_sums.cuh"

__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n, bool inclusive) {
    __shared__ T first[ITEMS_PER_BLOCK];
    __shared__ T second[ITEMS_PER_BLOCK + 1];
    const unsigned tid = threadIdx.x, i = blockIdx.x * ITEMS_PER_BLOCK + tid;
    const T item = i < n ? in[i] : 0;
    if (tid == 0) first[0] = 0;
    first[tid + 1] = item;
    if (tid == 0) second[ITEMS_PER_BLOCK] = 0;
    __syncthreads();

    T sum = 0;
    for (unsigned k = 0; k <= tid && k < ITEMS_PER_BLOCK; ++k) sum += first[k];
    second[tid] = sum;
    __syncthreads();
    if (i < n) out[i] = inclusive ? second[tid] + item : second[tid];
    if (tid == ITEMS_PER_BLOCK - 1) block_sums[blockIdx.x] = second[tid] + item;
}

extern "C" __global__ void scan_blocks(const T* in, T* out, T* block_sums, unsigned n) {
    scan_block(in, out, block_sums, n, INCLUSIVE);
}
extern "C" __global__ void scan_block_sums(T* sums, T* sums_above, unsigned n) {
    scan_block(sums, sums, sums_above, n, false);
}
