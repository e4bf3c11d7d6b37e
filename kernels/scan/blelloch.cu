// /// cudalab
// summary  = "Blelloch's tree of sums: n additions up, n down, and bank conflicts at every level"
// order    = 2
// adds     = "a tree of sums: 2 n additions instead of n log n"
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 512, ITEMS_PER_THREAD = 2 }
// ///
//
// Work-efficient: the up-sweep builds a tree of sums in place, the root is cleared, the down-sweep
// gives every node what lies to its left: 2(B - 1) additions for a block of B items instead of
// B log2 B. A thread loads and stores two items and serves one node of each level. The block sums
// are scanned in the same way, level by level, and added back.
//
// Limits: at the level of stride s threads touch every 2s-th item. Shared memory has 32 banks, item
// i lies in bank i % 32, so the lanes of a warp meet in 32 / 2s of them: conflicts are 2-way at s =
// 1 and double at each level, up to 32-way at s = 16. (At s = 1 nvcc joins the two reads into one
// of 8 bytes, without a conflict.) blelloch_padded differs in its CONFLICT_FREE_OFFSET alone. The
// conflicts make it slower than hillis_steele: 2^25 floats take 0.444 ms on an H100 instead of
// 0.348.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// ITEMS_PER_THREAD.
#define CONFLICT_FREE_OFFSET(i) 0  // no padding: item i lies at place i

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
