// /// cudalab
// summary  = "Kept items meet in shared memory: a block writes them in one piece"
// order    = 5
// adds     = "a tile's kept items are written in one piece"
// dispatch = "look_back"
// default  = ["cuda"]
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 20 }
// ///
//
// A block first puts the items that it keeps next to each other in shared memory; that needs only
// the places within the tile, so it is done before the block waits for the counts of earlier tiles.
// Then neighbouring threads write neighbouring items, 32 at a time, and in the same way the tile's
// zeros: all sectors but those at the two ends are written whole, by one warp.
//
// Compared with look_back: no row of 32 items begins and ends inside a sector of its own.
// Limits: the memory, and the wait for earlier tiles.
//
// Macros from outside: ITEM (element type), THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#define T unsigned
#define OP Sum
#include "common/device/look_back.cuh"
#include "compact/parts/kept_in_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) compact_tiles(
    const ITEM* in, ITEM* out, Word* words, Word* ticket, unsigned n) {
    constexpr unsigned TILE_ITEMS = THREADS_PER_BLOCK * ITEMS_PER_THREAD;
    __shared__ ITEM staged[TILE_ITEMS];
    __shared__ unsigned kept_before;
    const Taken taken = take_tile(words, ticket);

    ITEM items[ITEMS_PER_THREAD];
    unsigned kept[ITEMS_PER_THREAD], total;
    const unsigned count = load_kept(in, taken.tile, n, items, kept);
    unsigned place = kept_by_earlier_warps(count, total);
    if (threadIdx.x == 0) publish(taken.statuses, taken.tile, total);

    const unsigned lane = threadIdx.x % 32, lanes_below = (1u << lane) - 1;
#pragma unroll
    for (unsigned row = 0; row < ITEMS_PER_THREAD; ++row) {
        if (kept[row] >> lane & 1) staged[place + __popc(kept[row] & lanes_below)] = items[row];
        place += __popc(kept[row]);
    }
    if (threadIdx.x / 32 == 0) {
        const unsigned of_tiles = look_back(taken.statuses, taken.tile, total);
        if (lane == 0) kept_before = of_tiles;
    }
    __syncthreads();  // the kept items are in place, and what earlier tiles keep is known

    const unsigned start = taken.tile * TILE_ITEMS;
    const unsigned zeros = min(n - start, TILE_ITEMS) - total, zeros_before = start - kept_before;
    for (unsigned i = threadIdx.x; i < total; i += THREADS_PER_BLOCK)
        out[kept_before + i] = staged[i];
    for (unsigned i = threadIdx.x; i < zeros; i += THREADS_PER_BLOCK)
        out[n - zeros_before - zeros + i] = (ITEM)0;
}

// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back.
// NVIDIA NVR-2016-002, 2016.
