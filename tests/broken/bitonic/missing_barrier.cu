// /// cudalab
// summary  = "Steps within a block without a barrier between them"
// order    = 100
// dispatch = "blocks"
// defines  = { THREADS_PER_BLOCK = 512, ITEMS_PER_BLOCK = 1024 }
// ///
//
// /// expect
// kind    = ["race", "lost_update"]
// missing = ["__syncthreads", "__syncwarp"]
// space   = "shared"
// buffer  = "staged"
// ///
#include "bitonic/parts/bitonic_network.cuh"

using Bits = OrderedBits<T>;

__device__ inline unsigned items_of_block(unsigned n) {
    const unsigned left = n - blockIdx.x * ITEMS_PER_BLOCK;
    return left < ITEMS_PER_BLOCK ? left : ITEMS_PER_BLOCK;
}
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
// One comparator, as in bitonic/parts/bitonic_network.cuh.
__device__ inline void exchange(Bits* staged, unsigned items, Comparator c) {
    if (c.high >= items) return;
    const Bits low = staged[c.low], high = staged[c.high];  // (1)
    if (low > high) {
        staged[c.low] = high;  // (2)
        staged[c.high] = low;  // (2)
    }
}
// Every step reads what other threads wrote in the step before: a barrier is missing.
__device__ inline void clean_down(Bits* staged, unsigned items, unsigned stride) {
    for (; stride > 0; stride /= 2) exchange(staged, items, half_cleaner(threadIdx.x, stride));
}

extern "C" __global__ void sort_blocks(T* keys, unsigned n) {
    __shared__ Bits staged[ITEMS_PER_BLOCK];
    const unsigned items = items_of_block(n);
    load_block(staged, keys, items);
    for (unsigned size = 2; size <= ITEMS_PER_BLOCK; size *= 2) {
        __syncthreads();
        exchange(staged, items, mirrored(threadIdx.x, size));
        clean_down(staged, items, size / 4);
    }
    __syncthreads();
    store_block(staged, keys, items);
}

extern "C" __global__ void merge_blocks(T* keys, unsigned n) {
    __shared__ Bits staged[ITEMS_PER_BLOCK];
    const unsigned items = items_of_block(n);
    load_block(staged, keys, items);
    __syncthreads();
    clean_down(staged, items, ITEMS_PER_BLOCK / 2);
    __syncthreads();
    store_block(staged, keys, items);
}

extern "C" __global__ void begin_merge(T* keys, unsigned n, unsigned size) {
    compare_exchange(keys, n, mirrored(blockIdx.x * THREADS_PER_BLOCK + threadIdx.x, size));
}

extern "C" __global__ void clean_halves(T* keys, unsigned n, unsigned stride) {
    compare_exchange(keys, n, half_cleaner(blockIdx.x * THREADS_PER_BLOCK + threadIdx.x, stride));
}
