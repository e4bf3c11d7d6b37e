// A copy of A to factorize, its rows scaled by powers of two: exact, and it makes pivots of rows of
// different size comparable. One warp a row.
#include "common/warp_sum.cuh"

// work (rows of `ld` elements) = A with row i times scales[i], its greatest magnitude then 1 to 2;
// relative[i] is 1 over that magnitude, so that |work_ij| * relative[i] is a pivot's size in a row
// scaled to exactly 1. Columns and rows from n on are those of the identity up to `padded` and zero
// beyond. `row_of` starts as the identity. A row of zeros, NaNs or infinities stays as it is.
extern "C" __global__ void load_scaled_rows(const T* a, T* work, T* scales, T* relative,
                                            unsigned* row_of, unsigned n, unsigned padded,
                                            unsigned ld) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= ld) return;
    T greatest = row < n ? (T)0 : (T)1;
    if (row < n) {
        for (unsigned j = lane; j < n; j += 32) {
            const T element = a[(size_t)row * n + j];
            greatest = greater_or_nan(greatest, element < 0 ? -element : element);
        }
        greatest = greatest_in_warp(greatest);
    }
    // greatest = m 2^exponent, 1/2 <= m < 1. The limits keep the scale itself a normal number.
    int exponent = 1;
    if (greatest > 0 && greatest - greatest == 0) frexp(greatest, &exponent);
    const int limit = sizeof(T) == 4 ? 126 : 1022;
    exponent = exponent - 1 < -limit ? -limit : exponent - 1;
    const T scale = ldexp((T)1, -exponent);

    T* line = work + (size_t)row * ld;
    for (unsigned j = lane; j < ld; j += 32) {
        T value = row == j && row < padded ? (T)1 : (T)0;
        if (row < n) value = j < n ? a[(size_t)row * n + j] * scale : (T)0;
        line[j] = value;
    }
    if (lane == 0) {
        scales[row] = scale;
        relative[row] = greatest > 0 ? 1 / (greatest * scale) : (T)1;
        row_of[row] = row;
    }
}

// One thread a row of work: the right-hand side, in the order of its rows and scaled as they are;
// `factor`, a power of two, brings small residuals into T's range. Zeros from n on.
extern "C" __global__ void load_right_hand_side(const double* r, const T* scales,
                                                const unsigned* row_of, T* b, double factor,
                                                unsigned n, unsigned ld) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ld) return;
    const unsigned row = row_of[i];
    b[i] = row < n ? (T)(r[row] * factor * (double)scales[row]) : (T)0;
}

// One thread an element: x += what the system gave for the right-hand side, without its factor.
extern "C" __global__ void add_correction(T* x, const T* correction, double inverse_factor,
                                          unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = (T)(x[i] + correction[i] * inverse_factor);
}
