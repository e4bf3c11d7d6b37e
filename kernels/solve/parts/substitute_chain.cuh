// Solves L y = b downwards or U x = y upwards in one launch. A block solves for 32 unknowns and
// waits for those of the blocks before it, which it takes as they come; blocks are numbered by
// ticket in the order in which they start, so none waits for a block that cannot run.
//
// An unknown is its own signal: until it is known, its place holds EMPTY, all bits set, which no
// result has. So one read both detects and fetches it, and no fence is needed. The substitution in
// the other direction, which runs between two of this one, restores EMPTY.
//
// The time is that of the chain: 32 dependent steps in a warp, a trip through memory, and again.
// Meanwhile all blocks multiply their rows by the unknowns already known.
#pragma once
#include "common/warp/warp_sum.cuh"

constexpr unsigned CHAIN_THREADS = 256;
constexpr unsigned LINK = 32;  // unknowns of a block
constexpr unsigned ROWS_OF_WARP = LINK / (CHAIN_THREADS / 32);

__device__ inline T empty_place() {
    T value;
    memset(&value, 0xff, sizeof(T));
    return value;
}
__device__ inline bool is_empty(T value) {
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits == ~0ull >> (64 - 8 * sizeof(T));
}

// Wait for unknown `at` in each lane; blocks far from their turn poll less often, which leaves the
// memory to those whose turn it is. volatile: written by other blocks meanwhile.
__device__ inline T wait_for(const T* known, unsigned at, unsigned distance) {
    T value = ((const volatile T*)known)[at];
    while (!__all_sync(0xffffffffu, !is_empty(value))) {
        __nanosleep(32 * (distance < 32 ? distance : 32));
        value = ((const volatile T*)known)[at];
    }
    return value;
}

// b: the right-hand side; solution: EMPTY before; other: a place for EMPTY, which may be b itself.
template <bool LOWER>
__device__ inline void substitute_chain(const T* lu, const T* b, T* solution, T* other,
                                        unsigned* ticket, unsigned ld) {
    __shared__ T known[2][LINK], sums[LINK];
    __shared__ unsigned block_ticket;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) block_ticket = atomicInc(ticket, gridDim.x - 1);  // ends as 0
    __syncthreads();  // all threads can read the ticket
    const unsigned turn = block_ticket;
    auto start_of = [](unsigned at) { return LINK * (LOWER ? at : gridDim.x - 1 - at); };
    const unsigned row0 = start_of(turn);

    // The triangle on the diagonal, a row for each lane, and what depends on no other block.
    T triangle[LINK], value = 0, inverse = 1;
    if (warp == 0) {
        const T* line = lu + (size_t)(row0 + lane) * ld + row0;
#pragma unroll
        for (unsigned k = 0; k < LINK; ++k) triangle[k] = line[k];
        if (!LOWER) inverse = 1 / line[lane];
        value = b[row0 + lane];
        other[row0 + lane] = empty_place();
    }

    // Neighbouring lanes take neighbouring columns; the next elements are being loaded while this
    // step waits for its unknowns.
    const T* line = lu + (size_t)(row0 + warp * ROWS_OF_WARP) * ld + lane;
    T sum[ROWS_OF_WARP] = {}, next[ROWS_OF_WARP] = {};
    auto fetch = [&](unsigned step) {
#pragma unroll
        for (unsigned r = 0; r < ROWS_OF_WARP; ++r) next[r] = line[(size_t)r * ld + start_of(step)];
    };
    if (turn > 0) fetch(0);
    for (unsigned step = 0; step < turn; ++step) {
        T now[ROWS_OF_WARP];
#pragma unroll
        for (unsigned r = 0; r < ROWS_OF_WARP; ++r) now[r] = next[r];
        if (step + 1 < turn) fetch(step + 1);
        if (warp == 0)
            known[step % 2][lane] = wait_for(solution, start_of(step) + lane, turn - step);
        __syncthreads();  // the unknowns are ready; those of two steps ago have been read
        const T unknown = known[step % 2][lane];
#pragma unroll
        for (unsigned r = 0; r < ROWS_OF_WARP; ++r) sum[r] += now[r] * unknown;
    }
#pragma unroll
    for (unsigned r = 0; r < ROWS_OF_WARP; ++r) {
        const T total = sum_over_warp(sum[r]);
        if (lane == 0) sums[warp * ROWS_OF_WARP + r] = total;
    }
    __syncthreads();  // the sums of all rows are ready
    if (warp != 0) return;

    value -= sums[lane];
#pragma unroll
    for (unsigned step = 0; step < LINK; ++step) {
        const unsigned k = LOWER ? step : LINK - 1 - step;
        if (!LOWER && lane == k) value *= inverse;
        const T unknown = __shfl_sync(0xffffffffu, value, k);
        if (LOWER ? lane > k : lane < k) value -= triangle[k] * unknown;
    }
    // Any NaN but the one that means EMPTY.
    ((volatile T*)solution)[row0 + lane] = value != value ? (T)NAN : value;
}

// `b` is the right-hand side, `between` the solution of L.
extern "C" __global__ void __launch_bounds__(CHAIN_THREADS) substitute_lower_chain(
    const T* lu, const T* b, T* between, T* solution, unsigned* ticket, unsigned ld) {
    substitute_chain<true>(lu, b, between, solution, ticket, ld);
}
extern "C" __global__ void __launch_bounds__(CHAIN_THREADS) substitute_upper_chain(
    const T* lu, T* between, T* solution, unsigned* ticket, unsigned ld) {
    substitute_chain<false>(lu, between, solution, between, ticket, ld);
}
