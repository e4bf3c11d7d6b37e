// /// cudalab
// summary  = "The shuffle stands in the branch that only some lanes take"
// order    = 101
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 32, ITEMS_PER_THREAD = 1 }
// applies  = { dtype = ["int32"], op = ["sum"] }
// ///
//
// /// expect
// kind = "wrong_mask"
// ///
#include "common/thread/operators.cuh"

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK;
using Op = OP<T>;
#include "common/device/add_block_sums.cuh"

__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n, bool inclusive) {
    const unsigned lane = threadIdx.x, i = blockIdx.x * ITEMS_PER_BLOCK + lane;
    const T item = i < n ? in[i] : 0;
    T sum = item;
    for (unsigned distance = 1; distance < 32; distance *= 2)
        if (lane >= distance) sum += __shfl_up_sync(0xffffffffu, sum, distance);  // (1)
    if (i < n) out[i] = inclusive ? sum : sum - item;
    if (lane == 31) block_sums[blockIdx.x] = sum;
}

extern "C" __global__ void scan_blocks(const T* in, T* out, T* block_sums, unsigned n) {
    scan_block(in, out, block_sums, n, INCLUSIVE);
}
extern "C" __global__ void scan_block_sums(T* sums, T* sums_above, unsigned n) {
    scan_block(sums, sums, sums_above, n, false);
}
