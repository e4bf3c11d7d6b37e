// /// cudalab
// summary  = "A thread per column, straight from global memory: already coalesced"
// order    = 21
// ladder   = "columns"
// dispatch = "cols"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { along = ["cols"] }
// ///
//
// Thread c walks down column c and combines its items in a register. At each step a warp reads 32
// neighbours of one row: coalesced, unlike rows_global, without any shared memory.
//
// Limits: there are no more threads than columns, so 1000 columns are only four blocks. A column is
// one chain of additions: rounding errors of floats grow with its length.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK.
#include "reduce/parts/reduce_ops.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_cols(const T* x, T* out,
                                                                            unsigned rows,
                                                                            unsigned cols,
                                                                            unsigned count) {
    const unsigned col = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (col >= cols) return;

    T value = identity();
    for (unsigned row = 0; row < rows; ++row)
        value = combine(value, load(x, x, (size_t)row * cols + col, 0));
    out[col] = finish(value, count);
}
