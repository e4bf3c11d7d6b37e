// /// cudalab
// summary  = "Tree in shared memory, neighbours first: every 2s-th thread works, warps diverge"
// order    = 1
// adds     = "a tree in shared memory: eight levels per launch"
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"] }
// ///
//
// A block loads THREADS_PER_BLOCK items into shared memory, one per thread, and combines them in a
// tree: at the level of stride s, thread t with t % (2 s) == 0 takes the value s places further on.
// The blocks' results are reduced in the same way by further launches, until one is left.
//
// Compared with halving in global memory: n reads instead of 2 n, and a launch takes 8 levels.
// Limits: the threads that work are spread over all warps. At the levels of stride 1 to 16 each of
// the 8 warps loads, adds and stores, with half as many lanes each time: 40 rounds of a warp for
// the block, and 7 more at the last three levels. With the work in whole warps they are 12. Where
// memory is fast, that makes it slower than halving: 2^26 ints take 0.308 ms on an H200, and 0.283
// ms with global_halving (on an H100 0.306 and 0.337).
//
// Harris also names the modulo, a division of some twenty instructions on the GPUs of his day. Here
// it costs nothing: THREADS_PER_BLOCK is constant, so the loop is unrolled, every 2 s is a constant
// power of two and the remainder a mask (`python -m tools.studies sass reduce/interleaved_modulo
// LOP3`).
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ITEMS_PER_BLOCK.
#include "reduce/parts/reduce_ops.cuh"

static_assert(ITEMS_PER_BLOCK == THREADS_PER_BLOCK, "a thread loads one item");
static_assert((THREADS_PER_BLOCK & (THREADS_PER_BLOCK - 1)) == 0, "a tree halves a power of two");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + tid;

    values[tid] = i < n ? load(x, y, i, level) : identity();
    __syncthreads();  // all values are in shared memory

    for (unsigned s = 1; s < THREADS_PER_BLOCK; s *= 2) {
        if (tid % (2 * s) == 0) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();  // the next level reads what other threads wrote at this one
    }
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}

// Source: Harris, Optimizing Parallel Reduction in CUDA. NVIDIA, 2007.
