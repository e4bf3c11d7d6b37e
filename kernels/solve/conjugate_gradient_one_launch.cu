// /// cudalab
// summary  = "Conjugate gradients, one launch per iteration: the device decides when to stop"
// order    = 5.3
// adds     = "one launch per iteration, and the device decides when to stop"
// dispatch = "descent"
// defines  = { THREADS_PER_BLOCK = 512, ROWS_PER_BLOCK = 16, START_THREADS = 1024, SCALED = 0 }
// ///
//
// `conjugate_gradient` waits: three launches per iteration, each of which begins when all blocks of
// the one before have ended, and after a few iterations the host reads the residual to decide
// whether to go on. Here an iteration is one launch and the decision is the device's:
//   start_descent   one block: norms, the diagonal, the first direction
//   descend         q = A p, one warp per row, 16-byte loads; the last block to end adds up p.q
//                   and does what is left, a few vectors of n numbers: it steps, measures, stops or
//                   turns the direction. A is read from left to right and from right to left in
//                   turn: see solve/parts/row_product.cuh
// Once `state` says that it has stopped, launches return at once. So the host enqueues several
// iterations, the measurement of the answer in double and the check that A is symmetric, and reads
// all results at once.
//
// The direction is made of z, which is r times `inverse`: here the sign of the diagonal, so that a
// negative definite A is solved, too; `conjugate_gradient_scaled` puts more there.
// Limits: refuses matrices that are not symmetric and definite, as `conjugate_gradient` does, and
// needs as many iterations.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ROWS_PER_BLOCK, START_THREADS, SCALED.
#include "common/device/last_block.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/row_product.cuh"
#include "solve/parts/spectrum.cuh"

static_assert(ROWS_PER_BLOCK == THREADS_PER_BLOCK / 32, "one warp a row");

// Indices in `state`: the norms as find_norms leaves them, then the progress of the descent.
enum State { RESIDUAL, A_NORM, X_NORM, F_NORM, STOPPED, ITERATIONS, RZ };
// Values of STOPPED.
enum Reason { RUNNING, SMALL_ENOUGH, UNSYMMETRIC, MIXED_SIGNS, NOT_DEFINITE };

// Adds up the first SUMS of each thread's values and finds the greatest of the others, magnitudes,
// the same way in every run; every thread gets the results. The whole block calls it.
template <unsigned SUMS, unsigned COUNT>
__device__ inline void over_block(double (&values)[COUNT]) {
    __shared__ double of_warp[COUNT][32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (unsigned k = 0; k < COUNT; ++k) {
        values[k] = k < SUMS ? sum_over_warp(values[k]) : greatest_in_warp(values[k]);
        if (lane == 0) of_warp[k][warp] = values[k];
    }
    __syncthreads();  // the warps' results are ready
#pragma unroll
    for (unsigned k = 0; k < COUNT; ++k) {
        const double value = lane < blockDim.x / 32 ? of_warp[k][lane] : 0;
        values[k] = k < SUMS ? sum_over_warp(value) : greatest_in_warp(value);
    }
}

// One block. Begin, or begin again, at the residual f - A x and the sums of magnitudes in the rows
// of A as solve/parts/residual.cuh leaves them. unsymmetric: pairs of different elements; 0
// afterwards.
extern "C" __global__ void __launch_bounds__(START_THREADS) start_descent(
    const T* a, const double* residual, const double* row_sums, const T* f, T* inverse, T* r, T* p,
    unsigned* unsymmetric, double* state, unsigned n) {
    enum { R_TIMES_Z, POSITIVE, NEGATIVE, OF_A, OF_F, OF_R };
    double found[6] = {};  // three sums and three norms
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < n; i += START_THREADS) {
        const T diagonal = a[(size_t)i * n + i], value = (T)residual[i];
        const T one_by = SCALED ? 1 / diagonal : diagonal < 0 ? (T)-1 : (T)1;
        inverse[i] = one_by;
        r[i] = value;
        p[i] = one_by * value;
        found[R_TIMES_Z] += (double)value * (one_by * value);
        found[POSITIVE] += diagonal > 0;
        found[NEGATIVE] += diagonal < 0;
        found[OF_A] = greater_or_nan(found[OF_A], row_sums[i]);
        found[OF_F] = greater_or_nan(found[OF_F], fabs((double)f[i]));
        found[OF_R] = greater_or_nan(found[OF_R], fabs(residual[i]));
    }
    over_block<3>(found);
    if (threadIdx.x != 0) return;
    Reason reason = RUNNING;
    if (found[OF_R] == 0)
        reason = SMALL_ENOUGH;  // for example f = 0: converged for any A
    else if (*unsymmetric)
        reason = UNSYMMETRIC;
    else if (found[POSITIVE] != n && found[NEGATIVE] != n)
        reason = MIXED_SIGNS;
    *unsymmetric = 0;
    state[A_NORM] = found[OF_A];
    state[F_NORM] = found[OF_F];
    state[RZ] = found[R_TIMES_Z];
    state[STOPPED] = reason;
}

