// /// cudalab
// summary  = "One pass: a tile looks back at the sums of earlier ones, in fixed groups of tiles"
// order    = 6
// adds     = "tiles look back: items are read once"
// dispatch = "look_back"
// default  = ["cuda"]
// defines  = { THREADS_PER_BLOCK = 256, WORDS_PER_THREAD = 16 }
// ///
//
// The rungs below read every item twice: once for the sums of the tiles, once for the scan. Here a
// block keeps its tile in registers until the sum of all tiles before it is known, so that every
// item is read once and written once. common/device/look_back.cuh explains how blocks communicate.
//
// The published decoupled look-back stops at the first tile with a complete prefix, which depends
// on timing, and so does the rounding of its floats. Here tiles form groups of 32 and of 1024, and
// a tile always adds the same sums in the same order: the same bits in every run.
//
// A thread has WORDS_PER_THREAD words of 4 bytes, or half as many items of 8 bytes.
//
// Limits: while a block waits for those before it, it moves no data.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// WORDS_PER_THREAD.
#define ITEMS_PER_THREAD (WORDS_PER_THREAD * 4 / sizeof(T))
#include "scan/parts/scan_next_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_tiles(const T* in, T* out,
                                                                           Word* words,
                                                                           Word* ticket,
                                                                           unsigned n) {
    scan_next_tile(in, out, words, ticket, n, [](const T*, unsigned) {});
}

// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back.
// NVIDIA NVR-2016-002, 2016.
