// /// cudalab
// summary  = "Digits of eight bits, ranked by the votes of a warp"
// order    = 3
// dispatch = "digits"
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 256
// BLOCKS_PER_SM     = 4      # leaves a thread 64 registers: its keys fit without spills
// KEYS_PER_THREAD   = 32     # in registers, for keys of 4 bytes
// TILE_ITEMS        = 8192   # a multiple of 256 * 32
// RADIX_BITS        = 8
// SCAN_THREADS      = 1024
// ITEMS_PER_BLOCK   = 4096   # of the scan
// ///
//
// Eight bits a pass, so four passes for 32-bit keys. 256 counters a thread would not fit into
// shared memory, so a warp shares them and ranks 32 neighbouring keys at once: eight votes tell
// each lane which lanes hold the same digit. The counter says how many such keys came in earlier
// rows, the lanes below come before this one, and the lowest moves the counter on for all. Equal
// digits keep their order.
//
// A block takes a tile, chunk by chunk: count per warp, scan the counts over digits and warps,
// rank, put the keys into digit order in shared memory, write runs of neighbours. A chunk is
// KEYS_PER_THREAD keys of 4 bytes for each thread, or half as many of 8 bytes: 32 KB of the 48 KB
// of shared memory that a block has without asking for more.
// Limits: every pass reads the keys twice, once to count and once to scatter.
#include "common/radix_keys.cuh"
#include "common/scan_blocks.cuh"
#include "common/warp_scan.cuh"

constexpr unsigned RADIX = 1u << RADIX_BITS;
constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
constexpr unsigned ROWS = KEYS_PER_THREAD * 4 / sizeof(T);  // of 32 keys, for each warp
// A block less on a multiprocessor, when values need registers as well.
constexpr unsigned RESIDENT_BLOCKS = PAIRS ? BLOCKS_PER_SM - 1 : BLOCKS_PER_SM;
constexpr unsigned CHUNK_ITEMS = ROWS * THREADS_PER_BLOCK;

static_assert(THREADS_PER_BLOCK % 32 == 0 && THREADS_PER_BLOCK >= RADIX, "a thread for each digit");
static_assert(TILE_ITEMS % CHUNK_ITEMS == 0, "whole chunks");

using Bits = OrderedBits<T>;

// The lanes of this warp whose keys have the same digit, this lane among them. Bits are tested in
// place, by masks that are the same for all lanes. __match_any_sync would say the same in one
// call, but takes a step for each different digit in the warp.
__device__ inline unsigned same_digit_lanes(Bits bits, int shift) {
    unsigned lanes = FULL_WARP;
#pragma unroll
    for (int bit = 0; bit < RADIX_BITS; ++bit) {
        const bool one = (bits & Bits(1) << (shift + bit)) != 0;
        const unsigned ones = __ballot_sync(FULL_WARP, one);
        lanes &= one ? ones : ~ones;
    }
    return lanes;
}

// Have `value` in a register from here on. Left alone, the compiler packs late and keeps both
// halves.
__device__ inline void pin(unsigned& value) {
    asm volatile("" : "+r"(value));
}

