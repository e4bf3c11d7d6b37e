// /// cudalab
// summary  = "One pass: a block publishes its tile's sum and looks back at those of earlier tiles"
// order    = 6
// dispatch = "look_back"
// default  = ["cuda"]
// defines  = { THREADS_PER_BLOCK = 256, WORDS_PER_THREAD = 16 }
// ///
//
// The rungs below read every item twice: once for the sums of the tiles, once for the scan. Here a
// block keeps its tile in registers until the sum of all tiles before it is known, so that every
// item is read once and written once. scan/parts/look_back.cuh says how blocks tell each other.
// A thread has WORDS_PER_THREAD words of 4 bytes, so half as many items of 8.
//
// Limits: while a block waits for those before it, it moves no data.
#define ITEMS_PER_THREAD (WORDS_PER_THREAD * 4 / sizeof(T))
#include "scan/parts/look_back.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_tiles(const T* in, T* out,
                                                                           Word* words,
                                                                           Word* ticket,
                                                                           unsigned n) {
    scan_next_tile(in, out, words, ticket, n, [](const T*, unsigned) {});
}
