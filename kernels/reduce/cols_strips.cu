// /// cudalab
// summary  = "A thread takes a strip of 32 columns and keeps a value for each, like a core's loop"
// order    = 23
// ladder   = "a core's loop, columns"
// adds     = "a strip of 32 columns per thread"
// dispatch = "col_segments"
// defines  = { THREADS_PER_BLOCK = 1, ITEMS_PER_BLOCK = 65536 }
// applies  = { along = ["cols"] }
// default  = ["cpu"]
// ///
//
// A block is one thread. It walks down a segment of rows of its strip, up to STRIP neighbouring
// columns at once; further launches reduce the segments' results, as in cols_shared.
//
// On a CPU that suits cache lines and vector registers: each row of the strip is read whole, and
// the values of its columns are independent chains. A column at a time would fetch a cache line for
// every item. On a GPU one lane of 32 works, and its neighbours' strips come from other warps.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ITEMS_PER_BLOCK.
#include "reduce/parts/reduce_ops.cuh"

constexpr unsigned STRIP = 32;  // the widest strip of the launch plan

// Combines `here` columns of the strip at x, down to row `rows`. Inlined with here = STRIP, the
// loop has a constant length, so that a compiler can vectorise it.
__device__ __forceinline__ void combine_rows(T (&values)[STRIP], const T* x, size_t rows,
                                             size_t cols, unsigned here, int level) {
    for (size_t row = 0; row < rows; ++row) {
#pragma unroll
        for (unsigned k = 0; k < STRIP; ++k) {
            if (k == here) break;
            values[k] = combine(values[k], load(x, x, row * cols + k, level));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_cols(
    const T* x, T* out, unsigned rows, unsigned cols, unsigned width, int level, unsigned count) {
    const unsigned strips = (cols + width - 1) / width;
    const unsigned strip = blockIdx.x % strips, segment = blockIdx.x / strips;
    const unsigned col = strip * width, here = min(cols - col, width);
    const unsigned segment_rows = ITEMS_PER_BLOCK / width, row = segment * segment_rows;
    const unsigned height = min(rows - row, segment_rows);
    const T* first = x + (size_t)row * cols + col;

    T values[STRIP];
#pragma unroll
    for (unsigned k = 0; k < STRIP; ++k) values[k] = identity();
    if (here == STRIP)
        combine_rows(values, first, height, cols, STRIP, level);
    else
        combine_rows(values, first, height, cols, here, level);
#pragma unroll
    for (unsigned k = 0; k < STRIP; ++k)
        if (k < here) out[(size_t)segment * cols + col + k] = finish(values[k], count);
}