// counts[digit * num_tiles + tile]
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) count_digits(
    const T* keys, unsigned* counts, unsigned n, int shift) {
    __shared__ unsigned counters[WARPS][RADIX];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned tile = blockIdx.x, num_tiles = gridDim.x;
    const unsigned tile_start = tile * TILE_ITEMS;
    const unsigned tile_items = n - tile_start < TILE_ITEMS ? n - tile_start : TILE_ITEMS;

    for (unsigned digit = 0; digit < RADIX; digit += 32) counters[warp][digit + lane] = 0;
    __syncwarp();  // a warp counts in counters of its own

    for (unsigned chunk = 0; chunk < tile_items; chunk += CHUNK_ITEMS) {
        // All loads first, so that they are under way together; their order does not matter here.
        // What lies past the end counts as the greatest digit for now: cheaper than a branch a key.
        const unsigned chunk_items = tile_items - chunk;
        const T* first_key = keys + tile_start + chunk + threadIdx.x;
        Bits bits[ROWS];
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const bool inside = row * THREADS_PER_BLOCK + threadIdx.x < chunk_items;
            bits[row] = inside ? ordered_bits(first_key[row * THREADS_PER_BLOCK]) : ~Bits(0);
        }
        // Lanes with the same digit meet in one counter: atomic.
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            atomicAdd(&counters[warp][digit_at(bits[row], shift, RADIX_BITS)], 1u);
    }
    __syncthreads();  // counters are summed across warps

    if (threadIdx.x < RADIX) {
        unsigned sum = 0;
#pragma unroll
        for (unsigned w = 0; w < WARPS; ++w) sum += counters[w][threadIdx.x];
        const unsigned counted = (tile_items + CHUNK_ITEMS - 1) / CHUNK_ITEMS * CHUNK_ITEMS;
        if (threadIdx.x == RADIX - 1) sum -= counted - tile_items;
        counts[threadIdx.x * num_tiles + tile] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_BLOCKS) scatter(
    const T* in, T* out, const unsigned* offsets, unsigned n, int shift) {
    __shared__ Bits staged[CHUNK_ITEMS];
    __shared__ unsigned counters[WARPS][RADIX];  // counts of a warp, then its places in `staged`
    __shared__ unsigned output_shift[RADIX];     // from a place in `staged` to the place in `out`
    __shared__ int hidden_shift;                 // equal to `shift`, unknown to the compiler
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned lanes_below = (1u << lane) - 1;
    const unsigned tile = blockIdx.x, num_tiles = gridDim.x;
    const unsigned tile_start = tile * TILE_ITEMS;
    const unsigned tile_items = n - tile_start < TILE_ITEMS ? n - tile_start : TILE_ITEMS;

    if (threadIdx.x == 0) hidden_shift = shift;
    // Thread d keeps the place in `out` of the tile's next key with digit d.
    unsigned next = threadIdx.x < RADIX ? offsets[threadIdx.x * num_tiles + tile] : 0;

    for (unsigned chunk = 0; chunk < tile_items; chunk += CHUNK_ITEMS) {
        // A warp takes ROWS * 32 neighbouring keys: warp, row, lane is their order in memory. What
        // lies past the end counts as the greatest digit and stays behind all keys.
        const unsigned chunk_items = tile_items - chunk;
        const unsigned first_place = warp * ROWS * 32 + lane;
        const T* first_key = in + tile_start + chunk + first_place;
        Bits bits[ROWS];
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const bool inside = first_place + row * 32 < chunk_items;
            bits[row] = inside ? ordered_bits(first_key[row * 32]) : ~Bits(0);
        }

        // Count, in counters of the warp's own: warp barriers are enough.
        for (unsigned digit = 0; digit < RADIX; digit += 32) counters[warp][digit + lane] = 0;
        __syncwarp();
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            atomicAdd(&counters[warp][digit_at(bits[row], shift, RADIX_BITS)], 1u);
        __syncthreads();  // all warps have counted, and have written out the chunk before

        // Thread d scans digit d: over the digits before it, then over the warps. A counter
        // becomes the place in `staged` of the warp's first key with that digit.
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
                const unsigned warp_count = counters[w][threadIdx.x];
                counters[w][threadIdx.x] = place;
                place += warp_count;
            }
        }
        __syncthreads();  // the places are there

        // Rank. The digits are taken anew, by a shift that the compiler cannot know: it would keep
        // those of the count until here, in as many registers as the keys.
        const int same_shift = hidden_shift;
        unsigned places[PAIRS ? ROWS / 2 : 1];  // two to a register, for the values
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            unsigned& counter = counters[warp][digit_at(bits[row], same_shift, RADIX_BITS)];
            const unsigned lanes = same_digit_lanes(bits[row], shift);
            const unsigned first = counter, below = __popc(lanes & lanes_below);
            __syncwarp();  // all lanes have read before the lowest writes
            if (below == 0) counter = first + __popc(lanes);
            __syncwarp();  // it has written before the next row reads
            const unsigned place = first + below;
            staged[place] = bits[row];
            if constexpr (PAIRS) {
                places[row / 2] = row % 2 ? places[row / 2] | place << 16 : place;
                pin(places[row / 2]);
            }
        }
        __syncthreads();  // the chunk is in digit order

        if constexpr (PAIRS) {
            // A value follows its key: to the same place in `staged`, then to the same in `out`.
            T* staged_values = reinterpret_cast<T*>(staged);
            unsigned digits[ROWS / 4];  // four to a register, of the keys this thread writes
#pragma unroll
            for (unsigned row = 0; row < ROWS; ++row) {
                const unsigned place = row * THREADS_PER_BLOCK + threadIdx.x;
                const Bits key = staged[place];
                const unsigned digit = digit_at(key, shift, RADIX_BITS);
                digits[row / 4] = row % 4 ? digits[row / 4] | digit << row % 4 * 8 : digit;
                pin(digits[row / 4]);
                if (place < chunk_items)
                    out[output_shift[digit] + place] = from_ordered_bits<T>(key);
            }
            __syncthreads();  // all keys are written: their room is free for the values
#pragma unroll
            for (unsigned row = 0; row < ROWS; ++row) {
                const unsigned place = places[row / 2] >> row % 2 * 16 & 0xffff;
                if (first_place + row * 32 < chunk_items)
                    staged_values[place] = first_key[n + row * 32];
            }
            __syncthreads();  // the values are in the order of the keys
#pragma unroll
            for (unsigned row = 0; row < ROWS; ++row) {
                const unsigned place = row * THREADS_PER_BLOCK + threadIdx.x;
                const unsigned digit = digits[row / 4] >> row % 4 * 8 & 0xff;
                if (place < chunk_items)
                    out[n + output_shift[digit] + place] = staged_values[place];
            }
            continue;
        }

        // Neighbours in `staged` are neighbours in `out`, except where the digit changes. A whole
        // chunk needs no conditions, so that the loads of its rows overlap.
        const auto write = [&](unsigned place) {
            const Bits key = staged[place];
            const unsigned digit = digit_at(key, shift, RADIX_BITS);
            out[output_shift[digit] + place] = from_ordered_bits<T>(key);
        };
        if (chunk_items >= CHUNK_ITEMS) {
#pragma unroll
            for (unsigned row = 0; row < ROWS; ++row) write(row * THREADS_PER_BLOCK + threadIdx.x);
        } else {
#pragma unroll 1
            for (unsigned i = threadIdx.x; i < chunk_items; i += THREADS_PER_BLOCK) write(i);
        }
    }
}
