// /// cudalab
// summary  = "Every item adds the one 1, 2, 4, ... places to its left: n log n additions"
// order    = 1
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 512, ITEMS_PER_THREAD = 1 }
// ///
//
// The scan of Hillis and Steele. After the step of distance d, place i of a block holds the sum of
// the 2d items that end at i; after log2(512) = 9 steps, of all items of the block up to i. A
// thread has one item. The block sums are scanned in the same way, level by level, and added back.
//
// Two copies of the items: a step reads one and writes the other, so one barrier per step is
// enough. In place each step would need two: all reads before all writes, all writes before the
// next reads.
// Limits: a block of B items takes B log2 B additions where B - 1 would suffice; neighbours read
// neighbours, so there are no bank conflicts, but every step moves every item through shared
// memory.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// ITEMS_PER_THREAD.
#include "common/thread/operators.cuh"

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK * ITEMS_PER_THREAD;

static_assert(ITEMS_PER_THREAD == 1, "a thread has one item");

using Op = OP<T>;

#include "common/device/add_block_sums.cuh"

// Writes each block's scan to `out` (which may be `in`), and its sum to block_sums.
template <bool inclusive>
__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n) {
    __shared__ T copies[2][ITEMS_PER_BLOCK];
    const unsigned place = threadIdx.x, i = blockIdx.x * ITEMS_PER_BLOCK + place;
    T *sums = copies[0], *next = copies[1];

    sums[place] = i < n ? in[i] : Op::identity();
    for (unsigned distance = 1; distance < ITEMS_PER_BLOCK; distance *= 2) {
        __syncthreads();  // `sums` is complete, and no thread reads `next` any more
        next[place] = place >= distance ? Op()(sums[place - distance], sums[place]) : sums[place];
        T* const done = next;
        next = sums;
        sums = done;
    }
    __syncthreads();  // an exclusive scan takes its left neighbour's result

    if (i < n) {
        if (inclusive)
            out[i] = sums[place];
        else
            out[i] = place > 0 ? sums[place - 1] : Op::identity();
    }
    if (place == ITEMS_PER_BLOCK - 1) block_sums[blockIdx.x] = sums[place];
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

// Source: Hillis and Steele, Data Parallel Algorithms. Communications of the ACM 29(12), 1986.
