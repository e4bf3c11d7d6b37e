// /// cudalab
// summary  = "Each thread ranks its own run of consecutive keys: no cooperation, no coalescing"
// order    = 4.5
// ladder   = "a core's loop"
// adds     = "a run of consecutive keys per thread"
// dispatch = "digits"
// default  = ["cpu"]
//
// [defines]
// THREADS_PER_BLOCK = 4
// TILES_PER_BLOCK   = 4      # one per thread
// TILE_ITEMS        = 65536
// RADIX_BITS        = 8
// SCAN_THREADS      = 1
// ITEMS_PER_BLOCK   = 4096   # of the scan
// ///
//
// The sequential counting sort, run in parallel: each thread takes a tile of consecutive keys,
// counts their digits in counters of its own and, after the scan of all counts, writes each key to
// its digit's next place. It goes through the tile in order, so the sort is stable. Threads do not
// depend on each other, so there is no barrier, no atomic and no shared memory.
//
// On a CPU a thread is a loop on one core: it reads along cache lines, the 256 counters and the
// lines being written stay in the core's caches, and no time is spent on switching between threads.
// On a GPU the same design is slow: the 32 lanes of a warp read and write 32 places far apart, each
// in a sector of its own; private counters lie in local memory; and n / TILE_ITEMS threads are
// too few to hide the latency of either.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// TILES_PER_BLOCK, TILE_ITEMS, RADIX_BITS, SCAN_THREADS, ITEMS_PER_BLOCK.

#include "common/thread/radix_keys.cuh"

constexpr unsigned RADIX = 1u << RADIX_BITS;

static_assert(THREADS_PER_BLOCK == TILES_PER_BLOCK, "a thread for each tile");
static_assert(SCAN_THREADS == 1, "one thread scans a block's items");

// counts[digit * num_tiles + tile]
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_digits(const T* keys,
                                                                             unsigned* counts,
                                                                             unsigned n,
                                                                             int shift) {
    const unsigned num_tiles = (n + TILE_ITEMS - 1) / TILE_ITEMS;
    const unsigned tile = blockIdx.x * TILES_PER_BLOCK + threadIdx.x;
    if (tile >= num_tiles) return;
    const unsigned start = tile * TILE_ITEMS;
    const unsigned end = n - start < TILE_ITEMS ? n : start + TILE_ITEMS;

    unsigned count[RADIX];
    for (unsigned digit = 0; digit < RADIX; ++digit) count[digit] = 0;
    for (unsigned i = start; i < end; ++i)
        ++count[digit_at(ordered_bits(keys[i]), shift, RADIX_BITS)];
    for (unsigned digit = 0; digit < RADIX; ++digit)
        counts[digit * num_tiles + tile] = count[digit];
}

// Replaces every ITEMS_PER_BLOCK items by their exclusive scan, and writes their sum to block_sums.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_blocks(unsigned* data,
                                                                       unsigned* block_sums,
                                                                       unsigned n) {
    const unsigned start = blockIdx.x * ITEMS_PER_BLOCK;
    const unsigned end = n - start < ITEMS_PER_BLOCK ? n : start + ITEMS_PER_BLOCK;
    unsigned sum = 0;
    for (unsigned i = start; i < end; ++i) {
        const unsigned item = data[i];
        data[i] = sum;
        sum += item;
    }
    block_sums[blockIdx.x] = sum;
}

// data[i] += block_sums[i / ITEMS_PER_BLOCK]
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) add_block_sums(
    unsigned* data, const unsigned* block_sums, unsigned n) {
    const unsigned start = blockIdx.x * ITEMS_PER_BLOCK;
    const unsigned end = n - start < ITEMS_PER_BLOCK ? n : start + ITEMS_PER_BLOCK;
    const unsigned before = block_sums[blockIdx.x];
    for (unsigned i = start; i < end; ++i) data[i] += before;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scatter(const T* in, T* out,
                                                                        const unsigned* offsets,
                                                                        unsigned n, int shift) {
    const unsigned num_tiles = (n + TILE_ITEMS - 1) / TILE_ITEMS;
    const unsigned tile = blockIdx.x * TILES_PER_BLOCK + threadIdx.x;
    if (tile >= num_tiles) return;
    const unsigned start = tile * TILE_ITEMS;
    const unsigned end = n - start < TILE_ITEMS ? n : start + TILE_ITEMS;

    unsigned next[RADIX];
    for (unsigned digit = 0; digit < RADIX; ++digit)
        next[digit] = offsets[digit * num_tiles + tile];
    for (unsigned i = start; i < end; ++i) {
        const T key = in[i];
        const unsigned place = next[digit_at(ordered_bits(key), shift, RADIX_BITS)]++;
        out[place] = key;
        if constexpr (PAIRS) out[n + place] = in[n + i];  // its value
    }
}
