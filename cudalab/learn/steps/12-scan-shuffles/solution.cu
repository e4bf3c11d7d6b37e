// /// cudalab
// summary  = "A scan without a tree"
// order    = 100
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 512, ITEMS_PER_THREAD = 1 }
// ///

#include "common/thread/operators.cuh"

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK * ITEMS_PER_THREAD;

static_assert(ITEMS_PER_THREAD == 1, "a thread has one item");

using Op = OP<T>;

#include "common/device/add_block_sums.cuh"

// Writes each block's scan to `out` (which may be `in`), and its sum to block_sums.
// The inclusive scan of a warp's items.
__device__ inline T scan_warp(T sum, unsigned lane) {
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        const T before = __shfl_up_sync(0xffffffff, sum, distance);
        if (lane >= distance) sum = Op()(before, sum);
    }
    return sum;
}

template <bool inclusive>
__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n) {
    __shared__ T warp_sums[32];
    const unsigned place = threadIdx.x, i = blockIdx.x * ITEMS_PER_BLOCK + place;
    const unsigned lane = place % 32, warp = place / 32;

    const T own = scan_warp(i < n ? in[i] : Op::identity(), lane);
    if (lane == 31) warp_sums[warp] = own;
    __syncthreads();  // the first warp reads all of them
    if (warp == 0)
        warp_sums[lane] = scan_warp(lane < ITEMS_PER_BLOCK / 32 ? warp_sums[lane] : Op::identity(), lane);
    __syncthreads();  // the sums are those of all warps up to here

    const T before = warp > 0 ? warp_sums[warp - 1] : Op::identity();
    const T left = __shfl_up_sync(0xffffffff, own, 1);
    const T sum = Op()(before, own);
    if (i < n) out[i] = inclusive ? sum : Op()(before, lane > 0 ? left : Op::identity());
    if (place == ITEMS_PER_BLOCK - 1) block_sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_blocks(const T* in, T* out,
                                                                            T* block_sums,
                                                                            unsigned n) {
    scan_block<INCLUSIVE>(in, out, block_sums, n);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_block_sums(T* sums,
                                                                                T* sums_above,
                                                                                unsigned n) {
    scan_block<false>(sums, sums, sums_above, n);
}

// Source: Hillis and Steele, Data Parallel Algorithms. Communications of the ACM 29 (12), 1986.
