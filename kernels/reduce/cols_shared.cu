// /// cudalab
// summary  = "Blocks take strips of 32 columns and segments of rows, combined in shared memory"
// order    = 22
// ladder   = "columns"
// adds     = "segments of rows: more threads than columns"
// dispatch = "col_segments"
// applies  = { along = ["cols"] }
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 256
// ITEMS_PER_BLOCK   = 8192   # 256 rows of a strip of 32 columns
// ///
//
// A warp takes a row of the strip, 32 neighbours, and the block's eight warps every eighth row of
// the segment; a thread combines its items in a register. The eight values of a column meet in
// shared memory. The segments' results, a matrix of as many rows as there are segments, are reduced
// in the same way by further launches. Matrices of fewer than 32 columns get narrower strips, a
// power of two, and longer segments.
//
// Compared with cols_global: eight threads per column in each segment, so that 1000 columns are
// enough work for a GPU. Shared memory needs no padding: the threads that combine are neighbours,
// for any width of the strip, and read neighbouring words.
// Limits: a thread loads one word at a time, not 16 bytes.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ITEMS_PER_BLOCK.
#include "reduce/parts/reduce_ops.cuh"

static_assert((THREADS_PER_BLOCK & (THREADS_PER_BLOCK - 1)) == 0, "a tree halves a power of two");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_cols(
    const T* x, T* out, unsigned rows, unsigned cols, unsigned width, int level, unsigned count) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x;
    const unsigned strips = (cols + width - 1) / width;
    const unsigned strip = blockIdx.x % strips, segment = blockIdx.x / strips;
    const unsigned col = strip * width + tid % width;
    const unsigned height = THREADS_PER_BLOCK / width;  // rows of the strip that are read at once

    const unsigned segment_rows = ITEMS_PER_BLOCK / width;
    const unsigned begin = segment * segment_rows;
    const unsigned end = begin + min(rows - begin, segment_rows);
    T value = identity();
    if (col < cols) {
#pragma unroll 8
        for (unsigned row = begin + tid / width; row < end; row += height)
            value = combine(value, load(x, x, (size_t)row * cols + col, level));
    }
    values[tid] = value;
    __syncthreads();  // the values of all rows are in place

    // values[] is a matrix of `height` rows of `width`: the upper half of its rows is combined with
    // the lower half until one row is left.
    for (unsigned s = THREADS_PER_BLOCK / 2; s >= width; s /= 2) {
        if (tid < s) values[tid] = combine(values[tid], values[tid + s]);
        __syncthreads();  // the next level reads what other threads wrote at this one
    }
    if (tid < width && col < cols) out[(size_t)segment * cols + col] = finish(values[tid], count);
}
