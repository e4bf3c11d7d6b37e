// /// cudalab
// summary  = "A thread takes a row: its maximum, its sum of exponentials, its quotients"
// order    = 1
// dispatch = "rows"
// default  = ["cpu"]
// defines  = { THREADS_PER_BLOCK = 128, ROWS_PER_BLOCK = 128 }
// ///
//
// out[c] = exp(x[c] - m) / sum of exp(x[i] - m), with the row's maximum m. Without m the formula
// has the same value, but exp(89) exceeds what a float holds; with it no exponential exceeds 1, and
// the sum is 1 at least.
//
// Two reductions and a last pass: the row is read three times and written once. The maximum starts
// at the least finite float: then -infinity among other numbers becomes 0, as it should, without a
// case of its own.
// Limits: the threads of a warp read 32 places that lie a row apart, each in a sector of its own.
//
// Macros from outside: THREADS_PER_BLOCK.

constexpr float LEAST = -3.402823466e+38f;

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) softmax_rows(const float* x,
                                                                             float* out,
                                                                             unsigned rows,
                                                                             unsigned cols) {
    const unsigned row = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (row >= rows) return;
    x += (size_t)row * cols;
    out += (size_t)row * cols;

    float greatest = LEAST, sum = 0;
    for (unsigned c = 0; c < cols; ++c) greatest = fmaxf(greatest, x[c]);
    for (unsigned c = 0; c < cols; ++c) sum += expf(x[c] - greatest);
    for (unsigned c = 0; c < cols; ++c) out[c] = expf(x[c] - greatest) / sum;
}
