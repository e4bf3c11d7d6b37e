// /// cudalab
// summary  = "One launch: the block that finishes last reduces the partial results"
// order    = 8
// adds     = "the last block finishes: one launch"
// dispatch = "single_pass"
// applies  = { along = ["all"] }
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 512
// ITEMS_PER_BLOCK   = 8192   # minimum work of a block
// MAX_BLOCKS        = 1056   # on every GPU, so that sums of floats have the same bytes
// LOADS_PER_THREAD  = 4      # 16-byte loads in flight
// ///
//
// Like vectorized, without the second launch. Each block writes its partial result and then draws a
// number from a ticket counter; the block that draws the last number knows that all results are
// written, and reduces them (common/device/last_block.cuh).
//
// Blocks finish in any order, but the last one combines the partial results in the order of their
// index, whichever block it is: the answer has the same bits in every run, even for floats. The
// last number resets the counter to zero, so the next run needs no launch for that.
//
// The loads of a block are contiguous, 32 KB at a time, whereas those of vectorized are a stride of
// the whole grid apart: the same bytes in the same instructions, but 2 % faster on an H100. There
// are twice as many blocks as run at a time on 132 multiprocessors, so that one that is done early
// takes another; with fewer multiprocessors there are more turns, which costs nothing.
//
// Limits: the memory. 2^28 ints are read at 3.13 TB/s; the best of 471 forms tried was as fast.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// LOADS_PER_THREAD.
#include "common/device/last_block.cuh"
#include "reduce/parts/reduce_batches.cuh"
#include "reduce/parts/reduce_block.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_array(const T* x, const T* y,
                                                                             T* partials,
                                                                             unsigned* ticket,
                                                                             T* out, unsigned n) {
    __shared__ bool is_last;
    T value = reduce_batches<THREADS_PER_BLOCK, LOADS_PER_THREAD>(x, y, n, 0);
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = value;
        is_last = is_last_to_draw(ticket, gridDim.x);
    }
    __syncthreads();  // is_last is known; reduce_block's words are free again
    if (!is_last) return;

    value = identity();
    // The draw and the barrier make the other blocks' results visible to any load. __ldcg bypasses
    // L1, as each of them is read once.
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS_PER_BLOCK)
        value = combine(value, __ldcg(partials + i));
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) *out = finish(value, n);
}

// Source: NVIDIA, CUDA C++ Programming Guide, Memory Fence Functions.
