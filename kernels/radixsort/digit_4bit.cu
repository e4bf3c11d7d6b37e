// /// cudalab
// summary  = "Digits of four bits, ranked with counters of each thread's own"
// order    = 2
// adds     = "digits of four bits, counted by each thread for itself"
// dispatch = "digits"
//
// [defines]
// THREADS_PER_BLOCK = 256
// TILE_ITEMS        = 3840   # 15 keys per thread
// RADIX_BITS        = 4
// SCAN_THREADS      = 1024
// ITEMS_PER_BLOCK   = 4096   # of the scan
// ///
//
// Four bits a pass: a quarter of the passes of the one-bit split. count_digits counts the digits of
// every tile. A scan of all counts, digit by digit and tile by tile within a digit, says where the
// keys of each tile and digit go. scatter ranks a tile's keys and writes them there.
//
// A block takes a tile, and each thread ITEMS_PER_THREAD consecutive keys of it. Every thread has
// counters of its own, so no atomics are needed. Scanned digit by digit and thread by thread, the
// counters say how many keys come before a thread's first key with a digit. Keys are put into that
// order in shared memory first, so that the writes to global memory are runs of neighbours.
// Limits: 16 counters per thread fit into shared memory, but 256 would not: longer digits need
// counters that a warp shares.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// TILE_ITEMS, RADIX_BITS, SCAN_THREADS, ITEMS_PER_BLOCK.
#include "common/thread/radix_keys.cuh"
#include "common/warp/warp_scan.cuh"
#include "radixsort/parts/scan_blocks.cuh"

constexpr unsigned RADIX = 1u << RADIX_BITS;
constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
constexpr unsigned ITEMS_PER_THREAD = TILE_ITEMS / THREADS_PER_BLOCK;
// Two 16-bit counters share a word: digits d and d + ROWS are the halves of row d.
constexpr unsigned ROWS = RADIX / 2;

static_assert(TILE_ITEMS % THREADS_PER_BLOCK == 0 && THREADS_PER_BLOCK % 32 == 0, "whole warps");
static_assert(ITEMS_PER_THREAD % 2 == 1, "an odd stride spreads a warp's keys over all banks");
static_assert(TILE_ITEMS < 1 << 16, "a counter has 16 bits");

using Bits = OrderedBits<T>;

__device__ inline unsigned row_of(unsigned digit) {
    return digit % ROWS;
}
__device__ inline unsigned half_of(unsigned digit) {
    return digit / ROWS * 16;
}

