// /// cudalab
// summary  = "Steps within a block in shared memory, one launch for all of them"
// order    = 3
// adds     = "steps within a block in shared memory: barriers instead of launches"
// dispatch = "blocks"
// default  = ["cpu"]
// defines  = { THREADS_PER_BLOCK = 512, ITEMS_PER_BLOCK = 1024 }
// ///
//
// The same network. While a group fits in a block's shared memory, its steps are separated by a
// barrier, not a launch: sort_blocks does all merges up to ITEMS_PER_BLOCK keys at once, and
// merge_blocks the last steps of each larger merge, those of strides below ITEMS_PER_BLOCK. Only
// the wide steps are launches over global memory. Keys are staged as unsigned numbers in the same
// order, so that they are translated once and not in each comparison. Two keys and one comparator
// per thread.
// Limits: strides below 32 cause 2-way bank conflicts; the wide steps still read and write all
// keys.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ITEMS_PER_BLOCK.
#include "bitonic/parts/bitonic_network.cuh"

static_assert(ITEMS_PER_BLOCK == 2 * THREADS_PER_BLOCK, "a comparator for each thread");
static_assert((ITEMS_PER_BLOCK & (ITEMS_PER_BLOCK - 1)) == 0, "groups are powers of two");

using Bits = OrderedBits<T>;

__device__ inline unsigned items_of_block(unsigned n) {
    const unsigned left = n - blockIdx.x * ITEMS_PER_BLOCK;
    return left < ITEMS_PER_BLOCK ? left : ITEMS_PER_BLOCK;
}

// Half a block apart, so that neighbours in a warp are neighbours in memory.
__device__ inline void load_block(Bits* staged, const T* keys, unsigned items) {
    const T* mine = keys + (size_t)blockIdx.x * ITEMS_PER_BLOCK;
    for (unsigned i = threadIdx.x; i < items; i += THREADS_PER_BLOCK)
        staged[i] = ordered_bits(mine[i]);
}
__device__ inline void store_block(const Bits* staged, T* keys, unsigned items) {
    T* mine = keys + (size_t)blockIdx.x * ITEMS_PER_BLOCK;
    for (unsigned i = threadIdx.x; i < items; i += THREADS_PER_BLOCK)
        mine[i] = from_ordered_bits<T>(staged[i]);
}

// B_2*stride, ..., B_2.
__device__ inline void clean_down(Bits* staged, unsigned items, unsigned stride) {
    for (; stride > 0; stride /= 2) {
        __syncthreads();  // a step reads what other threads wrote in the step before
        compare_exchange(staged, items, half_cleaner(threadIdx.x, stride));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) sort_blocks(T* keys, unsigned n) {
    __shared__ Bits staged[ITEMS_PER_BLOCK];
    const unsigned items = items_of_block(n);

    load_block(staged, keys, items);
    for (unsigned size = 2; size <= ITEMS_PER_BLOCK; size *= 2) {
        __syncthreads();  // the groups to be merged are sorted
        compare_exchange(staged, items, mirrored(threadIdx.x, size));
        clean_down(staged, items, size / 4);
    }
    __syncthreads();  // the last step is done
    store_block(staged, keys, items);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) merge_blocks(T* keys, unsigned n) {
    __shared__ Bits staged[ITEMS_PER_BLOCK];
    const unsigned items = items_of_block(n);

    load_block(staged, keys, items);
    clean_down(staged, items, ITEMS_PER_BLOCK / 2);
    __syncthreads();  // the last step is done
    store_block(staged, keys, items);
}

// The wide steps, over global memory: partners belong to different blocks.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) begin_merge(T* keys, unsigned n,
                                                                            unsigned size) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    compare_exchange(keys, n, mirrored(t, size));
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) clean_halves(T* keys, unsigned n,
                                                                             unsigned stride) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    compare_exchange(keys, n, half_cleaner(t, stride));
}

// Source: Batcher, Sorting Networks and Their Applications. AFIPS Spring Joint Computer Conference,
// 1968.
