// One block finds the pivot rows of a panel of 32 columns, two rows per thread: 32 steps of
// elimination in registers, one barrier per step. With two rows per thread, half as many warps look
// for the greatest element, and a pivot row is read from shared memory once for both.
//
// In each step every warp finds its greatest element of the column and copies that element's row to
// shared memory at once, before it is known which warp has the greatest of all. One barrier later
// all warps read all keys, agree, and take the pivot row from there: a warp that loses has wasted a
// few stores; a second barrier would cost more.
//
// The steps come in four phases of eight. Between them the 32 registers of a row rotate by eight,
// so that the loop body addresses registers by constants and is small: the column of a step is
// always among the first eight, and the last ones hold multipliers that are finished.
#pragma once
#include "solve/parts/four.cuh"
#include "solve/parts/reciprocal.cuh"
#include "solve/parts/size_bits.cuh"

constexpr unsigned FULL = 0xffffffffu;
constexpr unsigned NONE = 0xffffffffu;  // no row
constexpr unsigned PHASE = 8;           // steps
constexpr unsigned PHASES = PANEL / PHASE;
constexpr unsigned MAX_ELECTION_THREADS =
    sizeof(T) == 4 ? MAX_THREADS_PER_BLOCK : MAX_THREADS_PER_BLOCK / 2;
constexpr unsigned MAX_ELECTION_WARPS = MAX_ELECTION_THREADS / 32;

static_assert(PANEL == 32, "a lane for each pivot");
static_assert(MAX_ELECTION_THREADS >= 32 && MAX_ELECTION_THREADS <= 1024 &&
                  MAX_ELECTION_THREADS % 32 == 0,
              "a warp reads the keys of all warps");

// A row's size plus one; zero for a row that has dropped out. A NaN cannot hide: it is above all
// others.
using Key = SizeBits;

__device__ inline Key key_of(T size) {
    Key bits;
    memcpy(&bits, &size, sizeof(T));
    return bits + 1;
}
__device__ inline T size_of(Key key) {
    const Key bits = key - 1;
    T size;
    memcpy(&size, &bits, sizeof(T));
    return size;
}

// The greatest key of a warp, in all lanes.
__device__ inline unsigned long long greatest_key(unsigned long long key) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const unsigned long long other = __shfl_xor_sync(FULL, key, distance);
        key = other > key ? other : key;
    }
    return key;
}
__device__ inline unsigned greatest_key(unsigned key) {
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800) || defined(CUDALAB_CPU)
    return __reduce_max_sync(FULL, key);
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const unsigned other = __shfl_xor_sync(FULL, key, distance);
        key = other > key ? other : key;
    }
    return key;
#endif
}

// The state that the threads of an election share, and its result.
struct Election {
    alignas(16) T lines[2][MAX_ELECTION_WARPS][PANEL];  // each warp's best row; two sets in turn
    Key keys[2][MAX_ELECTION_WARPS];
    unsigned chosen[PANEL];                   // the row of each pivot; there are enough rows
    T sizes[PANEL];                           // of the pivots
    alignas(16) T factors[PANEL][PANEL + 4];  // L and U of the chosen rows, [column][row]
};

// `rows` are the thread's own or NONE. The greatest element wins; of equal ones, that of the lowest
// thread, and of its rows the first. So the result does not depend on the order in which warps run.
// Ends with a barrier.
__device__ inline void elect_rows(Election& shared, const T* lu, const T* relative,
                                  const unsigned* row_of, const unsigned (&rows)[ROWS_OF_THREAD],
                                  unsigned ld, unsigned start) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const T smallest = sizeof(T) == 4 ? (T)1.17549435e-38 : (T)2.2250738585072014e-308;
    __align__(16) T v[ROWS_OF_THREAD][PANEL] = {};
    T weights[ROWS_OF_THREAD] = {};
    bool running[ROWS_OF_THREAD];
