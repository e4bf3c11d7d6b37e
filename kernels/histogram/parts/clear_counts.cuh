// All counts zero and no bad element: what kernels that add to `counts` start from.
#pragma once
#include "histogram/parts/histogram_classes.cuh"

extern "C" __global__ void clear_counts(unsigned* counts, FirstBad* first_bad) {
    const unsigned bin = blockIdx.x * blockDim.x + threadIdx.x;
    if (bin < NUM_BINS) counts[bin] = 0;
    if (bin == 0) *first_bad = NO_BAD_ELEMENT;
}
