// Sweeps over the keys need more than the scatter of a chunk: the counts of all digits from one
// read and, for each tile, the look back at the tiles before it.
//
// A status word holds the number of the sweep, a flag and a count in 64 bits. It is written and
// read as a whole, so no fence is needed, and its number makes it stale for the next sweep, so
// nothing has to be cleared.
#pragma once
#include "radixsort/parts/resident_blocks.cuh"
#include "radixsort/parts/scatter_digits.cuh"

using Word = unsigned long long;

constexpr unsigned PASSES = 8 * sizeof(T) / RADIX_BITS;
constexpr unsigned VECTOR_ITEMS = 16 / sizeof(T);
// A chunk, the counters of scatter_chunk, and some words for scans and tickets.
constexpr unsigned SWEEP_BYTES =
    CHUNK_ITEMS * sizeof(T) * (1 + PAIRS) + sizeof(unsigned[WARPS + 1][RADIX]) + 256;
constexpr unsigned RESIDENT_SWEEPS = resident_blocks(BLOCKS_PER_SM, THREADS_PER_BLOCK, SWEEP_BYTES);

struct __align__(16) Vector {
    T items[VECTOR_ITEMS];
};

// volatile: each read goes to memory that other blocks write, each write becomes visible there.
template <class W>
__device__ inline W load(const W* word) {
    return *(const volatile W*)word;
}
__device__ inline void store(Word* word, Word value) {
    *(volatile Word*)word = value;
}

// Clears statuses, and whatever else a kernel keeps for itself, before the first launch.
extern "C" __global__ void clear_words(Word* words, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) words[i] = 0;
}

// counters[pass * RADIX + digit][copy], in shared memory: with more copies, fewer lanes share one.
template <unsigned COPIES, unsigned THREADS = THREADS_PER_BLOCK>
__device__ inline void clear_counters(unsigned* counters) {
    for (unsigned i = threadIdx.x; i < PASSES * RADIX * COPIES; i += THREADS) counters[i] = 0;
}

// Counts the digits of n keys, as thread `first` of `stride` threads; the keys begin at a multiple
// of 16 bytes. LOADS loads of 16 bytes are under way at once: with few blocks it takes several.
template <unsigned COPIES, unsigned LOADS>
__device__ inline void count_keys(const T* keys, unsigned n, unsigned first, unsigned stride,
                                  unsigned* counters) {
    const unsigned copy = threadIdx.x % COPIES;
    const auto count = [&](T key) {
        const Bits bits = ordered_bits(key);
#pragma unroll
        for (unsigned pass = 0; pass < PASSES; ++pass) {
            const unsigned digit = digit_at(bits, pass * RADIX_BITS, RADIX_BITS);
            atomicAdd(&counters[(pass * RADIX + digit) * COPIES + copy], 1u);  // shared by lanes
        }
    };
    const unsigned vectors = n / VECTOR_ITEMS;
    const Vector* const vector = reinterpret_cast<const Vector*>(keys);
    unsigned v = first;
    for (; LOADS > 1 && v + (LOADS - 1) * stride < vectors; v += LOADS * stride) {
        Vector loaded[LOADS];
#pragma unroll
        for (unsigned load = 0; load < LOADS; ++load) loaded[load] = vector[v + load * stride];
#pragma unroll
        for (unsigned load = 0; load < LOADS; ++load)
#pragma unroll
            for (unsigned k = 0; k < VECTOR_ITEMS; ++k) count(loaded[load].items[k]);
    }
    for (; v < vectors; v += stride) {
        const Vector loaded = vector[v];
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) count(loaded.items[k]);
    }
    const unsigned rest = vectors * VECTOR_ITEMS + first;
    if (rest < n) count(keys[rest]);
}

// counts[pass * RADIX + digit] += what this block has counted
template <unsigned COPIES, unsigned THREADS = THREADS_PER_BLOCK>
__device__ inline void add_counters(const unsigned* counters, unsigned* counts) {
    for (unsigned i = threadIdx.x; i < PASSES * RADIX; i += THREADS) {
        unsigned sum = 0;
        for (unsigned c = 0; c < COPIES; ++c) sum += counters[i * COPIES + (c + i) % COPIES];
        if (sum > 0) atomicAdd(&counts[i], sum);  // shared by all blocks
    }
}

// A status: bits 63 to 33 are the sweep's number, bit 32 says whether the count includes the tiles
// before, bits 31 to 0 are the count. AT_ONCE statuses are read together.
template <unsigned AT_ONCE>
struct LookBack {
    Word* statuses;  // [tile][digit]
    unsigned tile, run, digit_start;
    unsigned first_tile = 0;  // the first of those that share digit_start

    __device__ void publish(unsigned digit, unsigned count) {
        store(&statuses[(size_t)tile * RADIX + digit], (Word)run << 33 | count);
    }
    __device__ unsigned first(unsigned digit, unsigned count) {
        unsigned before = 0;
        bool complete = false;
        for (unsigned t = tile; t > first_tile && !complete;) {
            Word status[AT_ONCE];
#pragma unroll
            for (unsigned k = 0; k < AT_ONCE; ++k)
                status[k] =
                    t - first_tile > k ? load(&statuses[(size_t)(t - 1 - k) * RADIX + digit]) : 0;
            bool ready = true;  // all of them so far
#pragma unroll
            for (unsigned k = 0; k < AT_ONCE; ++k) {
                ready = ready && !complete && status[k] >> 33 == run;
                if (!ready) continue;
                before += (unsigned)status[k];
                complete = status[k] >> 32 & 1;
                --t;
            }
        }
        store(&statuses[(size_t)tile * RADIX + digit],
              (Word)run << 33 | 1ull << 32 | (before + count));
        return digit_start + before;
    }
};
