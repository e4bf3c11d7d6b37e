// /// cudalab
// summary  = "A vote of the warp places 32 items: no scan, one barrier for a block's items"
// order    = 3
// adds     = "votes and bit counts instead of scans"
// dispatch = "counts"
// default  = ["cpu"]
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 8 }
// ///
//
// __ballot_sync gives every lane of a warp the flags of all 32 in one word. The number of kept
// items before a lane's own is then the number of bits below its own: one AND and one population
// count, where a scan takes five shuffles and five additions. A warp has consecutive rows of 32
// items; the counts of the warps meet in shared memory, one word each and one barrier for all 2048
// items.
//
// Limits: the items are read twice, once to be counted, once to be moved.
//
// Macros from outside: ITEM (element type), THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#include "compact/parts/kept_in_tile.cuh"
#include "compact/parts/scan_counts.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_kept(const ITEM* in,
                                                                           unsigned* counts,
                                                                           unsigned n) {
    ITEM items[ITEMS_PER_THREAD];
    unsigned kept[ITEMS_PER_THREAD], total;
    kept_by_earlier_warps(load_kept(in, blockIdx.x, n, items, kept), total);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) move_kept(
    const ITEM* in, const unsigned* kept_before, ITEM* out, unsigned n) {
    ITEM items[ITEMS_PER_THREAD];
    unsigned kept[ITEMS_PER_THREAD], total;
    const unsigned count = load_kept(in, blockIdx.x, n, items, kept);
    const unsigned before = kept_before[blockIdx.x] + kept_by_earlier_warps(count, total);
    move_items(out, blockIdx.x, n, before, items, kept);
}

// Source: Harris and Garland, Optimizing Parallel Prefix Operations for the Fermi Architecture.
// GPU Computing Gems, Jade Edition, 2011.
