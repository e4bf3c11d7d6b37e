// /// cudalab
// summary  = "Online: the maximum and the sum in one pass, so that a row is read twice"
// order    = 3
// adds     = "online softmax: maximum and sum in one pass"
// dispatch = "rows"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 8 }
// ///
//
// The sum needs the maximum, which is known after the last item only. But a sum of exp(x - old) is
// one of exp(x - new) once it is multiplied by exp(old - new): so both are kept up to date item by
// item (softmax/parts/online_sum.cuh). Pairs of a maximum and its sum combine in any grouping, as
// numbers do in a reduction, so that lanes and warps may join theirs in a tree.
//
// Compared with warp_per_row: two reads and a write of each item instead of three and one, and one
// tree of shuffles instead of two; another exponential for each item. The same trick lets attention
// go over a row tile by tile.
// Limits: the row is read again for the quotients.
//
// Macros from outside: THREADS_PER_BLOCK.
#include "softmax/parts/online_sum.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) softmax_rows(const float* x,
                                                                             float* out,
                                                                             unsigned rows,
                                                                             unsigned cols) {
    const unsigned row = blockIdx.x * (THREADS_PER_BLOCK / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    x += (size_t)row * cols;
    out += (size_t)row * cols;

    OnlineSum all;
    for (unsigned c = threadIdx.x % 32; c < cols; c += 32) add_item(all, x[c]);
    all = joined_in_warp(all);
    for (unsigned c = threadIdx.x % 32; c < cols; c += 32)
        out[c] = expf(x[c] - all.greatest) / all.sum;
}

// Source: Milakov and Gimelshein, Online Normalizer Calculation for Softmax. arXiv:1805.02867,
// 2018.
