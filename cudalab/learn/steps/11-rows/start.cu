// /// cudalab
// summary  = "A tile for each group of rows"
// order    = 100
// dispatch = "rows"
// defines  = { THREADS_PER_BLOCK = 256, MAX_LANES = 1 }
// applies  = { along = ["rows"] }
// ///

#include "reduce/parts/reduce_ops.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_rows(
    const T* x, const T* y, T* out, unsigned rows, unsigned cols, unsigned lanes, int level,
    unsigned count) {
    const unsigned row = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (row >= rows) return;

    T value = identity();
    for (unsigned col = 0; col < cols; ++col)
        value = combine(value, load(x, y, (size_t)row * cols + col, level));
    out[row] = finish(value, count);
}
