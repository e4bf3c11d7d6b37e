// What a direct method solves for: a residual in the order and the scale of the factors' rows; and
// what it adds to the answer.
#pragma once

// The exponent of the power of two that a residual is divided by, so that it is near to 1, in T's
// range: from its norm as find_norms leaves it. Within what a double and its inverse can be.
__device__ inline int exponent_of(const double* norms) {
    int exponent = 0;
    if (norms[0] - norms[0] == 0) frexp(norms[0], &exponent);
    return exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
}

// One thread per row of work: the right-hand side, in the order of its rows and scaled as they are,
// divided by the power of two. Zeros from n on.
extern "C" __global__ void load_right_hand_side(const double* r, const double* norms,
                                                const T* scales, const unsigned* row_of, T* b,
                                                unsigned n, unsigned ld) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ld) return;
    const unsigned row = row_of[i];
    b[i] = row < n ? (T)(ldexp(r[row], -exponent_of(norms)) * (double)scales[row]) : (T)0;
}

// One thread per element: x += the solution for that right-hand side, times the power of two and
// the scale of its column.
extern "C" __global__ void add_correction(T* x, const T* correction, const T* column_scales,
                                          const double* norms, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double unscaled = (double)correction[i] * (double)column_scales[i];
    x[i] = (T)(x[i] + ldexp(unscaled, exponent_of(norms)));
}
