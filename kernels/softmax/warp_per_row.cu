// /// cudalab
// summary  = "A warp takes a row: lanes side by side, two reductions by shuffles"
// order    = 2
// adds     = "a warp per row: neighbours read neighbours, shuffles reduce"
// dispatch = "rows"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 8 }
// ///
//
// Lane t takes the items t, t + 32, ... of the row, so that a load of the warp fills whole sectors.
// Each lane has a maximum and a sum of its own; five shuffles combine those of the warp, and all
// lanes get the result (common/warp/warp_sum.cuh).
//
// A NaN reaches the sum through its exponential; fmaxf passes over it.
// Limits: as before, the row is read three times: from memory, unless the caches still have it.
//
// Macros from outside: THREADS_PER_BLOCK.
#include "common/warp/warp_sum.cuh"

constexpr float LEAST = -3.402823466e+38f;

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) softmax_rows(const float* x,
                                                                             float* out,
                                                                             unsigned rows,
                                                                             unsigned cols) {
    const unsigned row = blockIdx.x * (THREADS_PER_BLOCK / 32) + threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (size_t)row * cols;
    out += (size_t)row * cols;

    float greatest = LEAST, sum = 0;
    for (unsigned c = lane; c < cols; c += 32) greatest = fmaxf(greatest, x[c]);
    greatest = greatest_in_warp(greatest);
    for (unsigned c = lane; c < cols; c += 32) sum += expf(x[c] - greatest);
    sum = sum_over_warp(sum);
    for (unsigned c = lane; c < cols; c += 32) out[c] = expf(x[c] - greatest) / sum;
}
