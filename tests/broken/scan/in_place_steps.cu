// /// cudalab
// summary  = "Hillis and Steele in one array: a step overwrites what others still read"
// order    = 102
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 1 }
// applies  = { dtype = ["int32"], op = ["sum"] }
// ///
//
// /// expect
// kind    = ["race", "lost_update"]
// missing = ["__syncthreads", "__syncwarp"]
// space   = "shared"
// buffer  = "sums"
// ///
#include "common/thread/operators.cuh"

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK;
using Op = OP<T>;
#include "common/device/add_block_sums.cuh"

__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n, bool inclusive) {
    __shared__ T sums[ITEMS_PER_BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * ITEMS_PER_BLOCK + tid;
    const T item = i < n ? in[i] : 0;
    sums[tid] = item;
    for (unsigned distance = 1; distance < ITEMS_PER_BLOCK; distance *= 2) {
        __syncthreads();
        if (tid >= distance) sums[tid] += sums[tid - distance];  // (1) one barrier is not enough
    }
    __syncthreads();
    if (i < n) out[i] = inclusive ? sums[tid] : sums[tid] - item;
    if (tid == ITEMS_PER_BLOCK - 1) block_sums[blockIdx.x] = sums[tid];
}

extern "C" __global__ void scan_blocks(const T* in, T* out, T* block_sums, unsigned n) {
    scan_block(in, out, block_sums, n, INCLUSIVE);
}
extern "C" __global__ void scan_block_sums(T* sums, T* sums_above, unsigned n) {
    scan_block(sums, sums, sums_above, n, false);
}
