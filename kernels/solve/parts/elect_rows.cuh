// One block finds the pivot rows of a panel of 32 columns, a row per thread: 32 steps of
// elimination in registers.
//
// A step waits for a chain of latencies: the greatest element of the column is found, the
// multipliers follow, and with them the next column, in which the search goes on. To keep it short,
// a key names its thread in its last bits; each warp tells, beside its key, the two numbers of its
// best row that the next column needs, before it is known which warp has the pivot; and the pivot
// row goes through shared memory, for the other columns, while the next column is being searched.
//
// Registers are addressed by constants, and a loop body with all steps would be longer than the
// instruction cache. So each column moves one register to the left as it is eliminated: the column
// of the step is always the first. The steps come in four phases of eight, each a loop over the
// columns that are left; a phase keeps its multipliers in a window of their own, and leaves them in
// the last of the registers that it has freed.
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
static_assert(MAX_ELECTION_THREADS >= 64 && MAX_ELECTION_THREADS <= 1024 &&
                  MAX_ELECTION_THREADS % 32 == 0,
              "a warp reads the keys of all warps; a round has room for more than its winners");

// A row's size and, in the last bits, its thread; zero for a row that has dropped out. Of sizes
// that differ by less than 1 / 8192, the one of the lower thread counts as greater. A NaN cannot
// hide: it is above all others.
using Key = SizeBits;
constexpr Key ALIVE = (Key)1 << (8 * sizeof(T) - 1), THREAD_BITS = 1023;

__device__ inline Key key_of(T size) {
    Key bits;
    memcpy(&bits, &size, sizeof(T));
    return (bits | ALIVE | THREAD_BITS) ^ threadIdx.x;
}
__device__ inline unsigned thread_of(Key key) {
    return ~(unsigned)key & THREAD_BITS;
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

// What the next column needs of a warp's best row.
struct alignas(2 * sizeof(T)) Head {
    T inverse, next;  // 1 / its greatest element; the element right of it
};

// The state that the threads of an election share, and its result.
struct Election {
    Key keys[MAX_ELECTION_WARPS];  // of each warp's greatest element
    Head heads[MAX_ELECTION_WARPS];
    Four rows[MAX_ELECTION_WARPS][8][PANEL / 4];  // a quarter of a warp's rows, while they are read
    alignas(16) T lines[PANEL][PANEL + PHASE];    // the pivot row of each step as it was then
    unsigned chosen[PANEL];                       // the row of each pivot; there are enough rows
    T sizes[PANEL];                               // of the pivots
    alignas(16) T factors[PANEL][PANEL + 4];      // L and U of the chosen rows, [column][row]
};

// Where the line of a step has a column: its registers have moved by then.
__device__ inline unsigned place_of(unsigned column, unsigned step) {
    if (column >= step) return column - step;
    if (column / PHASE == step / PHASE) return PANEL + PHASE + column - step;
    return PANEL - (column / PHASE + 1) * PHASE + column % PHASE;
}

// Reads a row of the panel for each lane, or zeros for NONE; eight lanes read a row of memory
// together. In shared memory the pieces of a row are exchanged by its number, so that neither side
// meets bank conflicts.
__device__ inline void read_rows(T (&v)[PANEL], Four (&quarter)[8][PANEL / 4], const T* panel,
                                 unsigned row, unsigned ld) {
    const unsigned lane = threadIdx.x % 32, of_four = lane / 8, piece = lane % 8;
    Four pieces[PANEL / 4];
#pragma unroll
    for (unsigned i = 0; i < PANEL / 4; ++i) {
        const unsigned from = __shfl_sync(FULL, row, 4 * i + of_four);
        pieces[i] = Four();
        if (from == NONE) continue;
        pieces[i] = reinterpret_cast<const Four*>(panel + (size_t)from * ld)[piece];
    }
#pragma unroll
    for (unsigned q = 0; q < 4; ++q) {
        __syncwarp();  // the quarter before has been read
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
            const unsigned r = 4 * i + of_four;
            quarter[r][piece ^ r] = pieces[2 * q + i];
        }
        __syncwarp();  // the quarter is complete
        if (lane / 8 != q) continue;
#pragma unroll
        for (unsigned i = 0; i < PANEL / 4; ++i)
            reinterpret_cast<Four*>(v)[i] = quarter[lane % 8][i ^ lane % 8];
    }
}