// An iteration. partials: a number for each block; arrived: 0 before and after. `wanted` is the
// backward error at which to stop, by the residual of the recurrence.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) descend(
    const T* a, const T* inverse, T* x, T* r, T* p, T* q, double* partials, unsigned* arrived,
    double* state, double wanted, unsigned n) {
    if (state[STOPPED] != RUNNING) return;  // the whole grid: it is written when all have read it
    __shared__ double products[ROWS_PER_BLOCK];
    __shared__ bool is_last;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned row = blockIdx.x * ROWS_PER_BLOCK + warp;
    const bool backwards = (unsigned)state[ITERATIONS] % 2 == 0;  // A was read forwards before
    const T sum = row < n ? row_product(a + (size_t)row * n, p, n, backwards) : (T)0;
    if (lane == 0) {
        if (row < n) q[row] = sum;
        products[warp] = row < n ? (double)sum * p[row] : 0;
    }
    __syncthreads();  // one product per row; one thread adds them in order
    if (threadIdx.x == 0) {
        double part = 0;
#pragma unroll
        for (unsigned w = 0; w < ROWS_PER_BLOCK; ++w) part += products[w];
        partials[blockIdx.x] = part;
        is_last = is_last_to_draw(arrived, gridDim.x);
    }
    __syncthreads();  // every thread knows whether this block is the last
    if (!is_last) return;

    double pq[1] = {};
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS_PER_BLOCK) pq[0] += partials[i];
    over_block<1>(pq);
    const double rz = state[RZ];
    const T step = (T)(rz / pq[0]);
    if (!(step > 0)) {  // p.q does not have the sign of the diagonal
        if (threadIdx.x == 0) state[STOPPED] = NOT_DEFINITE;
        return;
    }
    // One block has to read and write five vectors: 16 bytes a time, and the last few one by one.
    enum { NEW_RZ, OF_R, OF_X };
    double found[3] = {};  // a sum and two norms
    const unsigned fours = n / 4;
    auto take_step = [&](T& place, T& rest, T direction, T product, T one_by) {
        place += step * direction;
        rest -= step * product;
        found[NEW_RZ] += (double)rest * (one_by * rest);
        found[OF_R] = greater_or_nan(found[OF_R], fabs((double)rest));
        found[OF_X] = greater_or_nan(found[OF_X], fabs((double)place));
    };
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < fours; i += THREADS_PER_BLOCK) {
        Four &places = reinterpret_cast<Four*>(x)[i], &rests = reinterpret_cast<Four*>(r)[i];
        const Four directions = reinterpret_cast<const Four*>(p)[i];
        const Four products = reinterpret_cast<const Four*>(q)[i];
        const Four one_by = reinterpret_cast<const Four*>(inverse)[i];
        Four place = places, rest = rests;
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
            take_step(place.v[j], rest.v[j], directions.v[j], products.v[j], one_by.v[j]);
        places = place;
        rests = rest;
    }
    for (unsigned i = 4 * fours + threadIdx.x; i < n; i += THREADS_PER_BLOCK)
        take_step(x[i], r[i], p[i], q[i], inverse[i]);
    over_block<1>(found);
    const T keep = (T)(found[NEW_RZ] / rz);
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < fours; i += THREADS_PER_BLOCK) {
        Four& directions = reinterpret_cast<Four*>(p)[i];
        const Four one_by = reinterpret_cast<const Four*>(inverse)[i];
        const Four rest = reinterpret_cast<const Four*>(r)[i];
        Four direction = directions;
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
            direction.v[j] = one_by.v[j] * rest.v[j] + keep * direction.v[j];
        directions = direction;
    }
    for (unsigned i = 4 * fours + threadIdx.x; i < n; i += THREADS_PER_BLOCK)
        p[i] = inverse[i] * r[i] + keep * p[i];
    if (threadIdx.x != 0) return;
    if (found[OF_R] <= wanted * (state[A_NORM] * found[OF_X] + state[F_NORM]))
        state[STOPPED] = SMALL_ENOUGH;
    state[RZ] = found[NEW_RZ];
    state[ITERATIONS] += 1;
}

// Source: Hestenes and Stiefel, Methods of Conjugate Gradients for Solving Linear Systems.
// Journal of Research of the National Bureau of Standards 49(6), 1952.
