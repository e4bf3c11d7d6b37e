// Solves L y = b downwards or U x = y upwards in one launch. A block solves for 64 unknowns and
// waits for those of the blocks before it, which it takes as they come; blocks are numbered by
// ticket in the order in which they start, so none waits for a block that cannot run.
//
// An unknown is its own signal: until it is known, its place holds EMPTY, all bits set, which no
// result has. So one read both detects and fetches it, and no fence is needed. The substitution in
// the other direction, which runs between two of this one, restores EMPTY.
//
// The time is that of the chain: a block's unknowns, a trip through memory, and again. So a block
// does beforehand what it can: it inverts its triangle, which makes its own unknowns a product, and
// multiplies its rows by the unknowns already known.
//
// Four threads share a row; each has every fourth piece of four columns.
#pragma once
#include "solve/parts/four.cuh"

constexpr unsigned CHAIN_THREADS = 256;
constexpr unsigned LINK = 64;                             // unknowns of a block
constexpr unsigned OF_ROW = CHAIN_THREADS / LINK;         // threads
constexpr unsigned PIECES_OF_THREAD = LINK / 4 / OF_ROW;  // of a row

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

// Wait for an unknown in each lane; blocks far from their turn poll less often, which leaves the
// memory to those whose turn it is. volatile: written by other blocks meanwhile.
__device__ inline T wait_for(const T* known, unsigned distance) {
    T value = *(const volatile T*)known;
    while (!__all_sync(0xffffffffu, !is_empty(value))) {
        __nanosleep(32 * (distance < 32 ? distance : 32));
        value = *(const volatile T*)known;
    }
    return value;
}

// The sum of a row's four threads, in each of them.
__device__ inline T sum_of_row(T sum) {
#pragma unroll
    for (unsigned distance = 1; distance < OF_ROW; distance *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    return sum;
}

// The thread's part of the inverse of the triangle at row0.
template <bool LOWER>
__device__ inline void invert_triangle(Four (&inverse)[PIECES_OF_THREAD], const T* lu,
                                       unsigned row0, unsigned end, unsigned ld) {
    __shared__ T triangle[LINK][LINK + 1];  // a word of padding: threads read a column
    __shared__ Four lines[2][LINK / 4];     // the inverse's row of a step; two in turn
    const unsigned row = threadIdx.x / OF_ROW, part = threadIdx.x % OF_ROW;
#pragma unroll
    for (unsigned i = 0; i < PIECES_OF_THREAD; ++i) {
        const unsigned column = 4 * (OF_ROW * i + part);
        const T* place = lu + (size_t)(row0 + row) * ld + row0 + column;
        const Four piece = *reinterpret_cast<const Four*>(place);
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) {
            triangle[row][column + j] = piece.v[j];
            inverse[i].v[j] = column + j == row ? (T)1 : (T)0;
        }
    }
    __syncthreads();  // the triangle is complete
    const T diagonal = LOWER || row0 + row >= end ? (T)1 : 1 / triangle[row][row];
#pragma unroll 1
    for (unsigned step = 0; step < LINK; ++step) {
        const unsigned k = LOWER ? step : LINK - 1 - step;
        if (row == k) {
#pragma unroll
            for (unsigned i = 0; i < PIECES_OF_THREAD; ++i) {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j) inverse[i].v[j] *= diagonal;
                lines[step % 2][OF_ROW * i + part] = inverse[i];
            }
        }
        // The row is complete. It is overwritten two steps from now, after the next barrier.
        __syncthreads();
        const T multiplier = (LOWER ? row > k : row < k) ? triangle[row][k] : (T)0;
#pragma unroll
        for (unsigned i = 0; i < PIECES_OF_THREAD; ++i) {
            const Four line = lines[step % 2][OF_ROW * i + part];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) inverse[i].v[j] -= multiplier * line.v[j];
        }
    }
}

// b: the right-hand side; solution: EMPTY before; other: a place for EMPTY, which may be b itself.
// Rows and columns from `end` to the end of its link are zero.
template <bool LOWER>
__device__ inline void substitute_chain(const T* lu, const T* b, T* solution, T* other,
                                        unsigned* ticket, unsigned end, unsigned ld) {
    __shared__ Four known[2][LINK / 4], rest[LINK / 4];
    __shared__ unsigned block_ticket;
    const unsigned t = threadIdx.x, part = t % OF_ROW;
    if (t == 0) block_ticket = atomicInc(ticket, gridDim.x - 1);  // ends as 0
    __syncthreads();                                              // all threads can read the ticket
    const unsigned turn = block_ticket;
    auto start_of = [](unsigned at) { return LINK * (LOWER ? at : gridDim.x - 1 - at); };
    const unsigned row0 = start_of(turn), row = row0 + t / OF_ROW;
    Four inverse[PIECES_OF_THREAD];
    invert_triangle<LOWER>(inverse, lu, row0, end, ld);
    T value = 0;
    if (row < end && part == 0) {
        value = b[row];
        other[row] = empty_place();
    }

    // The next elements are being loaded while this step waits for its unknowns.
    const T* line = lu + (size_t)row * ld + 4 * part;
    Four next[PIECES_OF_THREAD];
    auto fetch = [&](unsigned step) {
#pragma unroll
        for (unsigned i = 0; i < PIECES_OF_THREAD; ++i)
            next[i] = *reinterpret_cast<const Four*>(line + start_of(step) + 4 * OF_ROW * i);
    };
    auto product = [&](const Four(&left)[PIECES_OF_THREAD], const Four(&right)[LINK / 4]) {
        T sums[4] = {};
#pragma unroll
        for (unsigned i = 0; i < PIECES_OF_THREAD; ++i)
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                sums[j] += left[i].v[j] * right[OF_ROW * i + part].v[j];
        return sums[0] + sums[1] + (sums[2] + sums[3]);
    };
    T sum = 0;
    if (turn > 0) fetch(0);
    for (unsigned step = 0; step < turn; ++step) {
        Four now[PIECES_OF_THREAD];
#pragma unroll
        for (unsigned i = 0; i < PIECES_OF_THREAD; ++i) now[i] = next[i];
        if (step + 1 < turn) fetch(step + 1);
        if (t < LINK) {
            const unsigned at = start_of(step) + t;
            T* place = reinterpret_cast<T*>(known[step % 2]) + t;
            *place = at < end ? wait_for(solution + at, turn - step) : (T)0;
        }
        __syncthreads();  // the unknowns are ready; those of two steps ago have been read
        sum += product(now, known[step % 2]);
    }
    sum = sum_of_row(sum);
    if (part == 0) reinterpret_cast<T*>(rest)[t / OF_ROW] = value - sum;
    __syncthreads();  // what the block's own unknowns have to amount to is known
    const T unknown = sum_of_row(product(inverse, rest));
    // Any NaN but the one that means EMPTY.
    if (row < end && part == 0) {
        *(volatile T*)(solution + row) = unknown != unknown ? (T)NAN : unknown;
    }
}

// `b` is the right-hand side, `between` the solution of L.
extern "C" __global__ void __launch_bounds__(CHAIN_THREADS) substitute_lower_chain(
    const T* lu, const T* b, T* between, T* solution, unsigned* ticket, unsigned end, unsigned ld) {
    substitute_chain<true>(lu, b, between, solution, ticket, end, ld);
}
extern "C" __global__ void __launch_bounds__(CHAIN_THREADS) substitute_upper_chain(
    const T* lu, T* between, T* solution, unsigned* ticket, unsigned end, unsigned ld) {
    substitute_chain<false>(lu, between, solution, between, ticket, end, ld);
}