// counts[digit * num_tiles + tile]
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_digits(const T* keys,
                                                                             unsigned* counts,
                                                                             unsigned n,
                                                                             int shift) {
    // A thread's counters are a column: its bank is the thread's lane, whatever the digits are.
    __shared__ unsigned counters[ROWS][THREADS_PER_BLOCK];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned tile = blockIdx.x, num_tiles = gridDim.x;

    for (unsigned row = 0; row < ROWS; ++row) counters[row][threadIdx.x] = 0;
    // Which thread counts a key does not matter here, so neighbours take neighbouring keys.
#pragma unroll
    for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
        const unsigned i = tile * TILE_ITEMS + k * THREADS_PER_BLOCK + threadIdx.x;
        const bool inside = i < n;
        const Bits bits = inside ? ordered_bits(keys[i]) : Bits(0);
        const unsigned digit = digit_at(bits, shift, RADIX_BITS);
        counters[row_of(digit)][threadIdx.x] += inside ? 1u << half_of(digit) : 0;
    }
    __syncthreads();  // rows are summed across threads

    for (unsigned row = warp; row < ROWS; row += WARPS) {
        unsigned sum = 0;
        for (unsigned column = lane; column < THREADS_PER_BLOCK; column += 32)
            sum += counters[row][column];
        sum = inclusive_sum_warp(sum);
        if (lane == 31) {
            counts[row * num_tiles + tile] = sum & 0xffff;
            counts[(row + ROWS) * num_tiles + tile] = sum >> 16;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scatter(const T* in, T* out,
                                                                        const unsigned* offsets,
                                                                        unsigned n, int shift) {
    __shared__ Bits staged[TILE_ITEMS];
    __shared__ unsigned counters[ROWS][THREADS_PER_BLOCK];
    __shared__ unsigned row_totals[ROWS];
    __shared__ unsigned digit_starts[RADIX];  // in the tile, once it is in digit order
    __shared__ unsigned output_shift[RADIX];  // from a place in the tile to the place in `out`
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned tile = blockIdx.x, num_tiles = gridDim.x;
    const unsigned tile_start = tile * TILE_ITEMS;

    // Coalesced loads bring the keys to shared memory, where their own thread picks them up. Places
    // past the end get the greatest bit pattern: they count as the last keys of the last digit and
    // stay behind all others.
#pragma unroll
    for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
        const unsigned place = k * THREADS_PER_BLOCK + threadIdx.x;
        staged[place] = tile_start + place < n ? ordered_bits(in[tile_start + place]) : ~Bits(0);
    }
    for (unsigned row = 0; row < ROWS; ++row) counters[row][threadIdx.x] = 0;
    __syncthreads();  // the tile is in shared memory

    // Rank within the thread: how many of its own earlier keys have this digit.
    Bits bits[ITEMS_PER_THREAD];
    unsigned rank[ITEMS_PER_THREAD];
#pragma unroll
    for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
        bits[k] = staged[threadIdx.x * ITEMS_PER_THREAD + k];
        const unsigned digit = digit_at(bits[k], shift, RADIX_BITS);
        unsigned& counter = counters[row_of(digit)][threadIdx.x];
        rank[k] = counter >> half_of(digit) & 0xffff;
        counter += 1u << half_of(digit);
    }
    __syncthreads();  // all counters are final; all keys are in registers

    // A warp scans a row, both halves in one addition: no sum exceeds 16 bits.
    for (unsigned row = warp; row < ROWS; row += WARPS) {
        unsigned before = 0;
        for (unsigned column = lane; column < THREADS_PER_BLOCK; column += 32) {
            const unsigned count = counters[row][column];
            const unsigned inclusive = inclusive_sum_warp(count);
            counters[row][column] = before + inclusive - count;
            before += __shfl_sync(FULL_WARP, inclusive, 31);
        }
        if (lane == 0) row_totals[row] = before;
    }
    __syncthreads();  // row totals are ready

    if (warp == 0) {
        const unsigned digit = lane;
        unsigned count = 0;
        if (digit < RADIX) count = row_totals[row_of(digit)] >> half_of(digit) & 0xffff;
        const unsigned start = inclusive_sum_warp(count) - count;
        if (digit < RADIX) {
            digit_starts[digit] = start;
            output_shift[digit] = offsets[digit * num_tiles + tile] - start;  // modulo 2^32
        }
    }
    __syncthreads();  // digit starts are ready

#pragma unroll
    for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
        const unsigned digit = digit_at(bits[k], shift, RADIX_BITS);
        const unsigned in_digit =
            (counters[row_of(digit)][threadIdx.x] >> half_of(digit) & 0xffff) + rank[k];
        rank[k] = digit_starts[digit] + in_digit;
        staged[rank[k]] = bits[k];
    }
    __syncthreads();  // the tile is in digit order

    if constexpr (PAIRS) {
        // A value follows its key: to the same place in the tile, then to the same place in `out`.
        T* staged_values = reinterpret_cast<T*>(staged);
        unsigned target[ITEMS_PER_THREAD];
#pragma unroll
        for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
            const unsigned place = k * THREADS_PER_BLOCK + threadIdx.x;
            const Bits key = staged[place];
            target[k] = output_shift[digit_at(key, shift, RADIX_BITS)] + place;
            if (tile_start + place < n) out[target[k]] = from_ordered_bits<T>(key);
        }
        __syncthreads();  // all keys are written: their room is free for the values
#pragma unroll
        for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
            const unsigned i = tile_start + threadIdx.x * ITEMS_PER_THREAD + k;
            if (i < n) staged_values[rank[k]] = in[n + i];
        }
        __syncthreads();  // the values are in the order of the keys
#pragma unroll
        for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
            const unsigned place = k * THREADS_PER_BLOCK + threadIdx.x;
            if (tile_start + place < n) out[n + target[k]] = staged_values[place];
        }
        return;
    }

    // A whole tile needs no conditions, so the loads from `staged` overlap.
    const auto write = [&](unsigned place) {
        const Bits key = staged[place];
        const unsigned digit = digit_at(key, shift, RADIX_BITS);
        out[output_shift[digit] + place] = from_ordered_bits<T>(key);
    };
    if (n - tile_start >= TILE_ITEMS) {
#pragma unroll
        for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) write(k * THREADS_PER_BLOCK + threadIdx.x);
    } else {
        for (unsigned i = threadIdx.x; i < n - tile_start; i += THREADS_PER_BLOCK) write(i);
    }
}

// Source: Satish, Harris and Garland, Designing Efficient Sorting Algorithms for Manycore GPUs.
// IPDPS, 2009.
