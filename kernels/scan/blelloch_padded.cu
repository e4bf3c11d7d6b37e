// /// cudalab
// summary  = "Blelloch's tree with padding between the items: no bank conflicts"
// order    = 3
// adds     = "padding between the items: no bank conflicts"
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 512, ITEMS_PER_THREAD = 2 }
// ///
//
// The tree of blelloch, with an unused place after every 32 items: item i lies at i + (i >> 5). At
// the level of stride s lanes are 2s items apart; the padding shifts each row of 32 items by one
// bank, so that lanes which met in one bank now use neighbouring ones. That holds up to 1024 items
// per block; beyond that the strides outrun the padding.
//
// Items of 8 bytes are read half a warp at a time, and there are 16 banks of their width: a place
// after every 16 of them, and, as 16 * 16 < 1024, another after every 256.
// Limits: one barrier per level, 20 for 1024 items, and at each level half as many threads work.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// ITEMS_PER_THREAD.

// The parentheses matter: `i + i >> 5` would mean (i + i) >> 5.
#define CONFLICT_FREE_OFFSET(i) (sizeof(T) == 8 ? ((i) >> 4) + ((i) >> 8) : ((i) >> 5))

constexpr unsigned ITEMS_PER_BLOCK = THREADS_PER_BLOCK * ITEMS_PER_THREAD;
constexpr unsigned SCAN_THREADS = THREADS_PER_BLOCK;

#include "common/block/blelloch.cuh"

using Op = OP<T>;

#include "common/device/add_block_sums.cuh"

// Writes each block's scan to `out` (which may be `in`), and its sum to block_sums.
template <bool inclusive>
__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n) {
    __shared__ T tree[PADDED_ITEMS];

    // A thread takes items half a block apart, so that neighbours in a warp are neighbours in
    // memory.
    const unsigned first = threadIdx.x, second = threadIdx.x + THREADS_PER_BLOCK;
    const unsigned block_start = blockIdx.x * ITEMS_PER_BLOCK;
    const unsigned i = block_start + first, j = block_start + second;
    const T a = i < n ? in[i] : Op::identity(), b = j < n ? in[j] : Op::identity();
    tree[padded(first)] = a;
    tree[padded(second)] = b;
    const T sum = blelloch_scan(tree, Op());

    // The tree gives the exclusive scan; with the item itself it is the inclusive one.
    if (i < n) out[i] = inclusive ? Op()(tree[padded(first)], a) : tree[padded(first)];
    if (j < n) out[j] = inclusive ? Op()(tree[padded(second)], b) : tree[padded(second)];
    if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
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

// Source: Blelloch, Prefix Sums and Their Applications. CMU-CS-90-190, 1990.
