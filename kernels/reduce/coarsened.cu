// /// cudalab
// summary  = "Thread coarsening: a thread combines many items before the warps reduce"
// order    = 6.5
// adds     = "thread coarsening: a fixed number of blocks that stride over the array"
// dispatch = "multi_pass"
// applies  = { along = ["all"] }
//
// [defines]
// THREADS_PER_BLOCK = 256
// ITEMS_PER_BLOCK   = 4096   # minimum work of a block
// MAX_BLOCKS        = 1056   # on every GPU, so that sums of floats have the same bytes
// ///
//
// Thread coarsening: fewer threads that each do more. Parallel work has a price (the start of a
// block, a tree whose threads idle by and by, a barrier, a partial result) which a device should
// pay only for threads that it can run at once; the rest of the work is cheaper as a loop. Here at
// most MAX_BLOCKS blocks share the array, about as many as a large device holds at a time. Thread t
// of all threads takes the items t, t + stride, ... and combines them in a register: a grid-stride
// loop. Neighbours read neighbours in every turn, so all loads stay coalesced.
//
// Compared with warp_shuffle: the cost of a block is spread over n / MAX_BLOCKS items instead of
// 512, and one further launch of a single block reduces the partial results. On an H100 that alone
// gains nothing: 2^26 ints take 0.125 ms with both. It is what the next rung stands on, for a
// thread that has many items can request several of them at a time.
// Limits: the loads of a thread are words of 4 bytes, and each is one more instruction and one more
// request.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK.
#include "reduce/parts/reduce_block.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    const unsigned stride = gridDim.x * THREADS_PER_BLOCK;

    T value = identity();
    for (unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x; i < n; i += stride)
        value = combine(value, load(x, y, i, level));
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) out[blockIdx.x] = finish(value, count);
}

// Source: Harris, Optimizing Parallel Reduction in CUDA. NVIDIA, 2007. Its last step gives a thread
// many items; Hwu, Kirk and El Hajj, Programming Massively Parallel Processors, calls it
// coarsening.