// `row` is the thread's own or NONE. The greatest element wins; of equal ones, that of the lowest
// thread. So the result does not depend on the order in which warps run. Ends with a barrier.
__device__ inline void elect_rows(Election& shared, const T* lu, const T* relative,
                                  const unsigned* row_of, unsigned row, unsigned ld,
                                  unsigned start) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const T smallest = sizeof(T) == 4 ? (T)1.17549435e-38 : (T)2.2250738585072014e-308;
    bool running = row != NONE;  // may still become a pivot
    const T weight = running ? relative[row_of[row]] : (T)0;
    __align__(16) T v[PANEL];
    __align__(16) T finished[PHASE] = {};  // multipliers of the phase, the last ones at the end
    read_rows(v, shared.rows[warp], lu + start, row, ld);

    Key best;         // of the warp, in the column of the step
    T size, inverse;  // of the thread's element, and 1 / it
    auto find_best = [&]() {
        size = fabs(v[0]) * weight;
        best = greatest_key(running ? key_of(size) : 0);
        // A column of zeros needs no elimination, and any pivot is as good as another.
        inverse = fabs(v[0]) < smallest ? (T)0 : reciprocal(v[0]);
    };
    find_best();
#pragma unroll
    for (unsigned phase = 0; phase < PHASES; ++phase) {
        const unsigned active = PANEL - phase * PHASE;  // columns that are not finished
#pragma unroll 1
        for (unsigned s = 0; s < PHASE; ++s) {
            const unsigned step = phase * PHASE + s;
            if (lane == 0) shared.keys[warp] = best;
            if (thread_of(best) == threadIdx.x) shared.heads[warp] = {inverse, v[1]};
            __syncthreads();  // all warps have told their best
            const Key winning = greatest_key(lane < warps ? shared.keys[lane] : 0);
            const Head head = shared.heads[thread_of(winning) / 32];
            Four* line = reinterpret_cast<Four*>(shared.lines[step]);
            if (thread_of(winning) == threadIdx.x) {
#pragma unroll
                for (unsigned i = 0; i < PANEL / 4; ++i) line[i] = reinterpret_cast<Four*>(v)[i];
#pragma unroll
                for (unsigned i = 0; i < PHASE / 4; ++i)
                    line[PANEL / 4 + i] = reinterpret_cast<Four*>(finished)[i];
                shared.chosen[step] = row;
                shared.sizes[step] = size;
                running = false;
            }
            // Rows that have dropped out are eliminated with multipliers of zero: no branch.
            const T multiplier = running ? v[0] * head.inverse : (T)0;
            v[0] = v[1] - multiplier * head.next;
            find_best();
            __syncthreads();  // the pivot row is complete, and all have read keys and heads
#pragma unroll
            for (unsigned i = 0; i < active / 4; ++i) {
                const Four across = line[i];
#pragma unroll
                for (unsigned k = 0; k < 4; ++k)
                    if (4 * i + k >= 2) v[4 * i + k - 1] = v[4 * i + k] - multiplier * across.v[k];
            }
#pragma unroll
            for (unsigned k = 0; k + 1 < PHASE; ++k) finished[k] = finished[k + 1];
            finished[PHASE - 1] = multiplier;
        }
#pragma unroll
        for (unsigned k = 0; k < PHASE; ++k) v[active - PHASE + k] = finished[k];
    }
    for (unsigned e = threadIdx.x; e < PANEL * PANEL; e += blockDim.x) {
        const unsigned step = e / PANEL, column = e % PANEL;
        shared.factors[column][step] = shared.lines[step][place_of(column, step)];
    }
    __syncthreads();  // all threads can read the result
}
