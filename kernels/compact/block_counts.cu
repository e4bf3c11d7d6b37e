// /// cudalab
// summary  = "Blocks count what they keep: only the counts are scanned in memory"
// order    = 2
// adds     = "a number for each block instead of one for each item"
// dispatch = "counts"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 8 }
// ///
//
// A block has 2048 items, 256 at a time, and counts those that it will keep; __syncthreads_count is
// a barrier that adds up a flag of each thread. The counts of all blocks are scanned, which is now
// 2048 times less work. Then each block reads its items again and finds their places by itself: the
// kept items of earlier blocks, of its own earlier rows, and the scan of its row's flags.
//
// Limits: items are still read twice, and a row needs a scan of the block with two barriers to
// place 256 items.
//
// Macros from outside: ITEM (element type), THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#include "common/block/block_scan.cuh"
#include "compact/parts/scan_counts.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_kept(const ITEM* in,
                                                                           unsigned* counts,
                                                                           unsigned n) {
    const unsigned start = blockIdx.x * ITEMS_PER_BLOCK;
    unsigned count = 0;
    for (unsigned row = 0; row < ITEMS_PER_THREAD; ++row) {
        const unsigned i = start + row * THREADS_PER_BLOCK + threadIdx.x;
        count += __syncthreads_count(i < n && in[i] != (ITEM)0);
    }
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) move_kept(
    const ITEM* in, const unsigned* kept_before, ITEM* out, unsigned n) {
    const unsigned start = blockIdx.x * ITEMS_PER_BLOCK;
    unsigned before_row = kept_before[blockIdx.x];
    for (unsigned row = 0; row < ITEMS_PER_THREAD; ++row) {
        const unsigned i = start + row * THREADS_PER_BLOCK + threadIdx.x;
        const ITEM item = i < n ? in[i] : (ITEM)0;
        unsigned in_row;
        const unsigned before =
            before_row + exclusive_scan_block<THREADS_PER_BLOCK>(unsigned(item != (ITEM)0), in_row);
        if (item != (ITEM)0)
            out[before] = item;
        else if (i < n)
            out[n - 1 - (i - before)] = (ITEM)0;
        before_row += in_row;
        __syncthreads();  // all warps have read this row's totals
    }
}

// Source: Billeter, Olsson and Assarsson, Efficient Stream Compaction on Wide SIMD Many-Core
// Architectures. High Performance Graphics, 2009.
