// /// cudalab
// summary  = "Digits of eight bits, ranked by the votes of a warp"
// order    = 3
// adds     = "digits of eight bits: a warp shares counters and ranks by votes"
// dispatch = "digits"
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 256
// BLOCKS_PER_SM     = 4      # leaves a thread 64 registers: its keys fit without spills
// KEYS_PER_THREAD   = 32     # in registers, for keys of 4 bytes
// PAIRS_PER_THREAD  = 16     # with their values
// TILE_ITEMS        = 8192   # a multiple of 256 * 32
// RADIX_BITS        = 8
// SCAN_THREADS      = 1024
// ITEMS_PER_BLOCK   = 4096   # of the scan
// ///
//
// Eight bits a pass, so four passes for 32-bit keys. 256 counters per thread would not fit into
// shared memory, so a warp shares them and ranks 32 neighbouring keys at once: eight votes tell
// each lane which lanes hold the same digit. A key's rank is the digit's counter, which has counted
// the earlier rows, plus the number of these lanes below its own. The lowest of these lanes then
// advances the counter for all of them. Equal digits keep their order.
//
// A block works through a tile chunk by chunk. Each warp counts and ranks its keys; the block scans
// the counts over digits and warps, puts the keys into digit order in shared memory, and writes
// runs of neighbours. A chunk is KEYS_PER_THREAD keys of 4 bytes for each thread, or half as many
// of 8 bytes: 32 KB of the 48 KB of shared memory that a block has without asking for more.
// Limits: every pass reads the keys twice, once to count and once to scatter.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, PAIRS_PER_THREAD, TILE_ITEMS, RADIX_BITS, SCAN_THREADS,
// ITEMS_PER_BLOCK.
#include "radixsort/parts/scan_blocks.cuh"
#include "radixsort/parts/scatter_digits.cuh"

static_assert(TILE_ITEMS % CHUNK_ITEMS == 0, "whole chunks");

// Where a tile's keys go, chunk after chunk: thread d knows the place of the next key with digit d.
struct NextPlaces {
    unsigned next;
    __device__ void publish(unsigned, unsigned) {}
    __device__ unsigned first(unsigned, unsigned count) {
        const unsigned place = next;
        next += count;
        return place;
    }
};

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
        // All loads come first, so that they are under way together; their order does not matter
        // here. Places past the end count as the greatest digit for now, which is cheaper than a
        // branch for each key.
        const unsigned chunk_items = tile_items - chunk;
        const T* first_key = keys + tile_start + chunk + threadIdx.x;
        Bits bits[CHUNK_ROWS];
#pragma unroll
        for (unsigned row = 0; row < CHUNK_ROWS; ++row) {
            const bool inside = row * THREADS_PER_BLOCK + threadIdx.x < chunk_items;
            bits[row] = inside ? ordered_bits(first_key[row * THREADS_PER_BLOCK]) : ~Bits(0);
        }
        // Atomic, since lanes with the same digit share a counter.
#pragma unroll
        for (unsigned row = 0; row < CHUNK_ROWS; ++row)
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

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) scatter(
    const T* in, T* out, const unsigned* offsets, unsigned n, int shift) {
    __shared__ int hidden_shift;
    const unsigned tile = blockIdx.x, num_tiles = gridDim.x;
    const unsigned tile_start = tile * TILE_ITEMS;
    const unsigned tile_items = n - tile_start < TILE_ITEMS ? n - tile_start : TILE_ITEMS;

    if (threadIdx.x == 0) hidden_shift = shift;
    NextPlaces places{threadIdx.x < RADIX ? offsets[threadIdx.x * num_tiles + tile] : 0};
    for (unsigned chunk = 0; chunk < tile_items; chunk += CHUNK_ITEMS)
        scatter_chunk<CHUNK_ROWS>(in, out, n, tile_start + chunk, tile_items - chunk, shift,
                                  hidden_shift, places);
}

// Source: Ashkiani, Davidson, Meyer and Owens, GPU Multisplit. PPoPP, 2016.
