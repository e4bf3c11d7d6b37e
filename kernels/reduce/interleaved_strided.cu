// /// cudalab
// summary  = "The same tree, the first threads work: no divergence, but bank conflicts"
// order    = 2
// adds     = "the first threads work: no divergence"
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"] }
// ///
//
// The tree of interleaved_modulo, with the work moved to the first threads: at the level of stride
// s, thread t combines the values 2 s t and 2 s t + s. Whole warps work or skip the branch, so they
// diverge at the last levels only: 12 rounds of a warp for the block instead of 47.
//
// Limits: neighbouring threads read 2 s words apart. With 32 banks that is a 2-way conflict at s =
// 1 (there nvcc joins the two loads into one of 8 bytes, which has none, but not the store), 4-way
// at s = 2 and 8-way at s = 4; from there on fewer threads work, on fewer banks: 8-way until s =
// 16. That costs more than idle lanes did: on an H100 this rung is slower than interleaved_modulo,
// 0.378 ms against 0.306 for 2^26 ints. (Harris measured the opposite in 2007: his modulo was a
// division.)
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
        const unsigned left = 2 * s * tid;
        if (left < THREADS_PER_BLOCK) values[left] = combine(values[left], values[left + s]);
        __syncthreads();  // the next level reads what other threads wrote at this one
    }
    if (tid == 0) out[blockIdx.x] = finish(values[0], count);
}

// Source: Harris, Optimizing Parallel Reduction in CUDA. NVIDIA, 2007.
