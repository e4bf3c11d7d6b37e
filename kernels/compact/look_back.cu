// /// cudalab
// summary  = "One pass: a block learns from earlier ones what they keep, and reads its items once"
// order    = 4
// adds     = "a look-back over counts: items are read once"
// dispatch = "look_back"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 24 }
// ///
//
// The counts are scanned while the blocks run: a block publishes how many items it keeps, waits
// until the counts before it are known, and moves its items, which have stayed in its registers.
// That is the scan lab's `decoupled_lookback`, with a number for each block of 6144 items instead
// of the items themselves, so what is waited for is small. Every item is read once, and every place
// of the answer is written once: the least there is.
//
// Limits: lanes of a warp write neighbouring places, but not whole sectors of 32 bytes, which two
// warps then share.
//
// Macros from outside: ITEM (element type), THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#define T unsigned
#define OP Sum
#include "common/device/look_back.cuh"
#include "compact/parts/kept_in_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) compact_tiles(
    const ITEM* in, ITEM* out, Word* words, Word* ticket, unsigned n) {
    __shared__ unsigned kept_before;
    const Taken taken = take_tile(words, ticket);

    ITEM items[ITEMS_PER_THREAD];
    unsigned kept[ITEMS_PER_THREAD], total;
    const unsigned count = load_kept(in, taken.tile, n, items, kept);
    const unsigned before = kept_by_earlier_warps(count, total);
    if (threadIdx.x / 32 == 0) {
        if (threadIdx.x == 0) publish(taken.statuses, taken.tile, total);
        const unsigned of_tiles = look_back(taken.statuses, taken.tile, total);
        if (threadIdx.x == 0) kept_before = of_tiles;
    }
    __syncthreads();  // all threads can read what earlier tiles keep
    move_items(out, taken.tile, n, kept_before + before, items, kept);
}

// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back.
// NVIDIA NVR-2016-002, 2016.
