// /// cudalab
// summary  = "A fixed number of blocks strides over the array with 16-byte loads"
// order    = 7
// adds     = "16-byte loads, and a fixed number of blocks that stride"
// dispatch = "multi_pass"
// applies  = { along = ["all"] }
//
// [defines]
// THREADS_PER_BLOCK = 256
// ITEMS_PER_BLOCK   = 4096   # minimum work of a block
// MAX_BLOCKS        = 1056   # on every GPU, so that sums of floats have the same bytes
// LOADS_PER_THREAD  = 4      # 16-byte loads in flight
// ///
//
// A grid-stride loop: about as many blocks as a large device holds at a time share the array (a
// smaller one takes them in turns), thread t of all threads takes the vectors t, t + stride, ... of
// 16 bytes and combines them in registers. Shuffles reduce the threads' values once, after the
// loop.
//
// Compared with warp_shuffle: a load brings four words (two of 8 bytes) and four loads are in
// flight; the cost of a block is spread over n / MAX_BLOCKS items; one further launch of a single
// block reduces the partial results (n / ITEMS_PER_BLOCK of them, MAX_BLOCKS at most).
// Limits: that second launch, which costs as much as a small array.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// LOADS_PER_THREAD.
#include "reduce/parts/reduce_block.cuh"
#include "reduce/parts/reduce_vectors.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    const unsigned first = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned stride = gridDim.x * THREADS_PER_BLOCK;

    T value = reduce_strided<LOADS_PER_THREAD>(x, y, n, first, stride, level);
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) out[blockIdx.x] = finish(value, count);
}
