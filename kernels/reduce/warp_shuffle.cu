// /// cudalab
// summary  = "Warps reduce by shuffles, registers to registers: one barrier per block"
// order    = 6
// adds     = "shuffles instead of the tree: one barrier per block"
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 512 }
// applies  = { along = ["all"] }
// ///
//
// A thread combines two items as it loads them. Each warp then reduces its 32 values in five
// shuffles: lane t takes the register of lane t + 16, t + 8, ... 1. The warps' values, one word
// each in shared memory, are reduced by the first warp in the same way
// (reduce/parts/reduce_block.cuh).
//
// Compared with the tree in shared memory: a shuffle reads all lanes before it gives any its value,
// so it needs no warp barriers; one of three block barriers is left, and one word per warp instead
// of one per thread.
// Limits: two one-word loads per thread keep too few bytes in flight to saturate the memory, and
// every 512 items bear the cost of a block: its start, its barrier, its partial result.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ITEMS_PER_BLOCK.
#include "reduce/parts/reduce_block.cuh"

static_assert(ITEMS_PER_BLOCK == 2 * THREADS_PER_BLOCK, "a thread loads two items");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_blocks(const T* x,
                                                                              const T* y, T* out,
                                                                              unsigned n, int level,
                                                                              unsigned count) {
    const unsigned i = blockIdx.x * ITEMS_PER_BLOCK + threadIdx.x, j = i + THREADS_PER_BLOCK;

    T value = i < n ? load(x, y, i, level) : identity();
    if (j < n) value = combine(value, load(x, y, j, level));
    value = reduce_block<THREADS_PER_BLOCK>(value);
    if (threadIdx.x == 0) out[blockIdx.x] = finish(value, count);
}

// Source: Luitjens, Faster Parallel Reductions on Kepler. NVIDIA Developer Blog.
