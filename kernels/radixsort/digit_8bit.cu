// /// cudalab
// summary  = "Digits of eight bits, ranked by the votes of a warp"
// order    = 3
// dispatch = "digits"
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 256
// KEYS_PER_THREAD   = 32     # in registers, for keys of 4 bytes
// TILE_ITEMS        = 8192   # a multiple of 256 * 32
// RADIX_BITS        = 8
// SCAN_THREADS      = 1024
// ITEMS_PER_BLOCK   = 4096   # of the scan
// ///
//
// Eight bits a pass, so four passes for 32-bit keys. 256 counters a thread would not fit into
// shared memory, so a warp shares them: 32 neighbouring keys are ranked at once, by eight votes
// that tell each lane which lanes hold the same digit. The lanes below it come before it, the
// counter says how many came in earlier rows, and the lowest lane moves the counter on: no atomics
// with a result, and equal digits keep their order.
//
// A block takes a tile, chunk by chunk: count per warp, scan the counts over digits and warps,
// rank, put the keys into digit order in shared memory, write runs of neighbours. A chunk has
// KEYS_PER_THREAD keys of 4 bytes a thread, or half as many of 8: what 48 KB of shared memory hold.
// Limits: every pass reads the keys twice, once to count and once to scatter.
#include "common/radix_keys.cuh"
#include "common/scan_blocks.cuh"
#include "common/warp_scan.cuh"

constexpr unsigned RADIX = 1u << RADIX_BITS;
constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
constexpr unsigned ROWS = KEYS_PER_THREAD * 4 / sizeof(T);  // of 32 keys, for each warp
constexpr unsigned CHUNK_ITEMS = ROWS * THREADS_PER_BLOCK;

static_assert(THREADS_PER_BLOCK % 32 == 0 && THREADS_PER_BLOCK >= RADIX, "a thread for each digit");
static_assert(TILE_ITEMS % CHUNK_ITEMS == 0, "whole chunks");

using Bits = OrderedBits<T>;

// The lanes of this warp that hold the same digit, this one among them. One __match_any_sync would
// say the same, but it takes as many steps as the warp has different digits.
__device__ inline unsigned same_digit_lanes(unsigned digit) {
    unsigned lanes = FULL_WARP;
#pragma unroll
    for (int bit = 0; bit < RADIX_BITS; ++bit) {
        const bool one = (digit & 1u << bit) != 0;
        const unsigned ones = __ballot_sync(FULL_WARP, one);
        lanes &= one ? ones : ~ones;
    }
    return lanes;
}

