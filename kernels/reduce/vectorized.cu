// /// cudalab
// summary  = "Strides over the array with 16-byte loads, four of them in flight"
// order    = 7
// adds     = "16-byte loads, four in flight: fewer instructions for more bytes"
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
// The grid-stride loop of coarsened, over vectors of 16 bytes: thread t of all threads takes the
// vectors t, t + stride, ... and combines them in registers.
//
// Compared with coarsened: a load brings four words (two of 8 bytes), and four loads are requested
// before the first is used, so that a thread has 64 bytes in flight. A vector's words belong to
// four sums that do not wait for each other; they are combined once, after the loop.
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

// Source: Luitjens, Increase Performance with Vectorized Memory Access. NVIDIA Developer Blog,
// 2013.