#pragma unroll
    for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) {
        running[e] = rows[e] != NONE;
        if (!running[e]) continue;
        weights[e] = relative[row_of[rows[e]]];
        const Four* line = reinterpret_cast<const Four*>(lu + (size_t)rows[e] * ld + start);
#pragma unroll
        for (unsigned i = 0; i < PANEL / 4; ++i) reinterpret_cast<Four*>(v[e])[i] = line[i];
    }

    Key best;              // of the warp, in the column of the step
    unsigned first, mine;  // the first lane that has it; which of the thread's rows is better
    auto find_best = [&](unsigned column) {
        Key key = 0;
        mine = 0;
#pragma unroll
        for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) {
            const Key of_row = running[e] ? key_of(fabs(v[e][column]) * weights[e]) : 0;
            if (of_row > key) mine = e;
            key = of_row > key ? of_row : key;
        }
        best = greatest_key(key);
        first = __ffs(__ballot_sync(FULL, key == best)) - 1;
    };
    find_best(0);
    for (unsigned phase = 0; phase < PHASES; ++phase) {
#pragma unroll
        for (unsigned s = 0; s < PHASE; ++s) {
            const unsigned step = phase * PHASE + s, set = s % 2;
            if (lane == first) {
                shared.keys[set][warp] = best;
                Four* line = reinterpret_cast<Four*>(shared.lines[set][warp]);
#pragma unroll
                for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) {
                    if (mine != e) continue;
#pragma unroll
                    for (unsigned i = 0; i < PANEL / 4; ++i)
                        line[i] = reinterpret_cast<Four*>(v[e])[i];
                }
            }
            // All warps have written their best. This set is written again two steps from now,
            // after the next barrier, when all threads have read it.
            __syncthreads();
            const Key of_warp = lane < warps ? shared.keys[set][lane] : 0;
            const Key winning = greatest_key(of_warp);
            const unsigned winner = __ffs(__ballot_sync(FULL, of_warp == winning)) - 1;
            const T* pivot = shared.lines[set][winner];
            const Four* pieces = reinterpret_cast<const Four*>(pivot);
            const T element = pivot[s], of_lane = pivot[lane];
            Four next[PHASE / 4];
#pragma unroll
            for (unsigned i = 0; i < PHASE / 4; ++i) next[i] = pieces[i];
            if (warp == winner && lane == first) {
                shared.sizes[step] = winning ? size_of(winning) : (T)0;
#pragma unroll
                for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) {
                    if (mine != e) continue;
                    shared.chosen[step] = rows[e];
                    running[e] = false;
                }
            }

            // A column of zeros needs no elimination, and any pivot is as good as another. Rows
            // that have dropped out are eliminated with multipliers of zero: no branch.
            const T inverse = fabs(element) < smallest ? (T)0 : reciprocal(element);
            T multipliers[ROWS_OF_THREAD];
#pragma unroll
            for (unsigned e = 0; e < ROWS_OF_THREAD; ++e)
                multipliers[e] = running[e] ? v[e][s] * inverse : (T)0;
            // Eight columns at a time, while the pivot row's next eight are being loaded.
#pragma unroll
            for (unsigned group = 0; group < PHASES; ++group) {
                Four across[PHASE / 4];
#pragma unroll
                for (unsigned i = 0; i < PHASE / 4; ++i) {
                    across[i] = next[i];
                    if (group + 1 < PHASES) next[i] = pieces[(group + 1) * PHASE / 4 + i];
                }
                if (group + phase < PHASES) {  // the others are finished multipliers
#pragma unroll
                    for (unsigned j = 0; j < PHASE; ++j)
#pragma unroll
                        for (unsigned e = 0; e < ROWS_OF_THREAD; ++e)
                            if (group * PHASE + j > s)
                                v[e][group * PHASE + j] -= multipliers[e] * across[j / 4].v[j % 4];
                }
                // The next step's column is up to date: the search for its greatest element waits
                // for the other lanes while the rest is eliminated.
                if (group == (s + 1) / PHASE) find_best(s + 1);
            }
#pragma unroll
            for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) v[e][s] = multipliers[e];
            if (warp == 0) shared.factors[(phase * PHASE + lane) % PANEL][step] = of_lane;
        }
#pragma unroll
        for (unsigned e = 0; e < ROWS_OF_THREAD; ++e) {
            T finished[PHASE];
#pragma unroll
            for (unsigned i = 0; i < PHASE; ++i) finished[i] = v[e][i];
#pragma unroll
            for (unsigned i = 0; i < PANEL - PHASE; ++i) v[e][i] = v[e][i + PHASE];
#pragma unroll
            for (unsigned i = 0; i < PHASE; ++i) v[e][PANEL - PHASE + i] = finished[i];
        }
    }
    __syncthreads();  // all threads can read the result
}
