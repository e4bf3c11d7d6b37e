// /// cudalab
// summary  = "Cooperative groups: the block and its warps are objects that a function is given"
// order    = 6.2
// ladder   = "groups by name"
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 512 }
// applies  = { along = ["all"] }
// ///
//
// `warp_shuffle`, said with cooperative groups. There a comment says of a function that the whole
// warp calls it. Here the function is given the group that works together, and asks it for what
// depends on that: a thread's rank, the number of threads, a shuffle among them, the barrier.
//
// Compared with warp_shuffle: the same shuffles and the same barrier, but no mask of lanes and no
// `threadIdx.x % 32`. cooperative_groups/reduce.h has `reduce`, which does what combine_over does.
// Limits: those of warp_shuffle.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ITEMS_PER_BLOCK.
#pragma push_macro("T")
#undef T  // a name that NVIDIA's header uses
#include <cooperative_groups.h>
#pragma pop_macro("T")

#include "reduce/parts/reduce_ops.cuh"

namespace cg = cooperative_groups;

static_assert(ITEMS_PER_BLOCK == 2 * THREADS_PER_BLOCK, "a thread loads two items");
static_assert(THREADS_PER_BLOCK % 32 == 0 && THREADS_PER_BLOCK <= 1024, "a warp holds all results");

// The values of all threads of a group combined, in its first thread.
template <class Group>
__device__ inline T combine_over(const Group& group, T value) {
#pragma unroll
    for (unsigned distance = group.size() / 2; distance > 0; distance /= 2)
        value = combine(value, group.shfl_down(value, distance));
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
    __shared__ T of_warps[WARPS];
    const cg::thread_block block = cg::this_thread_block();
    const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    const unsigned i = blockIdx.x * ITEMS_PER_BLOCK + block.thread_rank();
    const unsigned j = i + block.size();

    T value = i < n ? load(x, y, i, level) : identity();
    if (j < n) value = combine(value, load(x, y, j, level));
    value = combine_over(warp, value);
    if (warp.thread_rank() == 0) of_warps[warp.meta_group_rank()] = value;
    block.sync();  // the results of all warps are in place
    if (warp.meta_group_rank() != 0) return;
    value = warp.thread_rank() < WARPS ? of_warps[warp.thread_rank()] : identity();
    value = combine_over(warp, value);
    if (warp.thread_rank() == 0) out[blockIdx.x] = finish(value, count);
}

// Source: Harris and Perelygin, Cooperative Groups: Flexible CUDA Thread Programming. NVIDIA
// Developer Blog, 2017.
