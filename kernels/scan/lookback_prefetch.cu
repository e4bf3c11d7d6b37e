// /// cudalab
// summary  = "The same with a prefetch of a tile far ahead"
// order    = 7
// adds     = "a prefetch while blocks wait"
// dispatch = "look_back"
// defines  = { THREADS_PER_BLOCK = 128, WORDS_PER_THREAD = 72, TILES_AHEAD = 140 }
// ///
//
// `lookback_large_tiles` with one change. Blocks that wait for the sums before them leave the
// memory idle. More blocks at once would not help: all of them wait for the same chain. A prefetch
// into the L2 cache does, of the tile TILES_AHEAD tickets ahead, about 5 MB further on: it keeps
// the memory busy meanwhile. If it were farther ahead, lines would leave the cache before they are
// used.
//
// Limits: a short array has fewer tiles than the device has multiprocessors.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// WORDS_PER_THREAD, TILES_AHEAD.
#define ITEMS_PER_THREAD (WORDS_PER_THREAD * 4 / sizeof(T))
#include "common/thread/prefetch.cuh"
#include "scan/parts/scan_next_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_tiles(const T* in, T* out,
                                                                           Word* words,
                                                                           Word* ticket,
                                                                           unsigned n) {
    scan_next_tile(in, out, words, ticket, n, [](const T* tile, unsigned left) {
        if (threadIdx.x == 0 && left > (TILES_AHEAD + 1) * TILE_ITEMS)
            prefetch_to_l2(tile + TILES_AHEAD * TILE_ITEMS, TILE_ITEMS * sizeof(T));
    });
}

// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back.
// NVIDIA NVR-2016-002, 2016.
