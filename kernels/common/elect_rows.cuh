// Pivot rows of a panel of 32 columns by one block, a thread a row: 32 steps of elimination in
// registers, one barrier a step.
//
// In each step every warp finds its greatest element of the column and lays that element's row into
// shared memory at once, before it is known which warp has the greatest of all. One barrier later
// all warps read the keys of all, agree, and take the pivot row from there: the row of a warp that
// lost costs a few stores, a second barrier would cost more.
//
// The steps come in four phases of eight. Between them the 32 registers of a row rotate by eight,
// so that the loop body addresses registers by constants and is small: the column of a step is
// always among the first eight, and the last ones hold multipliers that are finished.
#include "common/four.cuh"

constexpr unsigned FULL = 0xffffffffu;
constexpr unsigned NONE = 0xffffffffu;  // no row
constexpr unsigned PHASE = 8;           // steps
constexpr unsigned PHASES = PANEL / PHASE;
constexpr unsigned MOST = sizeof(T) == 4 ? MOST_THREADS : MOST_THREADS / 2;  // of an election
constexpr unsigned MOST_WARPS = MOST / 32;

static_assert(PANEL == 32, "a lane for each pivot");
static_assert(MOST >= 64 && MOST <= 1024 && MOST % 32 == 0, "a warp reads the keys of all warps");

// Sizes as whole numbers in the same order, zero for a row that is out of the race. A NaN is above
// all numbers, so that it is seen.
template <unsigned BYTES>
struct KeyOf {
    using type = unsigned long long;
};
template <>
struct KeyOf<4> {
    using type = unsigned;
};
using Key = KeyOf<sizeof(T)>::type;
constexpr Key NOTHING = 1;  // the key of size 0

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

// What the threads of an election share, and its result.
struct Election {
    alignas(16) T lines[2][MOST_WARPS][PANEL];  // the rows of the warps' best; two sets in turn
    Key keys[2][MOST_WARPS];
    unsigned lanes[2][MOST_WARPS];
    unsigned chosen[PANEL];  // the row of each pivot, NONE if there were too few rows
    T sizes[PANEL];          // of the pivots
    alignas(16) T factors[PANEL][PANEL + 4];  // L and U of the chosen rows, [column][row]
};

// `row` is the thread's own or NONE. The greatest element wins, then the lower thread, so the
// result does not depend on the order in which warps run. Ends with a barrier.
__device__ inline void elect_rows(Election& shared, const T* lu, const T* relative,
                                  const unsigned* row_of, unsigned row, unsigned ld,
                                  unsigned start) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    bool running = row != NONE;
    __align__(16) T v[PANEL] = {};
    T weight = 0;
    if (running) {
        weight = relative[row_of[row]];
        const Four* line = reinterpret_cast<const Four*>(lu + (size_t)row * ld + start);
#pragma unroll
        for (unsigned i = 0; i < PANEL / 4; ++i) reinterpret_cast<Four*>(v)[i] = line[i];
    }

    for (unsigned phase = 0; phase < PHASES; ++phase) {
#pragma unroll
        for (unsigned s = 0; s < PHASE; ++s) {
            const unsigned step = phase * PHASE + s, set = s % 2;
            const Key key = running ? key_of(fabs(v[s]) * weight) : 0;
            const Key best = greatest_key(key);
            const unsigned first = __ffs(__ballot_sync(FULL, key == best)) - 1;
            if (lane == first) {
                shared.keys[set][warp] = best;
                shared.lanes[set][warp] = lane;
                Four* line = reinterpret_cast<Four*>(shared.lines[set][warp]);
#pragma unroll
                for (unsigned i = 0; i < PANEL / 4; ++i) line[i] = reinterpret_cast<Four*>(v)[i];
            }
            // All warps have left their best. This set is written again two steps from now, behind
            // the next barrier: who comes there has read it.
            __syncthreads();
            const Key of_warp = lane < warps ? shared.keys[set][lane] : 0;
            const Key winning = greatest_key(of_warp);
            const unsigned winner = __ffs(__ballot_sync(FULL, of_warp == winning)) - 1;
            const T* pivot = shared.lines[set][winner];
            const bool own = warp == winner && lane == shared.lanes[set][winner];
            if (own) {
                shared.chosen[step] = row;
                shared.sizes[step] = winning ? size_of(winning) : (T)0;
                running = false;
            }
            if (warp == 0) shared.factors[(phase * PHASE + lane) % PANEL][step] = pivot[lane];

            if (running) {
                // A column of zeros needs no elimination, and the pivot is as good as any other.
                const T multiplier = winning == NOTHING ? (T)0 : v[s] / pivot[s];
#pragma unroll
                for (unsigned i = 0; i < PANEL / 4; ++i) {
                    if (4 * i + 3 > s && i / 2 + phase < PHASES) {  // else finished multipliers
                        const Four across = reinterpret_cast<const Four*>(pivot)[i];
#pragma unroll
                        for (unsigned j = 0; j < 4; ++j)
                            if (4 * i + j > s) v[4 * i + j] -= multiplier * across.v[j];
                    }
                }
                v[s] = multiplier;
            }
        }
        T finished[PHASE];
#pragma unroll
        for (unsigned i = 0; i < PHASE; ++i) finished[i] = v[i];
#pragma unroll
        for (unsigned i = 0; i < PANEL - PHASE; ++i) v[i] = v[i + PHASE];
#pragma unroll
        for (unsigned i = 0; i < PHASE; ++i) v[PANEL - PHASE + i] = finished[i];
    }
    __syncthreads();  // the result is there for all
}
