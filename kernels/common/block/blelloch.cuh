// Blelloch's work-efficient exclusive scan of ITEMS_PER_BLOCK items in shared memory, two items per
// thread: an up-sweep builds a tree of sums in place, the root is cleared, and a down-sweep hands
// every node the sum of all that lies to its left. Other operators take the place of the sum.
//
// At level s threads touch every 2s-th item: unpadded, up to 32 of them would share a bank. The
// padding below, one unused word after every 32 items, moves each row of items on by one bank, and
// up to 1024 items all levels are then free of conflicts (beyond that the strides outrun it). An
// includer that pads otherwise, or not at all, defines its own CONFLICT_FREE_OFFSET first.
#pragma once
#include "common/thread/operators.cuh"

#ifndef CONFLICT_FREE_OFFSET
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(i) ((i) >> LOG_NUM_BANKS)
#endif

static_assert(ITEMS_PER_BLOCK == 2 * SCAN_THREADS, "a thread scans two items");
static_assert((ITEMS_PER_BLOCK & (ITEMS_PER_BLOCK - 1)) == 0, "the tree of sums is complete");
static_assert(ITEMS_PER_BLOCK <= 1024, "larger blocks have bank conflicts again");

// Size of the padded array.
constexpr unsigned PADDED_ITEMS = ITEMS_PER_BLOCK + CONFLICT_FREE_OFFSET(ITEMS_PER_BLOCK);

// Index of item i in the padded array.
__device__ inline unsigned padded(unsigned i) {
    return i + CONFLICT_FREE_OFFSET(i);
}

// Scan the padded array `tree` in place and return its total. Barriers before the first access and
// after the last are included.
template <class V, class Op = Sum<V>>
__device__ inline V blelloch_scan(V* tree, Op op = Op()) {
    // Up-sweep: the right child of a pair becomes the sum of both. A level reads what the level
    // below wrote in other threads, hence a barrier for each.
    for (unsigned stride = 1; stride < ITEMS_PER_BLOCK; stride *= 2) {
        __syncthreads();  // the level below is complete; the first time, the items are in place
        const unsigned left = (2 * threadIdx.x + 1) * stride - 1, right = left + stride;
        if (right < ITEMS_PER_BLOCK)
            tree[padded(right)] = op(tree[padded(left)], tree[padded(right)]);
    }
    __syncthreads();  // the root is ready
    const V total = tree[padded(ITEMS_PER_BLOCK - 1)];
    __syncthreads();  // all have read the total before it is cleared
    if (threadIdx.x == 0) tree[padded(ITEMS_PER_BLOCK - 1)] = Op::identity();

    // Down-sweep: the left child takes what lies left of the pair, the right child adds the left.
    for (unsigned stride = ITEMS_PER_BLOCK / 2; stride > 0; stride /= 2) {
        __syncthreads();  // the level above is complete; the first time, the root is cleared
        const unsigned left = (2 * threadIdx.x + 1) * stride - 1, right = left + stride;
        if (right < ITEMS_PER_BLOCK) {
            const V left_sum = tree[padded(left)];
            tree[padded(left)] = tree[padded(right)];
            tree[padded(right)] = op(tree[padded(right)], left_sum);
        }
    }
    __syncthreads();  // the leaves are complete, for any thread to read
    return total;
}