// counts[digit * num_tiles + tile]
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS) count_digits(const T* keys,
                                                                             unsigned* counts,
                                                                             unsigned n,
                                                                             int shift) {
    __shared__ unsigned counters[WARPS][RADIX];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned tile = blockIdx.x, num_tiles = gridDim.x;
    const unsigned tile_start = tile * TILE_ITEMS;

    for (unsigned digit = lane; digit < RADIX; digit += 32) counters[warp][digit] = 0;
    __syncwarp();  // a warp counts in its own row only

    for (unsigned chunk = tile_start; chunk < tile_start + TILE_ITEMS; chunk += CHUNK_ITEMS) {
        // All loads first, so that they are under way together. Order does not matter here.
        T key[ROWS];
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const unsigned i = chunk + row * THREADS_PER_BLOCK + threadIdx.x;
            key[row] = i < n ? keys[i] : (T)0;
        }
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const unsigned i = chunk + row * THREADS_PER_BLOCK + threadIdx.x;
            // Lanes with the same digit meet in one counter.
            const unsigned digit = digit_at(ordered_bits(key[row]), shift, RADIX_BITS);
            if (i < n) atomicAdd(&counters[warp][digit], 1u);
        }
    }
    __syncthreads();  // counters are summed across warps

    if (threadIdx.x < RADIX) {
        unsigned sum = 0;
#pragma unroll
        for (unsigned w = 0; w < WARPS; ++w) sum += counters[w][threadIdx.x];
        counts[threadIdx.x * num_tiles + tile] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS) scatter(const T* in, T* out,
                                                                        const unsigned* offsets,
                                                                        unsigned n, int shift) {
    __shared__ Bits staged[CHUNK_ITEMS];
    __shared__ unsigned counters[WARPS][RADIX];  // counts of a warp, then places in `staged`
    __shared__ unsigned output_shift[RADIX];     // from a place in `staged` to the place in `out`
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __shared__ int pass_shift;
    if(threadIdx.x==0) pass_shift=shift;
    const unsigned lanes_below = (1u << lane) - 1;
    const unsigned tile = blockIdx.x, num_tiles = gridDim.x;
    const unsigned tile_start = tile * TILE_ITEMS;
    const unsigned tile_end = n - tile_start < TILE_ITEMS ? n : tile_start + TILE_ITEMS;

    // Thread d keeps the place in `out` of the tile's next key with digit d.
    unsigned next = threadIdx.x < RADIX ? offsets[threadIdx.x * num_tiles + tile] : 0;

    for (unsigned chunk = tile_start; chunk < tile_end; chunk += CHUNK_ITEMS) {
        // Each warp takes neighbouring keys, row by row: (warp, row, lane) is the order in memory.
        // What lies past the end takes the last places of the last digit, behind all keys.
        const unsigned first_key = chunk + warp * ROWS * 32 + lane;
        const T* src = in + first_key;
        const unsigned mine = first_key < tile_end ? tile_end - first_key : 0;
        Bits bits[ROWS];
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const unsigned i = row * 32;
            bits[row] = i < mine ? ordered_bits(src[i]) : ~Bits(0);
        }

        // Count. The warp alone uses its counters here, so warp barriers are enough.
        for (unsigned digit = lane; digit < RADIX; digit += 32) counters[warp][digit] = 0;
        __syncwarp();
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            atomicAdd(&counters[warp][digit_at(bits[row], shift, RADIX_BITS)], 1u);
        __syncthreads();  // all warps have counted, and have written out the chunk before

        // Scan over the digits, and over the warps within a digit: where each warp's first key of
        // each digit goes in `staged`.
        unsigned count = 0, total;
        if (threadIdx.x < RADIX) {
#pragma unroll
            for (unsigned w = 0; w < WARPS; ++w) count += counters[w][threadIdx.x];
        }
        unsigned place = exclusive_scan_block<THREADS_PER_BLOCK>(count, total);
        if (threadIdx.x < RADIX) {
            output_shift[threadIdx.x] = next - place;  // modulo 2^32
            next += count;
#pragma unroll
            for (unsigned w = 0; w < WARPS; ++w) {
                const unsigned in_warp = counters[w][threadIdx.x];
                counters[w][threadIdx.x] = place;
                place += in_warp;
            }
        }
        __syncthreads();  // places are there

        // Rank. All lanes read a counter before the lowest of those that share it moves it on, and
        // the next row reads what that lane wrote: hence two warp barriers.
        const int shift_again = pass_shift;
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const unsigned digit = digit_at(bits[row], shift_again, RADIX_BITS);
            const unsigned lanes = same_digit_lanes(digit);
            const unsigned first = counters[warp][digit];
            const unsigned below = __popc(lanes & lanes_below);
            __syncwarp();
            if (below == 0) counters[warp][digit] = first + __popc(lanes);
            __syncwarp();
            staged[first + below] = bits[row];
        }
        __syncthreads();  // the chunk is in digit order

        const unsigned valid = threadIdx.x<tile_end-chunk ? tile_end - chunk-threadIdx.x:0;
        // Neighbours here are neighbours in `out`, except where the digit changes.
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const unsigned i = row * THREADS_PER_BLOCK;
            if (i < valid) {
                const Bits key = staged[i + threadIdx.x];
                const unsigned digit = digit_at(key, shift, RADIX_BITS);
                out[output_shift[digit] + i + threadIdx.x] = from_ordered_bits<T>(key);
            }
        }
    }
}
