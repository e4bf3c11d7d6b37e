// /// cudalab
// summary  = "A thread combines a run of consecutive items: no cooperation, no coalescing"
// order    = 9
// ladder   = "a core's loop"
// adds     = "a run of consecutive items per thread"
// dispatch = "rows"
// applies  = { along = ["all", "rows"] }
// default  = ["cpu"]
//
// [defines]
// THREADS_PER_BLOCK = 32
// ITEMS_PER_SEGMENT = 16384
// MAX_LANES         = 1
// ///
//
// The loop of a sequential program, in parallel: a row (the whole array is one row) is cut into
// segments of consecutive items, one per thread. The segments' results are reduced in the same way
// by further launches. There is no barrier, no shuffle and no shared memory.
//
// On a CPU a thread is a loop on one core: it reads along cache lines, and CHAINS independent
// values become the compiler's vector registers. On a GPU the 32 lanes of a warp read 32 places far
// apart, one sector each, and n / ITEMS_PER_SEGMENT threads are too few to hide the latency.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ITEMS_PER_SEGMENT.
#include "reduce/parts/reduce_ops.cuh"

constexpr unsigned CHAINS = 64 / sizeof(T);  // a cache line of values

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_rows(
    const T* x, const T* y, T* out, unsigned rows, unsigned cols, unsigned lanes, int level,
    unsigned count) {
    const unsigned segments = (cols + ITEMS_PER_SEGMENT - 1) / ITEMS_PER_SEGMENT;
    const unsigned s = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned row = s / segments, segment = s % segments;
    if (row >= rows) return;

    const unsigned begin = segment * ITEMS_PER_SEGMENT;
    const unsigned items = min(cols - begin, (unsigned)ITEMS_PER_SEGMENT);
    const size_t start = (size_t)row * cols + begin;

    // Float operations may not be reordered by a compiler: the chains are what it can vectorise.
    T values[CHAINS];
#pragma unroll
    for (unsigned k = 0; k < CHAINS; ++k) values[k] = identity();
    unsigned i = 0;
    for (; i + CHAINS <= items; i += CHAINS)
#pragma unroll
        for (unsigned k = 0; k < CHAINS; ++k)
            values[k] = combine(values[k], load(x, y, start + i + k, level));
    T value = identity();
    for (; i < items; ++i) value = combine(value, load(x, y, start + i, level));
#pragma unroll
    for (unsigned k = 0; k < CHAINS; ++k) value = combine(value, values[k]);
    out[s] = finish(value, count);
}
