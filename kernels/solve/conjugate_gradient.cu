// /// cudalab
// summary  = "Conjugate gradients: the best step in every iteration"
// order    = 5
// adds     = "the best step each time, from dot products on the device"
// dispatch = "conjugate_gradient"
// defines  = { THREADS_PER_BLOCK = 256, ROWS_PER_BLOCK = 8, BLOCKS = 64 }
// ///
//
// For a symmetric, definite A: the directions p are conjugate (p_i A p_j = 0), and each iteration
// takes the step along p that brings x as close to the solution as the directions so far allow. It
// needs no bounds on the eigenvalues and no more iterations than `chebyshev` with the best ones.
//
// The price is two dot products per iteration, sums over all blocks. A block sums its part and
// leaves it in `partials`; the next kernel, which starts when all blocks of this one have ended,
// adds up the parts, in every block in the same order. So the step sizes stay on the device and no
// iteration waits for the host. Dot products are summed in double.
//   multiply_direction   q = A p, one warp per row, and the parts of p.q
//   take_step            x += s p, r -= s q with s = r.r / p.q, and the parts of the new r.r
//   turn_direction       p = r + p (new r.r / old r.r)
// Limits: refuses matrices that are not symmetric; p.q of the wrong sign shows that A is not
// definite and ends the iteration.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ROWS_PER_BLOCK.
#include "solve/parts/residual.cuh"
#include "solve/parts/spectrum.cuh"

constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
static_assert(ROWS_PER_BLOCK == WARPS, "one warp a row");

// The sum of the threads' values, for every thread. The whole block calls it.
__device__ inline double sum_over_block(double value) {
    __shared__ double of_warp[WARPS];
    value = sum_over_warp(value);
    __syncthreads();  // the sums of a call before have been read
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();  // the warps' sums are ready
    double sum = 0;
#pragma unroll
    for (unsigned warp = 0; warp < WARPS; ++warp) sum += of_warp[warp];
    return sum;
}

__device__ inline double sum_of_parts(const double* partials, unsigned count) {
    double sum = 0;
    for (unsigned i = threadIdx.x; i < count; i += THREADS_PER_BLOCK) sum += partials[i];
    return sum_over_block(sum);
}

// Begin, or begin again, at the residual: r = p = f - A x.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) start_direction(
    const double* residual, T* r, T* p, double* partials, unsigned n) {
    double sum = 0;
    for (unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x; i < n;
         i += gridDim.x * THREADS_PER_BLOCK) {
        const T value = (T)residual[i];
        r[i] = value;
        p[i] = value;
        sum += (double)value * value;
    }
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) multiply_direction(const T* a,
                                                                                   const T* p, T* q,
                                                                                   double* partials,
                                                                                   unsigned n) {
    __shared__ double products[WARPS];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned row = blockIdx.x * ROWS_PER_BLOCK + warp;
    T sum = 0;
    if (row < n) {
        const T* line = a + (size_t)row * n;
        for (unsigned j = lane; j < n; j += 32) sum += line[j] * p[j];
    }
    sum = sum_over_warp(sum);
    if (lane == 0) {
        if (row < n) q[row] = sum;
        products[warp] = row < n ? (double)sum * p[row] : 0;
    }
    __syncthreads();  // one product per row; one thread adds them in order
    if (threadIdx.x == 0) {
        double part = 0;
        for (unsigned w = 0; w < WARPS; ++w) part += products[w];
        partials[blockIdx.x] = part;
    }
}

// not_definite[0] becomes 1 if p.q does not have the sign that it has for a definite matrix.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) take_step(
    T* x, T* r, const T* p, const T* q, const double* pq_parts, unsigned num_pq,
    const double* rr_parts, double* new_rr_parts, unsigned* not_definite, double sign, unsigned n) {
    const double pq = sum_of_parts(pq_parts, num_pq);
    const double rr = sum_of_parts(rr_parts, gridDim.x);
    const T step = rr > 0 ? (T)(rr / pq) : (T)0;  // r = 0: x is the solution, stay there
    if (blockIdx.x == 0 && threadIdx.x == 0 && rr > 0 && !(sign * pq > 0)) not_definite[0] = 1;

    double sum = 0;
    for (unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x; i < n;
         i += gridDim.x * THREADS_PER_BLOCK) {
        x[i] += step * p[i];
        const T value = r[i] - step * q[i];
        r[i] = value;
        sum += (double)value * value;
    }
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) new_rr_parts[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) turn_direction(
    T* p, const T* r, const double* rr_parts, const double* new_rr_parts, unsigned n) {
    const double rr = sum_of_parts(rr_parts, gridDim.x);
    const double new_rr = sum_of_parts(new_rr_parts, gridDim.x);
    const T keep = rr > 0 ? (T)(new_rr / rr) : (T)0;
    for (unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x; i < n;
         i += gridDim.x * THREADS_PER_BLOCK)
        p[i] = r[i] + keep * p[i];
}

// Source: Hestenes and Stiefel, Methods of Conjugate Gradients for Solving Linear Systems.
// Journal of Research of the National Bureau of Standards 49(6), 1952.
