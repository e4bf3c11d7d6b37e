// /// cudalab
// summary  = "A thread per row, straight from global memory: lanes read a row's length apart"
// order    = 11
// ladder   = "rows"
// dispatch = "rows"
// defines  = { THREADS_PER_BLOCK = 256, MAX_LANES = 1 }
// applies  = { along = ["rows"] }
// ///
//
// Thread r walks along row r and combines its items in a register.
//
// Limits: at each step the 32 lanes of a warp read 32 places `cols` items apart, in as many
// sectors of 32 bytes, each for the sake of one word; the next steps find the other words in
// L1 only while those of all rows fit. There are no more threads than rows; and a row is one chain
// of additions, so rounding errors of floats grow with its length.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK.
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
