// /// cudalab
// summary  = "A thread takes a strip of neighbouring columns and keeps a value for each"
// order    = 23
// dispatch = "cols"
// defines  = { THREADS_PER_BLOCK = 4, COLS_PER_THREAD = 32 }
// applies  = { along = ["cols"] }
// default  = ["cpu"]
// ///
//
// A thread walks down COLS_PER_THREAD neighbouring columns at once.
//
// On a CPU that is what a cache line and vector registers want: each row of the strip is read
// whole, and the values of its columns are independent chains. One column a thread would fetch a
// line for every item. On a GPU the lanes of a warp read 32 strips, a transaction each, and there
// are too few threads.
#include "common/reduce_ops.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_cols(const T* x, T* out,
                                                                            unsigned rows,
                                                                            unsigned cols,
                                                                            unsigned count) {
    const unsigned first = (blockIdx.x * THREADS_PER_BLOCK + threadIdx.x) * COLS_PER_THREAD;
    if (first >= cols) return;

    T values[COLS_PER_THREAD];
#pragma unroll
    for (unsigned k = 0; k < COLS_PER_THREAD; ++k) values[k] = identity();
    if (first + COLS_PER_THREAD <= cols) {
        for (unsigned row = 0; row < rows; ++row) {
            const size_t start = (size_t)row * cols + first;
#pragma unroll
            for (unsigned k = 0; k < COLS_PER_THREAD; ++k)
                values[k] = combine(values[k], load(x, x, start + k, 0));
        }
    } else {  // the last strip may be narrower
        for (unsigned row = 0; row < rows; ++row) {
            const size_t start = (size_t)row * cols + first;
#pragma unroll
            for (unsigned k = 0; k < COLS_PER_THREAD; ++k)
                if (first + k < cols) values[k] = combine(values[k], load(x, x, start + k, 0));
        }
    }
#pragma unroll
    for (unsigned k = 0; k < COLS_PER_THREAD; ++k)
        if (first + k < cols) out[first + k] = finish(values[k], count);
}
