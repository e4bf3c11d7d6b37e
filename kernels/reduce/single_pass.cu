// /// cudalab
// summary  = "One launch: the block that finishes last reduces the partial results"
// order    = 8
// dispatch = "single_pass"
// applies  = { along = ["all"] }
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 256
// ITEMS_PER_BLOCK   = 4096   # what a block should at least have to do
// MAX_BLOCKS        = 1056   # 8 for each of 132 multiprocessors: all are resident at once
// LOADS_PER_THREAD  = 4      # 16-byte loads under way
// ///
//
// As vectorized, without the second launch. Each block writes its partial result and then draws a
// number from a ticket counter; the block that draws the last number knows that all results are
// written, and reduces them.
//
// Blocks finish in any order, but the last one combines the partial results in the order of their
// index, whichever block it is: the answer has the same bits at every run, floats included. The
// counter goes back to zero with the last number, so the next run needs no launch to reset it.
#include "common/reduce_block.cuh"
#include "common/reduce_vectors.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_array(const T* x, const T* y,
                                                                             T* partials,
                                                                             unsigned* ticket,
                                                                             T* out, unsigned n) {
    __shared__ bool is_last;
    const unsigned first = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned stride = gridDim.x * THREADS_PER_BLOCK;

    T value = reduce_strided<LOADS_PER_THREAD>(x, y, n, first, stride, 0);
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = value;
        __threadfence();  // the partial result is visible to all before the number is drawn
        is_last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;  // the last one wraps to 0
    }
    __syncthreads();  // is_last is known; reduce_block's words are free again
    if (!is_last) return;

    __threadfence();  // nothing below is read before the last number was drawn
    value = identity();
    // __ldcg reads from L2, where the other blocks' fences put their results: L1 may hold old ones.
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS_PER_BLOCK)
        value = combine(value, __ldcg(partials + i));
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) *out = finish(value, n);
}
